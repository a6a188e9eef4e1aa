"""Cases of batches: decoded columns."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from case import Case, frozen
from expected import (
    BYTES,
    JSON,
    MSGPACK,
    TEXT,
    Folder,
    Sample,
    batch_bytes,
    even,
    filled,
    items,
    padded,
    ragged,
    taken_in_turn,
    xxh64,
)
from make_archives import BOXES, noise, numbers, ragged_shape, token_count
from make_archives import DTYPES as DTYPES_OF_NPY
from order_model import ordered


def batches(
    name: str,
    about: str,
    urls: str,
    made: Sequence[bytes],
    options: Mapping[str, str],
    *,
    error: tuple[str, int | None] | None = None,
    kind: str = "batches",
    **own: Any,
) -> Case:
    """Batches, and then perhaps an error."""
    digest = xxh64(b"".join(made))
    return Case(name, kind, about, [urls], options, len(made), digest, error, None, own)


def field(samples: Sequence[Sample], name: str) -> list[bytes]:
    """One field of each sample."""
    return [dict(sample.fields)[name.encode()] for sample in samples]


def groups(samples: Sequence[Sample], size: int) -> list[Sequence[Sample]]:
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def ints(name: str, samples: Sequence[Sample]) -> bytes:
    """A column of decimal numbers."""
    rows = [int(row).to_bytes(8, "little", signed=True) for row in field(samples, name)]
    return even(name, "int64", (), rows)


def auto_columns(samples: Sequence[Sample]) -> list[bytes]:
    """What decode=auto makes of columns.tar."""
    return [
        even("npy", "float32", (2, 3), [row[-24:] for row in field(samples, "npy")]),
        ints("cls", samples),
        items("score.float", BYTES, field(samples, "score.float")),
        items("txt", TEXT, field(samples, "txt")),
        items("json", JSON, field(samples, "json")),
        items("mp", MSGPACK, field(samples, "mp")),
        items("bin", BYTES, field(samples, "bin")),
    ]


def tails(samples: Sequence[Sample], name: str, size: int) -> list[bytes]:
    """The data of .npy files: their last bytes."""
    return [row[len(row) - size :] for row in field(samples, name)]


def numpy_name(descr: str) -> str:
    """The name of a dtype: "int16" for "<i2"."""
    kind = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}[descr[1]]
    return kind if kind == "bool" else f"{kind}{8 * int(descr[2:])}"


def kinds(archives: Folder) -> list[Case]:
    """What fields become."""
    columns = archives.samples("columns.tar")
    dtypes = archives.samples("dtypes.tar")
    layouts = archives.samples("npy_layouts.tar")
    by_4 = [batch_bytes(part, auto_columns(part)) for part in groups(columns, 4)]

    def chosen(decode: str, name: str, about: str, *made: bytes) -> Case:
        return batches(name, about, "columns.tar", [batch_bytes(columns, made)],
                       {"batch": "8", "decode": decode})  # fmt: skip

    scores = [float(row) for row in field(columns, "score.float")]
    return [
        batches("auto", "decode=auto: the suffix says what a field is", "columns.tar", by_4,
                {"batch": "4"}),
        batches("last_drop", "last=drop leaves out a batch that is not full", "columns.tar",
                by_4[:1], {"batch": "4", "last": "drop"}),
        batches("decode_threads", "threads that decode do not change batches", "columns.tar", by_4,
                {"batch": "4", "decode_threads": "3", "threads": "2"}),
        chosen("cls", "one_column", "one column", ints("cls", columns)),
        chosen("bin,cls:int", "columns_in_order", "columns in the order of decode",
               items("bin", BYTES, field(columns, "bin")), ints("cls", columns)),
        chosen("score.float:float", "float", "decimal numbers",
               even("score.float", "float64", (), [struct.pack("<d", one) for one in scores])),
        chosen("json:bytes,mp:bytes,txt:bytes,npy:bytes", "bytes_of_all", "everything as bytes",
               *(items(name, BYTES, field(columns, name))
                 for name in ("json", "mp", "txt", "npy"))),
        chosen("json:json,mp:msgpack,txt:text", "objects", "objects of JSON and msgpack",
               items("json", JSON, field(columns, "json")),
               items("mp", MSGPACK, field(columns, "mp")),
               items("txt", TEXT, field(columns, "txt"))),
        batches("dtypes", "arrays of every dtype", "dtypes.tar",
                [batch_bytes(dtypes, [
                    even(f"{descr[1:]}.npy", numpy_name(descr), (2, 2),
                         tails(dtypes, f"{descr[1:]}.npy", 4 * size))
                    for descr, size in DTYPES_OF_NPY.items()
                ])], {"batch": "3"}),
        batches("npy_layouts", "Fortran order, big-endian, no dimension, no element",
                "npy_layouts.tar",
                [batch_bytes(layouts, [
                    even("fortran.npy", "int32", (2, 3), [from_fortran(row) for row in
                         tails(layouts, "fortran.npy", 24)]),
                    even("big.npy", "uint16", (3,), [from_big(row) for row in
                         tails(layouts, "big.npy", 6)]),
                    even("scalar.npy", "int64", (), tails(layouts, "scalar.npy", 8)),
                    even("none.npy", "float64", (0, 4), [b"", b""]),
                ])], {"batch": "2"}),
        batches("resume_batches", "saved between two batches", "columns.tar", by_4,
                {"batch": "4"}, kind="resume_batches", stop=1),
    ]  # fmt: skip


def from_fortran(data: bytes) -> bytes:
    """An int32 array of 2 x 3 in C order."""
    elements = [data[start : start + 4] for start in range(0, 24, 4)]
    return b"".join(elements[column * 2 + row] for row in range(2) for column in range(3))


def from_big(data: bytes) -> bytes:
    """16-bit numbers, little-endian."""
    return b"".join(data[start : start + 2][::-1] for start in range(0, len(data), 2))


def unequal(archives: Folder) -> list[Case]:
    """Rows of unequal shape, and samples without a field."""
    samples = archives.samples("ragged.tar")
    rows = [
        (ragged_shape(n), numbers("<i2", ragged_shape(n)[0] * ragged_shape(n)[1], n))
        for n in range(len(samples))
    ]
    cls = ints("cls", samples)
    by_2 = [
        batch_bytes(samples[at : at + 2], [
            ragged("npy", "int16", rows[at : at + 2]), ints("cls", samples[at : at + 2])
        ])
        for at in range(0, 5, 2)
    ]  # fmt: skip
    same = [sample for sample, (shape, _) in zip(samples, rows) if shape == rows[0][0]]
    missing = archives.samples("missing.tar")
    full = [one for one in missing if len(one.fields) == 3]
    without_text = [one for one in missing if b"npy" in dict(one.fields)]
    spec = {"decode": "cls,npy,txt", "batch": "6"}

    def complete(samples: Sequence[Sample]) -> bytes:
        arrays = even("npy", "int32", (2,), tails(samples, "npy", 8))
        texts = items("txt", TEXT, field(samples, "txt"))
        return batch_bytes(samples, [ints("cls", samples), arrays, texts])

    array_rows = [dict(one.fields).get(b"npy", bytes(8))[-8:] for one in missing]
    text_rows = [dict(one.fields).get(b"txt", b"") for one in missing]
    alternatives = archives.samples("alternatives.tar")
    return [
        batches("ragged_offsets", "arrays one after another, with offsets and shapes",
                "ragged.tar", by_2, {"batch": "2", "ragged": "offsets"}),
        batches("ragged_pad", "arrays filled up with zeros, with their shapes", "ragged.tar",
                [batch_bytes(samples, [padded("npy", "int16", rows), cls])],
                {"batch": "5", "ragged": "pad"}),
        batches("ragged_error", "arrays of unequal shape are an error", "ragged.tar", [],
                {"batch": "2"}, error=("FORMAT", 2048)),
        batches("ragged_skip", "samples of another shape than the first are skipped",
                "ragged.tar",
                [batch_bytes(same, [
                    even("npy", "int16", rows[0][0], tails(same, "npy", 4)), ints("cls", same)
                ])], {"batch": "5", "on_error": "skip_sample"}),
        batches("missing_error", "a sample without a field", "missing.tar", [], spec,
                error=("FORMAT", 3072)),
        batches("missing_skip", "samples without a field are passed over", "missing.tar",
                [complete(full)], {**spec, "missing": "skip"}),
        batches("missing_empty", "a row of zeros, or without bytes", "missing.tar",
                [batch_bytes(missing, [
                    ints("cls", missing), even("npy", "int32", (2,), array_rows),
                    items("txt", TEXT, text_rows),
                ])], {**spec, "missing": "empty"}),
        batches("missing_not_asked_for", "only columns of decode must be there", "missing.tar",
                [batch_bytes(missing, [ints("cls", missing)])], {"decode": "cls", "batch": "6"}),
        batches("missing_other_column", "passed over for one field only", "missing.tar",
                [batch_bytes(without_text, [even("npy", "int32", (2,),
                                                 tails(without_text, "npy", 8))])],
                {"decode": "npy", "batch": "6", "missing": "skip"}),
        batches("alternatives", "a column of one of two fields", "alternatives.tar",
                [batch_bytes(alternatives, [
                    even("a.cls", "int64", (),
                         [int(one.fields[0][1]).to_bytes(8, "little") for one in alternatives])
                ])], {"decode": "a.cls;b.cls:int", "batch": "4"}),
    ]  # fmt: skip


def packed(archives: Folder) -> list[Case]:
    """Documents of tokens, joined and cut into rows of 4."""
    width = 4
    samples = archives.samples("tokens.tar")
    elements = [
        (sample, n, place)
        for n, sample in enumerate(samples)
        for place in range(token_count(n))
    ]  # fmt: skip
    tokens = {n: numbers("<i4", token_count(n), n) for n in range(len(samples))}
    rows = [elements[at : at + width] for at in range(0, len(elements), width)]

    def batch_of(
        rows: Sequence[Sequence[tuple[Sample, int, int]]],
        *,
        mask: bool = False,
        lists: bool = False,
    ) -> bytes:
        def column(name: str, dtype: str, size: int, values: list[bytes]) -> bytes:
            return even(
                name, dtype, (width,), [value.ljust(width * size, b"\0") for value in values]
            )

        def places(name: str, values: list[list[int]]) -> bytes:
            whole = [value + [-1] * (width - len(value)) for value in values]
            return even(name, "int64", (width,), [struct.pack("<4q", *value) for value in whole])

        columns = [
            column("npy", "int32", 4, [
                b"".join(tokens[n][4 * place : 4 * place + 4] for _, n, place in row)
                for row in rows
            ])
        ]  # fmt: skip
        if lists:
            ids = [
                b"".join(struct.pack("<q", 7 * n - place) for _, n, place in row) for row in rows
            ]
            columns = [column("json.ids", "int64", 8, ids)]
        if mask:
            masks = [bytes(n for _, n, _ in row) for row in rows]
            columns.append(column("mask.npy", "uint8", 1, masks))
        documents = []
        for row in rows:
            of_row = list(dict.fromkeys(n for _, n, _ in row))
            documents.append([of_row.index(n) for _, n, _ in row])
        columns.append(places("__document__", documents))
        columns.append(places("__position__", [[place for *_, place in row] for row in rows]))
        return batch_bytes([row[0][0] for row in rows], columns)

    def part(n: int, start: int, stop: int) -> list[tuple[Sample, int, int]]:
        return [(samples[n], n, place) for place in range(start, stop)]

    # Their lengths are 5, 0, 12, 1, 3, 9 and 4: whole rows, and rests of 1, 1, 3 and 1.
    in_window = [
        part(0, 0, 4), part(2, 0, 4), part(2, 4, 8), part(2, 8, 12), part(0, 4, 5) + part(4, 0, 3),
        part(5, 0, 4), part(5, 4, 8), part(3, 0, 1) + part(5, 8, 9), part(6, 0, 4),
    ]  # fmt: skip
    fitted = [batch_of(in_window[at : at + 2]) for at in range(0, len(in_window), 2)]
    assert len(rows[-1]) < width
    options = {"decode": "npy", "batch": "2", "pack": str(width)}
    by_2 = [batch_of(rows[at : at + 2]) for at in range(0, len(rows), 2)]
    return [
        batches("pack", "documents joined and cut into rows", "tokens.tar", by_2, options),
        batches("pack_drop", "a batch with less rows is left out", "tokens.tar",
                by_2[: len(rows) // 2], {**options, "last": "drop"}),
        batches("pack_columns", "two arrays of each sample, cut at the same places", "tokens.tar",
                [batch_of(rows, mask=True)],
                {"decode": "npy,mask.npy", "batch": "9", "pack": str(width)}),
        batches("pack_lists", "lists in JSON, of a member of each object", "tokens.tar",
                [batch_of(rows, lists=True)],
                {"decode": "json:list/ids", "batch": "9", "pack": str(width)}),
        batches("pack_bad_list", "a JSON field that is no list", "tokens.tar", [],
                {"decode": "json:list", "batch": "9", "pack": "4"}, error=("FORMAT", 0)),
        batches("pack_resume", "saved in the middle of a document", "tokens.tar", by_2, options,
                kind="resume_batches", stop=2),
        batches("pack_window", "rows filled best-fit from a window of documents", "tokens.tar",
                fitted, {**options, "pack_window": "9"}),
        batches("pack_window_resume", "saved in the middle of a window", "tokens.tar", fitted,
                {**options, "pack_window": "9"}, kind="resume_batches", stop=2),
        batches("pack_texts", "what is no array cannot be packed", "columns.tar", [],
                {"decode": "txt", "batch": "2", "pack": "4"}, error=("USAGE", None)),
    ]  # fmt: skip


def counted(archives: Folder) -> list[Case]:
    """Batches by a budget of elements, and of samples of about one length."""
    samples = archives.samples("tokens.tar")

    def batch_of(length: int, *wanted: int) -> bytes:
        rows = [numbers("<i4", token_count(n), n) for n in wanted]
        return batch_bytes([samples[n] for n in wanted], [filled("npy", "int32", length, rows)])

    # Their lengths are 5, 0, 12, 1, 3, 9 and 4.
    elements = {"decode": "npy", "batch": "9", "batch_elements": "20", "ragged": "pad"}
    by_elements = [batch_of(5, 0, 1), batch_of(12, 2), batch_of(3, 3, 4), batch_of(9, 5, 6)]
    bucket = {"decode": "npy", "batch": "2", "bucket": "4,9,12"}
    by_bucket = [batch_of(4, 1, 3), batch_of(9, 0, 5), batch_of(4, 4, 6), batch_of(12, 2)]
    return [
        batches("batch_elements", "as many rows as there is room for", "tokens.tar", by_elements,
                elements),
        batches("batch_elements_resume", "saved between two of them", "tokens.tar", by_elements,
                elements, kind="resume_batches", stop=2),
        batches("batch_elements_large", "a row that is larger than a batch", "tokens.tar",
                [], {**elements, "batch_elements": "11"}, error=("LIMIT", 6144)),
        batches("bucket", "batches of samples of about one length", "tokens.tar", by_bucket,
                bucket),
        batches("bucket_drop", "those that are not full at the end are left out", "tokens.tar",
                by_bucket[:3], {**bucket, "last": "drop"}),
        batches("bucket_wait", "a batch that is not full, as its first sample waits for long",
                "tokens.tar",
                [batch_of(4, 1, 3), batch_of(9, 0), batch_of(12, 2), batch_of(4, 4, 6),
                 batch_of(9, 5)],
                {**bucket, "bucket_wait": "3"}),
        batches("bucket_elements", "less rows in batches of longer ones", "tokens.tar",
                [batch_of(12, 2), batch_of(9, 0, 5), batch_of(4, 1, 3, 4, 6)],
                {**bucket, "batch": "9", "batch_elements": "18"}),
        batches("bucket_resume", "saved while samples wait", "tokens.tar", by_bucket, bucket,
                kind="resume_batches", stop=1),
        batches("bucket_long", "a sample that is longer than the last bound", "tokens.tar", [],
                {**bucket, "bucket": "4,9"}, error=("LIMIT", 6144)),
        batches("bucket_bounds", "bounds that do not ascend", "tokens.tar", [],
                {**bucket, "bucket": "9,4"}, error=("USAGE", None)),
    ]  # fmt: skip


def damaged(archives: Folder) -> list[Case]:
    """Fields that cannot be decoded."""
    listed = archives.samples("bad_number.tar")
    good = [one for one in listed if one.key != b"003"]
    texts = archives.samples("bad_text.tar")
    arrays = archives.samples("bad_npy.tar")

    def by_2(samples: Sequence[Sample]) -> list[bytes]:
        return [batch_bytes(part, [ints("cls", part)]) for part in groups(samples, 2)]

    spec = {"batch": "2", "decode": "cls"}
    return [
        batches("not_a_number", "a text that is no number", "bad_number.tar", by_2(listed[:2]),
                spec, error=("FORMAT", 6144)),
        batches("not_a_number_skipped", "the next sample takes its place", "bad_number.tar",
                by_2(good), {**spec, "on_error": "skip_sample"}),
        batches("bad_npy", "an array with too few bytes", "bad_npy.tar",
                [batch_bytes(arrays[:2],
                             [even("npy", "int32", (2,), tails(arrays[:2], "npy", 8))])],
                {"batch": "2"}, error=("FORMAT", 2048)),
        batches("object_npy", "an array of Python objects", "object_npy.tar", [], {"batch": "2"},
                error=("UNSUPPORTED", 0)),
        batches("not_an_npy", "a text as array", "columns.tar", [],
                {"batch": "2", "decode": "txt:npy"}, error=("FORMAT", 0)),
        batches("bad_text", "a text that is not UTF-8", "bad_text.tar",
                [batch_bytes(texts[:1], [items("txt", TEXT, [b"ok"])])], {"batch": "1"},
                error=("FORMAT", 1024)),
        batches("bad_png", "an image whose checksum is wrong", "bad_png.tar",
                [batch_bytes(archives.samples("bad_png.tar")[:1],
                             [even("png", "uint8", (2, 3, 3), [noise(0, 18)])])],
                {"batch": "1"}, error=("FORMAT", 1024)),
        batches("not_an_image", "a text as image", "columns.tar", [],
                {"batch": "2", "decode": "txt:image"}, error=("FORMAT", 0)),
        batches("max_decoded", "an array above max_decoded", "columns.tar", [],
                {"batch": "2", "max_decoded": "16"}, error=("LIMIT", 0)),
        batches("cut_in_batch", "a cut shard: whole batches before it come", "cut_in_data.tar", [],
                {"batch": "2", "decode": "txt"}, error=("TRUNCATED", 3584)),
    ]  # fmt: skip


def single(number: float) -> float:
    """Rounded to 32 bits."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def normalized(planes: bytes) -> list[float]:
    """Three planes of levels, each step rounded, as torchvision does it."""
    size = len(planes) // 3
    numbers = []
    for at, level in enumerate(planes):
        mean, deviation = ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))[at // size]
        numbers.append(single(single(single(level / 255) - single(mean)) / single(deviation)))
    return numbers


def upper_half(number: float) -> bytes:
    """The bfloat16 that is nearest, of two that are as near the even one."""
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def bordered(data: bytes) -> bytes:
    """3 x 4 pixels of colour with two pixels of level 9 left and right, and one above and below."""
    lines = [b"\x09" * 6 + data[at : at + 9] + b"\x09" * 6 for at in range(0, 36, 9)]
    return b"".join([b"\x09" * 21, *lines, b"\x09" * 21])


def images(archives: Folder) -> list[Case]:
    """Images: PNG of noise, whose pixels are known."""
    samples = archives.samples("images.tar")  # 5 pixels wide, 4 high
    pixels = [noise(n, 60) for n in range(4)]

    def of(name: str, about: str, decode: str, dtype: str, shape: Sequence[int],
           made: Sequence[bytes], file: str = "images.tar") -> Case:  # fmt: skip
        whole = archives.samples(file)
        column = even("png", dtype, shape, made)
        return batches(name, about, file, [batch_bytes(whole, [column])],
                       {"batch": "8", "decode": decode})  # fmt: skip

    def pixel(data: bytes, x: int, y: int) -> bytes:
        return data[(y * 5 + x) * 3 :][:3]

    def picked(xs: Sequence[int], ys: Sequence[int]) -> list[bytes]:
        return [b"".join(pixel(data, x, y) for y in ys for x in xs) for data in pixels]

    chw = [b"".join(data[channel::3] for channel in range(3)) for data in pixels]
    deep = [from_big(noise(n, 36)) for n in range(2)]
    alpha = [noise(n, 24) for n in range(2)]
    grey = [noise(n, 6) for n in range(2)]
    cases = [
        batches("image_auto", "images and classes", "images.tar",
                [batch_bytes(samples, [even("png", "uint8", (4, 5, 3), pixels),
                                       ints("cls", samples)])], {"batch": "4"}),
        of("image_chw", "channels first", "png:image/rgb8/chw", "uint8", (3, 4, 5), chw),
        of("image_crop", "the middle", "png:image/rgb8/crop=3x2", "uint8", (2, 3, 3),
           picked((1, 2, 3), (1, 2))),
        of("image_flip", "mirrored", "png:image/rgb8/flip=always", "uint8", (4, 5, 3),
           picked((4, 3, 2, 1, 0), range(4))),
        of("image_rgba", "alpha", "png:image/rgba8", "uint8", (2, 3, 4), alpha, "alpha.tar"),
        of("image_no_alpha", "alpha is dropped", "png:image/rgb8", "uint8", (2, 3, 3),
           [b"".join(data[at : at + 3] for at in range(0, 24, 4)) for data in alpha], "alpha.tar"),
        of("image_rgb16", "16 bits", "png:image/rgb16", "uint16", (2, 3, 3), deep, "deep.tar"),
        of("image_grey", "grey", "png:image/l8", "uint8", (2, 3), grey, "grey.tar"),
        of("image_grey_as_rgb", "grey as three channels", "png:image/rgb8", "uint8", (2, 3, 3),
           [bytes(value for value in data for _ in range(3)) for data in grey], "grey.tar"),
        of("image_opaque", "an image without alpha as rgba8", "png:image/rgba8", "uint8", (4, 5, 4),
           [b"".join(data[at : at + 3] + b"\xff" for at in range(0, 60, 3)) for data in pixels]),
        of("image_float", "numbers from 0 to 1", "png:image/rgb", "float32", (4, 5, 3),
           [struct.pack("<60f", *(value / 255 for value in data)) for data in pixels]),
        of("image_normalize", "numbers that are normalized", "png:image/rgb/chw/normalize=imagenet",
           "float32", (3, 4, 5), [struct.pack("<60f", *normalized(data)) for data in chw]),
        of("image_float16", "numbers of 16 bits", "png:image/rgb/chw/float16/normalize=imagenet",
           "float16", (3, 4, 5), [struct.pack("<60e", *normalized(data)) for data in chw]),
        of("image_bfloat16", "upper halves of numbers",
           "png:image/rgb/chw/bfloat16/normalize=imagenet", "bfloat16", (3, 4, 5),
           [b"".join(map(upper_half, normalized(data))) for data in chw]),
        of("image_nearest", "each pixel twice", "png:image/rgb8/resize=10x8/filter=nearest",
           "uint8", (8, 10, 3), picked([x // 2 for x in range(10)], [y // 2 for y in range(8)])),
        of("image_pad", "a border of two pixels at the sides",
           "png:image/rgb8/crop=3x4/pad=2x1/fill=9", "uint8", (6, 7, 3),
           [bordered(data) for data in picked((1, 2, 3), range(4))]),
    ]  # fmt: skip
    for name, word in {
        "rrc": "rrc=4x4", "rrc_shape": "rrc=6x3/scale=0.5..0.75/ratio=1..2/filter=bicubic",
        "colours": "brightness=0.5..0.5/solarize=0.5", "views": "rrc=4x4/flip=random/views=2",
        "blur": "blur=0.7/sigma=0.3..2/kernel=5", "mixed": "rrc=5x4/mixup=0.4/cutmix=1",
        "randaugment": "rrc=12x9/randaugment=2:9", "trivialaugment": "trivialaugment=bilinear",
        "mask": "mask/rrc=12x9/fill=7/randaugment=3:15",
        "record": "rrc=4x4/flip=random/grayscale=0.5/views=2, __augment__",
        "rrc_flip": "flip=random/rrc=9x9", "pad_crop": "pad=to:12x12/crop=random:8x8",
        "resize": "resize=8", "resize_wh": "resize=7x3", "resize_fit": "resize=fit:4x4",
        "crop_random": "crop=random:4x4", "flip_random": "flip=random",
        "resize_then_crop": "resize=9/crop=6x6",
    }.items():  # fmt: skip
        file = "images.tar" if name == "flip_random" else "sizes.tar"
        cases.append(
            frozen("batches", f"image_{name}", f"an image with {word}", file,
                   {"batch": "2", "decode": f"png:image/rgb8/{word}", "seed": "3",
                    "ragged": "offsets"}, 2)
        )  # fmt: skip
    return cases


def boxes(archives: Folder) -> list[Case]:
    """Boxes in JSON, and the images of 10 x 8 pixels in which they lie."""
    samples = archives.samples("boxes.tar")

    def of(crop: tuple[int, int, int, int], flips: bool) -> bytes:
        """The columns of boxes.tar without its last sample, of this part of the images."""
        left, top, width, height = crop
        pixels, found, kept = [], [], []
        for number in range(3):
            lines = [noise(number, 80)[10 * y :][left : left + width]
                     for y in range(top, top + height)]  # fmt: skip
            pixels.append(b"".join(line[::-1] if flips else line for line in lines))
            sides: list[float] = []
            numbers_left: list[int] = []
            for place, (x, y, across, down) in enumerate(BOXES[number]):
                x1, x2 = (min(max(side - left, 0), width) for side in (x, x + across))
                y1, y2 = (min(max(side - top, 0), height) for side in (y, y + down))
                if flips:
                    x1, x2 = width - x2, width - x1
                if x2 - x1 >= 1 and y2 - y1 >= 1:
                    sides += [x1, y1, x2, y2]
                    numbers_left.append(place)
            count = len(numbers_left)
            found.append(((count, 4), struct.pack(f"<{4 * count}f", *sides)))
            kept.append(((count,), struct.pack(f"<{count}q", *numbers_left)))
        columns = [even("png", "uint8", (height, width), pixels),
                   ragged("json.boxes", "float32", found),
                   ragged("json.kept", "int64", kept)]  # fmt: skip
        return batch_bytes(samples[:3], columns)

    words = "json:boxes/xywh/path=a.b/of=png"
    return [
        batches("boxes_crop", "boxes in the middle of their image", "boxes.tar",
                [of((2, 2, 6, 4), False)],
                {"batch": "8", "decode": f"png:image/l8/crop=6x4, {words}",
                 "on_error": "skip_sample"}),
        batches("boxes_flip", "boxes of an image that is flipped", "boxes.tar",
                [of((0, 0, 10, 8), True)],
                {"batch": "3", "decode": f"png:image/l8/flip=always, {words}"},
                error=("FORMAT", 6144)),
        frozen("batches", "boxes_rrc", "boxes of a part at random, flipped at random", "boxes.tar",
               {"batch": "3", "decode": f"png:image/l8/rrc=9x9/flip=random, {words}",
                "last": "drop", "seed": "3", "on_error": "skip_sample"}, 1),
        batches("boxes_without_path", "no boxes at the end of the path", "boxes.tar", [],
                {"batch": "3", "decode": "png:image/l8, json:boxes/path=a.c/of=png"},
                error=("FORMAT", 0)),
    ]  # fmt: skip


def sounds(archives: Folder) -> list[Case]:
    """Sounds: WAV of noise, whose numbers are known."""
    frames = [list(struct.iter_unpack("<hh", noise(n, 24))) for n in range(3)]

    def of(name: str, about: str, words: str, dtype: str, shape: Sequence[int],
           made: Sequence[bytes]) -> Case:  # fmt: skip
        column = even("wav", dtype, shape, made)
        return batches(f"audio_{name}", about, "sounds.tar",
                       [batch_bytes(archives.samples("sounds.tar"), [column])],
                       {"batch": "8", "decode": f"wav:audio{words}"})  # fmt: skip

    def floats(numbers: Iterable[float]) -> bytes:
        return b"".join(struct.pack("<f", number / 32768) for number in numbers)

    whole = [floats(number for frame in sound for number in frame) for sound in frames]
    means = [[(left + right) / 2 for left, right in sound] for sound in frames]
    return [
        of("float", "numbers in -1..1", "", "float32", (6, 2), whole),
        batches("audio_auto", "the suffix says audio", "sounds.tar",
                [batch_bytes(archives.samples("sounds.tar"),
                             [even("wav", "float32", (6, 2), whole)])], {"batch": "8"}),
        of("int16", "numbers as they are stored", "/int16", "int16", (6, 2),
           [noise(n, 24) for n in range(3)]),
        of("cf", "channels first", "/cf", "float32", (2, 6),
           [floats([*(f[0] for f in sound), *(f[1] for f in sound)]) for sound in frames]),
        of("mono", "the mean of the channels", "/mono", "float32", (6,), [*map(floats, means)]),
        of("crop", "the middle", "/mono/crop=2", "float32", (2,),
           [floats(mean[2:4]) for mean in means]),
        of("pad", "zeros behind what is too short", "/mono/crop=start:1ms/pad", "float32", (8,),
           [floats([*mean, 0, 0]) for mean in means]),
        batches("audio_cut", "a sound without its end", "bad_wav.tar",
                [batch_bytes(archives.samples("bad_wav.tar")[:1],
                             [even("wav", "float32", (6, 2), whole[:1])])],
                {"batch": "1"}, error=("FORMAT", 1024)),
    ]  # fmt: skip


def of_texts(samples: Sequence[Sample], valid: Sequence[bool] | None = None) -> bytes:
    """A batch with the columns cls and txt, and perhaps which rows are valid."""
    return batch_bytes(
        samples, [ints("cls", samples), items("txt", TEXT, field(samples, "txt"))], valid
    )


def order(archives: Folder) -> list[Case]:
    """Batches of shuffled streams, of lanes, of equal parts."""
    lanes = [archives.samples(f"set-{number:03d}.tar") for number in (0, 1)]
    mixed = list(taken_in_turn(lanes))
    spec = {"batch": "5", "decode": "cls,txt"}
    shuffled = {**spec, "shuffle": "6", "shuffle_shards": "true", "seed": "11"}
    of_set = [archives.samples(f"set-{number:03d}.tar") for number in range(8)]
    own = archives.samples("part-1.zip", "part-3.zip")  # 9 samples; the other rank has 16
    filled_up = [
        of_texts(part, [first + number < len(own) for number in range(len(part))])
        for first, part in zip(range(0, 16, 5), groups((own + own)[:16], 5))
    ]
    by_5 = [of_texts(part) for part in groups(ordered(of_set, shuffled), 5)]
    return [
        batches("batches_of_lanes", "batches of two lanes", "set-{000..001}.tar",
                [of_texts(part) for part in groups(mixed, 5)], {**spec, "lanes": "2"}),
        batches("batches_shuffled", "batches of a shuffled stream", "set-{000..007}.tar", by_5,
                shuffled),
        batches("resume_batches_shuffled", "saved between batches of a shuffled stream",
                "set-{000..007}.tar", by_5, shuffled, kind="resume_batches", stop=6),
        batches("batches_even_pad", "a column that says which rows only fill up",
                "part-{0..3}.zip", filled_up,
                {**spec, "even": "pad", "world_size": "2", "rank": "1"}),
    ]  # fmt: skip


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    parts = (kinds, unequal, packed, counted, damaged, images, boxes, sounds, order)
    return [case for part in parts for case in part(archives)]
