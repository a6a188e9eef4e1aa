"""Cases that end in an error, and those of options that accept or skip what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from case import Case, of_samples
from expected import Folder, Sample, grouped
from make_archives import SOUND, ZIP_SOUND, inner_entry

stream = partial(of_samples, "stream")

Error = tuple[str, "int | None"]  # class and offset

ALL = {
    "skip_sample": {"on_error": "skip_sample"},
    "skip_shard": {"on_error": "skip_shard"},
}


def encoded(members: list[tuple[str, bytes]], url: str) -> list[Sample]:
    """The samples of what was written."""
    return grouped([(name.encode(), data) for name, data in members], url)


def sound(url: str, count: int = 4) -> list[Sample]:
    """The first samples of the tar that broken ones are made of, in another file."""
    return encoded(SOUND, url)[:count]


def small(url: str, *names: str) -> list[Sample]:
    """Members with the bytes 1, 2, 3, ... in order; those with an empty name are left out."""
    members = [(name, str(number).encode()) for number, name in enumerate(names, 1) if name]
    return encoded(members, url)


def tars(archives: Folder) -> list[Case]:
    """Tar files with something wrong.

    The sample before a fault is delivered only if the next one, or the end of the shard, was seen
    to follow it: else a field of it could be missing.
    """

    def broken(name: str, about: str, before: int, error: Error) -> Case:
        url = f"{name}.tar"
        return stream(name, about, url, sound(url, before), error=error)

    return [
        broken("zero_bytes", "a file of no bytes", 0, ("TRUNCATED", 0)),
        broken("no_samples", "only an end marker", 0, ("FORMAT", None)),
        stream("no_samples_allowed", "only an end marker, allow_empty=true", "no_samples.tar", [],
               {"allow_empty": "true"}, stats={"empty_shards": 1, "samples": 0}),
        broken("not_a_tar", "noise", 0, ("FORMAT", 0)),
        broken("cut_in_header", "cut in the header of a member", 0, ("TRUNCATED", 2560)),
        broken("cut_in_data", "cut in the data of a member", 1, ("TRUNCATED", 3584)),
        broken("cut_in_padding", "cut in the zeros after a member", 1, ("TRUNCATED", 3584)),
        broken("cut_between_members", "cut where a header should be", 1, ("TRUNCATED", 3584)),
        broken("no_end_marker", "no end marker", 3, ("TRUNCATED", 10240)),
        stream("no_end_marker_optional", "no end marker, end_marker=optional", "no_end_marker.tar",
               sound("no_end_marker.tar"), {"end_marker": "optional"},
               stats={"missing_end_markers": 1, "samples": 4}),
        broken("half_end_marker", "one zero block at the end", 3, ("TRUNCATED", 10240)),
        stream("half_end_marker_optional", "one zero block at the end, end_marker=optional",
               "half_end_marker.tar", sound("half_end_marker.tar"), {"end_marker": "optional"}),
        broken("bad_checksum", "a header whose checksum is wrong", 0, ("FORMAT", 2560)),
        broken("bad_size", "a size that is no number", 0, ("FORMAT", 2560)),
        broken("junk_at_end", "junk after the end marker", 3, ("FORMAT", 11264)),
        stream("junk_at_end_ignored", "junk after the end marker, trailing=ignore",
               "junk_at_end.tar", sound("junk_at_end.tar"), {"trailing": "ignore"},
               stats={"trailing": 1}),
        stream("same_field", "a field twice", "same_field.tar", small("same_field.tar", "a.txt"),
               error=("AMBIGUOUS", 2048)),
        stream("same_field_skip_sample", "a field twice: the sample is skipped", "same_field.tar",
               small("same_field.tar", "a.txt", "", "", "c.txt"), ALL["skip_sample"],
               stats={"samples": 2, "skipped_samples": 1, "skips_ambiguous": 1}),
        stream("same_key", "a key that comes again", "same_key.tar",
               small("same_key.tar", "a.txt", "b.txt"), error=("AMBIGUOUS", 2048)),
        stream("same_key_accepted", "a key that comes again, duplicate_keys=accept", "same_key.tar",
               small("same_key.tar", "a.txt", "b.txt", "a.cls", "c.txt"),
               {"duplicate_keys": "accept"}),
        stream("concatenated", "two tars in one file", "concatenated.tar", [],
               error=("FORMAT", 2048)),
        stream("concatenated_accepted", "two tars in one file, concat=true", "concatenated.tar",
               encoded([("a.txt", b"1"), ("b.txt", b"2")], "concatenated.tar"),
               {"concat": "true"}),
        stream("sparse", "a sparse member", "sparse.tar", small("sparse.tar", "a.txt"),
               error=("UNSUPPORTED", 1024)),
        stream("sparse_without_magic", "a sparse member in a tar that is not GNU's",
               "sparse_without_magic.tar", [], error=("FORMAT", 1024)),
        stream("unknown_type", "a member of unknown type is passed over", "unknown_type.tar",
               small("unknown_type.tar", "a.txt"), stats={"unknown_types": 1}),
        stream("bad_pax", "a pax record longer than its header", "bad_pax.tar",
               [], error=("FORMAT", 1024)),
        stream("nul_in_pax_name", "a NUL byte in a name", "nul_in_pax_name.tar",
               [], error=("FORMAT", 1024)),
        stream("cut_gz", "gzip that ends too early", "cut.tar.gz",
               [], error=("TRUNCATED", 0)),
        stream("bad_crc_gz", "gzip with a wrong CRC", "bad_crc.tar.gz",
               [], error=("INTEGRITY", 0)),
        stream("junk_at_end_gz", "junk after gzip", "junk_at_end.tar.gz",
               sound("junk_at_end.tar.gz", 3), error=("FORMAT", 11264)),
        stream("junk_at_end_gz_ignored", "junk after gzip, trailing=ignore", "junk_at_end.tar.gz",
               sound("junk_at_end.tar.gz"), {"trailing": "ignore"}, stats={"trailing": 1}),
        stream("cut_zst", "zstd that ends too early", "cut.tar.zst",
               sound("cut.tar.zst", 1), error=("TRUNCATED", 4988)),
    ]  # fmt: skip


def zips(archives: Folder) -> list[Case]:
    """ZIP files with something wrong."""

    def broken(
        name: str, about: str, before: int, error: Error, options: Mapping[str, str] | None = None
    ) -> Case:
        url = f"{name}.zip"
        return stream(
            f"zip_{name}", about, url, encoded(ZIP_SOUND, url)[:before], options, error=error
        )

    def accepted(name: str, about: str, url: str, options: Mapping[str, str]) -> Case:
        return stream(f"zip_{name}", about, url, encoded(ZIP_SOUND, url), options)

    return [
        broken("empty", "a ZIP file without entries", 0, ("FORMAT", None)),
        broken("bad_crc", "data whose CRC is wrong", 1, ("INTEGRITY", 55)),
        stream("zip_bad_crc_skip_sample", "data whose CRC is wrong: the sample is skipped",
               "bad_crc.zip",
               [one for one in encoded(ZIP_SOUND, "bad_crc.zip") if one.key != b"b"],
               ALL["skip_sample"],
               stats={"samples": 3, "skipped_samples": 1, "skips_integrity": 1}),
        broken("bad_signature", "a damaged directory", 0, ("FORMAT", 271)),
        broken("bad_local_header", "no header before an entry", 0, ("FORMAT", 55)),
        broken("other_local_name", "another name before an entry", 0, ("AMBIGUOUS", 55)),
        broken("cut", "a cut end record", 0, ("TRUNCATED", 436)),
        broken("cut_in_data", "cut before the directory", 0, ("TRUNCATED", 100)),
        broken("encrypted", "an encrypted entry", 1, ("UNSUPPORTED", 55)),
        broken("unknown_method", "a method that nobody knows", 1, ("UNSUPPORTED", 55)),
        stream("zip_same_name", "a name twice", "same_name.zip",
               small("same_name.zip", "a.txt", "b.txt"), error=("AMBIGUOUS", 72)),
        broken("prefix", "bytes before the first entry", 0, ("FORMAT", 439)),
        accepted("prefix_allowed", "bytes before the first entry, zip_prefix=allow", "prefix.zip",
                 {"zip_prefix": "allow"}),
        broken("junk_at_end", "junk after the end record", 0, ("FORMAT", 424)),
        accepted("junk_at_end_ignored", "junk after the end record, trailing=ignore",
                 "junk_at_end.zip", {"trailing": "ignore"}),
        stream("zip_overlap", "entries that share bytes", "overlap.zip", [],
               error=("FORMAT", 0)),
        stream("zip_overlap_allowed", "entries that share bytes, zip_overlap=allow", "overlap.zip",
               grouped([(b"a.txt", inner_entry()[0]), (b"b.txt", b"2")], "overlap.zip"),
               {"zip_overlap": "allow"}),
        broken("wrong_count", "an end record that counts fewer entries", 0, ("FORMAT", 373)),
    ]  # fmt: skip


def skipping(archives: Folder) -> list[Case]:
    """Damaged shards among good ones."""
    plain, last = archives.samples("plain.tar"), archives.samples("set-001.tar")
    cut = sound("cut_in_data.tar", 1)
    urls = ["plain.tar", "cut_in_data.tar", "set-001.tar"]
    cases = [
        stream("error_among_shards", "what came before an error is delivered", urls, plain + cut,
               error=("TRUNCATED", 3584)),
    ]  # fmt: skip
    for how, options in ALL.items():
        cases.append(
            stream(f"{how}_truncated", "the rest of the shard is skipped", urls, plain + cut + last,
                   options, stats={"samples": len(plain + cut + last), "skipped_shards": 1,
                                   "skips_truncated": 1, "shards": 2})
        )  # fmt: skip
    cases += [
        stream("skip_shard_not_found", "a shard that is not there is skipped",
               ["missing.tar.none", "plain.tar"], plain, ALL["skip_shard"],
               stats={"skipped_shards": 1, "skips_io": 1}),
        stream("skip_shard_same_field", "the whole rest of the shard",
               "same_field.tar", small("same_field.tar", "a.txt"), ALL["skip_shard"],
               stats={"skipped_shards": 1, "skipped_samples": 0}),
        stream("max_skips", "more skips than max_skips", urls, plain + cut,
               {"on_error": "skip_shard", "max_skips": "0"}, error=("LIMIT", 3584)),
        stream("skip_in_lanes", "a damaged shard in one of two lanes",
               ["plain.tar", "cut_in_data.tar"],
               [plain[0], *cut, *plain[1:]], {"lanes": "2", "on_error": "skip_shard"}),
    ]  # fmt: skip
    return cases


def limits(archives: Folder) -> list[Case]:
    """Bounds of options."""
    large = archives.samples("large.tar")
    return [
        stream("max_member", "a member above max_member", "large.tar", [],
               {"max_member": "100000"}, error=("LIMIT", 0)),
        stream("max_member_skip_sample", "a member above max_member is skipped", "large.tar",
               large[1:], {"max_member": "100000", "on_error": "skip_sample"},
               stats={"skipped_samples": 1, "skips_limit": 1}),
        stream("max_sample", "a sample above max_sample", "plain.tar",
               archives.samples("plain.tar")[:3], {"max_sample": "100"}, error=("LIMIT", 10752)),
        stream("max_name", "a name longer than max_name", "gnu.tar", [], {"max_name": "100"},
               error=("LIMIT", 0)),
        stream("max_meta", "headers larger than max_meta", "pax.tar", [], {"max_meta": "200"},
               error=("LIMIT", 0)),
        stream("max_window", "zstd that asks for more history than max_window",
               "wide_window.tar.zst", [], error=("LIMIT", 0)),
        stream("max_window_raised", "the same, max_window=1GiB", "wide_window.tar.zst",
               sound("wide_window.tar.zst"), {"max_window": "1GiB"}),
        stream("max_shards", "more shards than max_shards", "set-{000..007}.tar", [],
               {"max_shards": "7"}, error=("LIMIT", None)),
    ]  # fmt: skip


def usage(archives: Folder) -> list[Case]:
    """Refused options and URLs, files that cannot be opened, programs that fail."""

    def refused(
        name: str, about: str, options: Mapping[str, str], urls: str = "plain.tar",
        kind: str = "USAGE",
    ) -> Case:  # fmt: skip
        return stream(name, about, urls, [], options, error=(kind, None))

    piped = "pipe:cat '$FOLDER/sound.tar'"
    return [
        refused("bad_number", "a number that is none", {"shuffle": "many"}),
        refused("number_too_large", "a number above its range", {"shuffle": "1000000001"}),
        refused("negative_number", "a negative number", {"seed": "-1"}),
        refused("bad_bool", "a truth value that is none", {"shuffle_shards": "perhaps"}),
        refused("bad_choice", "a choice that is none", {"on_error": "ignore"}),
        refused("bad_bytes", "a size with a wrong unit", {"memory": "10miles"}),
        refused("bad_slice", "a slice that is none", {"slice": "1:2:3:4"}),
        refused("slice_step_0", "a slice with step 0", {"slice": "::0"}),
        refused("rank_too_large", "a rank that is not below world_size",
                {"rank": "2", "world_size": "2"}),
        refused("worker_too_large", "a worker that is not below num_workers", {"worker": "1"}),
        refused("even_lanes_do_not_divide", "even with lanes that are no multiple of the consumers",
                {"lanes": "3", "world_size": "2", "rank": "0", "even": "drop"},
                "set-{000..007}.tar"),
        refused("fewer_shards_than_ranks", "fewer shards than consumers",
                {"world_size": "2", "rank": "0"}),
        refused("which_rank", "several ranks, and nothing says which one this is",
                {"world_size": "4", "worker": "0"}, "set-{000..007}.tar"),
        refused("which_worker", "several workers, and nothing says which one this is",
                {"num_workers": "4", "rank": "0"}, "set-{000..007}.tar"),
        refused("bad_decode", "a kind of field that nobody knows",
                {"batch": "2", "decode": "cls:integer"}),
        refused("unbalanced_braces", "a brace that is not closed", {}, "{1,$FOLDER/plain.tar"),
        refused("no_such_variable", "a variable of the environment that is not set", {},
                "${SHARDFEED_CONFORMANCE_IS_NOT_SET}.tar"),
        refused("nested_list", "a list in a list", {}, "@$FOLDER/nested.txt"),
        refused("program_in_list", "a program in a list", {}, "@$FOLDER/program.txt"),
        refused("empty_list", "a list of comments", {}, "@$FOLDER/only_comments.txt"),
        refused("empty_url", "nothing between two ::", {}, "$FOLDER/plain.tar::"),
        refused("no_list", "a list that is not there", {}, "@$FOLDER/no_such_list.txt", "IO"),
        refused("no_such_file", "a file that is not there", {}, "no_such_file.tar", "IO"),
        refused("folder_as_shard", "a folder in place of a file", {}, "a_folder", "IO"),
        refused("secure", "a program, secure=true", {"secure": "true"}, piped),
        stream("program", "the output of a program", piped,
               sound("pipe:cat 'sound.tar'"), {}),
        stream("program_fails", "a program that ends with status 3 after a whole shard",
               piped + "; exit 3",
               sound("pipe:cat 'sound.tar'; exit 3", 3), {}, error=("CHILD", None)),
        stream("program_is_silent", "a program that gives nothing for longer than pipe_timeout",
               "pipe:sleep 60 #$FOLDER/", [], {"pipe_timeout": "20ms"}, error=("CHILD", None)),
        stream("program_not_found", "a program that is not there",
               "pipe:$FOLDER/no_such_program 2>&-", [], {}, error=("CHILD", None)),
    ]  # fmt: skip


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    return [case for part in (tars, zips, skipping, limits, usage) for case in part(archives)]
