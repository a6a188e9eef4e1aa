"""Batches of streams: sizes, order, epochs, errors, waiting."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import interrupted
import numpy as np
import pytest
import shardfeed
from batches import digest, npy, ramps, rows_tar
from conftest import write_tar


def labels(batches) -> list[list[int]]:
    return [batch["cls"].tolist() for batch in batches]


def joined(lists: list[list[int]]) -> list[int]:
    return [number for numbers in lists for number in numbers]


@pytest.fixture
def url(tmp_path):
    return ramps(tmp_path / "t.tar", 25)


def test_sizes(url):
    stream = shardfeed.Stream(url, batch=10)
    assert labels(stream.batches()) == [list(range(n, min(n + 10, 25))) for n in (0, 10, 20)]
    assert list(map(len, stream.batches(last="drop"))) == [10, 10]
    assert list(map(len, stream.batches(7))) == [7, 7, 7, 4]
    assert list(map(len, stream.batches(100))) == [25]
    assert stream.stats()["samples"] == 25


def test_a_stream_gives_samples_with_and_without_the_option(url):
    for stream in (shardfeed.Stream(url), shardfeed.Stream(url, batch=10)):
        for _ in range(2):
            assert [int(bytes(sample["cls"])) for sample in stream] == list(range(25))
            assert labels(stream.batches(20))[1] == list(range(20, 25))


def test_every_call_is_the_next_epoch(url):
    options = {"shuffle": 100, "seed": 3, "decode": "cls"}
    wanted = [
        labels(shardfeed.Stream(url, epoch=epoch, **options).batches(10)) for epoch in range(3)
    ]
    stream = shardfeed.Stream(url, **options)
    assert labels(stream.batches(10)) == wanted[0]
    samples = [int(bytes(sample["cls"])) for sample in stream]
    assert samples == joined(wanted[1])
    assert labels(stream.batches(10)) == wanted[2]
    assert wanted[0] != wanted[1] != wanted[2]
    assert sorted(joined(wanted[2])) == list(range(25))


def test_a_new_iterator_ends_the_last_one(url):
    stream = shardfeed.Stream(url, batch=10)
    first = stream.batches()
    next(first)
    second = stream.batches()
    with pytest.raises(shardfeed.UsageError, match="called again"):
        next(first)
    assert len(list(second)) == 3
    samples = iter(stream)
    third = stream.batches()
    with pytest.raises(shardfeed.UsageError, match="called again"):
        next(samples)
    stream.close()
    with pytest.raises(shardfeed.UsageError, match="closed"):
        next(third)
    with pytest.raises(shardfeed.UsageError, match="closed"):
        stream.batches()


def test_epochs_of_a_number_of_samples(url):
    stream = shardfeed.Stream(url, epoch_samples=24, batch=10)
    up = [labels(stream.batches()) for _ in range(2)]
    flat = joined(map(joined, up))
    assert [len(epoch) for epoch in up] == [3, 3]  # of whole batches, 30 samples
    assert flat == [n % 25 for n in range(60)]  # continuing where the last epoch stopped
    assert [len(list(stream.batches(last="drop"))) for _ in range(2)] == [2, 2]
    with pytest.raises(shardfeed.UsageError, match="no batch of 100"):
        stream.batches(100, last="drop")


def test_every_rank_has_as_many_batches(tmp_path):
    urls = [ramps(tmp_path / f"{n}.tar", 40) for n in range(3)]
    # 31 samples are 11, 10 and 10: a batch of 10 more for the first rank alone
    counts = [
        len(list(shardfeed.Stream(urls, epoch_samples=31, world_size=3, rank=rank).batches(10)))
        for rank in range(3)
    ]
    assert counts == [1, 1, 1]


def test_epochs_for_ever(url):
    stream = shardfeed.Stream(url, epochs=0)
    batches = stream.batches(10)
    taken = [next(batches)["cls"].tolist() for _ in range(6)]
    taken += [next(stream.batches(10))["cls"].tolist()]  # continues where it stopped
    assert joined(taken) == [n % 25 for n in range(70)]


def test_the_same_batches_with_any_number_of_threads(tmp_path):
    rng = np.random.default_rng(1)
    urls = []
    for shard in range(4):
        rows = [
            {
                "x.npy": npy(rng.random((rng.integers(1, 40), 30))),
                "y.npy": npy(rng.integers(0, 9, (64, 64))),
                "cls": b"%d" % n,
                "txt": b"t" * int(rng.integers(0, 50)),
            }
            for n in range(60)
        ]
        urls.append(rows_tar(tmp_path / f"{shard}.tar", rows))
    digests = set()
    for decode_threads in (1, 2, 8):
        for threads in (1, 2):
            for ragged in ("offsets", "pad"):
                stream = shardfeed.Stream(
                    urls, threads=threads, decode_threads=decode_threads, shuffle=50, seed=5
                )
                batches = stream.batches(32, ragged=ragged)
                digests.add((ragged, *map(digest, batches)))
    assert len(digests) == 2
    assert all(len(entry) == 1 + 8 for entry in digests)


@pytest.mark.parametrize("decode_threads", [1, 4])
def test_bad_fields_are_skipped_and_batches_stay_full(tmp_path, decode_threads):
    rows = []
    for n in range(200):
        row = {"x.npy": npy(np.full((40, 40), n)), "cls": b"%d" % n}
        if n % 7 == 0:
            row["x.npy"] = row["x.npy"][:-1]  # found when it is measured
        if n % 11 == 0:
            row["cls"] = b"dog"
        rows.append(row)
    path = rows_tar(tmp_path / "t.tar", rows)
    good = [n for n in range(200) if n % 7 and n % 11]
    heard = []
    stream = shardfeed.Stream(
        path, on_error="skip_sample", log=lambda *message: heard.append(message)
    )
    batches = list(stream.batches(16, decode_threads=decode_threads))
    assert [len(batch) for batch in batches] == [16] * (len(good) // 16) + [len(good) % 16]
    assert joined(labels(batches)) == good
    for batch in batches:
        assert (batch["x.npy"] == batch["cls"][:, None, None]).all()
        assert [int(key) for key in batch.sample_keys] == batch["cls"].tolist()
    assert stream.stats()["skipped_samples"] == 200 - len(good)
    assert stream.stats()["skips_format"] == 200 - len(good)
    assert len(heard) == 200 - len(good)
    assert any("000011.cls" in message for _, message in heard)


def test_a_bad_field_is_an_error_that_says_where(tmp_path):
    rows = [{"x.npy": npy([n]), "cls": b"%d" % n} for n in range(10)]
    rows[7]["x.npy"] = b"\x93NUMPY\x01\x00nonsense"
    path = rows_tar(tmp_path / "t.tar", rows)
    batches = shardfeed.Stream(path).batches(5)
    assert next(batches)["cls"].tolist() == [0, 1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(shardfeed.FormatError, match=r"t\.tar.*000007\.x\.npy") as caught:
            next(batches)
        assert caught.value.offset == 7 * 2 * 1024


def test_limits(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"x.npy": npy(np.zeros(1000))}] * 3)
    with pytest.raises(shardfeed.LimitError, match="max_decoded"):
        list(shardfeed.Stream(path).batches(3, max_decoded=7999))
    assert len(list(shardfeed.Stream(path).batches(3, max_decoded=8000))) == 1
    for on_error in ("raise", "skip_sample"):  # it is no sample's fault
        stream = shardfeed.Stream(path, memory="1MiB", on_error=on_error)
        with pytest.raises(shardfeed.LimitError, match="lower batch"):
            list(stream.batches(1000))
        assert stream.stats()["skipped_samples"] == 0


def test_how_many_samples_are_a_batch(url):
    for call in (lambda: shardfeed.Stream(url).batches(), lambda: shardfeed.Stream(url).batches(0)):
        with pytest.raises(shardfeed.UsageError, match=r"batches\(256\)"):
            call()
    with pytest.raises(shardfeed.UsageError, match="batch"):
        shardfeed.Stream(url).batches(-1)
    with pytest.raises(TypeError, match="shuffle"):
        shardfeed.Stream(url).batches(5, shuffle=10)
    with pytest.raises(TypeError, match="ragged"):
        shardfeed.Stream(url).batches(5, raged="pad")


# ---- Waiting ----


@pytest.fixture
def silent_fifo(tmp_path):
    """A FIFO that has a writer and never gets a byte."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    yield path
    os.close(descriptor)


