"""Cases of streams: what comes, and in which order."""

from __future__ import annotations

from functools import partial

from case import Case, of_samples
from expected import (
    Folder,
    Sample,
    lanes_of,
    only_fields,
    taken_in_turn,
    text,
    xxh64,
)
from order_model import dealt, in_turn, merged, ordered
from order_model import lanes_of as lanes_of_run

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
        stream("rank_1_of_2_of_3_lanes", "two ranks share three lanes", SET,
               dealt(lanes_of_run(shards, {"lanes": "3"}), 2)[1],
               {"rank": "1", "world_size": "2", "lanes": "3"}),
        stream("rank_4_of_6_of_4_lanes", "three of six ranks share two lanes each", SET,
               dealt(lanes_of_run(shards, {"lanes": "4"}), 6)[4],
               {"rank": "4", "world_size": "6", "lanes": "4"}),
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
        stream("write_index", "leaving an index behind changes nothing", "other_field_order.tar",
               archives.samples("other_field_order.tar"), {"write_index": "true"}),
        stream("shuffle_1", "a shuffle buffer of one sample is none", SET, whole,
               {"shuffle": "1", "seed": "5"}),
    ]  # fmt: skip
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
        cases.append(stream(name, about, SET, ordered(shards, options), options))
    two_epochs = {"shuffle": "20", "shuffle_shards": "true", "seed": "3", "epochs": "2"}
    resampled = {"resample": "true", "seed": "4", "epoch_samples": "50"}
    in_lanes = {**resampled, "lanes": "2", "shuffle": "8"}
    of_zip = {"shuffle": "6", "shuffle_shards": "true", "seed": "9"}
    parts = [archives.samples(part) for part in PARTS]
    cases += [
        stream("shuffle_two_epochs", "each epoch is shuffled anew", SET,
               ordered(shards, two_epochs), two_epochs),
        stream("resample", "shards drawn with replacement", SET, ordered(shards, resampled),
               resampled),
        stream("resample_shuffle_lanes", "the same, shuffled, in two lanes", SET,
               ordered(shards, in_lanes), in_lanes),
        stream("shuffle_zip", "ZIP shards, shuffled", "part-{0..3}.zip", ordered(parts, of_zip),
               of_zip),
    ]  # fmt: skip
    return cases


def selecting(archives: Folder) -> list[Case]:
    """fields, select_keys and slice."""
    fields, keys = archives.samples("fields.tar"), archives.samples("keys.tar")
    train = [sample for sample in keys if sample.key.startswith(b"train/")]
    numbers = [sample for sample in keys if sample.key[-1:] in b"024"]
    shards = [archives.samples(shard) for shard in SHARDS]
    damaged = archives.samples("same_field.tar")
    return [
        stream("fields", "two fields; samples without them are left out", "fields.tar",
               only_fields(fields, [b"x", b"w"]), {"fields": "x,w"},
               stats={"samples": 3, "filtered_samples": 1}),
        stream("fields_none_there", "a field that no sample has", "fields.tar", [],
               {"fields": "jpg"}, stats={"filtered_samples": 4}),
        stream("fields_pass_over_damage", "a field twice that is not asked for", "same_field.tar",
               only_fields(damaged, [b"jpg"]), {"fields": "jpg"}),
        stream("fields_of_zip", "one field of a ZIP file", "stored.zip",
               only_fields(archives.samples("stored.zip"), [b"cls"]), {"fields": "cls"}),
        stream("select_keys", "keys that match a pattern", "keys.tar", train,
               {"select_keys": "train/*"}, stats={"samples": 6, "filtered_samples": 6}),
        stream("select_keys_two", "keys that match one of two patterns", "keys.tar",
               [*train[:1], *keys[8:9]], {"select_keys": "train/0,val/[2]"}),
        stream("select_keys_class", "a pattern with a set of characters", "keys.tar", numbers,
               {"select_keys": "*/[024]"}),
        stream("select_keys_question", "a pattern with a question mark", "keys.tar", train,
               {"select_keys": "t?ain/?"}),
        stream("slice", "some samples of each shard", SET,
               [sample for shard in shards for sample in shard[2:5]], {"slice": "2:5"}),
        stream("slice_step", "every third sample of each shard", SET,
               [sample for shard in shards for sample in shard[1::3]], {"slice": "1::3"}),
        stream("slice_and_keys", "a slice counts before keys are looked at", "keys.tar",
               [sample for sample in keys[4:8] if sample in train],
               {"slice": "4:8", "select_keys": "train/*"}),
        stream("slice_and_fields_in_lanes", "all of them together", SET,
               only_fields(
                   taken_in_turn(lanes_of([shard[:4] for shard in shards], 2)), [b"cls", b"txt"]
               ), {"slice": ":4", "fields": "cls,txt", "lanes": "2"}),
    ]  # fmt: skip


