#!/usr/bin/env python3
"""Measures how well a stream shuffles, and draws the pictures of docs/order.md.

    draw_order.py --build ../build ../docs

Prints the tables of docs/order.md. All figures are of one epoch of `tiny64`, 64 shards of 1,000
samples, as the library delivers it: the same on every machine.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import corpora
from building import build_with_shardfeed
from command_line import add_build, parser_for
from corpora import Corpus
from draw import text
from measuring import generate

SHUFFLES = (0, 100, 1000, 10_000)
LANES = (1, 8, 64)
BATCH = 256
DOTS = 400

# As in draw.py: the media query comes last.
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.frame { fill: none; stroke: #d1d9e0; }
.dots { stroke: #0969da; stroke-width: 2; stroke-linecap: round; fill: none; }
.a { fill: #54aeff; } .b { fill: #ffb77c; } .c { fill: #6fdd8b; } .d { fill: #d8b9ff; }
.gone { fill: #d1d9e0; } .arrow { stroke: #59636e; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .frame { stroke: #3d444d; }
  .dots { stroke: #4493f8; }
  .gone { fill: #656c76; } .arrow { stroke: #9198a1; }
}
"""


# ---- What is measured ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    shuffle_shards: bool
    lanes: int
    shuffle: int


@dataclass(frozen=True)
class Quality:
    """Of one order of n samples; a perfect shuffle has 1 in the first two, up to chance."""

    moved: float  # mean distance of a sample from its place in the list, of n / 3
    apart: float  # mean distance of two that are neighbours in the list, of n / 3
    shards: float  # different shards in a batch, on average


def order_of(program: Path, corpus: Corpus, setting: Setting) -> list[int]:
    """The places in the list of the samples that are delivered."""
    options = [
        f"lanes={setting.lanes}",
        f"shuffle={setting.shuffle}",
        f"shuffle_shards={str(setting.shuffle_shards).lower()}",
        "seed=1",
    ]
    command = [str(program), "keys", *options, "--", *corpus.shards]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    return [int(key) for key in done.stdout.split()]


