"""The commands of tensorcom, and samples as messages: python -m shardfeed.tensorcom COMMAND."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import Error, Stream, UsageError, Writer
from ._connection import Connection
from ._samples import SampleReceiver, SampleSender

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DEFAULT = "zsub://127.0.0.1:7880"


def _serve_shards(given: argparse.Namespace) -> None:
    """Images and classes of shards, batch by batch, as uint8 NHWC and int32."""
    steps = f"resize={given.resize}/crop={given.size}x{given.size}"
    stream = Stream(
        given.url,
        epochs=given.epochs,
        shuffle=given.shuffle,
        seed=given.seed,
        threads=given.threads,
    )
    with Connection(given.address, report=given.report) as connection:
        connection.serve(
            [batch["jpg"], batch["cls"].astype("int32")]
            for batch in stream.batches(
                given.batch_size, decode=f"jpg;jpeg;png:image/rgb8/hwc/{steps}, cls:int"
            )
        )


def _serve_dir(given: argparse.Namespace) -> None:
    """The same of a folder with a folder of images for each class, in the order of their names."""
    with Connection(given.address, report=given.report) as connection:
        epoch = 0
        while given.epochs == 0 or epoch < given.epochs:
            connection.serve(_batches_of(given, epoch))
            epoch += 1


def _batches_of(given: argparse.Namespace, epoch: int) -> Iterator[list[Any]]:
    import numpy as np

    files = [
        (path, number)
        for number, folder in enumerate(sorted(p for p in Path(given.dir).iterdir() if p.is_dir()))
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp", ".ppm")
    ]
    if not files:
        raise UsageError(f"no images in {given.dir}/CLASS/; help: a folder for each class")
    if not given.no_shuffle:
        np.random.default_rng([given.seed, epoch]).shuffle(files)
    for start in range(0, len(files), given.batch_size):
        part = files[start : start + given.batch_size]
        yield [
            np.stack([_image(path, given.resize, given.size) for path, _ in part]),
            np.array([int(number) for _, number in part], dtype=np.int32),
        ]


def _image(path: Path, resize: int, size: int) -> Any:
    import numpy as np
    from PIL import Image

    with Image.open(path) as opened:
        image = opened.convert("RGB")
    scale = resize / min(image.size)
    width, height = (max(size, round(side * scale)) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    return np.asarray(image.crop((left, top, left + size, top + size)))


def _lists(given: argparse.Namespace) -> Iterator[list[Any]]:
    with Connection(
        given.address, total=given.count, batch_count=False, multipart=not given.single,
        timeout=given.timeout,
    ) as connection:  # fmt: skip
        yield from connection.items(given.report)


def _monitor(given: argparse.Namespace) -> None:
    """The rates of what comes in."""
    with Connection(
        given.address, multipart=not given.single, total=given.count, batch_count=False,
        timeout=given.timeout,
    ) as connection:  # fmt: skip
        for _ in connection.items(given.report):
            pass
        print(connection.stats.summary())


def _statistics(given: argparse.Namespace) -> None:
    """Type, shape, least, greatest, mean and standard deviation of each array."""
    for arrays in _lists(given):
        for slot, array in enumerate(arrays):
            said = f"{slot}: {array.dtype} {'x'.join(map(str, array.shape))}"
            if array.size:
                said += (
                    f" min {array.min():g} max {array.max():g} mean {array.mean():.6g} "
                    f"std {array.std():.6g}"
                )
            print(said, flush=True)


def _show(given: argparse.Namespace) -> None:
    """Writes the images as files NUMBER-CLASS.png."""
    from PIL import Image

    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for images, *others in _lists(given):
        for i, image in enumerate(images[: given.per_batch]):
            label = f"-{others[0][i]}" if others and others[0].ndim == 1 else ""
            pixels = image if image.dtype == "uint8" else (image * 255).clip(0, 255).astype("uint8")
            path = folder / f"{number:06d}{label}.png"
            Image.fromarray(pixels).save(path)
            print(path, flush=True)
            number += 1


def _send(given: argparse.Namespace) -> None:
    """All samples of shards as messages, and the end mark."""
    with SampleSender(given.address) as sender:
        sender.send_all(Stream(given.shards))
        print(f"{sender.sent} samples sent", file=sys.stderr)


def _receive(given: argparse.Namespace) -> None:
    """The samples that come in, as shards."""
    with SampleReceiver(given.address, senders=given.senders, timeout=given.timeout) as receiver:
        with Writer(given.output, max_samples=given.max_samples) as writer:
            for sample in receiver:
                writer.write(sample)
        print(f"{receiver.received} samples received", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m shardfeed.tensorcom", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Any, address: str | None = None) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        made.set_defaults(run=run)
        made.add_argument(
            "address", nargs="*" if address else "+", default=[address] if address else None,
            help=f"SCHEME://HOST:PORT{f' ({address})' if address else ''}",
        )  # fmt: skip
        return made

    for name, run in (("serve-imagenet-shards", _serve_shards), ("serve-imagenet-dir", _serve_dir)):
        server = command(name, run, "zpub://127.0.0.1:7880")
        if run is _serve_shards:
            server.add_argument("-u", "--url", required=True, help="shards")
            server.add_argument("-S", "--shuffle", type=int, default=0, help="samples to mix")
            server.add_argument("--threads", type=int, default=2)
        else:
            server.add_argument("-d", "--dir", required=True, help="folder of folders")
            server.add_argument("-S", "--no-shuffle", action="store_true")
        server.add_argument("-b", "--batch-size", type=int, default=32)
        server.add_argument("--resize", type=int, default=256, help="of the shorter side")
        server.add_argument("--size", type=int, default=224, help="of the square in the centre")
        server.add_argument("--epochs", type=int, default=0, help="0: without end")
        server.add_argument("--seed", type=int, default=0)
        server.add_argument("-r", "--report", type=int, default=10, help="rates every N messages")
    for name, run, count, report in (
        ("tensormon", _monitor, -1, 10),
        ("tensorstat", _statistics, 20, -1),
        ("tensorshow", _show, 20, -1),
    ):
        reader = command(name, run, _DEFAULT)
        reader.add_argument("-c", "--count", type=int, default=count, help="messages; -1: all")
        reader.add_argument("-r", "--report", type=int, default=report)
        reader.add_argument("-t", "--timeout", type=float, help="seconds to wait for a message")
        reader.add_argument("--single", action="store_true", help="messages of one frame")
        if run is _show:
            reader.add_argument("-o", "--output", required=True, help="folder of images")
            reader.add_argument("-B", "--per-batch", type=int, default=1, help="images of each")
    sender = command("send", _send)
    sender.add_argument("-u", "--shards", required=True, help="shards")
    receiver = command("receive", _receive)
    receiver.add_argument("-o", "--output", required=True, help="pattern: out-%%06d.tar")
    receiver.add_argument("--max-samples", type=int, default=10_000, help="of a shard")
    receiver.add_argument("--senders", type=int, default=1, help="end marks that end it; 0: none")
    receiver.add_argument("-t", "--timeout", type=float, help="seconds to wait for a message")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command; gives its exit status."""
    given = _parser().parse_args(words)
    try:
        given.run(given)
    except (Error, ModuleNotFoundError, ValueError) as error:
        print(f"shardfeed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