def limited(archives: Folder) -> list[Case]:
    """limit: the first samples of each epoch."""
    shards = [archives.samples(shard) for shard in SHARDS]
    runs = {
        "limit": {"limit": "11"},
        "limit_lanes": {"limit": "18", "lanes": "4"},
        "limit_shuffled": {"limit": "20", "shuffle": "8", "shuffle_shards": "true", "seed": "5"},
        "limit_epochs": {"limit": "7", "epochs": "3", "shuffle": "4", "lanes": "2", "seed": "1"},
        "limit_more_than_all": {"limit": "1000"},
        "limit_less_than_lanes": {"limit": "3", "lanes": "8"},
    }
    cases = []
    for name, options in runs.items():
        about = "the first samples of " + ", ".join(f"{key}={one}" for key, one in options.items())
        cases.append(stream(name, about, SET, ordered(shards, options), options))
    epochs = runs["limit_epochs"]
    before_damage = called(archives.samples("sound.tar")[:1], "cut_in_data.tar")
    cases += [
        stream("limit_before_damage", "damage behind the limit is not seen", "cut_in_data.tar",
               before_damage, {"limit": "1"}),
        resume("limit_resume", "saved in the second epoch", SET, ordered(shards, epochs), epochs,
               stop=9),
        of_samples("merge", "limit_merge", "states of four ranks restored by two", SET,
                   merged(shards, runs["limit_lanes"], (4, 2), 3), runs["limit_lanes"],
                   consumers=[4, 2], stop=3),
        stream("limit_below_ranks", "a limit with less than one sample for each rank", SET, [],
               {"limit": "1", "world_size": "2", "rank": "0"}, error=("USAGE", None)),
        stream("limit_and_epoch_samples", "two options that say how long an epoch is", SET, [],
               {"limit": "5", "epoch_samples": "9"}, error=("USAGE", None)),
    ]  # fmt: skip
    return cases


def even_parts(archives: Folder) -> list[Case]:
    """The same number of samples for every consumer. ZIP files need no index for it."""
    shards = [archives.samples(part) for part in PARTS]  # 7, 5, 9 and 4 samples
    own = [shards[0] + shards[2], shards[1] + shards[3]]
    assert [len(one) for one in own] == [16, 9]
    shuffled = {"shuffle": "4", "shuffle_shards": "true", "seed": "1", "epochs": "2"}
    cases = []
    for rank in range(2):
        runs = {
            "drop": {"even": "drop"},
            "pad": {"even": "pad"},
            "drop_shuffled": {"even": "drop", **shuffled},
            "pad_shuffled": {"even": "pad", **shuffled},
            "pad_lanes": {"even": "pad", "lanes": "4", "shuffle": "3"},
        }
        for name, options in runs.items():
            options = {**options, "world_size": "2"}
            samples = list(in_turn(lanes_of_run(shards, options)[rank::2]))
            stats = None if "epochs" in options else {"epoch_samples": len(samples)}
            about = "equal parts: " + ", ".join(f"{key}={one}" for key, one in options.items())
            cases.append(
                stream(f"even_{name}_rank_{rank}", about, "part-{0..3}.zip", samples,
                       {**options, "rank": str(rank)}, stats=stats)
            )  # fmt: skip
    options = {"even": "pad", "world_size": "2", **shuffled}
    samples = list(in_turn(lanes_of_run(shards, options)[1::2]))
    cases.append(
        resume("even_pad_resume", "saved in an even epoch", "part-{0..3}.zip", samples,
               {**options, "rank": "1"}, stop=11)
    )  # fmt: skip
    cases.append(
        stream("even_needs_index", "even of a tar without an index", ["plain.tar"], [],
               {"even": "drop"}, error=("NOT_FOUND", None))
    )  # fmt: skip
    return cases


