"""Random pipelines, as values: what to build, with either package, and what came out."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import random
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

# ---- Shards ----


def tar(path: Path, members: list[tuple[str, bytes]], mode: str = "w") -> str:
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def image(rng: random.Random, kind: str, size: tuple[int, int], mode: str = "RGB") -> bytes:
    from PIL import Image

    bands = len(mode)
    pixels = np.cumsum(
        np.array([[rng.randint(-9, 9) for _ in range(size[0] * bands)] for _ in range(size[1])]),
        axis=1,
    )
    shape = (size[1], size[0], bands) if bands > 1 else (size[1], size[0])
    made = Image.fromarray((pixels % 256).astype(np.uint8).reshape(shape), mode)
    stream = io.BytesIO()
    options: dict[str, Any] = {}
    if kind == "JPEG":
        options = {
            "quality": rng.choice([30, 75, 95]),
            "subsampling": rng.choice([0, 1, 2]),
            "progressive": rng.random() < 0.3,
            "optimize": rng.random() < 0.3,
        }
    made.save(stream, kind, **options)
    return stream.getvalue()


def damaged_image(rng: random.Random) -> bytes:
    """An image; every fifth is damaged, or none."""
    whole = image(rng, rng.choice(["JPEG", "JPEG", "PNG"]), (rng.randint(8, 20), 12))
    if rng.random() > 0.2:
        return whole
    at = rng.randrange(len(whole))
    return rng.choice(
        [
            whole[:at],
            whole[: len(whole) - 2],
            whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :],
            whole[:2] + b"\x00" * 20,
            b"no image",
            b"",
        ]
    )


def corpora(folder: Path) -> dict[str, list[str]]:
    """Shards of several kinds, by name."""
    rng = random.Random(0)
    made: dict[str, list[str]] = {}

    def fields(i: int) -> list[tuple[str, bytes]]:
        return [
            ("txt", f"text {i} é".encode()),
            ("cls", str(i % 7).encode()),
            ("json", json.dumps({"i": i, "l": [1, None]} if i % 3 else None).encode()),
        ]

    def shards(name: str, count: int, samples: Any, suffix: str = ".tar", mode: str = "w") -> None:
        made[name] = [
            tar(
                folder / f"{name}-{n:02d}{suffix}",
                [(f"{key}.{ext}", data) for key, each in samples(n) for ext, data in each],
                mode,
            )
            for n in range(count)
        ]

    shards("plain", 5, lambda n: [(f"{n}/{i:03d}", fields(10 * n + i)) for i in range(3 + 5 * n)])
    shards("gz", 2, lambda n: [(f"g{n}{i}", fields(i)) for i in range(7)], ".tar.gz", "w:gz")
    shards(
        "arrays",
        3,
        lambda n: [
            (
                f"a{n}{i}",
                [
                    ("npy", npy(np.full((2, 3), i, rng.choice(["f4", "<i8", "u1"])))),
                    ("x.npy", npy(np.asfortranarray(np.arange(6).reshape(2, 3) + i))),
                    ("cls", b" %d " % i),
                    ("bin", bytes([i] * i)),
                    ("note.txt.gz", gzip.compress(b"packed %d" % i)),
                ],
            )
            for i in range(6)
        ],
    )
    shards(
        "images",
        2,
        lambda n: [
            (
                f"p{n}{i}",
                [
                    (rng.choice(["jpg", "JPEG"]), image(rng, "JPEG", (9 + i, 12), mode))
                    if i % 3
                    else ("png", image(rng, "PNG", (9 + i, 12), mode)),
                    ("cls", str(i).encode()),
                ],
            )
            for i in range(9)
            for mode in [rng.choice(["RGB", "RGB", "L"])]
        ],
    )
    shards(
        "damaged",
        3,
        lambda n: [
            (
                f"m{n}{i:02d}",
                [
                    (rng.choice(["jpg", "jpg", "png"]), damaged_image(rng)),
                    ("cls", b"no number" if rng.random() < 0.1 else str(i).encode()),
                ],
            )
            for i in range(8 + 15 * n)
        ],
    )
    shards(
        "uneven",
        2,
        lambda n: [
            (
                f"u{n}{i}",
                [("TXT", b"up"), *([("cls", b"1")] if i % 2 else []), ("b.C.d", b"x")],
            )
            for i in range(8)
        ],
    )
    shards(
        "bad",
        3,
        lambda n: [
            (
                f"b{n}{i}",
                [("cls", b"abc" if (n + i) % 4 == 1 else b"5"), ("txt", b"\xff" * (i % 2))],
            )
            for i in range(6)
        ],
    )
    made["names"] = [
        tar(
            folder / "names-0.tar",
            [
                ("a.txt", b"1"),
                ("README", b"r"),
                ("__index__", b"i"),
                ("__meta__.json", b"{}"),
                ("__m__/x.txt", b"m"),
                ("sub/__m__/x.txt", b"s"),
                ("d/.hidden", b"h"),
                ("d/.hidden2", b"h"),
                ("./q.txt", b"q"),
                ("a.b/c.d.e", b"e"),
                ("k..txt", b"t"),
                ("e.", b""),
                ("__x.txt", b"_"),
                ("ü/ö.tXt", b"u"),
            ],
        ),
        tar(
            folder / "names-1.tar",
            [("a.É", b"1"), ("a.é2", b"2"), ("b.__bad__", b"1"), ("c.txt", b"3"), ("c.x", b"")],
        ),
        tar(folder / "names-2.tar", [(f"d{i}/._x.jpg", b"m") for i in range(3)]),
    ]
    twice = [("0.txt", b"1"), ("0.cls", b"2"), ("0.txt", b"3"), ("0.bin", b"4"), ("1.txt", b"5")]
    made["twice"] = [
        tar(folder / "twice-0.tar", [("z.txt", b"0"), *twice, ("z.txt", b"again")]),
        made["plain"][0],
        tar(folder / "twice-1.tar", [("c.__url__", b"u"), ("c.txt", b"t")]),
    ]
    (folder / "no.tar").write_bytes(b"no tar at all, but text" * 100)
    (folder / "empty.tar").write_bytes(b"")
    made["faults"] = [
        made["plain"][0],
        str(folder / "no.tar"),
        made["plain"][1],
        str(folder / "missing.tar"),
        str(folder / "empty.tar"),
        made["gz"][0],
    ]
    made["damaged faults"] = [
        made["damaged"][0],
        made["images"][0],
        str(folder / "no.tar"),
        made["damaged"][1],
        "nosuch:shard",
        str(folder / "missing.tar"),
        made["damaged"][2],
        str(folder / "missing.tar"),
    ]
    made["nothing"] = [tar(folder / "nothing.tar", [])]
    return made


# ---- Functions of the program ----


def add_size(sample: Any) -> Any:
    return {**sample, "size": len(sample), "__key__": "other"}


def drop_some(sample: Any) -> Any:
    return None if hash(str(sample.get("__key__"))[-1:]) % 1 or "1" in sample["__key__"] else sample


def fail_some(sample: Any) -> Any:
    if "2" in sample["__key__"]:
        raise KeyError("two")
    return sample


def to_list(sample: Any) -> Any:
    return sorted(sample)


def is_even(sample: Any) -> bool:
    key = sample["__key__"] if isinstance(sample, dict) else str(sample)
    return sum(key.encode("utf-8", "replace")) % 2 == 0


def text_of(value: Any) -> str:
    return repr(value)[:40]


def upper(name: str) -> str:
    return name.upper()


def short(name: str) -> bool:
    return len(name) < 9


def no_json(name: str) -> bool:
    if name.endswith("3.json"):
        raise OSError("not this one")
    return not name.endswith("json")


class Record:
    """A handler that writes down what it was given, among what came out."""

    def __init__(self, answer: bool, outcome: list[Any]) -> None:
        self.answer = answer
        self.outcome = outcome

    def __call__(self, exn: Exception) -> bool:
        self.outcome.append(("handler", names_of(exn)))
        return self.answer


def names_of(exn: BaseException) -> Any:
    return [kind.__name__ for kind in type(exn).__mro__]


# ---- Pipelines ----


class Spec:
    """A random pipeline."""

    def __init__(self, seed: int, made: dict[str, list[str]]) -> None:
        rng = self.rng = random.Random(seed)
        self.seed = seed
        self.corpus = rng.choice(sorted(made))
        self.environment: dict[str, str] = {}
        self.handler = rng.choice(["reraise", "reraise", "continue", "stop", "record", "end"])
        urls = made[self.corpus]
        if rng.random() < 0.3:
            urls = rng.sample(urls, len(urls))
        if rng.random() < 0.2:
            urls = urls + urls[:1]
        self.source = self._source(urls)
        self.stages = self._stages()
        self.end = rng.choice([None, None, None, ("with_epoch", rng.randint(1, 30)), ("repeat", 2)])

    def _source(self, urls: list[str]) -> tuple[str, Any, dict[str, Any]]:
        rng = self.rng
        kind = rng.choice(["dataset"] * 6 + ["pipeline"] * 2 + ["mix", "turns"])
        kw: dict[str, Any] = {}
        if kind == "pipeline":
            return kind, urls, {"split": rng.random() < 0.5, "shuffle": rng.random() < 0.5}
        if kind in ("mix", "turns"):
            return kind, urls, {"longest": rng.random() < 0.5}
        if rng.random() < 0.15:
            kw["resampled"] = True
        else:
            kw["shardshuffle"] = rng.choice([False, False, 2, 100])
        if rng.random() < 0.5:
            kw["seed"] = rng.randint(0, 99)
        if rng.random() < 0.2:
            kw["detshuffle"] = True
            kw["seed"] = rng.randint(0, 99)
        if rng.random() < 0.2:
            kw["empty_check"] = False
        if rng.random() < 0.2:
            self.environment.update(WORKER=str(rng.randint(0, 1)), NUM_WORKERS="2")
        if rng.random() < 0.2:
            self.environment.update(RANK=str(rng.randint(0, 1)), WORLD_SIZE="2")
            kw["nodesplitter"] = rng.choice(["split_by_node", "split_by_node", None, "default"])
            if kw["nodesplitter"] == "default":
                del kw["nodesplitter"]
        if rng.random() < 0.15:
            kw["select_files"] = rng.choice([short, no_json])
        if rng.random() < 0.15:
            kw["rename_files"] = upper
        return kind, urls, kw

    def _stages(self) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
        rng = self.rng
        stages: list[Any] = []
        state = "dict"
        for _ in range(rng.randint(0, 6)):
            stage, state = self._stage(state)
            stages.append(stage)
        if self.source[2].get("resampled"):
            stages.append(("slice", (rng.randint(1, 25),), {}))
        return stages

    def _stage(self, state: str) -> tuple[Any, str]:
        rng = self.rng
        common = [
            ("shuffle", (rng.randint(0, 20),), {"seed": rng.randint(0, 9)}),
            (
                "shuffle",
                (rng.randint(1, 20),),
                {"initial": rng.randint(0, 25), "seed": str(rng.randint(0, 9))},
            ),
            ("slice", (rng.randint(0, 30),), {}),
            ("slice", (rng.randint(0, 5), rng.randint(5, 40), rng.randint(1, 3)), {}),
            ("rsample", (rng.choice([0.3, 0.9, 1.0]),), {}),
            ("mcached", (), {}),
        ]
        if state == "dict":
            spec = rng.choice(["rgb8", "l8", "rgb", "l", "rgba8", "torchrgb8", "torch", "pil"])
            stay = [
                ("decode", (), {"handler": True}),
                ("decode", (spec,), {"handler": True}),
                ("decode", (), {"only": rng.choice(["cls", ["txt", "cls"]]), "handler": True}),
                ("decode", (), {"partial": True, "handler": True}),
                ("select", (is_even,), {}),
                ("map", (rng.choice([add_size, drop_some, fail_some]),), {"handler": True}),
                ("map_dict", (), {rng.choice(["txt", "cls", "png"]): text_of, "handler": True}),
                ("rename", (), {"image": "jpg;png;jpeg", "handler": True}),
                ("rename", (), {"x": "txt;cls", "keep": rng.random() < 0.7, "handler": True}),
                ("rename_keys", (), {"t": "*t", "c": "cls", "must_match": rng.random() < 0.3}),
                ("rename_keys", (("t", "tx*"),), {"keep_unselected": True, "must_match": False}),
                ("xdecode", (), {"must_decode": rng.random() < 0.2}),
                ("xdecode", (("*.txt", io.BytesIO.read),), {"must_decode": False}),
            ]
            leave = [
                (("to_tuple", ("txt", "cls"), {"handler": True}), "tuple"),
                (("to_tuple", ("__key__", "cls"), {"handler": True}), "tuple"),
                (("to_tuple", ("jpg;png;txt;npy cls",), {"missing_is_error": False}), "tuple"),
                (("to_tuple", ("__key__ jpg;png;jpeg",), {"handler": True}), "tuple"),
                (("extract_keys", ("*.txt", "c*"), {"ignore_missing": True}), "tuple"),
                (("extract_keys", ("__key__", "npy;txt"), {"duplicate_is_error": False}), "tuple"),
                (("map", (to_list,), {"handler": True}), "other"),
                (("listed", (rng.randint(1, 5),), {}), "list"),
                (("batched", (rng.randint(1, 6),), {"partial": rng.random() < 0.7}), "batch"),
            ]
            if rng.random() < 0.7:
                return rng.choice(stay + common), "dict"
            return rng.choice(leave)
        if state == "tuple":
            choices = [
                (("map_tuple", (text_of, None), {"handler": True}), "tuple"),
                (("batched", (rng.randint(1, 7),), {"partial": rng.random() < 0.7}), "batch"),
                (("batched", (rng.randint(1, 7),), {"collation_fn": None}), "list"),
                (("listed", (3,), {}), "list"),
                *((stage, "tuple") for stage in common),
            ]
            return rng.choice(choices)
        if state == "batch":
            choices = [
                (("unbatched", (), {}), "tuple"),
                *((stage, "batch") for stage in common),
            ]
            return rng.choice(choices)
        if state == "list":
            return rng.choice([(("unlisted", (), {}), "other"), (("slice", (4,), {}), "list")])
        return rng.choice([(stage, "other") for stage in common])

    def __repr__(self) -> str:
        parts = [
            f"corpus={self.corpus} handler={self.handler} {self.environment}",
            str(self.source),
        ]
        return "\n  ".join([f"Spec({self.seed})", *parts, *map(str, self.stages), str(self.end)])


def built(wds: Any, spec: Spec, handler: Any) -> Any:
    kind, urls, options = spec.source
    if kind == "pipeline":
        stages = [wds.SimpleShardList(urls, seed=3 if options["shuffle"] else None)]
        if options["split"]:
            stages += [wds.split_by_node, wds.split_by_worker]
        stages.append(wds.tarfile_to_samples(handler=handler))
        pipeline = wds.FluidWrapper(stages[0])
        pipeline = pipeline.compose(*stages[1:])
    elif kind in ("mix", "turns"):
        parts = [
            wds.WebDataset(part, shardshuffle=False, handler=handler, empty_check=False)
            for part in (urls[:2], urls[1:] or urls)
        ]
        mixed = (wds.RandomMix if kind == "mix" else wds.RoundRobin)(parts, **options)
        pipeline = wds.FluidWrapper(mixed)
    else:
        options = dict(options)
        if isinstance(options.get("nodesplitter"), str):
            options["nodesplitter"] = getattr(wds, options["nodesplitter"])
        if options.pop("resampled", False):
            pipeline = wds.WebDataset(urls, handler=handler, shardshuffle=None, **options)
            pipeline.pipeline[0] = wds.ResampledShards(
                urls, nshards=12, deterministic=True, seed=spec.seed
            )
        else:
            pipeline = wds.WebDataset(urls, handler=handler, **options)
    for name, args, kw in spec.stages:
        if "handler" in kw:
            kw = {**kw, "handler": handler}
        pipeline = getattr(pipeline, name)(*args, **kw)
    if spec.end is not None:
        name, count = spec.end
        pipeline = getattr(pipeline, name)(count)
    return pipeline


class EndedError(Exception):
    """What a handler of a program raises."""


def end(exn: BaseException) -> bool:
    raise EndedError(names_of(exn)[0]) from exn


def run(wds: Any, spec: Spec, passes: int = 2) -> list[Any]:
    """What comes out of several passes: samples, and the exception that ended each."""
    outcome: list[Any] = []
    record = Record(spec.rng is not None and spec.seed % 3 > 0, outcome)
    handler = {
        "reraise": wds.reraise_exception,
        "continue": wds.ignore_and_continue,
        "stop": wds.ignore_and_stop,
        "record": record,
        "end": end,
    }[spec.handler]
    before = dict(os.environ)
    os.environ.update(spec.environment)
    random.seed(spec.seed)
    np.random.seed(spec.seed)
    try:
        pipeline = built(wds, spec, handler)
        if hasattr(pipeline, "engine"):
            pipeline = pipeline.engine(threads=1 + spec.seed % 3)
        for _ in range(passes):
            try:
                for sample in itertools.islice(pipeline, 500):
                    outcome.append(canonical(sample))
            except Exception as exn:
                outcome.append(("raised", names_of(exn), str(exn)))
        outcome.append(("random", random.random()))
    except Exception as exn:
        outcome.append(("not built", names_of(exn), str(exn)))
    finally:
        os.environ.clear()
        os.environ.update(before)
    return outcome


def canonical(value: Any) -> Any:
    """Types and values, so that they can be compared."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, [(name, canonical(each)) for name, each in value.items()]
    if isinstance(value, (list, tuple)):
        return kind, [canonical(each) for each in value]
    if isinstance(value, np.ndarray):
        flags = value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable
        data = canonical(value.tolist()) if value.dtype.hasobject else value.tobytes()
        return kind, str(value.dtype), value.dtype.str, value.shape, flags, data
    if kind == "Tensor":
        return kind, str(value.dtype), tuple(value.shape), value.stride(), value.numpy().tobytes()
    if hasattr(value, "tobytes") and hasattr(value, "mode"):
        return kind, value.mode, value.size, value.tobytes()
    if isinstance(value, float):
        return kind, repr(value)  # a NaN equals itself here
    return kind, value


