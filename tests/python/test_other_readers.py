"""DALI and Megatron-Energon read shards by our indexes, and we by theirs."""

from __future__ import annotations

import io
import os
import pickle
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed

HERE = Path(__file__).parent
FIELDS = ("txt", "bin", "empty", "seg.png")
Sample = tuple[str, dict[str, bytes]]


def samples(keys: list[str]) -> list[Sample]:
    """One field is large, one is empty."""
    source = random.Random(14)
    return [
        (
            key,
            {
                "txt": b"%d" % number,
                "bin": source.randbytes(3_000_000 if number == 3 else 511 + number % 3),
                "empty": b"",
                "seg.png": source.randbytes(number),
            },
        )
        for number, key in enumerate(keys)
    ]


SHORT = samples(["a", "b-1", "ä/ö", "d.1/x", "v1.0/deep.er/y"] + [f"k{i:04d}" for i in range(20)])
# Those that ustar has room for, and those that it has not.
LONG = samples(
    [
        *("d/" * 60 + "e", "x" * 99, "y" * 150 + "/" + "z" * 92, "w" * 240, "é" * 140),
        *("p" * 155 + "/" + "q" * 92, "v" * 156 + "/" + "q"),
    ]
)


def write(folder: Path, pattern: str, wanted: list[Sample], **options: Any) -> None:
    folder.mkdir(exist_ok=True)
    with shardfeed.Writer(folder / pattern, **options) as writer:
        for key, fields in wanted:
            writer.write({"__key__": key, **fields})