def resuming(archives: Folder) -> list[Case]:
    """Saved and restored streams."""
    whole = archives.samples(*SHARDS)
    cases = []
    for stop in (1, 5, 14, 40, len(whole) - 1):
        cases.append(resume(f"resume_{stop}", f"saved after {stop} samples", SET, whole, stop=stop))
    for suffix in ("gz", "xz", "zst"):
        url = f"plain.tar.{suffix}"
        samples = called(archives.samples("plain.tar"), url)
        cases.append(resume(f"resume_{suffix}", "saved in a compressed one", url, samples, stop=4))
    shards = [archives.samples(shard) for shard in SHARDS]
    selected = [one for shard in shards for one in shard[1::2]]
    pipe = "pipe:cat '$FOLDER/plain.tar'"
    cases += [
        resume("resume_zip", "saved in a ZIP file", "stored.zip", archives.samples("stored.zip"),
               stop=3),
        resume("resume_pipe", "saved in the output of a program", pipe,
               called(archives.samples("plain.tar"), "pipe:cat 'plain.tar'"), stop=3),
        resume("resume_lanes", "saved in three lanes", SET, taken_in_turn(lanes_of(shards, 3)),
               {"lanes": "3"}, stop=20),
        resume("resume_rank", "saved by rank 1 of 2", SET,
               [sample for shard in shards[1::2] for sample in shard],
               {"rank": "1", "world_size": "2"}, stop=7),
        resume("resume_slice", "saved with a slice", SET, selected, {"slice": "1::2"}, stop=9),
        resume("resume_epochs", "saved in the second epoch", "plain.tar",
               archives.samples("plain.tar") * 2, {"epochs": "2"}, stop=8),
        resume("resume_epoch_samples", "saved in an epoch of twenty samples", SET, whole[:20],
               {"epoch_samples": "20"}, stop=13),
        resume("resume_skipped", "saved behind a sample that was skipped", "same_field.tar",
               [one for one in archives.samples("same_field.tar") if one.key != b"b"],
               {"on_error": "skip_sample"}, stop=1),
        resume("resume_error", "a fault comes again", ["plain.tar", "cut_in_data.tar"],
               archives.samples("plain.tar")
               + called(archives.samples("sound.tar")[:1], "cut_in_data.tar"), stop=3,
               error=("TRUNCATED", 3584)),
    ]  # fmt: skip
    lanes = {"shuffle_shards": "true", "shuffle": "7", "seed": "2", "lanes": "4"}
    two_epochs = {"shuffle": "20", "shuffle_shards": "true", "seed": "3", "epochs": "2"}
    shuffled = {
        "resume_shuffle": ({"shuffle": "10", "seed": "1"}, 21),
        "resume_shuffle_start": ({"shuffle": "10", "seed": "1"}, 1),
        "resume_shuffle_all": ({"shuffle": "1000", "seed": "1"}, 30),
        "resume_shuffle_lanes": (lanes, 33),
        "resume_two_epochs": (two_epochs, len(whole) + 3),
        "resume_resample": ({"resample": "true", "seed": "4", "epoch_samples": "50"}, 26),
    }
    for name, (options, stop) in shuffled.items():
        about = f"saved after {stop} samples of a shuffled stream"
        cases.append(resume(name, about, SET, ordered(shards, options), options, stop=stop))

    def merge(
        name: str, about: str, options: dict[str, str], consumers: tuple[int, int], stop: int
    ) -> Case:
        samples = merged(shards, options, consumers, stop)
        return of_samples("merge", name, about, SET, samples, options, consumers=consumers,
                          stop=stop)  # fmt: skip

    cases += [
        merge("merge_2_to_4", "states of two ranks restored by four",
              {"lanes": "4", "shuffle": "5", "seed": "1"}, (2, 4), 12),
        merge("merge_4_to_1", "states of four ranks restored by one",
              {"lanes": "8", "shuffle": "3", "shuffle_shards": "true", "seed": "6"}, (4, 1), 5),
        merge("merge_1_to_2", "the state of one rank restored by two", {"lanes": "2"}, (1, 2), 31),
        merge("merge_2_to_3", "four lanes of two ranks shared by three", {"lanes": "4"}, (2, 3), 4),
        merge("merge_3_to_2", "four lanes shared by three ranks dealt to two",
              {"lanes": "4", "shuffle": "6", "seed": "5"}, (3, 2), 7),
        merge("merge_6_to_5", "four lanes shared by six and by five ranks",
              {"lanes": "4", "shuffle_shards": "true", "epochs": "2"}, (6, 5), 9),
    ]  # fmt: skip
    return cases


