"""Cases of streams: what comes, and in which order."""

from __future__ import annotations

from functools import partial

from case import Case, frozen, of_samples
from expected import Folder, Sample, lanes_of, taken_in_turn, text, xxh64

SET = "set-{000..007}.tar"
SHARDS = [f"set-{number:03d}.tar" for number in range(8)]
PARTS = [f"part-{number}.zip" for number in range(4)]

stream = partial(of_samples, "stream")
resume = partial(of_samples, "resume")


def called(samples: list[Sample], url: str) -> list[Sample]:
    """The same samples of another shard."""
    return [sample._replace(url=url.encode()) for sample in samples]


def containers(archives: Folder) -> list[Case]:
    """Kinds of archives."""
    whole = archives.samples
    plain = whole("plain.tar")
    cases = [
        stream("plain", "a tar of six samples with three fields", "plain.tar", plain),
        stream("ustar", "names with a prefix", "ustar.tar", whole("ustar.tar")),
        stream("gnu", "GNU long names", "gnu.tar", whole("gnu.tar")),
        stream("pax", "pax headers, names of many languages", "pax.tar", whole("pax.tar")),
        stream("bytes", "names that are not UTF-8", "bytes.tar", whole("bytes.tar")),
        stream("v7", "a tar from before ustar", "v7.tar", whole("v7.tar")),
        stream("contiguous", "members of type 7", "contiguous.tar", whole("contiguous.tar")),
        stream("padded_end", "more zero blocks at the end", "padded_end.tar",
               called(plain, "padded_end.tar")),
    ]  # fmt: skip
    for suffix in ("gz", "bz2", "xz", "zst"):
        url = f"plain.tar.{suffix}"
        cases.append(stream(f"plain_{suffix}", f"compressed: {suffix}", url, called(plain, url)))
    cases += [
        stream("two_gzip_members", "a gzip file of two members", "two_members.tar.gz",
               called(plain, "two_members.tar.gz")),
        stream("suffix_says_otherwise", "gzip in a file called .tar", "gzip_without_suffix.tar",
               called(plain, "gzip_without_suffix.tar"), stats={"suffix_mismatches": 1}),
    ]  # fmt: skip
    about = {
        "stored": "a ZIP file, stored",
        "deflated": "a ZIP file, deflated",
        "bzip2": "a ZIP file, bzip2",
        "lzma": "a ZIP file, LZMA",
        "zip64": "a ZIP file with 64-bit sizes",
        "sizes_after_data": "a ZIP file with data descriptors",
        "comment": "a ZIP file with a comment at its end",
        "names": "folders and names in a ZIP file",
    }
    for name, sentence in about.items():
        cases.append(stream(f"zip_{name}", sentence, f"{name}.zip", whole(f"{name}.zip")))
    return cases


def names(archives: Folder) -> list[Case]:
    """Keys and fields."""
    whole = archives.samples
    return [
        stream("names", "keys, folders, dots, and fields in capitals", "names.tar",
               whole("names.tar")),
        stream("passed_over", "members that belong to no sample are counted", "passed_over.tar",
               whole("passed_over.tar"),
               stats={"ignored_members": 5, "directories": 1, "links": 2, "specials": 1,
                      "samples": 2, "bytes": 3, "shards": 1}),
        stream("empty_members", "fields without bytes", "empty_members.tar",
               whole("empty_members.tar")),
        stream("large", "members larger than a block of samples", "large.tar", whole("large.tar")),
        stream("field_order", "fields come in the order of the shard", "other_field_order.tar",
               whole("other_field_order.tar")),
    ]  # fmt: skip


def urls(archives: Folder) -> list[Case]:
    """URLs of streams."""
    whole = archives.samples
    return [
        stream("braces", "eight shards, in the order of the list", SET, whole(*SHARDS)),
        stream("list_of_urls", "several URLs, one twice", ["plain.tar", "set-001.tar", "plain.tar"],
               whole("plain.tar", "set-001.tar", "plain.tar")),
        stream("tar_and_zip", "tar and ZIP files mixed", ["plain.tar", "stored.zip"],
               whole("plain.tar", "stored.zip")),
        stream("file_url", "file:///", "file://$FOLDER/plain.tar",
               called(whole("plain.tar"), "file://plain.tar")),
        stream("two_parts", "two URLs with :: between them",
               "$FOLDER/plain.tar::$FOLDER/set-000.tar", whole("plain.tar", "set-000.tar")),
    ]  # fmt: skip


