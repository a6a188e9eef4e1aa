"""Cases of fields with several arrays: TenBin and safetensors."""

from __future__ import annotations

from collections.abc import Iterable

from case import Case
from cases_batches import batches, field
from expected import BYTES, Folder, batch_bytes, even, items, ragged
from make_archives import noise


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    samples = archives.samples("tensors.tar")
    numbered = range(3)

    def of(name: str, about: str, decode: str, *made: bytes) -> Case:
        return batches(f"tensors_{name}", about, "tensors.tar", [batch_bytes(samples, made)],
                       {"batch": "8", "decode": decode, "ragged": "offsets"})  # fmt: skip

    def plain(name: str, dtype: str, shape: tuple[int, ...], made: Iterable[bytes]) -> bytes:
        return ragged(name, dtype, [(shape, data) for data in made])

    def broken(name: str, about: str, kind: str, offset: int) -> Case:
        first = archives.samples(f"bad_{kind}.tar")[:1]
        return batches(name, about, f"bad_{kind}.tar",
                       [batch_bytes(first, [even("x", "uint8", (5,), [noise(0, 5)])])],
                       {"batch": "1", "decode": f"x:{kind}"}, error=("FORMAT", offset))  # fmt: skip

    return [
        of("ten", "arrays of a field by their numbers", "0.ten:ten/part=1,0.ten:ten/part=2",
           plain("0.ten.1", "float32", (2, 3), [noise(n + 10, 24) for n in numbered]),
           ragged("0.ten.2", "uint32", [((n, 2), noise(n + 20, 8 * n)) for n in numbered])),
        of("ten_alone", "the only array of a field, and a number", "one.ten:ten, 0.ten:ten/part=0",
           plain("one.ten", "int64", (3,), [noise(n + 30, 24) for n in numbered]),
           plain("0.ten.0", "uint8", (), [noise(n, 1) for n in numbered])),
        of("safetensors", "tensors of a field by their names",
           "m.safetensors:safetensors/tensor=B, m.safetensors:safetensors/tensor=enc/w.0",
           plain("m.safetensors.B", "int16", (), [noise(n, 2) for n in numbered]),
           plain("m.safetensors.enc/w.0", "bfloat16", (2, 2), [noise(n, 8) for n in numbered])),
        of("safetensors_alone", "the only tensor of a field", "one.safetensors:safetensors",
           ragged("one.safetensors", "float64", [((n,), noise(n + 40, 8 * n)) for n in numbered])),
        of("auto", "by their suffixes they are bytes", "one.ten, one.safetensors",
           items("one.ten", BYTES, field(samples, "one.ten")),
           items("one.safetensors", BYTES, field(samples, "one.safetensors"))),
        batches("ten_without_number", "a field with three arrays", "tensors.tar", [],
                {"batch": "2", "decode": "0.ten:ten"}, error=("FORMAT", 0)),
        batches("safetensors_without_name", "a field with two tensors", "tensors.tar", [],
                {"batch": "2", "decode": "m.safetensors:safetensors"}, error=("FORMAT", 0)),
        batches("safetensors_other_name", "no tensor of this name", "tensors.tar", [],
                {"batch": "2", "decode": "m.safetensors:safetensors/tensor=b"},
                error=("FORMAT", 0)),
        broken("bad_ten", "a field that was cut", "ten", 1024),
        broken("bad_safetensors", "bytes that are of no tensor", "safetensors", 1024),
    ]  # fmt: skip
