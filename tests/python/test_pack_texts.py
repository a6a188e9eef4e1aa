"""Rows of one length, packed from texts that a tokenizer makes tokens of."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import re
import subprocess
import sys
import threading
import time
from array import array
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar, saved_states
from texts import both_shards, texts_of, tokenize

WIDTH, ROWS = 16, 3

TEXTS = {"decode": "txt", "tokenizer": tokenize}
TOKENS = {"decode": "npy"}


@pytest.fixture
def urls(tmp_path: Path) -> tuple[list[str], list[str]]:
    return both_shards(tmp_path)


def opened(urls: Any, kind: dict[str, Any], **options: Any) -> shardfeed.Stream:
    given: dict[str, Any] = {"batch": ROWS, "pack": WIDTH, **kind, **options}
    return shardfeed.Stream(urls, **given)


def content(batch: shardfeed.Batch) -> list[Any]:
    """All that is in a batch, with the names of shards alone."""
    (values,) = (batch[name] for name in ("txt", "npy") if name in batch)
    columns = [values, batch["__document__"], batch["__position__"]]
    return [
        *(f"{column.dtype}{column.shape}{column.tolist()}" for column in columns),
        batch.sample_keys,
        [Path(url).name for url in batch.urls],
    ]


def contents(batches: Any) -> list[Any]:
    return [content(batch) for batch in batches]


def letters_of(batches: Any) -> list[int]:
    """The tokens in their order, without what fills rows."""
    return [
        token
        for batch in batches
        for token in batch["txt"][batch["__document__"] >= 0].ravel().tolist()
    ]


def test_rows_are_those_of_the_tokens(urls):
    draws = random.Random(1)
    for _ in range(40):
        options = {
            "pack": draws.choice([1, 5, WIDTH, 100, 5000]),
            "batch": draws.choice([1, ROWS, 20]),
            "pack_window": draws.choice([0, 0, 1, 7, 50]),
            "shuffle": draws.choice([0, 5, 40]),
            "shuffle_shards": draws.choice([False, True]),
            "seed": draws.randint(0, 9),
            "lanes": draws.choice([4, 2]),
            "last": draws.choice(["keep", "drop"]),
            "epochs": draws.choice([1, 2]),
            "decode_threads": draws.choice([1, 2, 5]),
        }
        ranks = draws.choice([1, 2])
        for rank in range(ranks):
            share = {"rank": rank, "world_size": ranks}
            wanted = contents(opened(urls[1], TOKENS, **options, **share).batches())
            assert contents(opened(urls[0], TEXTS, **options, **share).batches()) == wanted, options


@pytest.mark.parametrize("window", [0, 7])
@pytest.mark.parametrize("used", [True, False])
def test_resume_in_the_middle_of_a_document(urls, used, window):
    options = {"shuffle": 7, "seed": 5, "lanes": 2, "epochs": 2, "pack_window": window}
    whole = contents(opened(urls[0], TEXTS, **options).batches())
    assert whole == contents(opened(urls[1], TOKENS, **options).batches())
    stops = range(0, len(whole), 5)
    for stop, state in saved_states(lambda: opened(urls[0], TEXTS, **options), stops, used):
        resumed = opened(urls[0], TEXTS, decode_threads=2, **options)
        resumed.load_state_dict(state)
        assert contents(resumed.batches()) == whole[stop:]


def test_resume_with_another_number_of_ranks(urls):
    def of_all_ranks(number: int, kind: dict[str, Any]) -> list[Any]:
        found, states = [], []
        for rank in range(2):
            stream = opened(urls[number], kind, lanes=4, rank=rank, world_size=2)
            found += contents(islice(stream.batches(), 3 + rank))
            states.append(stream.state_dict())
        state = shardfeed.merge_states(states)
        for rank in range(4):
            stream = opened(urls[number], kind, lanes=4, rank=rank, world_size=4)
            stream.load_state_dict(state)
            found += contents(stream.batches())
        return found

    assert of_all_ranks(0, TEXTS) == of_all_ranks(1, TOKENS)


def test_other_widths_after_a_resume(urls):
    stream = opened(urls[0], TEXTS)
    list(islice(stream.batches(), 4))
    again = opened(urls[0], TEXTS, batch=2, pack=5)
    again.load_state_dict(stream.state_dict())
    rest = letters_of(islice(opened(urls[0], TEXTS).batches(), 4, None))
    assert letters_of(again.batches()) == rest != []


def test_columns_of_the_first_sample(urls):
    """decode=auto, which a state remembers."""
    wanted = contents(opened(urls[1], {"decode": "auto"}).batches())
    stream = opened(urls[0], {**TEXTS, "decode": "auto"})
    assert contents(islice(stream.batches(), 3)) == wanted[:3]
    resumed = stream.recipe.open()
    resumed.load_state_dict(stream.state_dict())
    assert contents(resumed.batches()) == wanted[3:]


def test_by_index(urls):
    for url in urls[0] + urls[1]:
        shardfeed.Dataset(url)
    options = {"by_index": True, "shuffle": 9, "shuffle_shards": True, "seed": 2}
    wanted = contents(opened(urls[1], TOKENS, **options).batches())
    assert contents(opened(urls[0], TEXTS, **options).batches()) == wanted


def test_compressed_texts(tmp_path, urls):
    rows = [{"txt.gz": gzip.compress(text.encode())} for text in texts_of(0)]
    url = rows_tar(tmp_path / "0.tar", rows)
    found = opened(url, {**TEXTS, "decode": "txt.gz"}).batches()
    wanted = opened(urls[1][0], TOKENS).batches()
    for one, other in zip(found, wanted):
        assert one["txt.gz"].tolist() == other["npy"].tolist()
    assert next(found, None) is next(wanted, None) is None


def test_mix(urls):
    def mixed(number: int, kind: dict[str, Any]) -> shardfeed.Mix:
        shards = urls[number]
        parts = [shardfeed.Stream(shards[:2]), shardfeed.Stream(shards[2:], lanes=2)]
        options: dict[str, Any] = {"seed": 1, "batch": ROWS, "pack": WIDTH, **kind}
        return shardfeed.mix(parts, weights=[3, 1], **options)

    wanted = contents(mixed(1, TOKENS).batches())
    assert contents(mixed(0, TEXTS).batches()) == wanted
    stream = mixed(0, TEXTS)
    list(islice(stream.batches(), 4))
    resumed = pickle.loads(pickle.dumps(stream.recipe)).open()
    resumed.load_state_dict(stream.state_dict())
    assert contents(resumed.batches()) == wanted[4:]


def test_where_it_is_given(urls):
    wanted = contents(opened(urls[1], TOKENS).batches())
    plain = shardfeed.Stream(urls[0], batch=ROWS)
    given: dict[str, Any] = {"decode": "txt", "pack": WIDTH, "tokenizer": tokenize}
    assert contents(plain.batches(**given)) == wanted
    assert len(list(plain)) == 4 * 30  # samples need none
    recipe = plain.recipe.with_options(**given)
    assert recipe == plain.recipe.with_options(**given) != plain.recipe
    assert hash(recipe) == hash(plain.recipe.with_options(**given))
    again = pickle.loads(pickle.dumps(recipe))
    assert again == recipe
    assert contents(again.open().batches()) == wanted
    named = recipe.with_options(tokenizer="texts:tokenize")
    assert contents(named.open().batches()) == wanted
    # What batches() is given holds for these batches.
    stream = recipe.open()
    doubled = stream.batches(tokenizer=lambda texts: [2 * each for each in tokenize(texts)])
    assert contents(doubled) != wanted
    assert contents(stream.batches()) == wanted
    assert contents(stream.batches(eos=0)) != wanted
    without = recipe.with_options(tokenizer=None)
    with pytest.raises(shardfeed.UsageError, match="or give a tokenizer of texts"):
        without.open().batches()


def test_end_tokens(urls):
    def ended(texts: list[str]) -> list[list[int]]:
        return [[*tokens, 7] for tokens in tokenize(texts)]

    wanted = contents(opened(urls[0], TEXTS, tokenizer=ended).batches())
    assert contents(opened(urls[0], TEXTS, eos=7).batches()) == wanted
    stream = opened(urls[0], TEXTS).recipe.with_options(eos=7).open()
    assert contents(stream.batches()) == wanted


class _Encoding:
    def __init__(self, ids: list[int]) -> None:
        self.ids = ids


class _WithEncodings:
    """As the package tokenizers has it."""

    padding = None

    def encode_batch(self, texts: list[str]) -> list[_Encoding]:
        return [_Encoding(tokens) for tokens in tokenize(texts)]


@pytest.mark.parametrize(
    "tokenizer",
    [
        _WithEncodings(),
        lambda texts: {"input_ids": tokenize(texts), "attention_mask": None},
        lambda texts: [np.array(tokens, "i8") for tokens in tokenize(texts)],
        lambda texts: [np.array(tokens, "u4")[::1] for tokens in tokenize(texts)],
        lambda texts: tuple(map(tuple, tokenize(texts))),
        lambda texts: (iter(tokens) for tokens in tokenize(texts)),
        lambda texts: np.array([np.array(tokens) for tokens in tokenize(texts)] + [0], object)[:-1],
    ],
)
def test_what_tokenizers_give(urls, tokenizer):
    found = contents(opened(urls[0], TEXTS, tokenizer=tokenizer).batches())
    assert found == contents(opened(urls[1], TOKENS).batches())


def test_a_tokenizer_of_the_package_tokenizers(urls):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=60, special_tokens=["?", "<end>"], show_progress=False
    )
    made.train_from_iterator([text for shard in range(4) for text in texts_of(shard)], trainer)
    end = made.token_to_id("<end>")

    def alone(texts: list[str]) -> list[list[int]]:
        return [[*made.encode(text).ids, end] for text in texts]

    wanted = contents(opened(urls[0], TEXTS, tokenizer=alone).batches())
    stream = opened(urls[0], TEXTS, tokenizer=made, eos=end)
    assert contents(islice(stream.batches(), 2)) == wanted[:2]
    resumed = pickle.loads(pickle.dumps(stream.recipe)).open()
    resumed.load_state_dict(stream.state_dict())
    assert contents(resumed.batches()) == wanted[2:]
    made.enable_padding()
    with pytest.raises(shardfeed.UsageError, match="call its no_padding"):
        opened(urls[0], TEXTS, tokenizer=made).batches()


def test_a_mask_beside_the_text(tmp_path):
    texts = ["abc", "", "de", "fghij"]
    rows = [{"txt": text.encode(), "npy": npy(np.arange(len(text), dtype="u1"))} for text in texts]
    rows[2]["npy"] = npy(np.zeros(3, "u1"))
    url = rows_tar(tmp_path / "t.tar", rows)
    for decode in ("txt, npy", "npy, txt"):
        given: dict[str, Any] = {**TEXTS, "decode": decode, "on_error": "skip_sample"}
        stream = opened(url, given, pack=4, batch=9)
        (batch,) = stream.batches()
        assert batch["npy"].tolist() == [[0, 1, 2, 0], [1, 2, 3, 4]]
        assert (batch["txt"] // 1000).tolist() == [list(map(ord, "abcf")), list(map(ord, "ghij"))]
        assert stream.stats()["skipped_samples"] == 1
        with pytest.raises(
            shardfeed.FormatError, match=r'"000002\.\w+": [23] elements beside [23]'
        ):
            list(opened(url, {**given, "on_error": "raise"}).batches())


def test_it_runs_ahead_in_threads(urls):
    seen: set[int] = set()
    ahead = threading.Event()
    calls = []

    def noted(texts: list[str]) -> list[list[int]]:
        seen.add(threading.get_ident())
        calls.append(len(texts))
        if len(calls) == 3:
            ahead.set()
        return tokenize(texts)

    iterator = opened(urls[0], TEXTS, tokenizer=noted, decode_threads=2, batch=1).batches()
    next(iterator)
    assert ahead.wait(30)  # with one batch asked for
    list(iterator)
    assert threading.get_ident() not in seen
    assert sum(calls) == 4 * 30
    assert max(calls) < 30  # not all at once


def slow(texts: list[str]) -> list[list[int]]:
    time.sleep(0.2)
    return tokenize(texts)


def test_close_waits_for_it(urls):
    stream = opened(urls[0], TEXTS, tokenizer=slow, batch=1, epochs=0)
    next(stream.batches())
    start = time.monotonic()
    stream.close()
    assert time.monotonic() - start < 20


def test_a_program_ends_with_an_open_stream(urls):
    program = f"""
