"""TenBin: the same bytes as webdataset's, both ways; damaged files are errors."""

from __future__ import annotations

import contextlib
import inspect
import io

import numpy as np
import pytest
from shardfeed.wds import tenbin

webdataset = pytest.importorskip("webdataset")
theirs = webdataset.tenbin

DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u8"]


def arrays(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(rng.integers(0, 6)):
        shape = tuple(int(size) for size in rng.integers(0, 5, rng.integers(0, 4)))
        made.append((rng.random(shape) * 100).astype(rng.choice(DTYPES)))
    return made


def same(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert (a == b).all()


@pytest.mark.parametrize("seed", range(60))
def test_bytes_are_those_of_webdataset_and_come_back_both_ways(seed):
    made = [np.atleast_1d(array) for array in arrays(seed)]
    names = [f"n{number}" for number in range(len(made))]
    ours = tenbin.encode_buffer(made, infos=names)
    assert ours == theirs.encode_buffer(made, infos=names)
    same(tenbin.decode_buffer(bytes(ours)), made)
    same(theirs.decode_buffer(ours), made)
    back, infos = tenbin.decode_buffer(bytes(ours), infos=True)
    assert infos == names
    same(tenbin.decode_buffer(bytes(ours), infos=names), back)


def test_uint32_and_scalars_and_other_byte_orders(tmp_path):
    made = [np.arange(5, dtype="u4"), np.float32(2.5), np.arange(6, dtype=">i4").reshape(2, 3).T]
    path = str(tmp_path / "a.ten")
    tenbin.save(path, *map(np.asarray, made))
    native = [np.asarray(array) for array in made]
    same(tenbin.load(path), [array.astype(array.dtype.newbyteorder("=")) for array in native])
    tenbin.save(path, native[2])
    assert theirs.load(path)[0].tolist() == made[2].tolist()


def test_files_and_streams(tmp_path):
    made = [np.arange(7, dtype="f4"), np.ones((2, 3), "i8")]
    theirs.save(str(tmp_path / "t.ten"), *made)
    tenbin.save(str(tmp_path / "o.ten"), *made)
    assert (tmp_path / "t.ten").read_bytes() == (tmp_path / "o.ten").read_bytes()
    stream = io.BytesIO((tmp_path / "t.ten").read_bytes())
    same(tenbin.read(stream, n=1), made[:1])
    same(tenbin.read(stream), made[1:])
    with pytest.raises(ValueError, match=r"should end in \.ten.*help:"):
        tenbin.save(str(tmp_path / "a.bin"), *made)
    tenbin.save(str(tmp_path / "a.bin"), *made, nocheck=True)
    same(tenbin.load(str(tmp_path / "a.bin"), nocheck=True), made)


def test_a_cut_anywhere_is_an_error():
    data = bytes(tenbin.encode_buffer([np.arange(40, dtype="f8"), np.ones(3, "u1")]))
    for size in range(1, len(data)):
        cut = data[:size]
        # What is missing may be nothing but the padding at the end, or the last whole array.
        whole = size >= len(data) - 61 or size == 16 + 64 + 16 + 320
        for decode in (tenbin.decode_buffer, lambda cut: tenbin.read(io.BytesIO(cut))):
            if whole:
                with contextlib.suppress(ValueError):
                    decode(cut)
                continue
            with pytest.raises(ValueError, match="help:"):
                decode(cut)


def test_damage_is_an_error():
    data = bytearray(tenbin.encode_buffer([np.arange(4, dtype="f8")]))
    for offset, value in ((0, 0), (16, 65), (32, 11), (40, 255), (8, 255)):
        damaged = bytearray(data)
        damaged[offset] = value
        if offset == 8:
            damaged[9:16] = b"\xff" * 7
        with pytest.raises(ValueError, match="help:"):
            tenbin.decode_buffer(bytes(damaged))


def test_wrong_infos_and_types_are_errors():
    with pytest.raises(ValueError, match="doesn't match required info"):
        tenbin.decode_buffer(tenbin.encode_buffer([np.ones(2)], ["left"]), infos=["right"])
    with pytest.raises(ValueError, match=r"unsupported array type.*help:"):
        tenbin.encode_buffer([np.ones(2, bool)])
    with pytest.raises(ValueError, match="requires list"):
        tenbin.encode_buffer(np.ones(2))
    with pytest.raises(ValueError, match="64 bit"):
        tenbin.check_acceptable_input_type([np.ones(2)], False)
    tenbin.check_acceptable_input_type([np.ones(2)], True)
    with pytest.raises(ValueError, match="too many dimensions"):
        tenbin.encode_header(np.ones((1,) * 10))


def test_every_name_and_signature():
    for name, value in vars(theirs).items():
        if inspect.ismodule(value) or name.startswith("__") or name == "x":
            continue
        mine = getattr(tenbin, name)
        if not inspect.isfunction(value):
            if name not in ("long_to_short", "short_to_long"):
                assert mine == value, name
            continue
        had, has = inspect.signature(value), inspect.signature(mine)
        assert [(p.name, p.default, p.kind) for p in has.parameters.values()] == [
            (p.name, p.default, p.kind) for p in had.parameters.values()
        ], name
