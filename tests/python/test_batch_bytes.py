"""Columns of bytes, texts and objects, and hooks."""

from __future__ import annotations

import json
import pickle
import sys
import threading

import msgpack
import pytest
import shardfeed
from batches import rows_tar

OBJECTS = [{"box": [1, 2]}, [], "é", None, 5.5]


@pytest.fixture
def batch(tmp_path):
    rows = [
        {
            "json": json.dumps(value).encode(),
            "mp": msgpack.packb(value),
            "txt": f"é{n}".encode(),
            "bin": bytes([n]) * n,
        }
        for n, value in enumerate(OBJECTS)
    ]
    (batch,) = shardfeed.Stream(rows_tar(tmp_path / "t.tar", rows)).batches(10)
    return batch


def test_items(batch):
    assert list(batch["json"]) == OBJECTS
    assert list(batch["mp"]) == OBJECTS
    assert batch["txt"].tolist() == ["é0", "é1", "é2", "é3", "é4"]
    assert list(batch["bin"]) == [bytes([n]) * n for n in range(5)]
    assert (batch["json"][-5], batch["txt"][1:3]) == (OBJECTS[0], ["é1", "é2"])
    with pytest.raises(IndexError):
        batch["txt"][5]
    assert [batch[name].kind for name in batch] == ["json", "msgpack", "text", "bytes"]
    assert repr(batch["mp"]) == "<shardfeed.BytesColumn 5 rows msgpack>"


def test_raw_bytes(batch):
    assert batch["json"].raw[0] == b'{"box": [1, 2]}'
    assert batch["mp"].raw[1] == msgpack.packb([])
    assert batch["bin"].values.tobytes() == b"\1\2\2\3\3\3\4\4\4\4"
    assert batch["bin"].offsets.tolist() == [0, 0, 1, 3, 6, 10]
    assert batch["bin"].values.dtype == "u1"


@pytest.mark.parametrize(
    ("field", "bad"), [("json", b"{"), ("json", b"\xff"), ("mp", b"\xc1"), ("json", b"")]
)
def test_bad_object_is_an_error_of_its_row(tmp_path, field, bad):
    good = b"\x01" if field == "mp" else b"1"
    path = rows_tar(tmp_path / "t.tar", [{field: good}, {field: bad}, {field: good}])
    (batch,) = shardfeed.Stream(path).batches(3)
    with pytest.raises(shardfeed.FormatError, match=rf"t\.tar: 000001\.{field}: not"):
        batch[field][1]
    assert batch[field][0] == batch[field][2] == 1
    assert batch[field].raw[1] == bad


def test_text_is_checked(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"txt": b"a"}, {"txt": b"\xff"}])
    with pytest.raises(shardfeed.FormatError, match=r"000001\.txt.*UTF-8"):
        list(shardfeed.Stream(path).batches(3))
    (batch,) = shardfeed.Stream(path).batches(3, decode="txt:bytes")
    assert batch["txt"][1] == b"\xff"


def test_msgpack_without_the_package(batch, monkeypatch):
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(ModuleNotFoundError, match="pip install msgpack"):
        batch["mp"][0]
    assert batch["mp"].raw[3] == b"\xc0"


# ---- Hooks ----


@pytest.fixture
def sounds(tmp_path):
    rows = [{"left.ogg": b"L%d" % n, "ogg": b"M%d" % n, "cls": b"1"} for n in range(4)]
    return rows_tar(tmp_path / "t.tar", rows)


def test_hooks_make_a_list_in_the_thread_of_the_caller(sounds):
    threads = set()

    def decode(data: bytes) -> str:
        threads.add(threading.get_ident())
        assert type(data) is bytes
        return data.decode()

    first, second = shardfeed.Stream(sounds).batches(3, hooks={"ogg": decode})
    assert not threads  # until a column is asked for
    assert first["ogg"] == ["M0", "M1", "M2"]
    assert second["left.ogg"] == ["L3"]  # by its suffix
    assert first["ogg"] is first["ogg"]
    assert threads == {threading.get_ident()}
    (batch,) = shardfeed.Stream(sounds).batches(4, hooks={"left.ogg": len})
    assert batch["left.ogg"] == [2] * 4
    assert batch["ogg"][0] == b"M0"


