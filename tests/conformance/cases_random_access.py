"""Cases of archives and datasets: members and samples in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from case import Case
from expected import Folder, Sample, sample_bytes, text, u64, xxh64

EMPTY = xxh64(b"")


def archive(
    name: str,
    about: str,
    url: str,
    members: Sequence[tuple[bytes, bytes]],
    options: Mapping[str, str] | None = None,
    *,
    find: Mapping[str, int] | None = None,
    missing: str | None = None,
    error: tuple[str, int | None] | None = None,
) -> Case:
    """Members, then names with their positions, then perhaps a name that ends in an error."""
    hashed = b"".join(text(name) + text(data) for name, data in members)
    hashed += b"".join(map(u64, (find or {}).values()))
    names = [*(find or {}), *([missing] if missing is not None else [])]
    own = {"find": names} if names else {}
    return Case(
        name, "archive", about, [url], options or {}, len(members), xxh64(hashed), error, None, own
    )


def dataset(
    name: str,
    about: str,
    urls: Sequence[str],
    samples: Sequence[Sample],
    positions: Sequence[int],
    options: Mapping[str, str] | None = None,
    *,
    find: Mapping[str, int] | None = None,
    missing: str | None = None,
    bad: int | None = None,
    error: tuple[str, int | None] | None = None,
) -> Case:
    """Samples by number, then keys with their numbers, then perhaps what ends in an error: the
    sample `bad` or the key `missing`.
    """
    hashed = sample_bytes(samples[number] for number in positions)
    hashed += b"".join(map(u64, (find or {}).values()))
    names = [*(find or {}), *([missing] if missing is not None else [])]
    own = {
        "positions": [*positions, *([bad] if bad is not None else [])],
        **({"find": names} if names else {}),
    }
    return Case(
        name, "dataset", about, list(urls), options or {}, len(samples), xxh64(hashed), error, None,
        own,
    )  # fmt: skip


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    return [*archive_cases(archives), *dataset_cases(archives)]


def archive_cases(archives: Folder) -> list[Case]:
    """Archives."""
    members = archives.members
    zip_sound = members("sound.zip")
    tar_sound = members("sound.tar")
    cases = [
        archive("archive_tar", "members of a tar, some found by name", "plain.tar",
                members("plain.tar"), find={"00003.cls": 10, "00000.txt": 0}),
        archive("archive_zip", "members of a ZIP file, some found by name", "stored.zip",
                members("stored.zip"), find={"00005.bin": 17, "00001.txt": 3}),
        archive("archive_tar_gz", "a compressed tar is taken into memory", "plain.tar.gz",
                members("plain.tar.gz"), find={"00002.bin": 8}),
        archive("archive_no_member", "a name that is not there", "plain.tar", members("plain.tar"),
                missing="no such member", error=("NOT_FOUND", None)),
        archive("archive_name_twice", "a name that is there twice", "same_name.zip",
                [(b"a.txt", b"1"), (b"b.txt", b"2"), (b"a.txt", b"3")], find={"b.txt": 1},
                missing="a.txt", error=("AMBIGUOUS", None)),
        archive("archive_all_kinds", "folders and links are members without bytes",
                "passed_over.tar",
                [(b"a.txt", b"1"), (b"folder/", b""), (b"README", b"no dot"),
                 (b".hidden.txt", b"hidden"), (b"dir/.hidden", b"hidden"), (b"__index__", b"meta"),
                 (b"__m__/x.txt", b"meta"), (b"a.cls", b"2"), (b"link.txt", b""),
                 (b"hard.txt", b""), (b"fifo.txt", b""), (b"b.txt", b"3")]),
        archive("archive_bad_crc", "data whose CRC is wrong", "bad_crc.zip", zip_sound[:1],
                error=("INTEGRITY", 55)),
        archive("archive_encrypted", "an encrypted entry", "encrypted.zip", zip_sound[:1],
                error=("UNSUPPORTED", 55)),
        archive("archive_unknown_method", "a method that nobody knows", "unknown_method.zip",
                zip_sound[:1], error=("UNSUPPORTED", 55)),
        archive("archive_bad_local_header", "no header before an entry", "bad_local_header.zip",
                zip_sound[:1], error=("FORMAT", 55)),
        archive("archive_other_local_name", "another name before an entry", "other_local_name.zip",
                zip_sound[:1], error=("AMBIGUOUS", 55)),
        archive("archive_bad_directory", "a damaged directory", "bad_signature.zip", [],
                error=("FORMAT", 271)),
        archive("archive_cut_zip", "a cut end record", "cut.zip", [], error=("TRUNCATED", 436)),
        archive("archive_cut_tar", "a cut tar", "cut_in_data.tar", [], error=("TRUNCATED", 3584)),
        archive("archive_no_end_marker", "a tar without end marker", "no_end_marker.tar", [],
                error=("TRUNCATED", 10240)),
        archive("archive_end_marker_optional", "the same, end_marker=optional",
                "no_end_marker.tar", tar_sound, {"end_marker": "optional"}),
        archive("archive_prefix", "bytes before the first entry", "prefix.zip", [],
                error=("FORMAT", 439)),
        archive("archive_prefix_allowed", "the same, zip_prefix=allow", "prefix.zip", zip_sound,
                {"zip_prefix": "allow"}),
        archive("archive_sparse", "a sparse member", "sparse.tar", [(b"a.txt", b"1")],
                error=("UNSUPPORTED", 1024)),
        archive("archive_empty_zip", "a ZIP file without entries", "empty.zip", []),
        archive("archive_not_one", "noise", "not_a_tar.tar", [], error=("FORMAT", 0)),
        archive("archive_no_file", "a file that is not there", "no_such_file.zip", [],
                error=("IO", None)),
        archive("archive_max_member", "a member above max_member", "large.tar", [],
                {"max_member": "1000"}, error=("LIMIT", 0)),
    ]  # fmt: skip
    for name in ("deflated", "bzip2", "lzma", "zip64", "sizes_after_data", "names"):
        cases.append(
            archive(f"archive_{name}", f"all members of {name}.zip", f"{name}.zip",
                    members(f"{name}.zip"))
        )  # fmt: skip
    for name in ("gnu", "pax", "bytes"):
        cases.append(
            archive(f"archive_{name}_tar", f"all members of {name}.tar", f"{name}.tar",
                    members(f"{name}.tar"))
        )  # fmt: skip
    return cases


def dataset_cases(archives: Folder) -> list[Case]:
    """Datasets. Their indexes stay in memory, but for the cases about index files."""
    samples = archives.samples
    memory = {"index": "memory"}
    whole = samples("set-000.tar", "set-001.tar", "set-002.tar")  # 5, 9 and 12 samples
    fields = samples("fields.tar")
    sound = samples("sound.zip")
    return [
        dataset("dataset_tar", "samples of a tar by number and key", ["plain.tar"],
                samples("plain.tar"), [5, 0, 3, 3], memory, find={"00004": 4}),
        dataset("dataset_set", "numbers go on from shard to shard", ["set-{000..002}.tar"], whole,
                [4, 5, 0, 13, 14, 25], memory, find={"00208": 22, "00100": 5}),
        dataset("dataset_zip", "samples of a ZIP file", ["stored.zip"], samples("stored.zip"),
                [1, 4, 2], memory, find={"00005": 5}),
        dataset("dataset_mixed", "tar and ZIP files mixed", ["plain.tar", "sound.zip"],
                samples("plain.tar", "sound.zip"), [9, 5, 6, 0], memory, find={"c": 8}),
        dataset("dataset_pax", "pax headers", ["pax.tar"], samples("pax.tar"), [2, 0, 1], memory),
        dataset("dataset_gnu", "GNU long names", ["gnu.tar"], samples("gnu.tar"), [0, 2], memory),
        dataset("dataset_bytes", "names that are not UTF-8", ["bytes.tar"], samples("bytes.tar"),
                [1, 0], memory),
        dataset("dataset_passed_over", "members that belong to no sample", ["passed_over.tar"],
                samples("passed_over.tar"), [0, 1], memory),
        dataset("dataset_large", "large samples", ["large.tar"], samples("large.tar"), [1, 0],
                memory),
        dataset("dataset_fields", "some fields; a sample may have none of them", ["fields.tar"],
                [one._replace(fields=[f for f in one.fields if f[0] in (b"x", b"w")])
                 for one in fields], [3, 2, 0], {**memory, "fields": "x,w"}),
        dataset("dataset_index_file", "the index is kept beside the shard", ["keys.tar"],
                samples("keys.tar"), [7, 3], find={"val/5": 11}),
        dataset("dataset_index_dir", "the index is kept in a folder", ["names.tar"],
                samples("names.tar"), [2, 0], {"index_dir": "$FOLDER/a_folder"}),
        dataset("dataset_no_index", "index=require without an index", ["fields.tar"], [], [],
                {"index": "require"}, error=("NOT_FOUND", None)),
        dataset("dataset_damaged_index", "index=require with an index that is none",
                ["v7.tar"], [], [], {"index": "require"}, error=("FORMAT", None)),
        dataset("dataset_index_made_anew", "an index that is none is made anew in memory",
                ["v7.tar"], samples("v7.tar"), [1], memory),
        dataset("dataset_no_key", "a key that is not there", ["plain.tar"], samples("plain.tar"),
                [2], memory, missing="00006", error=("NOT_FOUND", None)),
        dataset("dataset_key_twice", "a key of two shards", ["plain.tar", "plain.tar"],
                samples("plain.tar", "plain.tar"), [6], memory, missing="00003",
                error=("AMBIGUOUS", None)),
        dataset("dataset_key_three_times", "a key of three shards", ["plain.tar"] * 3,
                samples("plain.tar") * 3, [], memory, missing="00005",
                error=("AMBIGUOUS", None)),
        dataset("dataset_compressed", "samples of a compressed tar", ["plain.tar.gz"],
                samples("plain.tar.gz"), [5, 0, 3, 3], memory, find={"00004": 4}),
        dataset("dataset_cut", "a cut tar", ["cut_in_data.tar"], [], [], memory,
                error=("TRUNCATED", 3584)),
        dataset("dataset_same_field", "a field twice", ["same_field.tar"], [], [], memory,
                error=("AMBIGUOUS", 2048)),
        dataset("dataset_same_key", "a key that comes again", ["same_key.tar"], [], [], memory,
                error=("AMBIGUOUS", 2048)),
        dataset("dataset_bad_crc", "data whose CRC is wrong", ["bad_crc.zip"],
                in_zip(sound, "bad_crc.zip"), [0, 2], memory, bad=1, error=("INTEGRITY", 55)),
        dataset("dataset_encrypted", "an encrypted entry", ["encrypted.zip"],
                in_zip(sound, "encrypted.zip"), [3, 0], memory, bad=1, error=("UNSUPPORTED", 55)),
        dataset("dataset_empty", "a shard without samples", ["no_samples.tar"], [], [], memory,
                error=("FORMAT", None)),
        dataset("dataset_pipe", "the output of a program", ["pipe:cat $FOLDER/plain.tar"], [], [],
                memory, error=("USAGE", None)),
        dataset("dataset_no_file", "a file that is not there", ["no_such_file.tar"], [], [],
                memory, error=("IO", None)),
    ]  # fmt: skip


def in_zip(samples: Sequence[Sample], url: str) -> list[Sample]:
    """The same samples of another file."""
    return [sample._replace(url=url.encode()) for sample in samples]
