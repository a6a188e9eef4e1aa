"""Functions of the program between a stream and its batches: what they get and what they make."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import shardfeed  # noqa: E402
import transforms as given  # noqa: E402
from transforms import DECODE, PLACES, ROWS, SIDE, batches, numbers  # noqa: E402

ORDERED = [list(range(first, first + 8)) for first in range(0, ROWS, 8)]
everywhere = pytest.mark.parametrize("place", PLACES, ids=["caller", "threads", "workers"])


@pytest.fixture
def url(tmp_path: Path) -> str:
    return given.rows(tmp_path / "rows.tar")


@everywhere
def test_a_batch_is_made_of_what_a_transform_gives(url, place):
    read = list(batches(url, transform=given.doubled, **place))
    assert numbers(read) == ORDERED
    for batch in read:
        assert isinstance(batch, shardfeed.Batch)
        assert list(batch) == ["x.npy", "cls", "txt", "key", "pid", "pair"]
        assert batch["x.npy"].dtype == np.int32
        assert (batch["x.npy"] == 2 * batch["cls"].reshape(-1, 1, 1)).all()
        assert batch["x.npy"].shape == (8, SIDE, SIDE)
        assert list(batch["txt"]) == [f"text {n}!" for n in batch["cls"]]
        assert list(batch["key"]) == batch.sample_keys == [f"{n:06d}" for n in batch["cls"]]
        assert batch["pair"] == [{"n": n} for n in batch["cls"]]
        assert batch.urls == [url] * 8
        batch["x.npy"][:] = 0  # the memory is the user's own
    is_here = {pid for batch in read for pid in batch["pid"].tolist()} == {os.getpid()}
    assert is_here == ("transform_workers" not in place)


@everywhere
def test_what_is_not_changed_and_what_is_changed_in_place(url, place):
    for batch in batches(url, transform=given.same, **place):
        assert (batch["x.npy"] == batch["cls"].reshape(-1, 1, 1)).all()
        assert list(batch["txt"]) == [f"text {n}" for n in batch["cls"]]
    for batch in batches(url, transform=given.in_place, **place):
        assert (batch["x.npy"] == 1000 + batch["cls"].reshape(-1, 1, 1)).all()


@everywhere
def test_batches_that_are_kept_do_not_change(url, place):
    kept = [batch for _ in range(3) for batch in batches(url, transform=given.doubled, **place)]
    arrays = [batch["x.npy"] for batch in kept]
    labels = [batch["cls"].tolist() for batch in kept]
    del kept
    for array, label in zip(arrays, labels):
        assert (array == 2 * np.reshape(label, (-1, 1, 1))).all()


@everywhere
def test_none_drops_a_sample(url, place):
    with shardfeed.Stream(url) as stream:
        read = list(batches(stream, transform=given.even_only, **place))
        assert numbers(read) == [[n for n in batch if n % 2 == 0] for batch in ORDERED]
        assert read[0].sample_keys == ["000000", "000002", "000004", "000006"]
        assert stream.stats()["dropped_samples"] == ROWS // 2
        assert stream.stats()["samples"] == ROWS


@everywhere
def test_a_batch_transform_gives_what_comes_instead(url, place):
    read = list(batches(url, transform=given.doubled, batch_transform=given.sums, **place))
    assert [made["cls"].tolist() for made in read] == ORDERED
    for made in read:
        assert made["sums"].tolist() == [2 * n * SIDE * SIDE for n in made["cls"]]
        assert made["all"].shape == (8, SIDE, SIDE)


@everywhere
def test_a_batch_transform_drops_a_batch(url, place):
    with shardfeed.Stream(url) as stream:
        read = batches(stream, batch_transform=given.nothing_of_the_second, **place)
        assert numbers(read) == [ORDERED[0], *ORDERED[2:]]
        assert stream.stats()["dropped_samples"] == 8


@everywhere
def test_every_state_resumes_with_the_next_batch(url, place):
    whole, states = [], []
    options: dict[str, Any] = {"shuffle": 16, "seed": 3}
    with shardfeed.Stream(url, **options) as stream:
        for batch in batches(stream, transform=given.even_only, **place):
            whole.append(batch["cls"].tolist())
            states.append(json.loads(json.dumps(stream.state_dict())))
        states.append(stream.state_dict())
    plain = shardfeed.Stream(url, **options)
    assert whole == [[n for n in b if n % 2 == 0] for b in numbers(batches(plain))]
    for count, state in enumerate(states[:-1], 1):
        # With a transform, and without one.
        resumed = shardfeed.Stream(url, **options)
        resumed.load_state_dict(state)
        assert numbers(batches(resumed, transform=given.even_only, **place)) == whole[count:]
        plain.load_state_dict(state)
        assert len(numbers(batches(plain))) == len(whole) - count
    assert states[-1]["epoch"] == 1


@everywhere
def test_a_batch_that_was_taken_ahead_comes_again(url, place):
    stream = shardfeed.Stream(url)
    read = batches(stream, transform=given.same, **place)
    next(read), next(read)
    state = stream.state_dict(unread=1)
    resumed = shardfeed.Stream(url)
    resumed.load_state_dict(state)
    assert numbers(batches(resumed)) == ORDERED[1:]


@everywhere
def test_epochs_of_a_number_of_samples_continue(url, place):
    def epochs(**options: Any) -> list[list[list[int]]]:
        with shardfeed.Stream(url, epoch_samples=24, shuffle=10, seed=2) as stream:
            made = [numbers(batches(stream, **options)) for _ in range(2)]
            read = batches(stream, **options)
            made.append([next(read)["cls"].tolist()])
            # An epoch that is left, with batches ahead, with and without a transform.
            made.append(numbers(batches(stream, **options)))
            next(batches(stream, **options))
            made.append(numbers(batches(stream)))
            next(batches(stream))
            made.append(numbers(batches(stream, **options)))
            return made

    assert epochs(transform=given.same, **place) == epochs()


def test_what_runs_transforms_is_imported_only_with_one():
    program = (
        "import sys, shardfeed\n"
        "print(*(name for name in sys.modules if 'shardfeed._transform' in name))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "shardfeed._transform_options\n"), done.stderr


@everywhere
def test_the_error_of_a_transform_names_the_sample(url, place):
    stream = shardfeed.Stream(url)
    read = batches(stream, transform=given.fails_at_13, **place)
    assert next(read)["cls"].tolist() == ORDERED[0]
    for _ in range(2):  # it comes again
        with pytest.raises(shardfeed.TransformError, match="unlucky number") as caught:
            next(read)
    error = caught.value
    assert str(error).startswith(
        f"{url}: the transform raised ValueError: an unlucky number, with "
    )
    assert (error.url, error.key) == (url, "000013")
    assert isinstance(error.__cause__, ValueError)
    shown = "".join(map(str, [error.__cause__, error.__cause__.__cause__]))
    assert ("fails_at_13" in shown) == ("transform_workers" in place)  # the traceback of the worker
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.url, copied.key, str(copied)) == (error.url, error.key, str(error))
    # The state leads to the batch that failed.
    plain = shardfeed.Stream(url)
    plain.load_state_dict(stream.state_dict())
    assert numbers(batches(plain)) == ORDERED[1:]


@everywhere
@pytest.mark.parametrize("fault", [given.fails_at_13, given.other_shape_at_13])
def test_skipping_leaves_out_exactly_that_sample(url, place, fault):
    skips: list[shardfeed.Skip] = []
    stream = shardfeed.Stream(url, on_error="skip_sample", on_skip=skips.append, log=None)
    read = numbers(batches(stream, transform=fault, **place))
    assert read == [[n for n in batch if n != 13] for batch in ORDERED]
    assert stream.stats()["skipped_samples"] == 1
    assert [(skip.key, skip.url, skip.whole_shard) for skip in skips] == [("000013", url, False)]
    assert isinstance(skips[0].error, shardfeed.TransformError)


def test_more_skips_than_allowed(url):
    stream = shardfeed.Stream(url, on_error="skip_sample", max_skips=2, log=None)
    read = batches(stream, transform=lambda row: 1 / 0)
    for _ in range(2):
        with pytest.raises(shardfeed.LimitError, match="max_skips"):
            next(read)


@everywhere
def test_another_shape_is_an_error_that_says_both(url, place):
    read = batches(url, transform=given.other_shape_at_13, **place)
    next(read)
    with pytest.raises(shardfeed.TransformError, match="000013") as caught:
        next(read)
    assert f'"x.npy" is array int32 ({SIDE - 1}, {SIDE})' in str(caught.value)
    assert f"array int32 ({SIDE}, {SIDE})" in str(caught.value)


RAGGED = {"boxes": "offsets", "tokens": "pad", "grid": "pad"}


@everywhere
def test_arrays_of_unequal_shape_are_joined_or_filled_up(url, place):
    for batch in batches(url, transform=given.grown, transform_ragged=RAGGED, **place):
        counts = [n % 5 for n in batch["cls"].tolist()]
        boxes = batch["boxes"]
        assert isinstance(boxes, shardfeed.Ragged)
        assert boxes.values.dtype == np.float32
        assert [row.shape for row in boxes] == [(count, 4) for count in counts]
        assert all((row == n).all() for row, n in zip(boxes, batch["cls"].tolist()))
        most = max(counts)
        assert batch["tokens"].tolist() == [
            [*range(count), *[0] * (most - count)] for count in counts
        ]
        assert batch.shapes("tokens").tolist() == [[count] for count in counts]
        assert batch["grid"].shape == (8, most, 2)
        assert batch["grid"].dtype == np.complex64
        assert batch["grid"].sum() == sum(c * c * (1 + c % 2) for c in counts)


@everywhere
def test_a_column_is_ragged_in_every_batch(url, place):
    how = {"same": "offsets", "none": "offsets", "x.npy": "pad"}
    for batch in batches(url, transform=given.equal, transform_ragged=how, **place):
        assert [row.shape for row in batch["same"]] == [(2, 3)] * 8
        assert [row.shape for row in batch["none"]] == [(0, 4)] * 8
        assert batch["x.npy"].shape == (8, SIDE, SIDE)
        assert batch.shapes("x.npy").tolist() == [[SIDE, SIDE]] * 8


def test_tensors_of_unequal_shape(url):
    torch = pytest.importorskip("torch")

    def tensors(row):
        count = 1 + int(row["cls"]) % 3
        return {"x": torch.full((count, 2), count).bfloat16(), "y": torch.ones(count).t()}

    batch = next(
        batches(url, transform=tensors, transform_ragged={"x": "offsets", "y": "pad"})
    ).torch()
    assert [tuple(row.shape) for row in batch["x"]] == [(1 + n % 3, 2) for n in range(8)]
    assert batch["x"].values.dtype == torch.bfloat16
    assert batch["y"].sum(1).tolist() == [1 + n % 3 for n in range(8)]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda n: np.zeros(n, "f4") if n != 5 else np.zeros((n, 1), "f4"), "in other samples"),
        (lambda n: np.zeros(n, "f4") if n != 5 else np.zeros(n, "f8"), "in other samples"),
        (lambda n: n, "no array with dimensions"),
        (lambda n: "text", "no array with dimensions"),
        (None, "which transform_ragged names"),
    ],
)
def test_what_is_not_ragged(url, made, words):
    def transform(row):
        return {} if made is None else {"a": made(int(row["cls"]))}

    with pytest.raises(shardfeed.TransformError, match=words):
        next(batches(url, transform=transform, transform_ragged={"a": "offsets"}))


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (lambda row: {"a": 1} if row["cls"] != 5 else {"b": 1}, "it has the fields 'b'"),
        (lambda row: {"a": "text" if row["cls"] != 5 else 1}, '"a" is int, and in other.*text'),
        (lambda row: {"a": np.float32(1) if row["cls"] != 5 else np.float64(1)}, "array float64"),
        (lambda row: (row["cls"],) if row["cls"] == 5 else row, "tuple returned, and no dict"),
        (lambda row: {7: 1} if row["cls"] == 5 else {"a": 1}, "7"),
    ],
)
def test_rows_that_do_not_fit_together(url, transform, words):
    with pytest.raises(shardfeed.TransformError, match=f"{words}.*000005"):
        next(batches(url, transform=transform))


@everywhere
def test_an_error_of_a_batch_transform(url, place):
    read = batches(url, batch_transform=given.fails_with_batch, **place)
    with pytest.raises(
        shardfeed.TransformError, match=r'RuntimeError: a batch of 8, with.*"000000" to "000007"'
    ):
        next(read)


@everywhere
def test_numbers_of_several_kinds(url, place):
    def made(row: dict[str, Any]) -> dict[str, Any]:
        number = int(row["cls"])
        return {
            "cls": number,
            "float": number / 2 if number else 0,  # an int among them
            "bool": number > 3,
            "half": np.float16(number),
            "large": 10**30 + number,
            "bytes": b"x" * number,
            "empty": np.zeros((0, 3), "f4"),
            "date": np.datetime64("2020-01-01"),
        }

    batch = next(batches(url, transform=made, **place))
    assert batch["float"].tolist() == [n / 2 for n in range(8)]
    assert batch["bool"].dtype == bool
    assert batch["bool"].tolist() == [n > 3 for n in range(8)]
    assert batch["half"].dtype == np.float16
    assert batch["large"] == [10**30 + n for n in range(8)]
    assert list(batch["bytes"]) == [b"x" * n for n in range(8)]
    assert batch["empty"].shape == (8, 0, 3)
    assert batch["date"] == [np.datetime64("2020-01-01")] * 8


@everywhere
def test_hooks_come_before_transforms(url, place):
    def made(row: dict[str, Any]) -> dict[str, Any]:
        return {"cls": row["cls"] + [1]}

    stream = shardfeed.Stream(url)
    read = stream.batches(
        8, decode="cls:bytes", hooks={"cls": lambda data: [int(data)]}, transform=made, **place
    )
    assert next(read)["cls"] == [[n, 1] for n in range(8)]
    read = stream.batches(8, decode="cls:bytes", hooks={"cls": int.from_bytes}, transform=made)
    with pytest.raises(shardfeed.TransformError, match="TypeError"):
        next(read)


def test_padding_rows_stay_marked(tmp_path):
    paths = [given.rows(tmp_path / f"{n}.tar", 3 + n) for n in range(2)]
    for path in paths:
        shardfeed.Dataset(path)  # makes the index
    stream = shardfeed.Stream(paths, rank=0, world_size=2, even="pad")
    (batch,) = batches(stream, transform=given.same)
    assert batch.valid.tolist() == [True, True, True, False]
    (batch,) = batches(stream, transform=lambda row: None if row["cls"] == 1 else row)
    assert batch.valid.sum() == 2


def test_seeds_depend_on_the_sample_and_the_epoch(url):
    def epochs(**options: Any) -> list[dict[int, str]]:
        stream = shardfeed.Stream(url, shuffle=5, **options)
        return [
            {
                n: s
                for b in batches(stream, transform=given.seeds)
                for n, s in zip(b["cls"], b["seed"])
            }
            for _ in range(2)
        ]

    first, second = epochs(seed=1)
    assert len({*first.values(), *second.values()}) == 2 * ROWS
    assert epochs(seed=1) == [first, second]
    assert epochs(seed=2)[0] != first


def test_generators_of_workers_are_seeded_for_each_sample(url):
    def drawn(state: Any = None, **place: Any) -> dict[int, Any]:
        stream = shardfeed.Stream(url, seed=4)
        if state is not None:
            stream.load_state_dict(state)
        read = batches(stream, transform=given.random_numbers, **place)
        return {
            int(n): (draw, *array)
            for batch in read
            for n, draw, array in zip(batch["cls"], batch["draw"].tolist(), batch["array"].tolist())
        }

    one = drawn(transform_workers=1)
    assert len(set(one.values())) == ROWS
    assert drawn(transform_workers=3) == one
    stream = shardfeed.Stream(url, seed=4)
    next(batches(stream))
    rest = drawn(stream.state_dict(), transform_workers=2)
    assert rest == {n: draw for n, draw in one.items() if n >= 8}


def test_a_dataset_reads_batches_ahead(url):
    data = shardfeed.Dataset(url, decode=DECODE)
    order = [[5, 1, 9], [39], [0, 2, 4, 13]]
    for place in PLACES:
        read = list(data.batches(order, transform=given.doubled, **place))
        assert numbers(read) == order
        assert all((b["x.npy"] == 2 * b["cls"].reshape(-1, 1, 1)).all() for b in read)
        read = data.batches(order, transform=given.fails_at_13, **place)
        assert [next(read)["cls"].tolist() for _ in range(2)] == order[:2]
        with pytest.raises(shardfeed.TransformError, match="000013"):
            next(read)
        read = data.batches([[1], [99]], transform=given.same, **place)
        assert next(read)["cls"].tolist() == [1]
        with pytest.raises(IndexError):
            next(read)
    assert numbers(data.batches(iter(order))) == order
    assert next(data.batches([[3]], batch_transform=given.sums))["sums"].tolist() == [3 * SIDE**2]


def test_an_interrupt_loses_nothing(url):
    seen: list[int] = []

    def interrupted(row: dict[str, Any]) -> dict[str, Any]:
        number = int(row["cls"])
        if number == 11 and number not in seen:
            seen.append(number)
            raise KeyboardInterrupt
        row["x.npy"] += 1
        return row

    read = batches(url, transform=interrupted)
    next(read)
    with pytest.raises(KeyboardInterrupt):
        next(read)
    batch = next(read)
    assert batch["cls"].tolist() == ORDERED[1]
    assert (batch["x.npy"] == 1 + batch["cls"].reshape(-1, 1, 1)).all()


def test_a_thread_that_hangs(url):
    go = threading.Event()

    def waits(row: dict[str, Any]) -> dict[str, Any]:
        if row["cls"] == 13:
            go.wait(60)
        return row

    read = batches(url, transform=waits, transform_threads=2, transform_timeout=1)
    given.patient_next(read)
    for _ in range(2):
        with pytest.raises(shardfeed.TimeoutError, match=r'"000013" has not returned within 1 s'):
            next(read)
    go.set()
    assert numbers(iter(lambda: given.patient_next(read), None)) == ORDERED[1:]


@everywhere
def test_an_error_of_the_stream_comes_in_its_turn(tmp_path, place):
    path = Path(given.rows(tmp_path / "rows.tar"))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    plain = batches(str(path))
    before = []
    with pytest.raises(shardfeed.TruncatedError) as wanted:
        before.extend(b["cls"].tolist() for b in iter(lambda: next(plain), None))
    stream = shardfeed.Stream(str(path))
    read = batches(stream, transform=given.slow_at_the_start, **place)
    assert [next(read)["cls"].tolist() for _ in before] == before
    for _ in range(2):
        with pytest.raises(shardfeed.TruncatedError) as caught:
            next(read)
        assert str(caught.value) == str(wanted.value)


@everywhere
def test_closing_and_cancelling_in_the_middle(url, place):
    stream = shardfeed.Stream(url)
    read = batches(stream, transform=given.same, **place)
    next(read)
    stream.cancel()
    with pytest.raises(shardfeed.CancelledError):
        next(read)
    assert numbers(batches(stream, transform=given.same, **place)) == ORDERED
    read = batches(stream, transform=given.same, **place)
    next(read)
    stream.close()
    with pytest.raises(shardfeed.UsageError, match="closed"):
        next(read)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"transform_workers": 2}, "nothing is to be transformed"),
        ({"transform": given.same, "transform_workers": -1}, "0..1024"),
        (
            {"transform": given.same, "transform_workers": 1, "transform_threads": 1},
            "one of the two",
        ),
        ({"transform": given.same, "transform_start": "boot"}, "'fork', 'spawn', 'forkserver'"),
        ({"transform": given.same, "transform_arrays": "jax"}, "'numpy', 'torch'"),
        ({"transform": given.same, "transform_timeout": 3}, "nobody can watch"),
        ({"transform": given.same, "transform_ragged": {"a": "list"}}, '"offsets" or "pad"'),
    ],
)
def test_wrong_options(url, options, words):
    with pytest.raises(shardfeed.UsageError, match=words):
        batches(url, **options)
    with pytest.raises(TypeError, match="a function expected"):
        batches(url, transform=3)