import shardfeed
stream = shardfeed.Stream({urls[0]!r}, batch=1, epochs=0)
batches = stream.batches(pack=16, decode="txt", tokenizer="test_pack_texts:slow")
next(batches)
print("ends")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_a_forked_child(urls):
    stream = opened(urls[0], TEXTS)
    iterator = stream.batches()
    wanted = [content(next(iterator))]
    child = os.fork()
    if child == 0:
        found = contents(stream.recipe.open().batches())
        os._exit(found[:1] != wanted or len(found) < 9)
    assert os.waitpid(child, 0)[1] == 0
    assert wanted + contents(iterator) == contents(opened(urls[1], TOKENS).batches())


def test_the_example_of_the_page(urls, tmp_path, monkeypatch):
    tokenizers = pytest.importorskip("tokenizers")
    page = (Path(__file__).parents[2] / "docs/batches.md").read_text()
    (code,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.S) if "eos=" in code)
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0, "text": 1}, "?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.save(str(tmp_path / "tokenizer.json"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"stream": shardfeed.Stream(urls[0])}
    exec(compile(code, "docs/batches.md", "exec"), names)
    (row,) = names["batch"]["txt"]
    assert names["batch"]["txt"].dtype == np.int32
    assert (row == 2).sum() == 4 * 30
    words = [word for shard in range(4) for text in texts_of(shard) for word in text.split()]
    assert (row == 1).sum() == words.count("text")


