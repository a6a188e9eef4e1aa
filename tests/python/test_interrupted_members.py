"""Members in sequence under a storm of signals: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import collections
import io
import random
import signal
import tarfile
import threading
from functools import partial

import pytest
import shardfeed
from interrupted import collect


def write_tar(path, members, size):
    with tarfile.open(path, "w") as tar:
        for number in range(members):
            member = tarfile.TarInfo(f"{number:05}.bin")
            member.size = size + number
            tar.addfile(member, io.BytesIO(data_of(number, member.size)))


def data_of(number, size):
    return random.Random(number).randbytes(size)


def test_no_member_is_lost(tmp_path):
    write_tar(tmp_path / "a.tar", 3000, 1)
    with shardfeed.Members(tmp_path / "a.tar") as members:
        found = collect(members, 4000)
    assert [member.name for member in found] == [f"{number:05}.bin" for number in range(3000)]


# The iterator calls read() from C: nothing can be interrupted between it and the loop.
@pytest.mark.parametrize(
    ("size", "total"), [(None, 1_000_000), (1000, 5_000_000), (300_000, 20_000_000)]
)
def test_no_byte_is_lost(tmp_path, size, total):
    write_tar(tmp_path / "a.tar", 1, total)
    with shardfeed.Members(tmp_path / "a.tar") as members:
        read = collect(iter(partial(next(members).read, size), b""), 5001)
    assert b"".join(read) == data_of(0, total)


def test_readinto_counts_every_byte(tmp_path):
    write_tar(tmp_path / "a.tar", 1, 20_000_000)
    buffer = bytearray(10_000)
    with shardfeed.Members(tmp_path / "a.tar") as members:
        counts = collect(iter(partial(next(members).readinto, buffer), 0), 2001)
    assert sum(counts) == 20_000_000
    assert buffer == data_of(0, 20_000_000)[-10_000:]


def test_another_size_after_an_interrupt(tmp_path):
    write_tar(tmp_path / "a.tar", 1, 100)
    with shardfeed.Members(tmp_path / "a.tar") as members:
        member = next(members)
        # As if an exception had kept from the caller what this call gave.
        member._members._give(member, 60, bytes)
        assert member.read(7) == data_of(0, 100)[:7]
        assert member.read() == data_of(0, 100)[7:]


def test_a_handler_that_reads_is_refused(tmp_path):
    refusals = []

    def read(number, frame):
        with pytest.raises(shardfeed.UsageError, match="in use") as refusal:
            next(members)
        refusals.append(refusal)

    write_tar(tmp_path / "a.tar", 1, 1)
    previous = signal.signal(signal.SIGALRM, read)
    try:
        members = shardfeed.Members(f"pipe:sleep 0.4; cat {tmp_path}/a.tar")
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert next(members).name == "00000.bin"
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert len(refusals) == 1


def test_facts_while_another_thread_closes(tmp_path):
    write_tar(tmp_path / "a.tar", 1, 1)
    for _ in range(200):
        members = shardfeed.Members(tmp_path / "a.tar")
        member = next(members)
        thread = threading.Thread(target=members.close)
        thread.start()
        with pytest.raises(shardfeed.UsageError):
            collections.deque((member.size for _ in range(10_000_000)), maxlen=0)
        thread.join()