def expanding(archives: Folder) -> list[Case]:
    """URLs that are expanded."""

    def expand(
        name: str, about: str, url: str, result: list[str], options: dict[str, str] | None = None,
        error: tuple[str, int | None] | None = None,
    ) -> Case:  # fmt: skip
        hashed = b"".join(text(one.encode()) for one in result)
        return Case(name, "expand", about, [url], options or {}, len(result), xxh64(hashed), error)

    return [
        expand("expand_padded", "numbers keep their zeros", "{08..11}.tar",
               ["08.tar", "09.tar", "10.tar", "11.tar"]),
        expand("expand_down", "a range that goes down", "{3..1}.tar",
               ["3.tar", "2.tar", "1.tar"]),
        expand("expand_step", "a range with a step", "{0..9..4}.tar",
               ["0.tar", "4.tar", "8.tar"]),
        expand("expand_list", "a list, one item of it empty", "a{b,,c}.tar",
               ["ab.tar", "a.tar", "ac.tar"]),
        expand("expand_nested", "braces in braces", "{a,{b,c}{1..2}}.tar",
               ["a.tar", "b1.tar", "b2.tar", "c1.tar", "c2.tar"]),
        expand("expand_product", "the rightmost varies fastest", "{a,b}{0..1}.tar",
               ["a0.tar", "a1.tar", "b0.tar", "b1.tar"]),
        expand("expand_single", "braces around one word stay", "{a}.tar", ["{a}.tar"]),
        expand("expand_letters", "a range of letters", "{a..c}.tar", ["a.tar", "b.tar", "c.tar"]),
        expand("expand_backslash", "a backslash takes the next character", "a\\{1,2\\}.tar",
               ["a{1,2}.tar"]),
        expand("expand_off", "expand=false takes URLs as they are", "{0..9}.tar", ["{0..9}.tar"],
               {"expand": "false"}),
        expand("expand_pattern", "a path with a pattern stands for the files that match",
               "set-00[!1-6].tar", ["set-000.tar", "set-007.tar"]),
        expand("expand_patterns", "braces first, and each of them must match",
               "$FOLDER/{set,part}-*0?.t?r", [], error=("IO", None)),
        expand("expand_pattern_off", "expand=false takes a pattern as it is", "set-*.tar",
               ["set-*.tar"], {"expand": "false"}),
        expand("expand_dash", "a dash in braces is no range", "$FOLDER/set-{000-003}.tar", [],
               error=("USAGE", None)),
        expand("expand_parts", "parts between ::", "$FOLDER/a.tar::$FOLDER/{1,2}.tar",
               ["a.tar", "1.tar", "2.tar"]),
        expand("expand_too_many", "more shards than max_shards", "{0..9}.tar", [],
               {"max_shards": "9"}, ("LIMIT", None)),
        expand("expand_unbalanced", "a brace that is not closed", "{1,$FOLDER/2.tar", [],
               None, ("USAGE", None)),
    ]  # fmt: skip


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    parts = (containers, names, urls, order, selecting, limited, even_parts, resuming, expanding)
    return [case for part in parts for case in part(archives)]