def test_error_of_a_hook_comes_from_the_column(sounds):
    def fail(data: bytes) -> None:
        raise OSError("no sound")

    (batch,) = shardfeed.Stream(sounds).batches(4, hooks={"ogg": fail})
    with pytest.raises(OSError, match="no sound"):
        batch["ogg"]
    assert batch["cls"].tolist() == [1] * 4


def test_hooks_that_fit_no_column(sounds):
    batches = shardfeed.Stream(sounds).batches(4, hooks={"wav": len})
    for _ in range(2):
        with pytest.raises(shardfeed.UsageError, match=r"'wav'.*'left\.ogg', 'ogg', 'cls'"):
            next(batches)
    with pytest.raises(shardfeed.UsageError, match='"cls" is array'):
        next(shardfeed.Stream(sounds).batches(4, hooks={"cls": len}))


@pytest.fixture
def pickles(tmp_path):
    rows = [{"pyd": pickle.dumps({"n": n}), "pth": b"?"} for n in range(3)]
    return rows_tar(tmp_path / "t.tar", rows)


def test_nothing_is_unpickled_unasked(pickles):
    (batch,) = shardfeed.Stream(pickles).batches(3)
    assert batch["pyd"][1] == pickle.dumps({"n": 1})
    assert batch["pth"][0] == b"?"


def test_unpickling_on_request(pickles):
    (batch,) = shardfeed.Stream(pickles).batches(3, hooks={"pyd": "pickle"})
    assert batch["pyd"] == [{"n": 0}, {"n": 1}, {"n": 2}]
    with pytest.raises(shardfeed.UsageError, match="unknown hook"):
        shardfeed.Stream(pickles).batches(3, hooks={"pyd": "dill"})


@pytest.mark.parametrize("secure", [True, "on", "yes", "environment"])
def test_unpickling_is_refused_in_secure_mode(pickles, monkeypatch, secure):
    options = {"secure": secure}
    if secure == "environment":
        monkeypatch.setenv("SHARDFEED_SECURE", "1")
        options = {}
    with pytest.raises(shardfeed.UsageError, match="refused in secure mode"):
        shardfeed.Stream(pickles, **options).batches(3, hooks={"pyd": "pickle"})
    data = shardfeed.Dataset(pickles, index="memory", **options)
    with pytest.raises(shardfeed.UsageError, match="refused in secure mode"):
        data.batch([0], hooks={"pyd": "pickle"})
    assert data.batch([0], hooks={"pyd": len})["pyd"] == [len(pickle.dumps({"n": 0}))]


def test_what_msgpack_says_nothing_of_has_a_cause(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"mp": b"\xc1"}, {"mp": b"\x91" * 2000}])
    (batch,) = shardfeed.Stream(path).batches(2)
    for row, cause in ((0, "a byte that begins no value"), (1, "nested too deep")):
        with pytest.raises(shardfeed.FormatError, match=f"not msgpack: {cause}; help"):
            batch["mp"][row]


def test_a_missing_field_lists_those_that_are_there(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"jpeg": b"1", "cls": b"2"}])
    with pytest.raises(shardfeed.FormatError, match=r"no field of this name, but jpeg, cls; help"):
        list(shardfeed.Stream(path).batches(2, decode="jpg:bytes, cls"))
    many = rows_tar(tmp_path / "m.tar", [{f"f{n}": b"" for n in range(20)}])
    with pytest.raises(shardfeed.FormatError, match=r"but f0, .*, f11 and 8 more; help"):
        list(shardfeed.Stream(many).batches(2, decode="jpg:bytes"))
