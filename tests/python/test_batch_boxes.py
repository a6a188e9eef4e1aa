"""Boxes in a JSON field: they get the geometry of the image, and are clipped to it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import shardfeed
from batches import digest, rows_tar

image = pytest.importorskip("PIL.Image")

from images import AUGMENTED, encoded, noise  # noqa: E402  they need Pillow

WIDTH, HEIGHT = 61, 47


def some_boxes(number: int) -> np.ndarray:
    """Up to seven boxes that lie in the image."""
    random = np.random.default_rng(number)
    count = int(random.integers(8))
    corners = random.uniform(0, 1, (count, 2, 2)) * [WIDTH, HEIGHT]
    return np.sort(corners, 1).reshape(count, 4).round(2)


def boxes_tar(path, count: int, text=lambda boxes: {"objects": {"bbox": boxes.tolist()}}) -> str:
    return rows_tar(
        path,
        (
            {
                "png": encoded(noise(WIDTH, HEIGHT, seed=n), "png"),
                "json": json.dumps(text(some_boxes(n))).encode(),
            }
            for n in range(count)
        ),
    )


def one_tar(path, text: bytes, **fields: bytes) -> str:
    return rows_tar(path, [{"png": encoded(noise(WIDTH, HEIGHT), "png"), "json": text, **fields}])


def again(boxes: np.ndarray, record: dict) -> tuple[np.ndarray, list[int]]:
    """What the record of an image says of boxes, and which are left: with NumPy."""
    left, top, width, height = record["part"]
    scale = np.array(record["resize"] * 2) / ([width, height] * 2)
    moved = (boxes - [left, top] * 2) * scale
    left, top, width, height = record["crop"]
    moved = np.clip(moved - [left, top] * 2, 0, [width, height] * 2) + record["place"] * 2
    if record["flip"]:
        moved[:, [2, 0]] = record["size"][0] - moved[:, [0, 2]]
    sides = moved[:, 2:] - moved[:, :2]
    kept = (sides.astype("f4") >= 1).all(1)
    return moved[kept], np.flatnonzero(kept).tolist()


@pytest.mark.parametrize("steps", AUGMENTED)
def test_boxes_have_the_geometry_of_their_image(tmp_path, steps):
    count = 60
    url = boxes_tar(tmp_path / "t.tar", count)
    decode = f"png:image/{steps}, json:boxes/path=objects.bbox/of=png, json, __augment__"
    (batch,) = shardfeed.Stream(url, seed=2).batches(count, decode=decode)
    assert list(batch) == ["png", "json.boxes", "json.kept", "json", "__augment__"]
    found = batch["json.boxes"]
    assert isinstance(found, shardfeed.Ragged)
    some = 0
    for number in range(count):
        record = batch["__augment__"][number]["png"]
        wanted, kept = again(some_boxes(number), record)
        assert found[number].dtype == "float32"
        assert found[number].shape == (len(wanted), 4)
        assert np.allclose(found[number], wanted, atol=1e-4)
        assert batch["json.kept"][number].tolist() == kept
        some += len(kept)
    assert count < some < sum(len(some_boxes(number)) for number in range(count))


@pytest.mark.parametrize("steps", AUGMENTED)
def test_boxes_are_those_of_torchvision(tmp_path, steps):
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    from torchvision import tv_tensors

    count = 40
    url = boxes_tar(tmp_path / "t.tar", count)
    decode = f"png:image/{steps}, json:boxes/path=objects.bbox/of=png, __augment__"
    (batch,) = shardfeed.Stream(url, seed=5).batches(count, decode=decode)
    for number in range(count):
        record = batch["__augment__"][number]["png"]
        boxes = tv_tensors.BoundingBoxes(
            some_boxes(number).reshape(-1, 4).astype("f4"),
            format="XYXY",
            canvas_size=(HEIGHT, WIDTH),
        )
        left, top, width, height = record["part"]
        boxes = functional.resized_crop(boxes, top, left, height, width, record["resize"][::-1])
        left, top, width, height = record["crop"]
        boxes = functional.crop(boxes, top, left, height, width)
        (left, top), (whole_width, whole_height) = record["place"], record["size"]
        sides = [left, top, whole_width - left - width, whole_height - top - height]
        boxes = functional.pad(boxes, sides)
        if record["flip"]:
            boxes = functional.horizontal_flip(boxes)
        assert boxes.canvas_size == tuple(batch["png"][number].shape[:2])
        boxes, valid = functional.sanitize_bounding_boxes(boxes)
        assert batch["json.kept"][number].tolist() == valid.nonzero().flatten().tolist()
        assert np.allclose(batch["json.boxes"][number], boxes.numpy(), atol=1e-3)


def test_where_boxes_are(tmp_path):
    wanted = some_boxes(5)
    assert len(wanted) > 1
    ways = {
        "": lambda boxes: boxes.tolist(),
        "/path=bbox": lambda boxes: [{"bbox": box, "id": 3} for box in boxes.tolist()],
        "/path=annotations.bbox": lambda boxes: {
            "annotations": [{"bbox": box, "more": [[1]]} for box in boxes.tolist()]
        },
        "/path=a.b.c": lambda boxes: {"x": 1, "a": {"b": {"c": boxes.tolist()}}},
    }
    for path, text in ways.items():
        url = boxes_tar(tmp_path / "t.tar", 6, text)
        (batch,) = shardfeed.Stream(url).batches(6, decode=f"png, json:boxes{path}/of=png")
        assert np.allclose(batch["json.boxes"][5], wanted)
        assert batch["json.kept"][5].tolist() == list(range(len(wanted)))


@pytest.mark.parametrize("ragged", ["error", "offsets", "pad"])
def test_columns_of_boxes(tmp_path, ragged):
    url = boxes_tar(tmp_path / "t.tar", 30)
    stream = shardfeed.Stream(url, ragged=ragged)
    decode = "png:image/resize=30x30, json:boxes/path=objects.bbox/of=png"
    batches = list(stream.batches(8, decode=decode))
    assert [len(batch) for batch in batches] == [8, 8, 8, 6]
    number = 0
    for batch in batches:
        column = batch.column("json.boxes")
        assert (column.dtype, column.row_ndim, column.is_ragged) == ("float32", 2, ragged != "pad")
        for row in range(len(batch)):
            wanted = some_boxes(number) * ([30 / WIDTH, 30 / HEIGHT] * 2)
            kept = batch["json.kept"][row]
            found = batch["json.boxes"][row]
            if ragged == "pad":
                shapes = batch.column("json.boxes").shapes
                found, kept = found[: shapes[row][0]], kept[: shapes[row][0]]
            assert np.allclose(found, wanted[kept], atol=1e-4)
            number += 1
    assert number == 30


def test_every_run_has_the_same(tmp_path):
    url = boxes_tar(tmp_path / "t.tar", 50)
    decode = "png:image/rrc=20x20/flip=random, json:boxes/path=objects.bbox/of=png"
    options = {"decode": decode, "shuffle": 10, "seed": 4}
    wanted = [digest(batch) for batch in shardfeed.Stream(url, **options).batches(7)]
    for threads in (1, 5):
        stream = shardfeed.Stream(url, decode_threads=threads, **options)
        batches = stream.batches(7)
        assert [digest(next(batches)) for _ in range(3)] == wanted[:3]
        resumed = shardfeed.Stream(url, **options)
        resumed.load_state_dict(stream.state_dict())
        assert [digest(batch) for batch in resumed.batches(7)] == wanted[3:]
    with shardfeed.Dataset(url, decode=decode) as data:
        data.set_epoch(0)
        one = data.batch([3])
        made = data[3].decode(decode)
        assert np.array_equal(made["json.boxes"], one["json.boxes"][0])


def test_boxes_of_views(tmp_path):
    url = boxes_tar(tmp_path / "t.tar", 20)
    decode = (
        "png:image/rrc=20x20/flip=random/views=2, json:boxes/path=objects.bbox/of=png.0, "
        "json:boxes/path=objects.bbox/of=png.1, __augment__"
    )
    (batch,) = shardfeed.Stream(url).batches(20, decode=decode)
    names = [f"json.{what}.{view}" for view in (0, 1) for what in ("boxes", "kept")]
    assert list(batch) == ["png.0", "png.1", *names, "__augment__"]
    for number in range(20):
        for view in (0, 1):
            record = batch["__augment__"][number][f"png.{view}"]
            wanted, kept = again(some_boxes(number), record)
            assert np.allclose(batch[f"json.boxes.{view}"][number], wanted, atol=1e-4)
            assert batch[f"json.kept.{view}"][number].tolist() == kept


def test_an_image_that_is_turned(tmp_path):
    exif = image.Exif()
    exif[0x112] = 6  # a quarter to the right
    picture = encoded(image.fromarray(noise(WIDTH, HEIGHT)), "jpeg", exif=exif)
    text = b"[[0, 40, 20, 61]]"
    url = rows_tar(tmp_path / "t.tar", [{"jpg": picture, "json": text}])
    decode = "jpg:image/exif/crop=47x30, json:boxes/of=jpg"
    (batch,) = shardfeed.Stream(url).batches(1, decode=decode)
    # 47 x 61 pixels, of which the 30 in the middle are left.
    assert batch["json.boxes"][0].tolist() == [[0, 24, 20, 30]]


def test_samples_without_a_field(tmp_path):
    picture = encoded(noise(WIDTH, HEIGHT), "png")
    text = b"[[1, 2, 3, 4], [5, 6, 7, 8]]"
    rows = [{"json": text}, {"png": picture}, {"png": picture, "json": text}]
    url = rows_tar(tmp_path / "t.tar", rows)
    decode = "png:image, json:boxes/of=png"
    for ragged in ("error", "offsets"):
        stream = shardfeed.Stream(url, missing="empty", ragged=ragged)
        (batch,) = stream.batches(3, decode=decode)
        assert [len(boxes) for boxes in batch["json.boxes"]] == [0, 0, 2]
        assert [kept.tolist() for kept in batch["json.kept"]] == [[], [], [0, 1]]
    (batch,) = shardfeed.Stream(url, missing="skip").batches(3, decode=decode)
    assert len(batch) == 1
    with pytest.raises(shardfeed.FormatError, match="no field of this name"):
        next(shardfeed.Stream(url).batches(3, decode=decode))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[[1, 2, NaN, 4]]", "this is no JSON.*JSON has no NaN"),
        (b"[[5, 2, 3, 4]]", r"box 0, \[5, 2, 3, 4\], ends before it begins"),
        (b'{"a": 1}', "where boxes should be is an object"),
        (b"[[1, 2, 3]]", "box 0 is a list of 3 numbers"),
        (b"[[1, 2, 3, 4], [70, 2, 80, 4]]", "box 1.*beside its image of 61x47"),
        (b"[[0.1, 0.1, 0.5, 0.5]]", "relative is for numbers in 0..1"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, words):
    good = {"png": encoded(noise(WIDTH, HEIGHT), "png"), "json": b"[[1, 2, 3, 4]]"}
    url = rows_tar(tmp_path / "t.tar", [good, {**good, "json": text}, good])
    decode = "png:image, json:boxes/of=png"
    with pytest.raises(shardfeed.FormatError, match=words) as raised:
        next(shardfeed.Stream(url).batches(3, decode=decode))
    assert "000001.json" in str(raised.value)
    assert "t.tar" in str(raised.value)
    # The rows around it are whole.
    stream = shardfeed.Stream(url, on_error="skip_sample")
    (batch,) = stream.batches(3, decode=decode)
    assert batch.sample_keys == ["000000", "000002"]
    assert [boxes.tolist() for boxes in batch["json.boxes"]] == [[[1, 2, 3, 4]]] * 2
    assert [kept.tolist() for kept in batch["json.kept"]] == [[0]] * 2


def test_formats(tmp_path):
    url = one_tar(tmp_path / "t.tar", b"[[10, 4, 20, 24]]", **{"x.json": b"[[0.5, 0.5, 1, 0.5]]"})
    for words, wanted in (
        ("", [10, 4, 20, 24]),
        ("/xyxy", [10, 4, 20, 24]),
        ("/xywh", [10, 4, 30, 28]),
        ("/cxcywh", [0, 0, 20, 16]),
    ):
        decode = f"png:image/l8, json:boxes{words}/of=png"
        (batch,) = shardfeed.Stream(url).batches(1, decode=decode)
        assert batch["json.boxes"][0].tolist() == [wanted]
    decode = "png:image/l8/resize=100x100, x.json:boxes/relative/cxcywh/of=png"
    (batch,) = shardfeed.Stream(url).batches(1, decode=decode)
    assert np.allclose(batch["x.json.boxes"][0], [[0, 25, 100, 75]])


@pytest.mark.parametrize(
    ("decode", "words"),
    [
        ("png, json:boxes", "boxes have the geometry of an image, and none is named"),
        ("png, json:boxes/of=jpg", "no column of images before this one is called so"),
        ("json:boxes/of=png, png", "no column of images before this one is called so"),
        ("png, json:boxes/of=", "no column of images"),
        ("png, json:boxes/of=png/xyx", "unknown word"),
        ("png, json:boxes/of=png/path=a..b", "a name of the path is empty"),
        ("png, json:boxes/of=png/path=", "a name of the path is empty"),
        ("png, json:boxes/of=png/xywh/xyxy", "a second format"),
        ("png:image/randaugment, json:boxes/of=png", "boxes are not moved by randaugment"),
        ("png, json:boxes/of=png, json:boxes/of=png", 'column "json.boxes" is there twice'),
        ("png:image/views=2, json:boxes/of=png", "no column of images before this one"),
    ],
)
def test_wrong_words(tmp_path, decode, words):
    with pytest.raises(shardfeed.UsageError, match=words):
        shardfeed.Stream(one_tar(tmp_path / "t.tar", b"[]"), decode=decode, batch=1)
