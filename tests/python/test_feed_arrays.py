"""Large arrays over a feed, which a server reads straight into its messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar
from feed_servers import Server

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)

ORDER: dict[str, Any] = {"lanes": 2, "shuffle_shards": True, "seed": 7}
DECODE = "a.npy, b.npy, c.npy, d.npy.gz, cls:int"
SHARDS, SAMPLES = 3, 9
Serve = Callable[..., Server]


@pytest.fixture
def shards(tmp_path: Path) -> str:
    """Arrays of 200 kB: as they are, in Fortran's order, with swapped bytes, compressed."""
    import gzip

    chance = np.random.default_rng(5)
    for shard in range(SHARDS):
        rows = []
        for number in range(SAMPLES):
            array = chance.integers(0, 2**31, (50, 1000), np.int32)
            rows.append(
                {
                    "a.npy": npy(array),
                    "b.npy": npy(np.asfortranarray(array)),
                    "c.npy": npy(array.astype(">i4")),
                    "d.npy.gz": gzip.compress(npy(array), 1),
                    "cls": b"%d" % number,
                }
            )
        rows_tar(tmp_path / f"{shard}.tar", rows)
    return str(tmp_path / f"{{0..{SHARDS - 1}}}.tar")


def rows(urls: Any, **more: Any) -> list[tuple[Any, ...]]:
    with shardfeed.Stream(urls, **ORDER, **more) as stream:
        return [
            (list(batch), list(batch["__key__"]), *(batch[name].tobytes() for name in batch))
            for batch in stream.batches(4)
        ]


@pytest.mark.parametrize("shuffle", [0, 5])
def test_arrays_are_those_of_a_local_stream(shards: str, serve: Serve, shuffle: int) -> None:
    servers = [serve(shards, "--decode", DECODE) for _ in range(2)]
    fed = rows([server.url for server in servers], shuffle=shuffle)
    assert fed == rows(shards, decode=DECODE, shuffle=shuffle)
    assert sum(len(keys) for _, keys, *_ in fed) == SHARDS * SAMPLES


@pytest.mark.parametrize("options", [{}, {"on_error": "skip_shard"}])
def test_a_shard_that_ends_in_an_array(
    shards: str, serve: Serve, tmp_path: Path, options: dict[str, Any]
) -> None:
    path = tmp_path / "1.tar"
    path.write_bytes(path.read_bytes()[:-150_000])  # in the last a.npy, or a little behind it
    server = serve(shards, "--decode", DECODE)

    def taken(urls: Any, **more: Any) -> Any:
        try:
            return rows(urls, **options, **more)
        except shardfeed.Error as error:
            return type(error), str(error)

    fed = taken(server.url)
    assert fed == taken(shards, decode=DECODE)
    if not options:
        assert fed[0] is shardfeed.TruncatedError
