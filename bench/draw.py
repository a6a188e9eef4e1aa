#!/usr/bin/env python3
"""Draws the figures of run.py and batches.py as bars, in multiples of webdataset.

    run.py --json passes.json; batches.py --json batches.json
    draw.py passes.json batches.json ../docs/speed.svg

A second file name that ends with .png is the same picture, where cairosvg can be imported. The
SVG has colours for light and for dark pages. Bars of different panels have different scales: only
those of one panel compare.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

BASE = "webdataset"

WIDTH = 760
LEFT, RIGHT = 210, 150  # of labels and of figures
BAR, GAP, HEADING, PANEL_GAP = 16, 6, 24, 18
TOP, BOTTOM = 46, 54

# The media query comes last: what cannot read it, such as cairosvg, has the light colours.
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; }
.heading { font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.ours { fill: #0969da; }
.theirs { fill: #afb8c1; }
.bold { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .ours { fill: #4493f8; }
  .theirs { fill: #57606a; }
}
"""


# A label and the rows that it may stand for: of these the fastest is drawn.
Readers = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Panel:
    """Bars for the readers of one corpus that are there, in this order."""

    program: str
    corpus: str
    heading: str
    readers: Readers


PASSES: Readers = (
    ("shardfeed", ("py",)),
    ("spdl-io, members only", ("spdl",)),
    ("tarfile, members only", ("tarfile",)),
    ("webdataset", (BASE,)),
)
BATCHES: Readers = (
    ("shardfeed", ("py-1", "py-2")),
    ("spdl-io", ("spdl-1", "spdl-2")),
    ("webdataset-rs", ("rust", "rust-2")),
    ("litdata, own format", ("litdata-0", "litdata-2")),
    ("mlx-data", ("mlx-1", "mlx-2")),
    ("WebLoader", ("loader-0", "loader-2")),
    ("webdataset", (BASE,)),
)
PANELS = (
    Panel("passes", "tiny", "Samples from Python: json of 100 bytes, cls", PASSES),
    Panel("passes", "small", "Samples from Python: jpg of 6 kB as bytes, cls", PASSES),
    Panel("passes", "image", "Samples from Python: jpg of 110 kB as bytes, cls, json", PASSES),
    Panel("batches", "npy4", "Batches of 100: 64x64 float64, cls", BATCHES),
    Panel("batches", "photo", "Batches of 32: JPEG 500x375 to rgb8, cls", BATCHES),
    Panel(
        "batches",
        "tiny",
        "Batches of 1,024: json as bytes, cls",
        # webdataset-rs has no row for JSON as bytes.
        tuple(reader for reader in BATCHES if reader[0] != "webdataset-rs"),
    ),
)


@dataclass(frozen=True)
class Bar:
    label: str
    rate: float
    multiple: float

    @property
    def ours(self) -> bool:
        return self.label.startswith("shardfeed")


def bars_of(panel: Panel, figures: Mapping[str, Any]) -> list[Bar]:
    """None where the corpus or webdataset was not measured."""
    rows = figures["corpora"].get(panel.corpus, {"rows": {}})["rows"]
    if BASE not in rows:
        return []
    base = rows[BASE]["samples_per_second"]
    bars = []
    for label, names in panel.readers:
        rates = [rows[name]["samples_per_second"] for name in names if name in rows]
        if rates:
            bars.append(Bar(label, max(rates), max(rates) / base))
    return bars


def text(x: float, y: float, content: str, style: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{style}">{escape(content)}</text>'
    )


def draw_panel(heading: str, bars: Sequence[Bar], y: float) -> Iterator[str]:
    yield text(16, y + 13, heading, "heading")
    y += HEADING
    longest = max(bar.multiple for bar in bars)
    for bar in bars:
        length = max(1.0, bar.multiple / longest * (WIDTH - LEFT - RIGHT))
        kind, weight = ("ours", "bold") if bar.ours else ("theirs", "")
        yield text(LEFT - 8, y + 12.5, bar.label, weight, "end")
        yield (
            f'<rect x="{LEFT}" y="{y:g}" width="{length:.1f}" height="{BAR}" rx="2"'
            f' class="{kind}"/>'
        )
        digits = 1 if bar.multiple < 9.95 else 0
        figure = f"{bar.multiple:.{digits}f}x"
        yield text(LEFT + length + 6, y + 12.5, figure, weight)
        yield text(WIDTH - 12, y + 12.5, f"{bar.rate:,.0f} /s", "small", "end")
        y += BAR + GAP


def panel_height(bars: Sequence[Bar]) -> float:
    return HEADING + len(bars) * (BAR + GAP) + PANEL_GAP


def footnotes(figures: Mapping[str, Any]) -> tuple[str, str]:
    machine, versions = figures["machine"], figures["versions"]
    packages = ("shardfeed", "webdataset", "spdl-io", "litdata", "mlx-data")
    found = [f"{name} {versions[name]}" for name in packages if name in versions]
    return (
        f"{machine['cores']} cores ({machine['cpu']}), files in the page cache, the best of up to"
        " 2 workers or threads.",
        ", ".join(found),
    )


def svg(sources: Mapping[str, Mapping[str, Any]]) -> str:
    panels = [(panel.heading, bars_of(panel, sources[panel.program])) for panel in PANELS]
    drawn = [(heading, bars) for heading, bars in panels if bars]
    if not drawn:
        sys.exit("nothing to draw: no corpus has a row of webdataset")
    height = TOP + sum(panel_height(bars) for _, bars in drawn) + BOTTOM - PANEL_GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}"'
        f' viewBox="0 0 {WIDTH} {height:g}" role="img">',
        "<title>shardfeed and its peers: samples a second, as multiples of webdataset</title>",
        f"<style>{STYLE}</style>",
        text(16, 26, "Samples a second, as multiples of webdataset", "title"),
    ]
    y: float = TOP
    for heading, bars in drawn:
        lines += draw_panel(heading, bars, y)
        y += panel_height(bars)
    for line, up in zip(footnotes(sources["batches"]), (30, 14)):
        lines.append(text(16, height - up, line, "small"))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("passes", type=Path, help="JSON of run.py")
    parser.add_argument("batches", type=Path, help="JSON of batches.py")
    parser.add_argument("pictures", type=Path, nargs="+", help="files that end with .svg or .png")
    arguments = parser.parse_args()
    picture = svg(
        {
            "passes": json.loads(arguments.passes.read_text()),
            "batches": json.loads(arguments.batches.read_text()),
        }
    )
    for path in arguments.pictures:
        if path.suffix == ".png":
            try:
                import cairosvg  # type: ignore[import-untyped]
            except ImportError:
                parser.error("a PNG needs cairosvg; help: pip install cairosvg, or draw the SVG")
            cairosvg.svg2png(
                picture.encode(), write_to=str(path), scale=2, background_color="white"
            )
        else:
            path.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
