"""Compressed fields: the same columns as of the fields unpacked."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable

import numpy as np
import pytest
import shardfeed
from batches import npy, npz, rows_tar

zstandard = pytest.importorskip("zstandard")

Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def zstd_in_pieces(data: bytes) -> bytes:
    """Frames that do not say how much is in them."""
    return b"".join(
        zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(part)
        for part in (data[: len(data) // 2], b"", data[len(data) // 2 :])
    )


def gzip_members(data: bytes) -> bytes:
    return b"".join(gzip.compress(data[at : at + 1000]) for at in range(0, len(data), 1000))


PACKS: dict[str, tuple[str, Pack]] = {
    "gzip": ("gz", gzip.compress),
    "gzip members": ("gz", gzip_members),
    "zstd": ("zst", zstd),
    "zstd in pieces": ("zst", zstd_in_pieces),
}


def fields_of(number: int) -> dict[str, bytes]:
    values = np.random.default_rng(number)
    return {
        "txt": f"the text {number} ♥".encode(),
        "json": json.dumps({"n": number, "ids": list(range(number % 5))}).encode(),
        "cls": b"%d" % number,
        "x.npy": npy(values.normal(size=(50, 20))),
        "y.npz": npz(a=np.arange(6), b=values.integers(0, 9, 7)),
        "bin": values.bytes(3000),
    }


@pytest.mark.parametrize("pack", PACKS)
def test_fields_become_what_they_are_unpacked(tmp_path, pack):
    end, function = PACKS[pack]
    rows = [fields_of(number) for number in range(10)]
    packed = [{f"{name}.{end}": function(data) for name, data in row.items()} for row in rows]
    plain = rows_tar(tmp_path / "plain.tar", rows)
    url = rows_tar(tmp_path / "packed.tar", packed)
    decode = "txt, json, cls, x.npy, y.npz:npz/b, bin, json:list/ids"
    also = ", ".join(
        part.replace(":", f".{end}:") if ":" in part else f"{part}.{end}"
        for part in decode.split(", ")
    )
    with shardfeed.Stream(plain) as one, shardfeed.Stream(url) as other:
        expected = next(one.batches(10, decode=decode, ragged="offsets"))
        got = next(other.batches(10, decode=also, ragged="offsets"))
    assert list(got)[:6] == [f"{name}.{end}" for name in list(expected)[:6]]
    for name in ("txt", "json", "bin"):
        assert list(got[f"{name}.{end}"]) == list(expected[name])
    assert got[f"cls.{end}"].tolist() == list(range(10))
    for name in ("x.npy", "y.npz"):
        for row, wanted in zip(got[f"{name}.{end}"], expected[name]):
            assert np.array_equal(row, wanted)
    assert [row.tolist() for row in got[f"json.{end}.ids"]] == [
        list(range(number % 5)) for number in range(10)
    ]


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(1).integers(0, 256, (30, 40, 3), "u1")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "png")
    url = rows_tar(tmp_path / "a.tar", [{"png.zst": zstd(file.getvalue())}] * 3)
    with shardfeed.Stream(url) as stream:
        batch = next(stream.batches(3))
    assert np.array_equal(batch["png.zst"][2], pixels)


def test_by_number_and_of_one_sample(tmp_path):
    rows = [{"cls.gz": gzip.compress(b"%d" % number)} for number in range(5)]
    url = rows_tar(tmp_path / "a.tar", rows)
    with shardfeed.Dataset(url) as data:
        assert data.batch([3, 1])["cls.gz"].tolist() == [3, 1]
        assert data[2]["cls.gz"] == rows[2]["cls.gz"]  # as it is stored
        assert data[2].decode()["cls.gz"] == 2


def test_hooks_get_what_is_in_the_field(tmp_path):
    url = rows_tar(tmp_path / "a.tar", [{"x.abc.gz": gzip.compress(b"word")}])
    for name in ("abc", "abc.gz", "x.abc.gz"):
        with shardfeed.Stream(url) as stream:
            batch = next(stream.batches(1, hooks={name: lambda data: bytes(data).upper()}))
        assert batch["x.abc.gz"] == [b"WORD"]
    with shardfeed.Stream(url) as stream:
        batch = next(stream.batches(1, decode="x.abc.gz:bytes/compressed"))
    assert gzip.decompress(batch["x.abc.gz"][0]) == b"word"


def test_a_bomb_is_a_limit_error(tmp_path):
    for end, function in (("gz", gzip.compress), ("zst", zstd), ("zst", zstd_in_pieces)):
        url = rows_tar(tmp_path / "a.tar", [{f"bin.{end}": function(bytes(50 << 20))}])
        with shardfeed.Stream(url) as stream, pytest.raises(shardfeed.LimitError) as error:
            next(stream.batches(1, max_decoded="20MiB"))
        assert "000000.bin." in str(error.value)
        assert "raise max_decoded" in str(error.value)


@pytest.mark.parametrize("pack", PACKS)
def test_damage_is_an_error_or_makes_no_difference(tmp_path, pack):
    """A thousand variants: cut, changed, longer."""
    end, function = PACKS[pack]
    dice = random.Random(pack)
    array = np.random.default_rng(1).integers(0, 50, 700)
    field = function(npy(array))
    variants = []
    for _ in range(1000):
        damaged = bytearray(field)
        choice = dice.randrange(3)
        if choice == 0:
            del damaged[dice.randrange(len(damaged)) :]
        elif choice == 1:
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        else:
            at = dice.randrange(len(damaged) + 1)
            damaged[at:at] = dice.randbytes(dice.randrange(1, 9))
        variants.append({f"x.npy.{end}": bytes(damaged)})
    url = rows_tar(tmp_path / "a.tar", variants)
    faults: list[shardfeed.Error] = []
    rows = 0
    with shardfeed.Dataset(url) as data:
        for number in range(len(data)):
            try:
                batch = data.batch([number])
            except shardfeed.Error as error:
                faults.append(error)
            else:
                rows += 1
                # Cut between two members, or zeros behind the last one.
                assert np.array_equal(batch[f"x.npy.{end}"][0], array)
    assert rows < 120
    assert {type(fault).__name__ for fault in faults} <= {
        "FormatError", "TruncatedError", "IntegrityError", "LimitError", "UnsupportedError",
    }  # fmt: skip
    for fault in faults:
        assert f".x.npy.{end}" in str(fault)
        assert "help: " in str(fault)


def test_nothing_of_one_field_is_in_the_next(tmp_path):
    """Memory is used again: short fields after long ones."""
    texts = [bytes([65 + number]) * (100_000 if number % 2 == 0 else 3) for number in range(10)]
    url = rows_tar(tmp_path / "a.tar", [{"txt.gz": gzip.compress(text)} for text in texts])
    with shardfeed.Stream(url) as stream:
        batch = next(stream.batches(10))
    assert [text.encode() for text in batch["txt.gz"]] == texts
