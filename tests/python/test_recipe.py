"""Recipes: values from which streams and mixes are opened."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest
import shardfeed
from shardfeed import MixRecipe, Recipe, StreamRecipe

Shards = Callable[..., str]


def log(level: int, message: str) -> None:
    pass


def keys(stream: shardfeed.Stream) -> list[str]:
    return [sample.key for sample in stream]


def test_a_recipe_opens_the_stream_that_has_it(shards: Shards) -> None:
    url = shards(2, 50)
    stream = shardfeed.Stream(url, shuffle=20, seed=4, timeout="20s", log=log)
    recipe = StreamRecipe(url, shuffle=20, seed=4, timeout=20, log=log)
    assert stream.recipe == recipe
    assert hash(stream.recipe) == hash(recipe)
    assert recipe != recipe.with_options(seed=5)
    assert (recipe.urls, recipe.options) == ([url], {"shuffle": "20", "seed": "4"})
    assert (recipe.timeout, recipe.log) == (20.0, log)
    assert repr(recipe) == f"<shardfeed.StreamRecipe {url!r} shuffle=20 seed=4>"
    epochs = [keys(stream), keys(stream)]
    opened = recipe.open()
    assert type(opened) is shardfeed.Stream
    assert opened.epoch == 0
    assert [keys(opened), keys(opened)] == epochs
    assert keys(recipe.open(1)) == keys(recipe.with_options(epoch=1).open()) == epochs[1]
    assert stream.recipe == recipe  # which has no position


def test_a_recipe_is_a_value(shards: Shards) -> None:
    recipe = StreamRecipe("a.tar", seed=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.timeout = 5.0  # type: ignore[misc]
    recipe.options["seed"] = "2"
    recipe.urls.append("b.tar")
    assert recipe == StreamRecipe("a.tar", seed=1)
    assert recipe.with_options(seed=2, timeout="1min", log=None) == StreamRecipe(
        "a.tar", seed=2, timeout=60, log=None
    )
    assert recipe.with_options() == recipe
    for duplicate in (copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))):
        assert duplicate(recipe) == recipe
    assert {recipe: 1}[StreamRecipe(["a.tar"], seed=1)] == 1


def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match='did you mean "shuffle"'):
        StreamRecipe("a.tar", shufle=1)  # type: ignore[call-arg]
    recipe = StreamRecipe("a.tar")
    with pytest.raises(shardfeed.UsageError, match="shuffle"):
        recipe.with_options(shuffle=-1)
    with pytest.raises(shardfeed.UsageError, match="rank"):
        recipe.share(-1, 2)
    with pytest.raises(shardfeed.UsageError, match="epoch"):
        recipe.open(-1)
    with pytest.raises(TypeError):
        recipe.open(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="until"):
        recipe.with_options(until="all")  # type: ignore[call-arg]


def test_shares_are_all_samples(shards: Shards) -> None:
    recipe = StreamRecipe(shards(4, 25), shuffle=10)
    parts = [recipe.share(rank, 2, worker, 2) for rank in range(2) for worker in range(2)]
    assert [part.consumer for part in parts] == [(number, 4) for number in range(4)]
    assert parts[3].share_options == {
        "rank": "1", "world_size": "2", "worker": "1", "num_workers": "2",
    }  # fmt: skip
    assert (recipe.share_options, recipe.consumer) == ({}, (0, 1))
    found = [key for part in parts for key in keys(part.open())]
    assert sorted(found) == sorted(keys(recipe.open()))


def test_a_recipe_opens_nothing_until_its_stream_is_used() -> None:
    stream = StreamRecipe("there-is-none.tar").open()
    assert stream.stats()["samples"] == 0
    with pytest.raises(FileNotFoundError):
        next(iter(stream))


def test_another_process_opens_it(shards: Shards) -> None:
    recipe = StreamRecipe(shards(2, 25), shuffle=10, seed=3)
    program = (
        "import pickle, sys; recipe = pickle.load(sys.stdin.buffer); "
        "print(*[sample.key for sample in recipe.open()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(recipe.share(1, 2)),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().split() == keys(recipe.share(1, 2).open())


def test_a_mix_is_a_recipe_of_recipes(shards: Shards) -> None:
    first, second = shards(2, 20, name="a"), shards(2, 20, name="b")
    parts = [StreamRecipe(first, shuffle=5), StreamRecipe(second)]
    mixed = shardfeed.mix(map(StreamRecipe.open, parts), weights=[3, 1], seed=2)
    recipe = MixRecipe(parts, weights=[3, 1], seed=2)
    assert mixed.recipe == recipe
    assert (recipe.parts, recipe.weights) == (tuple(parts), (3.0, 1.0))
    assert recipe.urls == [first, second]
    assert repr(mixed) == str(repr(recipe)).replace("MixRecipe", "Mix")
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    opened = recipe.open()
    assert type(opened) is shardfeed.Mix
    assert keys(opened) == keys(mixed)
    assert keys(recipe.open(1)) == keys(mixed)
    assert keys(shardfeed.mix(parts, weights=[3, 1], seed=2)) == keys(recipe.open())
    shares = [recipe.share(rank, 2) for rank in range(2)]
    assert [part.share_options for share in shares for part in share.parts] == [
        {**recipe.share(rank, 2).share_options} for rank in (0, 0, 1, 1)
    ]
    assert sorted(key for share in shares for key in keys(share.open())) == sorted(
        keys(recipe.open())
    )
    nested = MixRecipe([recipe, parts[0]], seed=1).share(1, 2)
    assert nested.share_options == {
        "rank": "1", "world_size": "2", "worker": "0", "num_workers": "1",
    }  # fmt: skip


def test_what_integrations_take(shards: Shards) -> None:
    url = shards(2, 10)
    stream = shardfeed.Stream(url, seed=1)
    recipe = StreamRecipe(url, seed=1)
    assert Recipe.of(stream) == Recipe.of(recipe) == recipe
    assert Recipe.of(url) == Recipe.of([url]) == StreamRecipe(url)
    assert Recipe.of(shardfeed.mix([stream])) == MixRecipe([recipe])
    with pytest.raises(shardfeed.UsageError, match="leave these options out of the streams"):
        Recipe.of(MixRecipe([recipe.share(0, 2), recipe.share(1, 2)]))
    stream.load_state_dict(stream.state_dict())
    assert stream.recipe == recipe
    with pytest.raises(shardfeed.UsageError, match="the stream has a loaded state"):
        Recipe.of(stream)
    stream.close()
    with pytest.raises(shardfeed.UsageError, match="stream 1 of the mix is closed"):
        MixRecipe([recipe, stream])


def test_epochs_of_recipes() -> None:
    plain = StreamRecipe("a.tar", epoch=3)
    assert (plain.epochs, plain.first_epoch, plain.continues) == (1, 3, False)
    endless = StreamRecipe("a.tar", epochs=0)
    assert (endless.epochs, endless.first_epoch, endless.continues) == (0, 0, True)
    assert StreamRecipe("a.tar", epoch_samples=100).continues
    assert MixRecipe([plain, endless]).continues
    assert not MixRecipe([plain, endless], until="first").continues
    assert not MixRecipe([plain, plain]).continues
    assert MixRecipe([plain], until="forever").continues
    counted = StreamRecipe("a.tar", epoch_samples=100, epochs=2, batch=8)
    assert [counted.batches_of_epoch(consumers) for consumers in (1, 3)] == [25, 9]
    assert counted.with_options(last="drop").batches_of_epoch(3) == 8
    assert plain.with_options(batch=8).batches_of_epoch(1) is None
    assert counted.with_options(batch=0).batches_of_epoch(1) is None
    with pytest.raises(shardfeed.UsageError, match="has no batch of 8"):
        counted.with_options(last="drop").batches_of_epoch(50)


def test_secrets_are_not_shown() -> None:
    recipe = StreamRecipe("https://user:word@host/a.tar?signature=word")
    assert "word" not in repr(recipe)
    assert "word" not in repr(MixRecipe([recipe, recipe]))
