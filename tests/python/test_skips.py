"""What on_skip receives for each sample and shard that is skipped."""

import pickle
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import shardfeed
from conftest import tar_of


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A shard that ends in the middle of its third sample."""
    path = tar_of(10, tmp_path / "cut.tar")
    path.write_bytes(path.read_bytes()[: 5 * 1024])
    return path


def test_a_shard_that_is_cut_short(cut: Path, tmp_path: Path) -> None:
    whole = tar_of(3, tmp_path / "whole.tar")
    skips: list[shardfeed.Skip] = []
    urls = [cut, whole]
    stream = shardfeed.Stream(urls, on_error="skip_sample", log=None, on_skip=skips.append)
    assert len(list(stream)) >= 3
    (skip,) = skips
    assert isinstance(skip.error, shardfeed.TruncatedError)
    assert skip.error.offset is not None
    assert skip.url == str(cut)
    assert str(skip.error).startswith(skip.url)
    assert skip.key is None
    assert skip.whole_shard
    assert stream.stats()["skipped_shards"] == 1


def test_samples(tmp_path: Path) -> None:
    path = tar_of(4, tmp_path / "t.tar")
    keys = [sample.key for sample in shardfeed.Stream(path)]
    skips: list[shardfeed.Skip] = []
    options = {"on_error": "skip_sample", "log": None, "on_skip": skips.append}
    assert list(shardfeed.Stream(path, max_member=0, **options)) == []
    assert [skip.key for skip in skips] == keys
    assert not any(skip.whole_shard for skip in skips)
    # Rows that cannot be decoded are skips of the same kind.
    skips.clear()
    name = next(iter(next(iter(shardfeed.Stream(path)))))
    stream = shardfeed.Stream(path, batch=2, decode=f"{name}:image", **options)
    assert list(stream.batches()) == []
    assert [skip.key for skip in skips] == keys
    assert all(isinstance(skip.error, shardfeed.FormatError) for skip in skips)


def test_parts_of_a_mix_have_their_own(cut: Path, tmp_path: Path) -> None:
    skips: list[shardfeed.Skip] = []
    part = shardfeed.Stream(cut, on_error="skip_sample", log=None, on_skip=skips.append)
    other = shardfeed.Stream(tar_of(3, tmp_path / "t.tar"))
    list(shardfeed.mix([part, other]))
    assert [skip.url for skip in skips] == [str(cut)]


def test_what_it_raises_is_raised_by_the_loop(cut: Path) -> None:
    def refuse(skip: shardfeed.Skip) -> None:
        raise KeyError(skip.url)

    stream = iter(shardfeed.Stream(cut, on_error="skip_sample", log=None, on_skip=refuse))
    taken = []
    with pytest.raises(KeyError, match=r"cut\.tar"):
        taken.extend(stream)
    # Nothing is lost.
    taken += list(stream)
    assert len(taken) == len(list(shardfeed.Stream(cut, on_error="skip_sample", log=None)))


def test_recipes_keep_it(cut: Path) -> None:
    recipe = shardfeed.StreamRecipe(cut, on_error="skip_sample", log=None, on_skip=print)
    assert recipe.on_skip is print
    assert recipe.share(0, 1).on_skip is print
    assert pickle.loads(pickle.dumps(recipe)).on_skip is print
    assert recipe != shardfeed.StreamRecipe(cut, on_error="skip_sample", log=None)
    skips: list[shardfeed.Skip] = []
    list(recipe.with_options(on_skip=skips.append).open())
    assert len(skips) == 1


def test_an_interrupt_in_a_receiver_is_raised(tmp_path: Path) -> None:
    script = """
import signal, sys, time, shardfeed
signal.signal(signal.SIGALRM, signal.default_int_handler)
for round in range(20):
    try:
        # Again, since Python drops what is raised inside of a weak reference's callback.
        signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.0005 * round, 0.3)
        for _ in range(100):
            for sample in shardfeed.Stream(
                sys.argv[1], on_error="skip_sample", max_skips=10**9, log=None,
                on_skip=lambda skip: None,
            ):
                pass
        sys.exit("no interrupt")
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
"""
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number in range(2000):
            for _ in range(2):
                tar.addfile(tarfile.TarInfo(f"{number}.txt"))
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "a.tar"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "shardfeed" not in done.stderr
