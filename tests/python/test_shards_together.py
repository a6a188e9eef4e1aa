"""Shards of many tasks that appear together: what tasks leave that outlive their run."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import shardfeed
from shardfeed.cluster._publish import Staging


def staging_in(folder: Path) -> Staging:
    staging = Staging.of(folder / "%03d.tar", 10, True, None)
    staging.make()
    return staging


def sample(number: int) -> dict[str, object]:
    return {"__key__": f"{number:06}", "txt": "a word"}


def test_a_task_that_still_writes_leaves_nothing(tmp_path: Path) -> None:
    staging = staging_in(tmp_path)
    writer = staging.writer(0)
    for number in range(15):
        writer.write(sample(number))
    assert list(tmp_path.iterdir())
    staging.remove()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(shardfeed.Error, match="No such file"), writer:
        writer.write_all(sample(number) for number in range(15, 35))
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_begins_later_fails(tmp_path: Path) -> None:
    staging = staging_in(tmp_path)
    staging.remove()
    with pytest.raises(shardfeed.Error, match="No such file"), staging.writer(1) as writer:
        writer.write(sample(0))
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_taken_publish_nothing(tmp_path: Path) -> None:
    taken = tmp_path / "001.tar"
    taken.write_bytes(b"another one's")
    staging = staging_in(tmp_path)
    with staging.writer(0) as writer:
        writer.write_all(sample(number) for number in range(25))
    with pytest.raises(shardfeed.UsageError, match="it is there already"):
        staging.publish(writer.shards)
    assert list(tmp_path.iterdir()) == [taken]
    assert taken.read_bytes() == b"another one's"


def test_tasks_that_write_while_the_folder_is_removed(tmp_path: Path) -> None:
    for _ in range(20):
        staging = staging_in(tmp_path)
        begun = threading.Semaphore(0)

        def write(staging: Staging = staging, begun: threading.Semaphore = begun) -> None:
            try:
                for task in range(1000):
                    with staging.writer(task) as writer:
                        writer.write(sample(task))
                    begun.release()
            except shardfeed.Error:
                pass

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert begun.acquire(timeout=60)
        staging.remove()
        for thread in threads:
            thread.join()
        assert list(tmp_path.iterdir()) == []
