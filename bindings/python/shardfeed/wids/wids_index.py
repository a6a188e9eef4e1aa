"""The command `widsindex`: makes, changes and shows index files of data sets of tars.

`python -m shardfeed.wids create|update|info|sample ...`
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse, urlunparse

from .._errors import Error
from ..wds._braces import braceexpand
from .wids import ShardListDataset, compute_file_md5sum, compute_num_samples
from .wids_dl import download_file, local_path
from .wids_specs import load_remote_dsdesc_raw, urldir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


def format_with_suffix(num: float) -> str:
    """A number with a letter for thousands: 1.5M."""
    suffixes = ["", "k", "M", "G", "T", "P", "E"]
    at = 0
    while num >= 1000 and at < len(suffixes) - 1:
        num /= 1000.0
        at += 1
    return f"{num:.1f}{suffixes[at]}"


class AtomicJsonUpdate:
    """A JSON file that is changed in the body of a with statement, and is then replaced; the old
    one stays as .bak. After an exception nothing is.
    """

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.backup_filename = filename + ".bak"
        self.temp_filename = filename + ".temp"
        self.data: Any = None

    def __enter__(self) -> Any:
        with open(self.filename, encoding="utf-8") as file:
            self.data = json.load(file)
        return self.data

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is not None:
            return
        with open(self.temp_filename, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=2)
        # A hard link, so that there is a file of this name at any time.
        if os.path.exists(self.backup_filename):
            os.remove(self.backup_filename)
        os.link(self.filename, self.backup_filename)
        os.replace(self.temp_filename, self.filename)


def urlfile(url: str) -> str:
    """The last part of the path of a URL."""
    return os.path.basename(urlparse(url).path)


def urldirbase(url: str) -> str:
    """A URL without the last part of its path; of a local file the absolute one."""
    parsed = urlparse(url)
    scheme = parsed.scheme or "file"
    path = parsed.path
    if scheme == "file" and not parsed.netloc:
        path = os.path.abspath(path)
    return urlunparse((scheme, parsed.netloc, os.path.dirname(path), "", "", ""))


def shorten_name(s: str) -> str:
    """The words of a name that are no numbers, each once."""
    words = re.split(r"[^a-zA-Z0-9_]+", s)
    return "-".join(dict.fromkeys(word for word in words if not re.fullmatch(r"[0-9]*", word)))


def _described(url: str) -> dict[str, Any]:
    """What an index says of a tar."""
    if urlparse(url).scheme in ("", "file"):
        return _facts(url, local_path(url))
    with tempfile.TemporaryDirectory(prefix="widsindex-") as folder:
        return _facts(url, download_file(url, os.path.join(folder, "shard.tar")))


def _facts(url: str, path: str) -> dict[str, Any]:
    return {
        "url": url,
        "md5sum": compute_file_md5sum(path),
        "nsamples": compute_num_samples(path),
        "filesize": os.stat(path).st_size,
    }


def main_create(args: argparse.Namespace) -> None:
    """Makes an index of tars."""
    if args.name is None:
        args.name = shorten_name(os.path.splitext(args.files[0])[0])
        print("setting name to", args.name)
    names = [line.strip() for line in sys.stdin] if args.files == ["-"] else args.files
    shards = []
    for url in (url for name in names if name for url in braceexpand(name)):
        print(url)
        shards.append(_described(url))
    result: dict[str, Any] = {
        "__kind__": "wids-shard-index-v1",
        "wids_version": 1,
        "shardlist": sorted(shards, key=lambda shard: str(shard["url"])),
    }
    if args.name:
        result["name"] = args.name
    if args.base is not None:
        result["base"] = args.base
    if args.info is not None:
        with open(args.info, encoding="utf-8") as file:
            result["info"] = file.read()
    with open(args.output, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)


def main_update(args: argparse.Namespace) -> None:
    """Changes an index."""
    with AtomicJsonUpdate(args.filename) as data:
        for name in ("name", "info", "base"):
            if getattr(args, name) != "":
                data[name] = getattr(args, name)
        if args.keep or args.nokeep:
            data["keep"] = not args.nokeep
        if args.rebase:
            bases = {urldirbase(shard["url"]) for shard in data["shardlist"]}
            assert len(bases) == 1, (
                f"multiple/no bases found: {bases}; help: --rebase is for shards of one folder"
            )
            data["base"] = bases.pop()
            print(f"rebasing to {data['base']}")
        if args.dir != "" or args.nodir or args.rebase:
            for shard in data["shardlist"]:
                file = urlfile(shard["url"])
                shard["url"] = file if args.nodir else os.path.join(args.dir, file)
            data["shardlist"].sort(key=lambda shard: shard["url"])
        if "name" not in data:
            data["name"] = os.path.splitext(os.path.basename(urlparse(args.filename).path))[0]


def _rows(data: dict[str, Any], filename: str) -> Iterator[tuple[str, Any]]:
    shards = data["shardlist"]
    size = sum(shard.get("filesize", 0) for shard in shards)
    samples = sum(shard["nsamples"] for shard in shards)
    yield "name", data.get("name")
    yield "info", data.get("info")
    yield "base", f"{data.get('base')} (assumed: {urldir(filename)})"
    yield "total size", format_with_suffix(size)
    yield "total samples", format_with_suffix(samples)
    yield "avg sample size", format_with_suffix(size // max(samples, 1))
    yield "avg shard size", format_with_suffix(size // max(len(shards), 1))
    if shards:
        yield "first shard", shards[0]["url"]
        yield "last shard", shards[-1]["url"]


def print_long_info(data: dict[str, Any], filename: str) -> None:
    """Prints what an index says, a line for each fact."""
    for name, value in _rows(data, filename):
        print(f"{name:>16}: {value}")
    if data.get("datasets"):
        print("        datasets:")
        for dataset in data["datasets"]:
            print("    dataset name:", dataset.get("name"))
            print("     dataset url:", dataset.get("source_url", len(data["shardlist"])))


def main_info(args: argparse.Namespace) -> None:
    """Shows what index files say."""
    if args.table:
        print("file\tname\tnbytes\tnsamples\tbase\tlast\tdatasets")
    for filename in args.filenames:
        data = load_remote_dsdesc_raw(filename)
        data.setdefault("shardlist", [])
        shards = data["shardlist"]
        if not args.table:
            print("filename:", filename)
            print_long_info(data, filename)
            print()
            continue
        size = sum(shard.get("filesize", 0) for shard in shards)
        samples = sum(shard["nsamples"] for shard in shards)
        last = shards[-1]["url"] if shards else None
        parts = len(data.get("datasets", []))
        row = (filename, data.get("name"), size, samples, data.get("base"), last, parts)
        print(*row, sep="\t")


def maybe_read(x: Any) -> Any:
    """The bytes of a file; anything else as it is."""
    read = getattr(x, "read", None)
    return x if read is None else read()


def maybe_decode(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample with the bytes of its files."""
    return {name: maybe_read(value) for name, value in sample.items()}