# ---- Errors -------------------------------------------------------------------------------------


def raising(texts: list[str]) -> list[list[int]]:
    if any("BAD" in text for text in texts):
        raise ValueError("cannot read this")
    return tokenize(texts)


def giving(bad: Any) -> Any:
    def function(texts: list[str]) -> list[Any]:
        made: list[Any] = tokenize(texts)
        return [bad if "BAD" in text else tokens for text, tokens in zip(texts, made)]

    return function


def leaving_out(texts: list[str]) -> list[list[int]]:
    return tokenize([text for text in texts if "BAD" not in text])


BAD = [
    (raising, r"raised ValueError: cannot read this; help: see the traceback"),
    (leaving_out, r"gave 0 sequences of tokens for 1 text; help: it is called with a list of"),
    (giving([1, 2.0]), r"gave float among the tokens of a text; help: the tokens of a text are"),
    (giving([[1, 2]]), r"gave list among the tokens of a text"),
    (giving(["a"]), r"gave str among the tokens of a text"),
    (giving(None), r"gave NoneType for a text"),
    (giving([1, 2**31]), r"gave the token 2147483648; help: tokens are numbers of 32 bits"),
    (giving(np.array([2**40])), r"gave the token 1099511627776"),
    (giving(np.array([1.0])), r"gave an array of float64 \(1,\)"),
    (giving(np.array([[1]])), r"gave an array of int64 \(1, 1\)"),
]


