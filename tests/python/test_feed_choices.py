"""The column "__augment__" over a feed: servers say of each row what a local stream says."""

from __future__ import annotations

import gzip
import io
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar
from feed_servers import Server

pytest.importorskip("PIL.Image")

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)

from images import encoded, noise

ORDER: dict[str, Any] = {"lanes": 2, "shuffle": 10, "shuffle_shards": True, "seed": 7, "epochs": 2}
STEPS = "rgb/chw/rrc=16x16/flip=random/brightness=0.6..1.4/views=2"
SHARDS, SAMPLES = 3, 20


def sound(frames: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.arange(frames, dtype=np.int16).tobytes())
    return out.getvalue()


@pytest.fixture
def shards(tmp_path: Path) -> str:
    """Of images, some behind gzip, which some samples lack, and some of which are none."""
    for shard in range(SHARDS):
        rows = []
        for number in range(SAMPLES):
            picture = encoded(noise(30 + number, 25, seed=number), "png")
            row = {"png": picture, "other.png.gz": gzip.compress(picture), "cls": b"%d" % number}
            if number % 7 == 3:
                del row["other.png.gz"]
            if number % 9 == 5:
                row["png"] = picture[: len(picture) // 2]
            rows.append(row)
        rows_tar(tmp_path / f"{shard}.tar", rows)
    return str(tmp_path / f"{{0..{SHARDS - 1}}}.tar")


def rows(urls: Any, **more: Any) -> list[tuple[Any, ...]]:
    with shardfeed.Stream(urls, **{**ORDER, **more}) as stream:
        return [
            (list(batch), list(batch["__key__"]), list(batch["__augment__"]))
            for batch in stream.batches(8)
        ]


@pytest.mark.parametrize(
    "decode",
    [
        f"png:image/{STEPS}, cls:int, __augment__",
        f"__augment__, cls:int, png:image/{STEPS}",
        f"other.png.gz:image/{STEPS}, png:image/rgb8/randaugment=2:9/crop=9x9/pad=1, __augment__",
    ],
)
def test_it_is_that_of_a_stream(shards: str, serve: Callable[..., Server], decode: str) -> None:
    servers = [serve(shards, "--decode", decode, "--missing", "empty") for _ in range(2)]
    options = {"missing": "empty", "on_error": "skip_sample"}
    fed = rows([server.url for server in servers], **options)
    local = rows(shards, decode=decode, **options)
    assert fed == local
    chosen = [row for *_, batch in local for row in batch]
    assert len(chosen) == 2 * SHARDS * (SAMPLES - 2)
    assert any(row != chosen[0] for row in chosen)
    if "other" in decode:
        assert any(row["other.png.gz.0"] is None for row in chosen)


def test_it_goes_with_ranks_and_mixed_rows(shards: str, serve: Callable[..., Server]) -> None:
    decode = "png:image/rgb8/rrc=16x16/mixup=0.2, __augment__"
    server = serve(shards, "--decode", decode)
    for rank in range(2):
        options = {"rank": rank, "world_size": 2, "on_error": "skip_sample"}
        assert rows(server.url, **options) == rows(shards, decode=decode, **options)


def test_a_damaged_image_is_the_same_error(shards: str, serve: Callable[..., Server]) -> None:
    decode = f"__augment__, png:image/{STEPS}"
    server = serve(shards, "--decode", decode)
    with pytest.raises(shardfeed.Error) as local:
        rows(shards, decode=decode)
    with pytest.raises(type(local.value)) as fed:
        rows(server.url)
    assert str(fed.value) == str(local.value)


@pytest.mark.skipif(not shardfeed.features()["audio"], reason="no sounds in this build")
def test_of_sounds(tmp_path: Path, serve: Callable[..., Server]) -> None:
    path = rows_tar(tmp_path / "t.tar", ({"wav": sound(900 + n)} for n in range(30)))
    decode = "wav:audio/int16/mono/crop=random:500, __augment__"
    server = serve(path, "--decode", decode)
    fed = rows(server.url, lanes=1)
    assert fed == rows(path, decode=decode, lanes=1)
    assert len({row["wav"]["start"] for _, _, batch in fed for row in batch}) > 5
