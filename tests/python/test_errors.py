from __future__ import annotations

import base64
import builtins
import errno
import gzip
import os
import pickle
import re
from pathlib import Path

import pytest
import shardfeed
from conftest import numbered, tar_of, write_tar

CLASSES = {
    "FORMAT": (shardfeed.FormatError, ValueError),
    "TRUNCATED": (shardfeed.TruncatedError, EOFError),
    "INTEGRITY": (shardfeed.IntegrityError, ValueError),
    "LIMIT": (shardfeed.LimitError, ValueError),
    "UNSUPPORTED": (shardfeed.UnsupportedError, ValueError),
    "AMBIGUOUS": (shardfeed.AmbiguousError, ValueError),
    "CHANGED": (shardfeed.ChangedError, OSError),
    "NET_TRANSIENT": (shardfeed.NetTransientError, ConnectionError),
    "NET_PERMANENT": (shardfeed.NetPermanentError, OSError),
    "THROTTLED": (shardfeed.ThrottledError, OSError),
    "AUTH": (shardfeed.AuthError, PermissionError),
    "TLS": (shardfeed.TLSError, OSError),
    "IO": (shardfeed.ReadError, OSError),
    "NOSPACE": (shardfeed.NoSpaceError, OSError),
    "NOMEM": (shardfeed.NoMemoryError, MemoryError),
    "CANCELLED": (shardfeed.CancelledError, RuntimeError),
    "TIMEOUT": (shardfeed.TimeoutError, builtins.TimeoutError),
    "CHILD": (shardfeed.ChildError, ChildProcessError),
    "USAGE": (shardfeed.UsageError, ValueError),
    "FORKED": (shardfeed.ForkedError, RuntimeError),
    "NOT_FOUND": (shardfeed.NoMemberError, KeyError),
    "INTERNAL": (shardfeed.InternalError, RuntimeError),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    cls, built_in = CLASSES[name]
    assert issubclass(cls, shardfeed.Error)
    assert issubclass(cls, built_in)
    assert cls.__name__ in shardfeed.__all__
    error = cls("why", offset=5, os_error=errno.EIO)
    assert (error.code_name, error.message, error.offset) == (name, "why", 5)
    assert error.code < 0
    assert str(error) == "why"
    if issubclass(cls, OSError):
        assert error.errno == errno.EIO
    loaded = pickle.loads(pickle.dumps(error))
    assert type(loaded) is cls
    assert vars(loaded) == vars(error)
    assert str(cls()) == ""


def test_every_class_of_the_library_has_one():
    codes = {cls.code for cls, _ in CLASSES.values()}
    assert codes == set(range(-22, 0))


def test_missing_file(tmp_path):
    path = tmp_path / "none.tar"
    with pytest.raises(FileNotFoundError) as caught:
        list(shardfeed.Stream(path))
    error = caught.value
    assert isinstance(error, shardfeed.ReadError)
    assert (error.code_name, error.errno, error.os_error) == ("IO", errno.ENOENT, errno.ENOENT)
    assert error.offset is None
    assert str(path) in str(error)
    assert str(error) == error.message
    assert pickle.loads(pickle.dumps(error)).errno == errno.ENOENT


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden_file(tmp_path):
    path = tar_of(1, tmp_path / "t.tar")
    path.chmod(0)
    with pytest.raises(PermissionError):
        list(shardfeed.Stream(path))


def test_directory_instead_of_a_file(tmp_path):
    with pytest.raises(shardfeed.Error, match=r"help: |irectory"):
        list(shardfeed.Stream(tmp_path))


def test_error_names_shard_offset_cause_and_help(tmp_path):
    path = tar_of(20, tmp_path / "t.tar")
    data = bytearray(path.read_bytes())
    data[4 * 1024 + 148] ^= 0xFF  # the checksum of the fifth header
    path.write_bytes(data)
    with pytest.raises(shardfeed.FormatError) as caught:
        list(shardfeed.Stream(path))
    assert str(path) in str(caught.value)
    assert caught.value.offset == 4 * 1024
    assert "help: " in str(caught.value)


def test_samples_before_a_fault_come_first_and_the_fault_repeats(tmp_path):
    good = tar_of(100, tmp_path / "good.tar")
    bad = tmp_path / "bad.tar"
    bad.write_bytes(good.read_bytes()[: 50 * 2048 + 700])
    iterator = iter(shardfeed.Stream([good, bad]))
    seen = []
    with pytest.raises(EOFError):
        seen.extend(sample.key for sample in iterator)
    assert seen[:100] == [f"{n:06d}" for n in range(100)]
    assert seen[100:] == [f"{n:06d}" for n in range(50)]
    for _ in range(3):
        with pytest.raises(shardfeed.TruncatedError):
            next(iterator)


def test_epoch_after_an_error_starts_again(tmp_path):
    path = tmp_path / "t.tar"
    whole = tar_of(10, path).read_bytes()
    path.write_bytes(whole[:5000])
    stream = shardfeed.Stream(path)
    for _ in range(2):
        with pytest.raises(shardfeed.TruncatedError):
            list(stream)
    path.write_bytes(whole)
    assert len(list(stream)) == 10


def sweep(path, whole: bytes, cuts, complete: list[str], end: int) -> None:
    for cut in cuts:
        path.write_bytes(whole[:cut])
        seen = []
        try:
            for sample in shardfeed.Stream(path):
                seen.append(sample.key)
        except shardfeed.Error as error:
            assert seen == complete[: len(seen)], cut
            assert error.code_name in ("TRUNCATED", "FORMAT"), cut
        else:
            assert cut >= end, f"{cut} of {len(whole)} bytes ended without an error"
            assert seen == complete, cut


def test_no_prefix_of_a_tar_is_silently_short(tmp_path):
    path = write_tar(tmp_path / "t.tar", numbered(0, 2))
    whole = path.read_bytes()
    # Complete after the two zero blocks; tarfile pads to 10,240 bytes with more of them.
    sweep(path, whole, range(0, len(whole), 7), ["000000", "000001"], 8 * 512 + 1024)


@pytest.mark.slow
def test_no_prefix_at_all_is_silently_short(tmp_path):
    path = write_tar(tmp_path / "t.tar", numbered(0, 2))
    whole = path.read_bytes()[: 8 * 512 + 1024 + 512]  # what tarfile adds are more zeros
    complete = ["000000", "000001"]
    sweep(path, whole, range(len(whole) + 1), complete, 8 * 512 + 1024)
    squeezed = gzip.compress(whole)
    sweep(path, squeezed, range(len(squeezed) + 1), complete, len(squeezed))


def test_no_prefix_of_a_compressed_tar_is_silently_short(tmp_path):
    for mode in ("w:gz", "w:bz2", "w:xz"):
        path = write_tar(tmp_path / "t.tar", numbered(0, 2), mode=mode)
        whole = path.read_bytes()
        sweep(path, whole, range(len(whole) + 1), ["000000", "000001"], len(whole))


def test_failed_child(tmp_path):
    path = tar_of(5, tmp_path / "t.tar")
    with pytest.raises(ChildProcessError) as caught:
        list(shardfeed.Stream([f"pipe:cat {path}; echo oops >&2; exit 3"]))
    assert "oops" in str(caught.value)
    assert "3" in str(caught.value)


def test_silent_child_is_an_error_and_no_endless_wait():
    iterator = iter(shardfeed.Stream(["pipe:sleep 20"], pipe_timeout=0.2, timeout=5))
    for _ in range(2):
        with pytest.raises(shardfeed.ChildError, match=r"pipe_timeout"):
            next(iterator)


def test_limit_names_the_option(tmp_path):
    path = write_tar(tmp_path / "t.tar", [("1.bin", bytes(5000))])
    with pytest.raises(shardfeed.LimitError, match="max_member"):
        list(shardfeed.Stream(path, max_member="4KiB"))


def test_pipes_are_refused_when_secure(monkeypatch):
    with pytest.raises(shardfeed.UsageError, match="secure"):
        list(shardfeed.Stream(["pipe:echo"], secure=True))
    monkeypatch.setenv("SHARDFEED_SECURE", "1")
    with pytest.raises(shardfeed.UsageError):
        list(shardfeed.Stream(["pipe:echo"]))


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_cut_compressed_shard_says_what_to_do(tmp_path, mode):
    path = write_tar(tmp_path / "s.tar.x", numbered(0, 40, 5000), mode=mode)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(EOFError, match="help: copy it again, or use on_error=skip_shard"):
        list(shardfeed.Stream(path))
    # Nothing of it is verified, so nothing is delivered, and no other shard could be opened.
    with pytest.raises(shardfeed.TruncatedError, match="no shard of this pass could be opened"):
        list(shardfeed.Stream(path, on_error="skip_shard", log=None))
    whole = write_tar(tmp_path / "whole.tar", numbered(0, 3))
    assert len(list(shardfeed.Stream([path, whole], on_error="skip_shard", log=None))) == 3


def test_no_message_names_a_function_of_c(tmp_path):
    told = pytest.raises(shardfeed.UsageError, match=r"write_index.*; help: .* as a dataset")
    with told as caught:
        shardfeed.Writer(tmp_path / "a.tar", unsafe_names="allow", write_index=True)
    assert "shf_" not in str(caught.value)

    path = tar_of(9, tmp_path / "t.tar")
    with shardfeed.Stream(path) as stream:
        next(iter(stream))
        state = stream.state_dict()
    blob = bytearray(base64.b64decode(state["state"]))
    blob[len(blob) // 2] ^= 1
    state["state"] = base64.b64encode(blob).decode()
    told = pytest.raises(shardfeed.Error, match=r"saved state.*; help: restore the state as it was")
    with shardfeed.Stream(path) as stream, told as caught:
        stream.load_state_dict(state)
        next(iter(stream))
    assert "shf_" not in str(caught.value)


def test_texts_of_the_library_name_no_function_of_c():
    """But those for who calls one in C: all of src/api, and these."""
    of_c = (
        "shf_requests_call: no function, or more than eight arguments",
        "see shf_source in shardfeed.h",
        ", which is not sizeof(shf_source)",
        "see shf_tokenizer in shardfeed.h",
        ", which is not sizeof(shf_tokenizer)",
    )
    sources = Path(__file__).parents[2] / "src"
    found = []
    for source in [*sources.rglob("*.cpp"), *sources.rglob("*.h")]:
        if source.parent.name not in ("api", "cli"):
            for line in source.read_text().splitlines():
                texts = [] if line.startswith(("#", "//")) else re.findall(r'"([^"]*)"', line)
                found += [text for text in texts if re.search(r"\bshf_[a-z]", text)]
    assert found
    assert not set(found) - set(of_c)
