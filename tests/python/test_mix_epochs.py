"""Mixes with epoch_samples: a length, equal batches for all ranks, and exact resumption."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import shardfeed

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def mix(shards: Callable[..., str]) -> Callable[..., shardfeed.Mix]:
    """A mix of 80 samples and of 15, with epoch_samples=70 unless it is given."""
    urls = [shards(4, 20, name="a"), shards(3, 5, name="b")]

    def make(part: dict[str, Any] | None = None, **options: Any) -> shardfeed.Mix:
        parts = [shardfeed.Stream(url, shuffle=5, **(part or {})) for url in urls]
        settings = {"until": "forever", "epoch_samples": 70, **options}
        return shardfeed.mix(parts, weights=[2, 1], **settings)

    return make


def names(samples: Any) -> list[str]:
    """Which data set each sample is of, and its key."""
    return [sample.shard.rpartition("/")[2][0] + sample.key for sample in samples]


def test_an_epoch_has_so_many_samples_and_continues(mix) -> None:
    whole = names(islice(mix(epoch_samples=0), 280))
    with mix() as mixed:
        assert len(mixed) == 70
        assert names(mixed) + names(mixed) == whole[:140]
        assert mixed.epoch == 2
    pairs = mix(epochs=2)
    assert len(pairs) == 140
    assert names(pairs) + names(pairs) == whole
    assert names(islice(mix(epochs=0), 280)) == whole
    with pytest.raises(TypeError, match="the length of a mix is not known; help: "):
        len(mix(epochs=0))


def test_every_rank_has_the_same_number_of_batches(mix) -> None:
    for rank in range(3):
        mixed = mix({"rank": rank, "world_size": 3})
        assert len(mixed) == len(range(rank, 70, 3))
        assert [len(list(mixed.batches(6))) for _ in range(2)] == [4, 4]


@pytest.mark.parametrize("stop", [0, 1, 69, 70, 71, 139])
def test_resumes_at_the_next_sample(mix, stop: int) -> None:
    whole = names(mix(epochs=2))
    mixed = mix()
    keys = []
    while len(keys) < stop:
        keys += names(islice(mixed, stop - len(keys)))
    other = mix()
    other.load_state_dict(json.loads(json.dumps(mixed.state_dict())))
    assert other.epoch == mixed.epoch
    while len(keys) < 140:
        keys += names(other)
    assert keys == whole


def test_states_of_ranks_are_merged(mix) -> None:
    part = {"world_size": 2, "lanes": 2}
    ranks = [mix({**part, "rank": rank}) for rank in range(2)]
    keys = [key for rank in ranks for key in names(islice(rank, 20))]
    state = shardfeed.merge_states([rank.state_dict() for rank in ranks])
    alone = mix({"lanes": 2})
    alone.load_state_dict(state)
    assert len(keys + names(alone)) == 70
    assert len(names(alone)) == 70


def test_as_part_of_a_mix(mix, shards: Callable[..., str]) -> None:
    parts = [mix(epoch_samples=30), shardfeed.Stream(shards(1, 7, name="c"))]
    assert len(names(shardfeed.mix(parts))) == 37
    assert len(names(islice(shardfeed.mix(parts, until="forever"), 500))) == 500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": "all"}, "set until=forever"),
        ({"epoch_samples": 0, "epochs": 2}, "epochs of a mix without epoch_samples"),
    ],
)
def test_what_has_no_meaning_is_refused(mix, options: dict[str, Any], message: str) -> None:
    with pytest.raises(shardfeed.UsageError, match=message):
        mix(**options)


def test_in_a_loader_of_torch(mix) -> None:
    torch = pytest.importorskip("torch")
    import shardfeed.torch

    mixed = mix(batch=10, decode="cls:int")
    loader = shardfeed.torch.loader(mixed)
    assert len(loader) == 7
    for _ in range(2):
        batches = list(loader)
        assert [len(batch["cls"]) for batch in batches] == [10] * 7
        assert isinstance(batches[0]["cls"], torch.Tensor)
    workers = torch.utils.data.DataLoader(
        shardfeed.torch.Stream(mixed), batch_size=None, num_workers=2
    )
    assert sum(len(batch["cls"]) for batch in workers) >= 70