def order(archives: Folder) -> list[Case]:
    """Lanes, consumers, epochs and shuffle."""
    shards = [archives.samples(shard) for shard in SHARDS]
    whole = [sample for shard in shards for sample in shard]
    cases = []
    for lanes in (2, 3, 8):
        cases.append(
            stream(f"lanes_{lanes}", f"{lanes} lanes in turn", SET,
                   taken_in_turn(lanes_of(shards, lanes)), {"lanes": str(lanes)})
        )  # fmt: skip
    for rank in range(2):
        cases.append(
            stream(f"rank_{rank}_of_2", "a rank has every second shard", SET,
                   [sample for shard in shards[rank::2] for sample in shard],
                   {"rank": str(rank), "world_size": "2"})
        )  # fmt: skip
    own = lanes_of(shards, 4)[3::4]
    cases += [
        stream("worker_1_of_2_of_rank_1", "consumer 3 of 4", SET, taken_in_turn(own),
               {"rank": "1", "world_size": "2", "worker": "1", "num_workers": "2"}),
        stream("rank_1_of_2_of_4_lanes", "a rank has lanes 1 and 3", SET,
               taken_in_turn(lanes_of(shards, 4)[1::2]),
               {"rank": "1", "world_size": "2", "lanes": "4"}),
        stream("epochs_2", "two epochs", "plain.tar", archives.samples("plain.tar") * 2,
               {"epochs": "2"}),
        stream("epoch_samples", "an epoch of twenty samples over all shards", SET, whole[:20],
               {"epoch_samples": "20"}),
        stream("epoch_samples_more", "an epoch longer than one pass", "plain.tar",
               (archives.samples("plain.tar") * 3)[:16], {"epoch_samples": "16"}),
    ]  # fmt: skip
    for threads in (1, 2, 5):
        cases.append(
            stream(f"threads_{threads}", "threads do not change the order", SET, whole,
                   {"threads": str(threads)})
        )  # fmt: skip
    cases += [
        stream("memory", "little memory does not change the order", SET, whole,
               {"memory": "1MiB", "threads": "4"}),
        stream("shuffle_1", "a shuffle buffer of one sample is none", SET, whole,
               {"shuffle": "1", "seed": "5"}),
    ]  # fmt: skip
    count = len(whole)
    shuffled = {
        "shuffle": {"shuffle": "10", "seed": "1"},
        "shuffle_other_seed": {"shuffle": "10", "seed": "18446744073709551615"},
        "shuffle_epoch_3": {"shuffle": "10", "seed": "1", "epoch": "3"},
        "shuffle_all": {"shuffle": "1000", "seed": "1"},
        "shuffle_shards": {"shuffle_shards": "true", "seed": "1"},
        "shuffle_shards_and_samples": {"shuffle_shards": "true", "shuffle": "7", "seed": "2"},
        "shuffle_lanes": {"shuffle_shards": "true", "shuffle": "7", "seed": "2", "lanes": "4"},
    }
    for name, options in shuffled.items():
        about = "the shuffle of " + ", ".join(f"{key}={value}" for key, value in options.items())
        cases.append(frozen("stream", name, about, SET, options, count))
    cases += [
        frozen("stream", "shuffle_two_epochs", "each epoch is shuffled anew", SET,
               {"shuffle": "20", "shuffle_shards": "true", "seed": "3", "epochs": "2"}, 2 * count),
        frozen("stream", "resample", "shards drawn with replacement", SET,
               {"resample": "true", "seed": "4", "epoch_samples": "50"}, 50),
        frozen("stream", "resample_shuffle_lanes", "the same, shuffled, in two lanes", SET,
               {"resample": "true", "seed": "4", "epoch_samples": "50", "lanes": "2",
                "shuffle": "8"}, 50),
        frozen("stream", "shuffle_zip", "ZIP shards, shuffled", "part-{0..3}.zip",
               {"shuffle": "6", "shuffle_shards": "true", "seed": "9"}, 25),
    ]  # fmt: skip
    return cases


def resuming(archives: Folder) -> list[Case]:
    """Saved and restored streams."""
    whole = archives.samples(*SHARDS)
    return [
        resume("resume_10", "saved in the second shard", SET, whole, stop=10),
        frozen("merge", "merge_2_to_4", "states of two ranks restored by four", SET,
               {"lanes": "4", "shuffle": "5", "seed": "1"}, len(whole), consumers=[2, 4], stop=12),
    ]  # fmt: skip


def expanding(archives: Folder) -> list[Case]:
    """URLs that are expanded."""

    def expand(name: str, about: str, url: str, result: list[str], **options: str) -> Case:
        hashed = b"".join(text(one.encode()) for one in result)
        return Case(name, "expand", about, [url], options, len(result), xxh64(hashed))

    return [
        expand("expand_padded", "numbers keep their zeros", "{08..11}.tar",
               ["08.tar", "09.tar", "10.tar", "11.tar"]),
    ]  # fmt: skip


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    parts = (containers, names, urls, order, resuming, expanding)
    return [case for part in parts for case in part(archives)]