@pytest.fixture
def url_with_bad_texts(tmp_path: Path) -> str:
    texts = [f"text {number}" for number in range(20)]
    texts[5] = texts[13] = "BAD"
    return rows_tar(tmp_path / "t.tar", [{"txt": text.encode()} for text in texts])


@pytest.mark.parametrize(("tokenizer", "message"), BAD)
@pytest.mark.parametrize("window", [0, 4])
def test_bad_texts(url_with_bad_texts, tokenizer, message, window):
    options: dict[str, Any] = {"tokenizer": tokenizer, "pack_window": window}
    stream = opened(url_with_bad_texts, TEXTS, **options)
    iterator = stream.batches()
    given: list[int] = []
    start = r't\.tar: member "000005\.txt": the tokenizer '
    for _ in range(2):  # it comes again
        with pytest.raises(shardfeed.TransformError, match=start + message) as caught:
            given += letters_of(iterator)
    assert caught.value.key == "000005"
    assert caught.value.url.endswith("/t.tar")
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError) if tokenizer is raising else cause is None
    # A run that is mended continues there.
    mended = opened(url_with_bad_texts, TEXTS, pack_window=window)
    mended.load_state_dict(stream.state_dict())
    whole = letters_of(opened(url_with_bad_texts, TEXTS, pack_window=window).batches())
    assert given + letters_of(mended.batches()) == whole

    skips: list[shardfeed.Skip] = []
    skipping = opened(
        url_with_bad_texts, TEXTS, on_error="skip_sample", on_skip=skips.append, log=None, **options
    )
    found = letters_of(skipping.batches())
    wanted = [token for n in range(20) if n not in (5, 13) for token in tokenize([f"text {n}"])[0]]
    assert sorted(found) == sorted(wanted)
    assert skipping.stats()["skipped_samples"] == 2
    assert [skip.key for skip in skips] == ["000005", "000013"]
    assert all(isinstance(skip.error, shardfeed.TransformError) for skip in skips)


