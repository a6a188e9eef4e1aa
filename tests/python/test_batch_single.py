"""Single samples decoded, and batches of datasets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar


@pytest.fixture
def url(tmp_path):
    rows = [
        {
            "x.npy": npy(np.full((2, 3), n)),
            "vec": npy(np.arange(n)),
            "cls": b"%d" % n,
            "txt": b"text",
            "json": b'{"n": %d}' % n,
            "bin": bytes([n]),
        }
        for n in range(10)
    ]
    return rows_tar(tmp_path / "t.tar", rows)


@pytest.fixture(params=["stream", "dataset"])
def sample(request, url):
    if request.param == "stream":
        return list(shardfeed.Stream(url))[7]
    return shardfeed.Dataset(url, index="memory")[7]


def test_array(sample):
    array = sample.array("x.npy")
    assert array.tolist() == [[7] * 3] * 2
    array[0, 0] = 1  # writable, and of its own
    assert sample.array("x.npy")[0, 0] == 7
    assert sample.array("vec", "npy").tolist() == list(range(7))
    assert sample.array("cls").shape == ()
    assert sample.array("cls") == 7
    assert sample.array("cls", "float").dtype == "f8"
    with pytest.raises(KeyError):
        sample.array("jpg")
    with pytest.raises(shardfeed.UsageError, match='"vec" is bytes'):
        sample.array("vec")
    with pytest.raises(shardfeed.FormatError, match=r"000007\.txt"):
        sample.array("txt", "npy")


def test_decode(sample):
    decoded = sample.decode()
    assert list(decoded) == ["x.npy", "vec", "cls", "txt", "json", "bin"]
    assert decoded["x.npy"].tolist() == [[7] * 3] * 2
    assert decoded["vec"] == bytes(sample["vec"])
    assert (decoded["cls"], decoded["txt"], decoded["bin"]) == (7, "text", b"\7")
    assert decoded["json"] == {"n": 7}
    assert sample.decode("vec:npy, cls:bytes")["vec"].tolist() == list(range(7))
    with pytest.raises(shardfeed.FormatError, match="jpg"):
        sample.decode("jpg:bytes")
    assert sample.decode("jpg:bytes, cls", missing="empty")["cls"] == 7
    with pytest.raises(shardfeed.LimitError, match="max_decoded"):
        sample.decode(max_decoded=10)


def test_a_pickled_sample_says_that_it_cannot(sample):
    with pytest.raises(shardfeed.UsageError, match="pickled"):
        pickle.loads(pickle.dumps(sample)).decode()


def test_an_array_outlives_its_sample(url):
    arrays = [sample.array("x.npy") for sample in shardfeed.Stream(url)]
    assert [array[1, 2] for array in arrays] == list(range(10))


def test_batch_of_a_dataset(url):
    data = shardfeed.Dataset(url, index="memory", decode="x.npy, cls, vec:npy", ragged="offsets")
    batch = data.batch([3, -1, 3, 0])
    assert batch["cls"].tolist() == [3, 9, 3, 0]
    assert batch["x.npy"][1].tolist() == [[9] * 3] * 2
    assert list(map(len, batch["vec"])) == [3, 9, 3, 0]
    assert batch.sample_keys == ["000003", "000009", "000003", "000000"]
    assert data.batch(range(10))["cls"].tolist() == list(range(10))
    assert data.batch(np.array([5, 6]))["cls"].tolist() == [5, 6]
    with pytest.raises(IndexError):
        data.batch([10])
    with pytest.raises(shardfeed.UsageError, match="no samples"):
        data.batch([])
    data.close()
    assert batch["cls"].tolist() == [3, 9, 3, 0]
    with pytest.raises(shardfeed.UsageError, match="closed"):
        data.batch([1])


def test_batch_of_a_dataset_with_the_same_samples_as_a_stream(url):
    options = {"decode": "x.npy, cls, txt"}
    (streamed,) = shardfeed.Stream(url, **options).batches(10)
    from batches import digest

    assert digest(shardfeed.Dataset(url, **options).batch(range(10))) == digest(streamed)


def test_a_bad_row_of_a_dataset(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"cls": b"1"}, {"cls": b"dog"}])
    data = shardfeed.Dataset(path, index="memory")
    assert data.batch([0])["cls"].tolist() == [1]
    with pytest.raises(shardfeed.FormatError, match=r"000001\.cls"):
        data.batch([0, 1])
