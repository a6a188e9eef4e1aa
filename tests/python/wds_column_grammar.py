"""Random pipelines of the stages that run on columns, over fields of every kind."""

from __future__ import annotations

import io
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from wds_grammar import Spec, add_size, fail_some, is_even, npy, tar, text_of

Fields = list[tuple[str, bytes]]


def array(rng: random.Random, shape: tuple[int, ...], dtype: str, fortran: bool = False) -> bytes:
    made = np.array([rng.randint(0, 1 << 20) for _ in range(int(np.prod(shape)))])
    with np.errstate(over="ignore"):  # float16
        made = made.astype(dtype).reshape(shape)
    return npy(np.asfortranarray(made) if fortran else made)


def version_2(data: bytes) -> bytes:
    """The same array with a header of version 2."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.load(io.BytesIO(data)), version=(2, 0))
    return stream.getvalue()


def odd_array(rng: random.Random) -> bytes:
    """An .npy file that is not of the usual kind, or none."""
    plain = array(rng, (3, 2), "f4")
    return rng.choice(
        [
            npy(np.zeros((0, 3), "f4")),
            npy(np.zeros(3, [("a", "i4"), ("b", "f8")])),
            npy(np.array([{"a": 1}, None], dtype=object)),
            npy(np.array(["2020-01-01"], "M8[D]")),
            npy(np.zeros(2, "S0")),
            version_2(plain),
            plain + b"more",
            plain[:-1],
            plain[: rng.randint(0, 40)],
            plain.replace(b"False", b"0    "),
            plain.replace(b"<f4", b">f4"),
            plain.replace(b"(3, 2)", b"(3,-2)"),
            b"",
        ]
    )


NUMBERS = [b" 12 ", b"+3", b"-7\n", b"1_000", b"0", b"9" * 30, b"007", b"-0", b"\t4\r\n"]
NO_NUMBERS = [b"", b"3.0", b"abc", b"1__0", b"0x1", b"- 1", b"1\x00", "٣".encode(), b"\xb2"]
JSON = [b"null", b"1", b'"t"', b"[1, NaN]", b'{"a": {"b": [null]}}', b" true ", "\ufeff1".encode()]
JSON += ['{"k": "é"}'.encode("utf-16"), b"-Infinity", b'{"a": 1, "a": 2}', b'"\\ud800"']
NO_JSON = [b"", b"{", b"1 2", b"\xff", b"'a'", b"[1,]"]


def draws(sample: Any) -> bool:
    """Keeps most; it shows how often it was called."""
    return random.random() < 0.9


def marks(sample: Any) -> int:
    """Changes some samples, and keeps the last ones that it saw."""
    if sample["__key__"][-2:] in ("31", "77"):
        sample["txt"] = b"marked"
    if sample["__key__"][-2:] == "53":
        del sample["cls"]
    if sample["__key__"][-2:] == "64":
        sample["cls"] = sample.pop("cls")
    return 1


def fails_late(sample: Any) -> bool:
    if sample["__key__"].endswith("68"):
        raise LookupError("no answer")
    return True


PREDICATES = [is_even, bool, bool, draws, marks, fails_late]


def rare(rng: random.Random, usual: Any, other: Callable[[], Any], often: float = 0.03) -> Any:
    return other() if rng.random() < often else usual


def kinds(rng: random.Random) -> dict[str, Callable[[int, int], Fields]]:
    """The fields of sample i of shard n, for each kind of data set."""
    types = ["f4", "f8", "f2", ">f4", ">i8", "u1", "?", "<U3", ">U2", "S4", "c8", "i2"]

    def label(i: int) -> tuple[str, bytes]:
        return "cls", str(i % 7).encode()

    def numbers(bad: float) -> bytes:
        return rng.choice(NO_NUMBERS if rng.random() < bad else NUMBERS)

    def shape() -> tuple[int, ...]:
        return tuple(rng.randint(1, 4) for _ in range(rng.randint(0, 3)))

    return {
        "same": lambda n, i: [("npy", array(rng, (3, 5), "f4")), label(i), ("txt", b"t%d" % i)],
        "turned": lambda n, i: [
            ("npy", array(rng, (2, 3, 4), "i4", fortran=n != 1 or i % 9 == 0)),
            label(i),
            ("x.npy", array(rng, (2, 5), types[n], fortran=True)),
        ],
        "types": lambda n, i: [
            ("npy", array(rng, (4,), types[(3 * n + i // 20) % len(types)])),
            ("y.npy", array(rng, (), types[(n + i // 40) % len(types)])),
            label(i),
        ],
        "shapes": lambda n, i: [
            ("npy", array(rng, rare(rng, (2, 2), shape), "f4")),
            ("z.npy", array(rng, (1 + i // 10, 2) if n else (2, 2), "u1")),
            label(i),
        ],
        "odd": lambda n, i: [
            ("npy", rare(rng, array(rng, (3, 2), "f4"), lambda: odd_array(rng), 0.02 * (n + 1))),
            label(i),
        ],
        "large": lambda n, i: [("npy", array(rng, (40, 30 + n), "f8")), label(i)],
        "numbers": lambda n, i: [
            ("cls", numbers(0.02 * n)),
            ("id", numbers(0.0)),
            ("txt", rare(rng, "é".encode() * (i % 5), lambda: b"\xff", 0.01)),
        ],
        "json": lambda n, i: [
            ("json", rng.choice(NO_JSON) if rng.random() < 0.02 * n else rng.choice(JSON)),
            ("jsn", json.dumps({"i": i}).encode()),
            label(i),
        ],
        "uneven": lambda n, i: [
            *([("npy", array(rng, (2,), "f4"))] if rng.random() < 0.9 else []),
            *([label(i)] if n or rng.random() < 0.95 else [("cls2", b"1")]),
            ("txt", b"u"),
        ],
        "pickled": lambda n, i: [
            ("txt", b"p"),
            label(i),
            *([("pkl", pickle.dumps({"i": i}))] if n == 1 else []),
            *([("npz", b"no npz")] if i == 30 else []),
        ],
        "many": lambda n, i: [("cls", b"%d" % i)],
    }


def corpora(folder: Path) -> dict[str, list[str]]:
    """Shards of several kinds, by name; most have several blocks."""
    rng = random.Random(1)
    made: dict[str, list[str]] = {}
    for kind, fields in kinds(rng).items():
        count = 400 if kind == "many" else 70
        made[kind] = [
            tar(
                folder / f"{kind}-{n}.tar",
                [
                    (f"{kind[:1]}{n}{i:03d}.{extension}", data)
                    for i in range(count + 30 * n)
                    for extension, data in fields(n, i)
                ],
            )
            for n in range(3)
        ]
    (folder / "text.tar").write_bytes(b"no tar at all, but text" * 100)
    missing = [str(folder / "missing.tar"), str(folder / "text.tar")]
    small = tar(folder / "small.tar", [(f"s{i}.{e}", b"5") for i in range(9) for e in ("cls", "x")])
    made["faults"] = [made["odd"][2], missing[0], made["numbers"][2], missing[1], made["same"][0]]
    made["small"] = [made["same"][0], small, made["json"][0]]
    return made


class ColumnSpec(Spec):
    """A random pipeline of decode(), stages that choose fields, and batched()."""

    def _source(self, urls: list[str]) -> tuple[str, Any, dict[str, Any]]:
        source = super()._source(urls)
        if self.rng.random() < 0.7:  # most are read in blocks
            for name in ("select_files", "rename_files"):
                source[2].pop(name, None)
        return source

    def _stages(self) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
        rng = self.rng
        stages: list[Any] = []
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            stages.append(self._before())
        choosing = [self._rename() for _ in range(rng.choice([0, 0, 0, 1, 2]))]
        if rng.random() < 0.8:
            choosing.insert(rng.randint(0, len(choosing)), self._decode())
        if choosing and choosing[0][0] == "decode" and rng.random() < 0.3:
            for _ in range(rng.choice([1, 1, 2])):
                choosing.insert(0, ("select", (rng.choice(PREDICATES),), {}))
        stages += choosing
        if rng.random() < 0.1:
            stages.append(rng.choice([self._decode(), ("map", (add_size,), {"handler": True})]))
        if rng.random() < 0.75:
            stages.append(self._tuple())
        if rng.random() < 0.1:
            stages.append(("shuffle", (5,), {"seed": 3}))
        if rng.random() < 0.8:
            stages.append(self._batched())
            if rng.random() < 0.3:
                stages.append(("unbatched", (), {}))
                stages.append(self._batched())
        if self.source[2].get("resampled"):
            stages.append(("slice", (rng.randint(1, 25),), {}))
        return stages

    def _before(self) -> Any:
        rng = self.rng
        size = rng.randint(0, 90)
        return rng.choice(
            [
                ("shuffle", (size,), {"seed": rng.randint(0, 9)}),
                ("shuffle", (size,), {"initial": rng.randint(0, 99), "seed": rng.randint(0, 9)}),
                ("shuffle", (size,), {"initial": rng.randint(0, 99), "seed": rng.randint(0, 9)}),
                rng.choice(
                    [
                        ("slice", (rng.randint(0, 90),), {}),
                        ("select", (is_even,), {}),
                        ("map", (fail_some,), {"handler": True}),
                    ]
                ),
            ]
        )

    def _decode(self) -> Any:
        only = self.rng.choice(["cls", "npy txt", ["json", "id", "npy"]])
        kw = self.rng.choice([{}, {}, {}, {"only": only}, {"partial": True}, {"pre": []}])
        return ("decode", self.rng.choice([()] * 9 + [("rgb8",)]), {**kw, "handler": True})

    def _rename(self) -> Any:
        return self.rng.choice(
            [
                ("rename", (), {"x": "npy;json;txt;cls", "handler": True}),
                ("rename", (), {"x": "txt;cls", "npy": "x.npy;z.npy;npy", "handler": True}),
                ("rename", (), {"x": "npy;id", "cls": "cls", "keep": False, "handler": True}),
                ("rename", (), {"txt": "__url__", "y": "cls", "z": "cls", "handler": True}),
                ("rename_keys", (), {"__key__": "__key__", "npy": "*npy", "must_match": False}),
                ("rename_keys", (("cls", "cls*"),), {"keep_unselected": True, "must_match": False}),
                ("map_dict", (), {"cls": text_of, "handler": True}),
            ]
        )

    def _tuple(self) -> Any:
        names = self.rng.choice(
            [
                ("npy;json;txt;cls", "cls"),
                ("npy;json;id;x", "cls;x"),
                ("x.npy;y.npy;z.npy;npy;jsn;cls", "npy;cls", "__key__"),
                ("__key__ cls;txt",),
                (["id", "npy", "txt", "x"], "cls;id"),
                ("x;npy;cls", "x;npy;cls"),
                ("txt", "cls", "__url__"),
                ("a b", "cls"),
            ]
        )
        lenient = {"missing_is_error": False}
        rare_kw = self.rng.choice([{}, {}, {}, lenient, {**lenient, "none_is_error": True}])
        return self.rng.choice(
            [
                ("to_tuple", names, {**rare_kw, "handler": True}),
                ("to_tuple", names, {**rare_kw, "handler": True}),
                ("to_tuple", names, {**rare_kw, "handler": True}),
                ("extract_keys", ("*.npy;*json;cls", "*.cls"), {"duplicate_is_error": False}),
                ("extract_keys", ("npy", "c*", "*txt"), {"ignore_missing": True}),
            ]
        )

    def _batched(self) -> Any:
        rng = self.rng
        kw: dict[str, Any] = {"partial": rng.random() < 0.6}
        if rng.random() < 0.1:
            kw["collation_fn"] = None
        return ("batched", (rng.choice([1, 2, 3, 5, 7, 20, 64, 100, 300]),), kw)
