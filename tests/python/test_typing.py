"""The types that users see. Needs mypy; skipped without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import shardfeed

pytest.importorskip("mypy")
pytestmark = pytest.mark.slow

SETTINGS = Path(__file__).parents[2] / "pyproject.toml"
FOLDER = Path(shardfeed.__file__).parent.parent
# mypy finds an installed package by itself and refuses to be told where; one in a folder of its
# own it does not find.
INSTALLED = FOLDER.name == "site-packages"
ENVIRONMENT = dict(os.environ) if INSTALLED else {**os.environ, "MYPYPATH": str(FOLDER)}

GOOD = """
import shardfeed
from pathlib import Path

def train(urls: list[Path]) -> int:
    with shardfeed.Stream(urls, shuffle=1000, on_error="skip_shard", timeout="30s") as stream:
        for sample in stream:
            view: memoryview = sample["jpg"]
            maybe: memoryview | None = sample.get("cls")
            names: list[str] = list(sample)
            copied: dict[str, bytes] = sample.to_dict()
    counters: dict[str, int] = stream.stats()
    return counters["samples"]

def look(source: Path | bytes) -> int:
    with shardfeed.Archive(source, zip_prefix="allow") as archive:
        data: bytes = archive.read(5) + archive.read("name") + archive["name"].read()
        views: list[memoryview] = archive.read_many([1, 2])
        members: list[shardfeed.Member] = archive[1:5]
        size: int = sum(member.size for member in archive)
        crc: int | None = archive[0].crc32
        archive.readinto(0, bytearray(5))
        with archive.open(b"name") as file:
            file.seek(0)
    return size

def copy(url: str) -> int:
    total = 0
    with shardfeed.Members(url, timeout=5.0) as members:
        for member in members:
            mode: int | None = member.mode
            time: float | None = member.mtime
            link: str | None = member.link
            total += sum(map(len, member.chunks(4096))) + member.readinto(bytearray(5))
    return total

def learn(urls: list[str]) -> int:
    seen = 0
    with shardfeed.Stream(urls, batch=256, decode="jpg:image/rgb8, cls:int") as stream:
        for batch in stream.batches(64, ragged="pad", hooks={"flac": len, "pyd": "pickle"}):
            image = batch["jpg"][0]
            keys: list[str] = batch.sample_keys
            tensors = batch.torch()["cls"]
            seen += len(batch)
    first: shardfeed.Batch = shardfeed.Dataset(urls, missing="empty").batch([3, 7, 9])
    column: shardfeed.Column = first.column("jpg")
    shape: tuple[int, ...] = column.shape
    return seen

def split(texts: list[str]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]

def send(urls: list[str]) -> list[str]:
    recipe = shardfeed.StreamRecipe(urls, shuffle=1000, timeout="30s")
    mixed = shardfeed.MixRecipe([recipe.share(1, 2), shardfeed.Stream(urls)], until="first")
    either: shardfeed.Recipe = shardfeed.Recipe.of(mixed.with_options(batch=5))
    stream: shardfeed.Stream = either.open(3)
    opened: shardfeed.Mix = mixed.open()
    same: shardfeed.Recipe = stream.recipe.with_options(tokenizer="module:function", eos=2)
    for batch in mixed.open().batches(8, decode="txt", pack=64, tokenizer=split, eos=None):
        tokens = batch["txt"]
    return [sample.key for sample in shardfeed.mix([recipe, opened])]
"""
BAD = {
    'shardfeed.Stream("x.tar", shufle=1)': "Unexpected keyword",
    'shardfeed.Stream("x.tar", on_error="ignore")': "incompatible type",
    "shardfeed.Stream(5)": "incompatible type",
    'next(iter(shardfeed.Stream("x.tar")))["jpg"] = b""': "Unsupported target",
    'shardfeed.Stream("x.tar").batches(5, shuffle=1)': "Unexpected keyword",
    'shardfeed.Stream("x.tar").batches(5, ragged="fill")': "incompatible type",
    'shardfeed.Stream("x.tar").batches(5, eos="end")': "incompatible type",
    'next(shardfeed.Stream("x.tar").batches(5))["x"] = 1': "Unsupported target",
    'shardfeed.StreamRecipe("x.tar").with_options(shufle=1)': "Unexpected keyword",
    'shardfeed.StreamRecipe("x.tar").timeout = 5.0': "read-only",
    'shardfeed.Archive("x.zip", shuffle=1)': "Unexpected keyword",
    'shardfeed.Archive("x.zip")[0] = b""': "Unsupported target",
    'shardfeed.Archive("x.zip").read(1.5)': "incompatible type",
}


def run(tmp_path: Path, *arguments: str) -> str:
    """What mypy says about a program that uses the package."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_package_and_good_program(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    package = "mypy", "--config-file", str(SETTINGS), "-p", "shardfeed"
    assert "Success" in run(tmp_path, *package)
    assert "Success" in run(tmp_path, "mypy", "--strict", "good.py")


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What mypy says about all bad programs at once: it takes two seconds to start."""
    folder = tmp_path_factory.mktemp("bad")
    names = [f"bad_{number}.py" for number in range(len(BAD))]
    for name, statement in zip(names, BAD, strict=True):
        (folder / name).write_text(f"import shardfeed\n{statement}\n")
    lines = run(folder, "mypy", "--strict", *names).splitlines()
    return [[line for line in lines if line.startswith(name + ":2: error:")] for name in names]


@pytest.mark.parametrize("number", range(len(BAD)), ids=list(BAD))
def test_bad_program(complaints, number):
    assert len(complaints[number]) == 1
    assert list(BAD.values())[number] in complaints[number][0]


def test_stub_of_the_extension_module(tmp_path):
    assert "Success" in run(tmp_path, "mypy.stubtest", "shardfeed._native")