def with_sorted_dicts(value: Any) -> Any:
    """What canonical() made, without the order of the keys of dicts."""
    if isinstance(value, tuple) and value[:1] == ("dict",):
        return "dict", {name: with_sorted_dicts(each) for name, each in value[1]}
    if isinstance(value, (list, tuple)):
        return [with_sorted_dicts(each) for each in value]
    return value


def original_name(names: list[str]) -> str:
    """The class that the original would have raised, of the classes of an exception."""
    for name, known in (("FileNotFoundError",) * 2, ("ReadError", "TarError")):
        if known in names:
            return name
    return names[0]


def difference(
    expected: list[Any],
    found: list[Any],
    batches_of_dicts: bool,
) -> str | None:
    """What differs; None where nothing does that is promised."""
    if len(expected) != len(found):
        shown = short_list(expected), short_list(found)
        return f"{len(expected)} outcomes, not {len(found)}:\n" + "\n".join(shown)
    for number, (a, b) in enumerate(zip(expected, found)):
        if a == b:
            continue
        if batches_of_dicts and with_sorted_dicts(a) == with_sorted_dicts(b):
            continue  # the original has the order of a set
        if a[0] in ("raised", "not built") and b[0] == a[0] and a[1][0] in b[1]:
            continue  # the class of the original is a base of ours
        if a[0] == b[0] == "handler" and original_name(a[1]) == original_name(b[1]):
            continue
        return f"outcome {number}:\n{str(a)[:600]}\n{str(b)[:600]}"
    return None


def short_list(outcome: list[Any]) -> str:
    return "\n".join(str(each)[:160] for each in outcome[-6:])