def quality_of(order: Sequence[int], shards: int) -> Quality:
    count = len(order)
    place = [0] * count
    for at, number in enumerate(order):
        place[number] = at
    perfect = count / 3
    each = count // shards
    moved = sum(abs(at - number) for at, number in enumerate(order)) / count
    apart = sum(abs(a - b) for a, b in pairwise(place)) / (count - 1)
    batches = [order[at : at + BATCH] for at in range(0, count - BATCH + 1, BATCH)]
    different = sum(len({number // each for number in batch}) for batch in batches)
    return Quality(moved / perfect, apart / perfect, different / len(batches))


def table(cells: Mapping[tuple[int, int], str]) -> Iterator[str]:
    """A row for each number of lanes, a column for each size of the buffer."""
    yield "| |" + "".join(f" shuffle={shuffle:,} |" for shuffle in SHUFFLES)
    yield "|---|" + "---:|" * len(SHUFFLES)
    for lanes in LANES:
        row = "".join(f" {cells[lanes, shuffle]} |" for shuffle in SHUFFLES)
        yield f"| lanes={lanes} |{row}"


def report(
    qualities: Mapping[Setting, Quality], perfect: Quality, shards: int, samples: int
) -> Iterator[str]:
    def cells(shuffled: bool, show: Callable[[Quality], str]) -> dict[tuple[int, int], str]:
        return {
            (setting.lanes, setting.shuffle): show(quality)
            for setting, quality in qualities.items()
            if setting.shuffle_shards == shuffled
        }

    yield f"{shards} shards of {samples // shards:,} samples"
    yield f"\nneighbours apart, shuffle_shards=true (perfect: {perfect.apart:.1%})\n"
    yield from table(cells(True, lambda quality: f"{quality.apart:.1%}"))
    yield f"\nshards in a batch of {BATCH}, shuffle_shards=true (perfect: {perfect.shards:.1f})\n"
    yield from table(cells(True, lambda quality: f"{quality.shards:.1f}"))
    for shuffled in (True, False):
        yield f"\nmoved, shuffle_shards={str(shuffled).lower()} (perfect: {perfect.moved:.1%})\n"
        yield from table(cells(shuffled, lambda quality: f"{quality.moved:.1%}"))


# ---- Pictures ------------------------------------------------------------------------------------


def picture(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img">'
    )
    return "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", *parts, "</svg>"])


def draw_shuffles(orders: dict[Setting, list[int]]) -> str:
    """A dot for each of some samples: across, its place in the list; down, when it came."""
    size, gap, left, top = 150, 16, 100, 66
    parts = [text(16, 26, "When samples come (down), by their place in the list (across)", "title")]
    for column, shuffle in enumerate(SHUFFLES):
        parts.append(text(left + column * (size + gap), top - 12, f"shuffle={shuffle:,}"))
    for row, lanes in enumerate(LANES):
        y = top + row * (size + gap)
        parts.append(text(16, y + size / 2, f"lanes={lanes}"))
        for column, shuffle in enumerate(SHUFFLES):
            x = left + column * (size + gap)
            order = orders[Setting(True, lanes, shuffle)]
            shown = sorted(random.Random(1).sample(range(len(order)), DOTS))
            scale = size / len(order)
            dots = "".join(f"M{x + order[at] * scale:.0f} {y + at * scale:.0f}h0" for at in shown)
            parts.append(f'<path d="{dots}" class="dots"/>')
            parts.append(f'<rect x="{x}" y="{y}" width="{size}" height="{size}" class="frame"/>')
    height = top + len(LANES) * (size + gap) + 26
    note = "64 shards of 1,000 samples, shuffle_shards=true, one epoch; a perfect shuffle is even."
    parts.append(text(16, height - 14, note, "small"))
    return picture(left + len(SHUFFLES) * (size + gap), height, "How well samples mix", parts)


def boxes(x: float, y: float, labels: Sequence[tuple[str, str]], width: int = 34) -> Iterator[str]:
    """A row of boxes: a label and the style of each."""
    for label, style in labels:
        yield f'<rect x="{x:g}" y="{y:g}" width="{width - 3}" height="22" rx="3" class="{style}"/>'
        yield (
            f'<text x="{x + (width - 3) / 2:g}" y="{y + 15.5:g}" text-anchor="middle"'
            f' style="fill:#1f2328">{label}</text>'
        )
        x += width


def samples_of(shard: str, numbers: Sequence[int], style: str) -> list[tuple[str, str]]:
    return [(f"{shard}{number}", style) for number in numbers]


def draw_lanes() -> str:
    """Four shards on two lanes, and one sample from each lane in turn."""
    lanes = [
        samples_of("c", range(4), "c") + samples_of("b", range(3), "b"),
        samples_of("a", range(5), "a") + samples_of("d", range(2), "d"),
    ]
    parts = [text(16, 26, "From shards to the global sequence: lanes=2", "title")]
    parts.append(text(16, 62, "permuted"))
    for place, shard in enumerate("cabd"):
        parts += boxes(110 + place * 110, 46, [(f"shard {shard}", shard)], 100)
    parts.append(text(16, 112, "lane 0"))
    parts += boxes(110, 96, lanes[0])
    parts.append(text(370, 112, "shards 0, 2, ... of the permuted list", "small"))
    parts.append(text(16, 144, "lane 1"))
    parts += boxes(110, 128, lanes[1])
    parts.append(text(370, 144, "shards 1, 3, ...", "small"))
    merged = [sample for pair in zip(*lanes, strict=True) for sample in pair]
    parts.append(text(16, 194, "sequence"))
    parts += boxes(110, 178, merged)
    parts.append(text(16, 226, "rank 0 of 2"))
    parts += boxes(
        110, 210, [item if i % 2 == 0 else ("", "frame") for i, item in enumerate(merged)]
    )
    parts.append(text(16, 258, "rank 1 of 2"))
    parts += boxes(
        110, 242, [item if i % 2 == 1 else ("", "frame") for i, item in enumerate(merged)]
    )
    note = "Two ranks have one lane each and see every second element; one rank with both sees all."
    parts.append(text(16, 290, note, "small"))
    return picture(600, 304, "Shards, lanes and the global sequence", parts)


def draw_resume() -> str:
    """A lane that was stopped: what it gave, what lies in its buffer, and where it reads again."""
    given, held = {0, 1, 2, 3, 5, 6, 8, 9, 11}, {4, 7, 10}
    styles = ["gone" if n in given else "b" if n in held else "a" for n in range(17)]
    row = [(str(number), style) for number, style in enumerate(styles)]
    parts = [text(16, 26, "A lane that stopped: shuffle=4, after nine samples", "title")]
    parts += boxes(16, 56, row)
    for number, label in ((4, "reads on from here"), (12, "the next that comes in")):
        x = 16 + number * 34 + 15
        parts.append(f'<path d="M{x} 106V84m-4 6l4-6l4 6" class="arrow"/>')
        parts.append(text(x, 122, label, "", "middle"))
    for y, style, label in (
        (146, "gone", "given: passed over, and in a plain tar not read before the first arrow"),
        (
            174,
            "b",
            "in the buffer: which ones they are, and in which slots, follows from the draws",
        ),
        (202, "a", "still to come"),
    ):
        parts += boxes(16, y, [("", style)])
        parts.append(text(58, y + 16, label))
    return picture(600, 240, "What a saved state knows of a lane", parts)


# ---- Everything ----------------------------------------------------------------------------------


def main() -> int:
    parser = parser_for(__doc__)
    add_build(parser)
    parser.add_argument("folder", type=Path, help="gets order-lanes.svg and the other pictures")
    arguments = parser.parse_args()
    program = build_with_shardfeed("shardfeed_order", arguments.build.resolve())
    if program is None:
        return 1
    generate(["tiny64"], 1)
    corpus = corpora.load("tiny64", 1)
    assert corpus is not None
    orders = {
        setting: order_of(program, corpus, setting)
        for shuffle_shards in (False, True)
        for lanes in LANES
        for shuffle in SHUFFLES
        for setting in (Setting(shuffle_shards, lanes, shuffle),)
    }
    perfect = list(range(corpus.samples))
    for setting, order in orders.items():
        if sorted(order) != perfect:
            print(f"FAILED: {setting}: not every sample came once")
            return 1
    shards = len(corpus.shards)
    qualities = {setting: quality_of(order, shards) for setting, order in orders.items()}
    random.Random(1).shuffle(perfect)
    for line in report(qualities, quality_of(perfect, shards), shards, corpus.samples):
        print(line)
    for name, drawn in (
        ("order-lanes.svg", draw_lanes()),
        ("order-shuffle.svg", draw_shuffles(orders)),
        ("order-resume.svg", draw_resume()),
    ):
        (arguments.folder / name).write_text(drawn + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
