"""Cases of writers: what is written is a file that is known byte by byte, and is read back."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Mapping, Sequence

from case import Case
from expected import Folder, Sample, sample_bytes, text, u64, xxh64

# Key, and name and bytes of each field.
Written = tuple[bytes, list[tuple[bytes, bytes]]]


def as_tar(samples: Sequence[Written]) -> bytes:
    """The tar of these samples. Headers are those of tarfile, which leaves out device numbers."""
    out = b""
    for key, fields in samples:
        for name, data in fields:
            info = tarfile.TarInfo((key + b"." + name).decode("latin-1"))
            info.size = len(data)
            header = bytearray(info.tobuf(tarfile.USTAR_FORMAT, "latin-1"))
            header[329:345] = b"0000000\0" * 2
            header[148:156] = b" " * 8
            header[148:156] = b"%06o\0 " % sum(header)
            out += bytes(header) + data + bytes(-len(data) % 512)
    return out + bytes(1024) + bytes(-(len(out) + 1024) % 10240)


def indexes(shard: bytes) -> tuple[bytes, bytes]:
    """What DALI and Energon have of it: each sample has one field here."""
    with tarfile.open(fileobj=io.BytesIO(shard)) as tar:
        infos = tar.getmembers()
        end = tar.offset
    lines = [
        f"{info.name.partition('.')[2]} {info.offset_data} {info.size} {info.name}\n"
        for info in infos
    ]
    dali = f"v1.2 {len(infos)}\n" + "".join(lines)
    energon = struct.pack(f"<{len(infos) + 1}Q", *(info.offset for info in infos), end)
    return dali.encode(), energon


def write(
    name: str,
    about: str,
    pattern: str | Sequence[str],
    shards: Sequence[tuple[str, Sequence[Written]]],
    options: Mapping[str, str] | None = None,
    *,
    given: Sequence[Written] | None = None,
    refused: str = "",
    files: Mapping[str, bytes | None] | None = None,
    error: str | None = None,
) -> Case:
    """Shards by name, and what else is in the folder (None: its bytes are not compared).

    refused: the class of the error of each sample that is not in a shard.
    """
    written = [sample for _, samples in shards for sample in samples]
    hashed = b""
    for sample in given or written:
        if refused and sample not in written:
            hashed += text(refused.encode())
    everything: dict[str, bytes | None] = {
        url: as_tar(samples) if url.endswith(".tar") else None for url, samples in shards
    }
    everything.update(files or {})
    if error is None:
        for url, samples in shards:
            hashed += text(url.encode()) + u64(len(samples))
        for file, data in sorted(everything.items()):
            hashed += text(file.encode()) + (b"" if data is None else text(data))
        back = [Sample(key, url.encode(), fields) for url, all_ in shards for key, fields in all_]
        hashed += sample_bytes(back)
    listed = [
        [part.hex() for part in (key, *(part for field in fields for part in field))]
        for key, fields in given or written
    ]
    place = {"pattern": pattern} if isinstance(pattern, str) else {"names": list(pattern)}
    return Case(
        name,
        "write",
        about,
        [],
        options or {},
        0 if error else len(written),
        xxh64(hashed),
        (error, None) if error else None,
        own={**place, "samples": listed},
    )


def small(count: int, start: int = 0) -> list[Written]:
    """Samples of one field."""
    return [(b"k%03d" % i, [(b"txt", b"%d" % i * (i % 7))]) for i in range(start, start + count)]


def cases(_archives: Folder) -> list[Case]:
    """All of them."""
    fields: list[Written] = [
        (b"a/0", [(b"jpg", bytes(range(256)) * 5), (b"cls", b"7")]),
        (b"a/1", [(b"seg.png", b""), (b"json", b'{"a": 1}')]),
        (b"b.c/2", [(b"bin", b"\0" * 512)]),
    ]
    strange: list[Written] = [
        (b"\xff\xfe/\x80", [(b"txt", b"1")]),
        ("ü ß".encode(), [(b"txt", b"2")]),
        (b"d" * 60 + b"/" + b"e" * 90, [(b"txt", b"3")]),
    ]
    refused: list[Written] = [
        (b"a.b", [(b"txt", b"1")]),
        (b"", [(b"txt", b"1")]),
        (b"../a", [(b"txt", b"1")]),
        (b"/a", [(b"txt", b"1")]),
        (b"a", []),
        (b"a", [(b"txt", b"1"), (b"TXT", b"2")]),
    ]
    good = small(2)
    first, second = small(2), small(2, 2)
    dali, energon = indexes(as_tar(first))
    return [
        write("write_tar", "several fields, and empty ones", "w.tar", [("w.tar", fields)]),
        write("write_names", "names of any bytes, and one of more than 100", "w.tar",
              [("w.tar", strange)]),
        write("write_samples", "max_samples, first_shard", "w-%03d.tar",
              [("w-007.tar", small(4)), ("w-008.tar", small(4, 4)), ("w-009.tar", small(1, 8))],
              {"max_samples": "4", "first_shard": "7"}),
        write("write_bytes", "max_bytes counts headers and the end of the tar", "w-%d.tar",
              [("w-0.tar", small(10)), ("w-1.tar", small(2, 10))], {"max_bytes": "10240"}),
        write("write_gz", "a compressed tar", "w.tar.gz", [("w.tar.gz", small(5))]),
        write("write_zst", "a compressed tar", "w.tar.zst", [("w.tar.zst", small(5))],
              {"compress_threads": "2"}),
        write("write_zip", "a ZIP file", "w.zip", [("w.zip", small(5))]),
        write("write_refused", "samples that readers would misread cost themselves alone", "w.tar",
              [("w.tar", good)], given=[good[0], *refused, good[1]], refused="USAGE"),
        write("write_index_for", "indexes of other tools", "w-%d.tar",
              [("w-0.tar", first), ("w-1.tar", second)],
              {"max_samples": "2", "index_for": "dali,energon", "wids_index": "$OUT/w.json"},
              files={"w-0.idx": dali, "w-0.tar.idx": energon, "w.json": None,
                     "w-1.idx": indexes(as_tar(second))[0],
                     "w-1.tar.idx": indexes(as_tar(second))[1]}),
        write("write_named", "a function names the shards", ["one.tar", "two.tar"],
              [("one.tar", first), ("two.tar", second)], {"max_samples": "2"}),
        write("write_named_twice", "a name that comes again", ["one.tar", "./one.tar"],
              [("one.tar", first)], {"max_samples": "2", "overwrite": "true"}, given=small(3),
              refused="USAGE", error="USAGE"),
        write("write_no_number", "shards are to be cut, and the pattern has no number", "w.tar", [],
              {"max_samples": "2"}, error="USAGE"),
        write("write_index_of_gz", "there is no index of a compressed tar", "w.tar.gz", [],
              {"index_for": "dali"}, error="USAGE"),
    ]  # fmt: skip
