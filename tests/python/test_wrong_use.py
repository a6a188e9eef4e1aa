"""What a stream says to the wrong thread, to async code and to pickle."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time

import pytest
import shardfeed


def in_thread(call) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as exception:
            raised.append(exception)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    return thread, raised


def test_a_second_thread_in_next_hears_what_to_do(silent_fifo):
    stream = shardfeed.Stream(silent_fifo)
    iterator = iter(stream)
    thread, _ = in_thread(lambda: next(iterator))
    with pytest.raises(shardfeed.UsageError, match=r"another thread is inside next.*rank"):
        next(iterator)
    stream.close()
    thread.join()


def test_a_thread_whose_iterator_another_one_ended_hears_that(silent_fifo):
    stream = shardfeed.Stream(silent_fifo)
    iterator = iter(stream)
    thread, raised = in_thread(lambda: next(iterator))
    iter(stream)
    thread.join(10)
    (error,) = raised
    assert isinstance(error, shardfeed.UsageError)
    assert "another thread" in str(error)
    assert "closed" not in str(error)
    with pytest.raises(shardfeed.UsageError, match="called again"):
        next(iterator)
    stream.close()


@pytest.mark.parametrize("of", ["stream", "iterator", "batches", "mix"])
def test_async_for_says_what_to_do(shards, of):
    stream = shardfeed.Stream(shards(1, 3))
    things = {
        "stream": lambda: stream,
        "iterator": lambda: iter(stream),
        "batches": lambda: stream.batches(2, decode="txt:bytes"),
        "mix": lambda: shardfeed.mix([stream]),
    }
    thing = things[of]()

    async def read() -> None:
        async for _ in thing:
            pass

    with pytest.raises(TypeError, match="run_in_executor"):
        asyncio.run(read())


def test_the_advice_for_async_code_works(shards):
    iterator = iter(shardfeed.Stream(shards(1, 3)))

    async def read() -> int:
        loop = asyncio.get_running_loop()
        count = 0
        while await loop.run_in_executor(None, next, iterator, None) is not None:
            count += 1
        return count

    assert asyncio.run(read()) == 3


@pytest.mark.parametrize("method", [pickle.dumps, copy.copy, copy.deepcopy])
def test_iterators_are_not_pickled_or_copied(shards, method):
    stream = shardfeed.Stream(shards(1, 3))
    for iterator in (iter(stream), stream.batches(2, decode="txt:bytes")):
        with pytest.raises(TypeError, match="state_dict"):
            method(iterator)
