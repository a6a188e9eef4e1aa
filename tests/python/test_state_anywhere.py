"""state_dict() in a signal handler and in other threads: always the position of the user."""

from __future__ import annotations

import io
import signal
import tarfile
import threading

import pytest
import shardfeed


def write_tar(path, samples):
    with tarfile.open(path, "w") as tar:
        for number in range(samples):
            member = tarfile.TarInfo(f"{number:05}.txt")
            member.size = 5
            tar.addfile(member, io.BytesIO(f"{number:05}".encode()))


def keys_from(url, state):
    stream = shardfeed.Stream(url)
    stream.load_state_dict(state)
    return [sample.key for sample in stream]


def test_a_handler_saves_while_next_waits(tmp_path):
    write_tar(tmp_path / "a.tar", 40)
    url = f"pipe:head -c 20480 {tmp_path}/a.tar; sleep 0.5; tail -c +20481 {tmp_path}/a.tar"
    states = []
    stream = shardfeed.Stream(url)
    taken = []
    previous = signal.signal(
        signal.SIGALRM, lambda *_: states.append((len(taken), stream.state_dict()))
    )
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.01)
        for sample in stream:
            taken.append(sample.key)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(taken) == 40
    assert states
    for count, state in states[:3]:
        # The sample that the loop has just been given may not be in the list yet.
        rest = keys_from(url, state)
        assert rest in (taken[count:], taken[count + 1 :])


def test_another_thread_saves(tmp_path):
    write_tar(tmp_path / "a.tar", 3000)
    url = str(tmp_path / "a.tar")
    stream = shardfeed.Stream(url)
    states = []
    done = threading.Event()

    def save():
        while not done.is_set():
            before = len(taken)
            state = stream.state_dict()
            states.append((before, state, len(taken)))

    taken = []
    iterator = iter(stream)
    thread = threading.Thread(target=save)
    thread.start()
    for sample in iterator:
        taken.append(sample.key)
    done.set()
    thread.join()
    assert len(taken) == 3000
    for before, state, after in states[:: max(len(states) // 20, 1)]:
        rest = keys_from(url, state)
        if state["epoch"] == 1:
            continue  # saved after the end
        assert taken[3000 - len(rest) :] == rest
        assert before <= 3000 - len(rest) <= after + 1


@pytest.mark.parametrize("receiver", ["on_skip", "log"])
def test_receivers_are_refused(tmp_path, receiver):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ["a.txt", "a.txt", "b.txt"]:
            tar.addfile(tarfile.TarInfo(name))
    refusals = []

    def save(*_):
        try:
            stream.state_dict()
        except shardfeed.UsageError as error:
            refusals.append(error)

    options = {receiver: save}
    stream = shardfeed.Stream(tmp_path / "a.tar", on_error="skip_sample", **options)
    assert [sample.key for sample in stream] == ["b"]
    assert refusals