def write_foreign(path: Path, tar_format: int, members: list[tuple[str, bytes]]) -> None:
    """With what is no sample between the samples."""
    with tarfile.open(path, "w", format=tar_format) as tar:
        folder = tarfile.TarInfo("d.1")
        folder.type = tarfile.DIRTYPE
        link = tarfile.TarInfo("link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "a.txt"
        hidden = tarfile.TarInfo(".hidden")
        for number, (name, data) in enumerate(members):
            if number == len(members) // 2:
                for other in (folder, link, hidden):
                    tar.addfile(other, io.BytesIO())
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def members_of(wanted: list[Sample]) -> list[tuple[str, bytes]]:
    return [(f"{key}.{name}", data) for key, fields in wanted for name, data in fields.items()]


def random_members() -> list[tuple[str, bytes]]:
    """Names of all shapes. No key comes twice, which Energon refuses."""
    source = random.Random(15)

    def letters(most: int) -> str:
        return "".join(source.choices("ab._-__", k=source.randint(0, most)))

    names = []
    for number in range(400):
        stem = f"{number}" + letters(4)
        if source.random() < 0.5:
            stem = source.choice(["", "__", "_", "x."]) + stem + "/" + letters(4)
        names += [stem + source.choice([".", "", "._"]) + letters(3) + "e" for _ in range(2)]
    return [(name, b"%d" % number) for number, name in enumerate(dict.fromkeys(names))]


def run(*words: object, **environment: str) -> str:
    """The standard error of a program that must succeed."""
    done = subprocess.run(
        list(map(str, words)), capture_output=True, check=False, text=True, timeout=200,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stderr


def index(*words: object) -> None:
    assert run(sys.executable, "-m", "shardfeed", "index", *words) == ""


def read_indexed(folder: Path) -> list[Sample]:
    """What a Dataset reads by the indexes that are there, in a random order."""
    paths = sorted(str(path) for path in folder.glob("*.tar"))
    data = shardfeed.Dataset(paths, index="require")
    numbers = list(range(len(data)))
    random.Random(16).shuffle(numbers)
    found = {}
    for number in numbers:
        sample = data[number]
        found[number] = (sample.key, {name: bytes(sample[name]) for name in sample})
    return [found[number] for number in range(len(found))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folders "written", "exported" and "random", with both indexes that are ours."""
    folder = tmp_path_factory.mktemp("shards")
    write(folder / "written", "a-%03d.tar", SHORT, max_samples=10, index_for="dali,energon")
    write(folder / "written", "b-%03d.tar", LONG, index_for="dali,energon")
    (folder / "exported").mkdir()
    for path in (folder / "written").glob("*.tar"):
        shutil.copy(path, folder / "exported")
    for name, tar_format in (("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        path = folder / "exported" / f"c-{name}.tar"
        write_foreign(path, tar_format, members_of(LONG))
    write_foreign(folder / "exported" / "d.ustar.tar", tarfile.USTAR_FORMAT, members_of(SHORT))
    (folder / "random").mkdir()
    write_foreign(folder / "random" / "r.tar", tarfile.PAX_FORMAT, random_members())
    for name in ("exported", "random"):
        index(folder / name / "*.tar", "--export", "dali", "{}.idx")
        index(folder / name / "*.tar", "--export", "energon", "{}.tar.idx")
    yield folder
    shutil.rmtree(folder)


WANTED = {"written": [*SHORT, *LONG], "exported": [*SHORT, *LONG, *LONG, *LONG, *SHORT]}


# ---- DALI ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dali(made: Path) -> list[list[list[bytes]]]:
    """What DALI read: by indexes of a writer, by exported ones, and where it looks itself."""
    pytest.importorskip("wds2idx")  # of the same package, and quicker to import
    questions: list[tuple[list[str], list[str], tuple[str, ...]]] = []
    for pattern in ("written/*.tar", "exported/*.tar", "written/a-*.tar"):
        shards = sorted(map(str, made.glob(pattern)))
        indexes = [shard.removesuffix(".tar") + ".idx" for shard in shards]
        questions.append((shards, indexes if "a-" not in pattern else [], FIELDS))
    (made / "in").write_bytes(pickle.dumps(questions))
    said = run(sys.executable, HERE / "dali_reader.py", made / "in", made / "out")
    # Of the last one, and no other warning.
    assert said.count("\n") == said.count("Index file not provided") == 1
    return pickle.loads((made / "out").read_bytes())


def fields_of(wanted: list[Sample]) -> list[list[bytes]]:
    return [[fields[name] for name in FIELDS] for _, fields in wanted]


def test_dali_reads_the_same_bytes_in_the_same_order(dali: list[list[list[bytes]]]) -> None:
    assert dali[0] == fields_of(WANTED["written"])
    assert dali[1] == fields_of(WANTED["exported"])


def test_dali_finds_samples_with_short_names_itself(dali: list[list[list[bytes]]]) -> None:
    """Of names that have a pax header it sees others: it knows none."""
    assert dali[2] == fields_of(SHORT)


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_we_read_an_index_of_wds2idx(made: Path, tmp_path: Path, locale: str) -> None:
    pytest.importorskip("wds2idx")
    for name in ("written", "exported", "random"):
        for shard in (made / name).glob("*.tar"):
            copy = tmp_path / shard.name
            shutil.copy(shard, copy)
            theirs = copy.with_suffix(".idx")
            run(sys.executable, "-m", "wds2idx", copy, theirs, LC_ALL=locale)
            # What GNU tar prints, where wds2idx has its names from, depends on the locale.
            if locale == "C.UTF-8" and shard.name != "c-gnu.tar":
                assert theirs.read_bytes() == shard.with_suffix(".idx").read_bytes()
    gnu = tmp_path / "c-gnu.tar"  # it points to the block with the long name
    with pytest.raises(AssertionError, match="wrong about GNU long names"):
        index(gnu, "--import", "dali", "{}.idx")
    gnu.unlink()
    index(tmp_path / "*.tar", "--import", "dali", "{}.idx")
    (tmp_path / "r.tar").unlink()
    assert read_indexed(tmp_path) == [*SHORT, *LONG, *LONG, *SHORT]


# ---- Megatron-Energon ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def energon(made: Path) -> list[list[Sample]]:
    """What Energon read: in one process, which takes seconds to start."""
    pytest.importorskip("megatron")  # which takes no time
    prepared = []
    for name in ("written", "random"):
        prepared.append(made / "energon" / name)
        prepared[-1].mkdir(parents=True)
        for path in (made / name).glob("*.tar"):
            shutil.copy(path, prepared[-1])
    out = made / "energon" / "out"
    said = run(sys.executable, HERE / "energon_reader.py", out, made / "exported", *prepared)
    assert said == ""
    return pickle.loads(out.read_bytes())


def test_energon_reads_the_same_samples_by_number(energon: list[list[Sample]]) -> None:
    assert energon[0] == WANTED["exported"]


def test_energon_prepares_the_same_index(energon: list[list[Sample]], made: Path) -> None:
    assert energon[1] == sorted(WANTED["written"])
    assert len(energon[2]) > 300
    for name in ("written", "random"):
        indexes = sorted((made / name).glob("*.tar.idx"))
        assert indexes
        for ours in indexes:
            theirs = made / "energon" / name / ours.name
            assert theirs.read_bytes() == ours.read_bytes()


def test_we_read_an_index_of_energon(energon: list[list[Sample]], made: Path) -> None:
    folder = made / "energon"
    index(folder / "*" / "*.tar", "--import", "energon", "{}.tar.idx")
    assert read_indexed(folder / "written") == WANTED["written"]
    assert (folder / "random" / "r.tar.sfidx").exists()
