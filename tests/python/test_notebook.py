"""What samples, batches and plans show in a notebook."""

from __future__ import annotations

import base64
import io
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar
from PIL import Image


class Page(HTMLParser):
    """The texts of the cells, and the pictures, of HTML whose elements all are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.pictures: list[Image.Image] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "img":
            kind, data = re.fullmatch(r"data:(\S+);base64,(\S+)", dict(attributes)["src"]).groups()
            picture = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
            assert picture.get_format_mimetype() == kind
            picture.load()
            self.pictures.append(picture)
        else:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data


def encoded(pixels: np.ndarray, form: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture
def rows(tmp_path) -> str:
    small = {form: encoded(noise(9, 7), form) for form in ("jpeg", "png", "webp")}
    large = {form: encoded(noise(300, 600), form) for form in ("jpeg", "png")}
    fields = [
        {"jpg": small["jpeg"], "a.png": small["png"], "webp": small["webp"], "cls": b"7"},
        {"jpg": large["jpeg"], "png": large["png"], "txt": b"<script>&\n" * 50, "bin": b"\0\1"},
        {"jpg": large["jpeg"][:5000] * 4, "x.npy": npy(np.zeros(3)), "txt": b""},
    ]
    return rows_tar(tmp_path / "t.tar", fields)


def test_a_sample_shows_its_fields_and_small_pictures(rows):
    for sample in (next(iter(shardfeed.Stream(rows))), shardfeed.Dataset(rows)[0]):
        page = Page(sample._repr_html_())
        assert page.cells[3::3] == ["jpg", "a.png", "webp", "cls"]
        assert page.cells[4] == f"{len(sample['jpg']):,} bytes"
        assert page.cells[-1] == "7"
        assert [picture.size for picture in page.pictures] == [(7, 9)] * 3
        assert "000000" in sample._repr_html_()


def test_large_pictures_are_made_small(rows):
    samples = list(shardfeed.Stream(rows))
    html = samples[1]._repr_html_()
    page = Page(html)
    assert [picture.size for picture in page.pictures] == [(128, 64)] * 2
    assert len(samples[1]["png"]) > 400_000
    assert len(html) < 150_000
    # A copy cannot be decoded any more, and shows sizes.
    copy = pickle.loads(pickle.dumps(samples[1]))
    assert Page(copy._repr_html_()).pictures == []
    assert Page(copy._repr_html_()).cells[4] == f"{len(copy['jpg']):,} bytes"


def test_what_is_damaged_is_shown_without_a_picture(tmp_path):
    damaged = b"\xff\xd8\xff" + bytes(40_000)
    sample = shardfeed.Dataset(rows_tar(tmp_path / "t.tar", [{"jpg": damaged, "txt": b"a"}]))[0]
    page = Page(sample._repr_html_())
    assert page.pictures == []
    assert page.cells[-1] == "a"


def test_names_and_texts_are_no_html(tmp_path):
    fields = {"<img src=x>&": b"</td><script>alert(1)</script>", "b": b"\xff<b>"}
    tar = rows_tar(tmp_path / "<i>.tar", [fields])
    for html in (
        next(iter(shardfeed.Stream(tar)))._repr_html_(),
        next(shardfeed.Stream(tar).batches(1, decode="auto"))._repr_html_(),
        shardfeed.Sample({"<u>": "<u>", "c\udcff": [1, "<s>"]})._repr_html_(),
    ):
        page = Page(html)
        assert page.tags <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
        html.encode("utf-8")
    assert "<img src=x>&" in Page(next(iter(shardfeed.Stream(tar)))._repr_html_()).cells


def test_many_and_long_fields_are_cut(tmp_path):
    fields = {f"f{n:04d}": b"x" * 10_000 for n in range(1000)}
    sample = shardfeed.Dataset(rows_tar(tmp_path / "t.tar", [fields]))[0]
    html = sample._repr_html_()
    assert len(html) < 20_000
    assert "of 1000 fields" in html


def test_a_batch_shows_its_first_rows(rows, tmp_path):
    pixels = [noise(20, 30), noise(400, 300), noise(8, 8)]
    fields = [
        {"png": encoded(pixels[n % 3], "png"), "cls": b"%d" % n, "json": b'{"a": [%d]}' % n}
        for n in range(12)
    ]
    tar = rows_tar(tmp_path / "b.tar", fields)
    stream = shardfeed.Stream(tar, ragged="offsets", decode="png:image/rgb8, cls, json")
    batch = next(stream.batches(12))
    page = page_of_batch = Page(batch._repr_html_())
    assert page.cells[:4] == ["key", "png", "cls", "json"]
    assert page.cells[4::4] == [f"{n:06d}" for n in range(5)]
    assert page.cells[6::4] == [str(n) for n in range(5)]
    assert page.cells[7] == "{'a': [0]}"
    assert page.pictures[0].size == (30, 20)
    assert np.array_equal(np.asarray(page.pictures[0]), pixels[0])
    assert max(page.pictures[1].size) <= 128
    assert "12 rows, the first 5" in batch._repr_html_()

    for words in ("png:image/rgb8/chw/resize=16x8", "png:image/rgba8/resize=16x8"):
        page = Page(next(shardfeed.Stream(tar, decode=words).batches(2))._repr_html_())
        assert [picture.size for picture in page.pictures] == [(16, 8)] * 2
    gray = next(shardfeed.Stream(tar, decode="png:image/l8/resize=16x8").batches(2))
    assert [picture.mode for picture in Page(gray._repr_html_()).pictures] == ["L"] * 2
    raw = next(shardfeed.Stream(tar, decode="png:bytes,cls").batches(1))
    assert [picture.size for picture in Page(raw._repr_html_()).pictures] == [(30, 20)]
    copy = pickle.loads(pickle.dumps(batch))
    assert Page(copy._repr_html_()).cells == page_of_batch.cells


def test_a_batch_with_bad_json_is_shown(tmp_path):
    tar = rows_tar(tmp_path / "t.tar", [{"json": b"{"}, {"json": b"1"}])
    batch = next(shardfeed.Stream(tar, decode="json").batches(2))
    page = Page(batch._repr_html_())
    assert page.cells[-1] == "1"
    assert "json" in page.cells[3]


def test_a_plan_shows_its_text():
    plan = shardfeed.plan("{0..6}<b>.tar", world_size=2)
    html = plan._repr_html_()
    page = Page(html)
    assert page.tags == {"pre"}
    assert "rank 1 worker 0: 1 lane, 3 shards" in html
    assert "warning: " in html