def main_sample(args: argparse.Namespace) -> None:
    """Shows a sample."""
    raw = args.raw or args.cat is not None
    options: dict[str, Any] = {"transformations": [maybe_decode]} if raw else {}
    dataset: ShardListDataset[Any] = ShardListDataset(args.filename, **options)
    print("dataset size:", len(dataset), file=sys.stderr)
    sample = dataset[args.index]
    if args.cat is not None:
        if args.cat not in sample:
            raise ValueError(f"no field {args.cat!r}; help: one of {' '.join(sample)}")
        value = sample[args.cat]
        sys.stdout.buffer.write(value if isinstance(value, bytes) else str(value).encode("utf-8"))
        return
    width = max(len(name) for name in sample)
    for name, value in sorted(sample.items()):
        print(name.ljust(width), repr(value)[: args.width - width - 1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="widsindex", description="Index files of data sets.")
    commands = parser.add_subparsers(dest="command", required=True)

    create = commands.add_parser("create", help="make an index of tars")
    create.add_argument("files", nargs="+", help="tars, with braces; - reads names from stdin")
    create.add_argument("-o", "--output", default="shardindex.json", help="the index")
    create.add_argument("-n", "--name", help="the name of the data set")
    create.add_argument("-i", "--info", help="a file with a description")
    create.add_argument("-b", "--base", help="what the URLs are relative to")

    update = commands.add_parser("update", help="change an index")
    update.add_argument("filename", help="the index")
    update.add_argument("-n", "--name", default="", help="set the name of the data set")
    update.add_argument("-k", "--keep", action="store_true", help="set the flag keep")
    update.add_argument("-K", "--nokeep", action="store_true", help="clear the flag keep")
    update.add_argument("-i", "--info", default="", help="set the description")
    update.add_argument("-D", "--nodir", action="store_true", help="take the folder off the URLs")
    update.add_argument("-d", "--dir", default="", help="set the folder of the URLs")
    update.add_argument("-b", "--base", default="", help="set what the URLs are relative to")
    update.add_argument("-B", "--rebase", action="store_true", help="make the folder the base")

    show = commands.add_parser("info", help="show what index files say")
    show.add_argument("filenames", nargs="*", help="index files")
    show.add_argument("-t", "--table", action="store_true", help="a line for each")

    sample = commands.add_parser("sample", help="show a sample")
    sample.add_argument("filename", help="the index")
    sample.add_argument("index", type=int, help="the number of the sample, from 0")
    sample.add_argument("-p", "--python", action="store_true", help="decode it, as without -r")
    sample.add_argument("-r", "--raw", action="store_true", help="do not decode it")
    sample.add_argument("-c", "--cat", help="write the bytes of this field, such as .jpg")
    sample.add_argument("-w", "--width", type=int, default=250, help="of the lines")
    return parser


_COMMANDS = {
    "create": main_create,
    "update": main_update,
    "info": main_info,
    "sample": main_sample,
}


def main() -> None:
    """The command."""
    args = _parser().parse_args()
    try:
        _COMMANDS[args.command](args)
    except (AssertionError, Error, IndexError, KeyError, OSError, ValueError) as error:
        sys.exit(f"widsindex {args.command}: {error}")


if __name__ == "__main__":
    main()