@pytest.mark.parametrize("width", [5, 7, 15])
def test_what_comes_before_a_bad_text_is_delivered(url_with_bad_texts, width):
    """As with arrays: five texts of six tokens."""
    options: dict[str, Any] = {"batch": 1, "pack": width}
    whole = contents(opened(url_with_bad_texts, TEXTS, **options).batches())
    for stop in range(30 // width + 1):
        stream = opened(url_with_bad_texts, TEXTS, **{**options, "tokenizer": raising})
        iterator = stream.batches()
        assert contents(islice(iterator, stop)) == whole[:stop]
        for ended in (False, True):
            if ended:
                stop += len(contents(islice(iterator, 30 // width - stop)))
                with pytest.raises(shardfeed.TransformError):
                    next(iterator)
            mended = opened(url_with_bad_texts, TEXTS, **options)
            mended.load_state_dict(stream.state_dict())
            assert contents(mended.batches()) == whole[stop:]


@pytest.mark.parametrize("window", [0, 7])
def test_runs_that_are_mended_again_and_again(urls, window):
    """Stopped at random, and at each of some bad texts: all rows come, once."""
    draws = random.Random(window)
    long = [text for shard in range(4) for text in texts_of(shard) if len(text) > 20]
    for seed in range(8):
        bad = set(draws.sample(long, 6))
        options = {
            "pack": draws.choice([5, WIDTH, 50]),
            "pack_window": window,
            "shuffle": draws.choice([0, 9]),
            "lanes": draws.choice([1, 2, 4]),
            "seed": seed,
        }
        wanted = contents(opened(urls[0], TEXTS, **options).batches())
        found: list[Any] = []

        def failing(texts: list[str], bad: set[str] = bad) -> list[list[int]]:
            if bad.intersection(texts):
                raise ValueError("not yet")
            return tokenize(texts)

        stream, is_over = opened(urls[0], TEXTS, **options), False
        while not is_over:
            resumed = opened(urls[0], {**TEXTS, "tokenizer": failing}, **options)
            resumed.load_state_dict(stream.state_dict())
            stream, iterator = resumed, resumed.batches()
            try:
                for _ in range(draws.randint(0, 40)):
                    batch = next(iterator, None)
                    is_over = batch is None
                    if batch is not None:
                        found.append(content(batch))
            except shardfeed.TransformError as error:
                bad.remove(texts_of(int(Path(error.url).stem))[int(error.key)])
        assert found == wanted, options
        assert not bad


def test_max_skips(url_with_bad_texts):
    stream = opened(
        url_with_bad_texts, TEXTS, tokenizer=raising, on_error="skip_sample", max_skips=1, log=None
    )
    with pytest.raises(shardfeed.LimitError, match="more than max_skips=1"):
        list(stream.batches())


def test_a_tokenizer_that_fails_with_no_text_alone(urls):
    def together(texts: list[str]) -> list[list[int]]:
        if len(texts) > 1:
            raise RuntimeError("too many")
        return tokenize(texts)

    stream = opened(urls[0], TEXTS, tokenizer=together, on_error="skip_sample")
    with pytest.raises(shardfeed.UsageError, match="together, and with none of them alone"):
        list(stream.batches())


def test_memory_is_bounded(urls):
    stream = opened(
        urls[0], TEXTS, tokenizer=lambda texts: [[1] * 3_000_000] * len(texts), memory="8MiB"
    )
    with pytest.raises(shardfeed.LimitError, match="raise memory"):
        list(stream.batches())


def test_a_tokenizer_without_memory(urls):
    def hungry(texts: list[str]) -> list[list[int]]:
        raise MemoryError

    stream = opened(urls[0], TEXTS, tokenizer=hungry, on_error="skip_sample")
    with pytest.raises(shardfeed.NoMemoryError):
        list(stream.batches())
    assert stream.stats()["skipped_samples"] == 0


def test_what_ends_a_program_passes(urls):
    def ending(texts: list[str]) -> list[list[int]]:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        list(opened(urls[0], TEXTS, tokenizer=ending, on_error="skip_sample").batches())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pack": 0}, shardfeed.UsageError, "its tokens are packed, and there is no pack"),
        ({"decode": "npy"}, shardfeed.UsageError, "no column of decode is text"),
        ({"decode": "txt, bin:bytes"}, shardfeed.UsageError, "the column .*bin.* has none"),
        ({"tokenizer": 5}, TypeError, "a function expected, not int"),
        ({"tokenizer": "texts"}, shardfeed.UsageError, "names no function"),
        ({"tokenizer": "texts:none"}, shardfeed.UsageError, "the module texts has no none"),
        ({"tokenizer": None, "eos": 5}, shardfeed.UsageError, "eos: .* there is no tokenizer"),
        ({"eos": 2**31}, shardfeed.UsageError, "eos: 2147483648 has more than 32 bits"),
        ({"eos": 1.5}, TypeError, "float"),
    ],
)
def test_wrong_use(urls, options, error, message):
    with pytest.raises(error, match=message):
        opened(urls[0], TEXTS, **options).batches()


def test_a_cancel_between_two_columns_of_texts(tmp_path: Path) -> None:
    """Texts of the second one have no tokens then, and nothing is made of them."""
    path = rows_tar(tmp_path / "t.tar", [{"a.txt": b"some", "b.txt": b"text"}] * 8)
    began = threading.Event()

    def slow(texts: list[str]) -> list[list[int]]:
        began.set()
        time.sleep(0.3)
        return [[1, 2] for _ in texts]

    stream = shardfeed.Stream(path)
    batches = stream.batches(2, decode="a.txt,b.txt", pack=4, tokenizer=slow)
    cancel = threading.Thread(target=lambda: (began.wait(), stream.cancel()))
    cancel.start()
    with pytest.raises(shardfeed.CancelledError):
        next(batches)
    cancel.join()


def test_tokens_in_arrays_of_any_type(tmp_path: Path) -> None:
    path = rows_tar(tmp_path / "t.tar", [{"txt": b"abcd"}] * 2)
    for kind in "bBhHiIlLqQ":

        def tokens(texts: list[str], kind: str = kind) -> list[array[int]]:
            return [array(kind, [1, 2, 3, 4]) for _ in texts]

        (batch,) = shardfeed.Stream(path).batches(2, decode="txt", pack=4, tokenizer=tokens)
        assert batch["txt"].tolist() == [[1, 2, 3, 4]] * 2
    with pytest.raises(shardfeed.TransformError, match="gave the token that is too large"):
        list(
            shardfeed.Stream(path).batches(
                1, decode="txt", pack=4, tokenizer=lambda texts: [iter([2**40]) for _ in texts]
            )
        )
