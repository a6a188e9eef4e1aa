"""Packed texts in shardfeed.torch: loaders, and workers of a DataLoader."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest
from texts import both_shards, texts_of, tokenize

pytestmark = pytest.mark.slow

TEXTS: dict[str, Any] = {"decode": "txt", "tokenizer": tokenize}
TOKENS: dict[str, Any] = {"decode": "npy"}
PACKED: dict[str, Any] = {"batch": 3, "pack": 16, "lanes": 4, "shuffle": 9}


@pytest.fixture
def urls(tmp_path) -> tuple[list[str], list[str]]:
    return both_shards(tmp_path)


def contents(items: Any) -> list[Any]:
    """All that is in the items, whatever the column of tokens is called."""
    return [[value.tolist() for value in item.values()] for item in items]


def test_loader(datasets, urls):
    wanted = contents(datasets.loader(urls[1], **TOKENS, **PACKED))
    batches = datasets.loader(urls[0], **TEXTS, **PACKED)
    iterator = iter(batches)
    found = contents(islice(iterator, 5))
    assert found == wanted[:5]
    state = json.loads(json.dumps(batches.state_dict()))
    resumed = datasets.loader(urls[0], **TEXTS, **PACKED)
    resumed.load_state_dict(state)
    assert contents(resumed) == wanted[5:]
    assert list(next(iter(resumed))) == ["txt", "__document__", "__position__"]
    ended = datasets.loader(datasets.Stream(urls[0], **TEXTS, **PACKED), eos=5)
    assert sum(item["txt"].eq(5).sum().item() for item in ended) == 4 * 30


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers(torch, datasets, urls, start):
    def of_workers(url: list[str], kind: dict[str, Any]) -> list[Any]:
        loader = torch.utils.data.DataLoader(
            datasets.Stream(url, **kind, **PACKED),
            batch_size=None,
            num_workers=2,
            multiprocessing_context=start,
        )
        return contents(loader)

    wanted = of_workers(urls[1], TOKENS)
    assert of_workers(urls[0], {**TEXTS, "tokenizer": "texts:tokenize"}) == wanted
    if start == "fork":
        assert of_workers(urls[0], TEXTS) == wanted
        assert len(wanted) > 10


def test_a_state_of_workers(datasets, urls):
    data_loader = pytest.importorskip("torchdata.stateful_dataloader")

    def loader(url: list[str], kind: dict[str, Any]) -> Any:
        stream = datasets.Stream(url, **kind, **PACKED)
        return data_loader.StatefulDataLoader(stream, batch_size=None, num_workers=2)

    wanted = contents(loader(urls[1], TOKENS))
    first = loader(urls[0], TEXTS)
    found = contents(islice(iter(first), 5))
    resumed = loader(urls[0], TEXTS)
    resumed.load_state_dict(first.state_dict())
    assert found + contents(resumed) == wanted


def test_a_tokenizer_of_transformers(datasets, urls):
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=60, special_tokens=["?"], show_progress=False
    )
    made.train_from_iterator([text for shard in range(4) for text in texts_of(shard)], trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="?")
    wanted = contents(datasets.loader(urls[0], **{**TEXTS, "tokenizer": made}, **PACKED))
    options = {**TEXTS, **PACKED, "tokenizer": fast, "decode_threads": 4}
    assert contents(datasets.loader(urls[0], **options)) == wanted