def test_ctrl_c_ends_a_blocked_next_within_100_ms(silent_fifo):
    batches = shardfeed.Stream(silent_fifo).batches(10)
    for _ in range(2):
        sent = []

        def interrupt(sent=sent):
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.2, interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            next(batches)
        late = time.monotonic() - sent[0]
        timer.join()
        assert late < 0.1


@pytest.mark.skipif(sys.version_info < (3, 11), reason="signals come between any two bytecodes")
def test_interrupts_lose_no_batch_and_repeat_none(tmp_path):
    batches = shardfeed.Stream(ramps(tmp_path / "t.tar", 2000)).batches(2)

    assert [batch["cls"][0] for batch in interrupted.collect(batches, 1000)] == list(
        range(0, 2000, 2)
    )


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_cancel_and_close_from_another_thread(silent_fifo, end):
    stream = shardfeed.Stream(silent_fifo)
    batches = stream.batches(10)
    timer = threading.Timer(0.2, getattr(stream, end))
    timer.start()
    with pytest.raises(shardfeed.CancelledError):
        next(batches)
    timer.join()
    with pytest.raises(shardfeed.Error):
        next(batches)


def test_cancel_ends_one_epoch_only(url):
    for options in ({}, {"batch": 10}, {"epoch_samples": 30}):
        stream = shardfeed.Stream(url, **options)
        stream.cancel()
        with pytest.raises(shardfeed.CancelledError):
            list(stream.batches(10))
        assert len(list(stream.batches(10))) == 3


def test_timeout_and_the_next_call_continues(tmp_path):
    whole = write_tar(tmp_path / "t.tar", [("a.cls", b"7")]).read_bytes()
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    batches = shardfeed.Stream(path, timeout=0.2).batches(10)
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"no batch came within 0\.2 s"):
            next(batches)
    os.write(writer, whole)
    os.close(writer)
    assert labels(batches) == [[7]]


def test_a_second_thread_inside_next_is_refused(silent_fifo):
    stream = shardfeed.Stream(silent_fifo)
    batches = stream.batches(10)
    raised = []

    def wait():
        try:
            next(batches)
        except shardfeed.Error as error:
            raised.append(type(error))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    with pytest.raises(shardfeed.UsageError, match="in use"):
        next(batches)
    stream.cancel()
    thread.join()
    assert raised == [shardfeed.CancelledError]
