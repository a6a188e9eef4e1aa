"""Shards that a Writer makes are what went in, for this library and for others."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import threading
import zipfile

import numpy as np
import pytest
import shardfeed


def samples_of(urls, **options):
    with shardfeed.Stream(urls, **options) as stream:
        return [(sample.key, sample.to_dict()) for sample in stream]


def test_values_are_encoded_by_suffix_and_come_back(tmp_path):
    array = np.arange(12, dtype="<f4").reshape(3, 4)
    sample = {
        "__key__": "a/0001",
        "__url__": "left out",
        "bytes": b"raw",
        "cls": np.int64(7),
        "txt": "grün",
        "json": {"a": [1, 2.5]},
        "mp": {"b": 3},
        "npy": array,
        "x.npz": {"left": array},
        "ten": [array, np.arange(3, dtype="i4")],
        "pyd": ("p", 1),
        "note.txt.gz": "packed",
        "seg.png": np.full((2, 3, 3), 128, np.uint8),
        "jpg": np.full((8, 8, 3), 0.5),
    }
    with shardfeed.Writer(tmp_path / "a.tar") as writer:
        writer.write(sample)
    ((key, fields),) = samples_of(str(tmp_path / "a.tar"))
    assert key == "a/0001"
    assert list(fields) == [name for name in sample if not name.startswith("_")]
    assert fields["bytes"] == b"raw"
    assert fields["cls"] == b"7"
    assert fields["txt"].decode() == "grün"
    assert json.loads(fields["json"]) == {"a": [1, 2.5]}
    msgpack = pytest.importorskip("msgpack")
    assert msgpack.unpackb(fields["mp"]) == {"b": 3}
    assert (np.load(io.BytesIO(fields["npy"])) == array).all()
    # The decoders of webdataset take what is written.
    webdataset = pytest.importorskip("webdataset")
    (decoded,) = webdataset.WebDataset(
        str(tmp_path / "a.tar"), shardshuffle=False, empty_check=False
    ).decode("rgb8")
    assert (decoded["x.npz"]["left"] == array).all()
    assert [part.tolist() for part in decoded["ten"]] == [array.tolist(), [0, 1, 2]]
    assert decoded["pyd"] == ("p", 1)
    assert decoded["cls"] == 7
    assert decoded["note.txt.gz"] in ("packed", b"packed")
    assert (decoded["seg.png"] == 128).all()
    assert abs(decoded["jpg"].astype(int) - 128).max() <= 1


def test_an_encoder_of_ones_own_comes_first(tmp_path):
    with shardfeed.Writer(
        tmp_path / "a.tar", encoder={"json": lambda _value: b"mine", "abc": lambda v: v * 2}
    ) as writer:
        writer.write({"__key__": "1", "json": {}, "abc": b"x", "cls": 3})
    assert samples_of(str(tmp_path / "a.tar")) == [
        ("1", {"json": b"mine", "abc": b"x", "cls": b"3"})
    ]
    with shardfeed.Writer(
        tmp_path / "b.tar", encoder=lambda s: {"__key__": s["__key__"], "n": b"%d" % s["v"]}
    ) as writer:
        writer.write({"__key__": "1", "v": 5})
    assert samples_of(str(tmp_path / "b.tar")) == [("1", {"n": b"5"})]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"jpg": b""}, "__key__"),
        ({"__key__": 5, "jpg": b""}, "__key__"),
        ({"__key__": "a", "xyz": 1.5}, "nothing encodes float for the suffix 'xyz'"),
        ({"__key__": "a", "json": object()}, "not JSON serializable"),
        ({"__key__": "a", "jpg": np.full((2, 2, 3), 7.0)}, "from 0 to 1"),
        ({"__key__": "a", "npy": np.array([object()])}, "pickle"),
        ({"__key__": "a.b", "txt": "x"}, "dot in its last component"),
        ({"__key__": "a"}, "no fields"),
    ],
)
def test_a_bad_sample_is_refused_and_the_next_one_is_written(tmp_path, sample, said):
    with shardfeed.Writer(tmp_path / "a.tar") as writer:
        writer.write({"__key__": "0", "txt": "x"})
        with pytest.raises(shardfeed.UsageError, match=said.replace("__", "__")) as caught:
            writer.write(sample)
        assert "help: " in str(caught.value)
        writer.write({"__key__": "1", "txt": "y"})
    assert [key for key, _ in samples_of(str(tmp_path / "a.tar"))] == ["0", "1"]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_threads_that_encode_keep_the_order(tmp_path, threads):
    with shardfeed.Writer(
        tmp_path / "a-%02d.tar", encode_threads=threads, max_samples=30, index=True
    ) as writer:
        writer.write_all({"__key__": f"{i:03}", "json": {"i": i}} for i in range(100))
    assert [shard.samples for shard in writer.shards] == [30, 30, 30, 10]
    data = shardfeed.Dataset(str(tmp_path / "a-{00..03}.tar"), index="require")
    assert [json.loads(bytes(data[i]["json"]))["i"] for i in range(100)] == list(range(100))


def test_an_exception_discards_and_the_end_of_the_block_publishes(tmp_path):
    def fail_half_way():
        with shardfeed.Writer(tmp_path / "a.tar") as writer:
            writer.write({"__key__": "0", "txt": "x"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert list(tmp_path.iterdir()) == []
    writer = shardfeed.Writer(tmp_path / "a.tar")
    writer.write({"__key__": "0", "txt": "x"})
    assert not (tmp_path / "a.tar").exists()
    writer.finish()
    (shard,) = writer.shards
    assert shard.url == str(tmp_path / "a.tar")
    data = (tmp_path / "a.tar").read_bytes()
    assert (shard.bytes, shard.samples, shard.payload) == (len(data), 1, 1)
    xxhash = pytest.importorskip("xxhash")
    assert shard.digest == xxhash.xxh3_128_hexdigest(data)
    with pytest.raises(shardfeed.UsageError, match="closed"):
        writer.write({"__key__": "1", "txt": "x"})
    with pytest.raises(shardfeed.Error, match="overwrite=true") as caught:
        shardfeed.Writer(tmp_path / "a.tar").write({"__key__": "1", "txt": "x"})
    assert isinstance(caught.value, FileExistsError) or caught.value.errno == 17


def test_each_published_shard_is_reported(tmp_path):
    reported = []
    with shardfeed.Writer(
        tmp_path / "a-%d.tar", max_samples=2, on_shard=reported.append, first_shard=5
    ) as writer:
        writer.write_all({"__key__": str(i), "txt": "x"} for i in range(5))
    assert [shard.url for shard in reported] == [str(tmp_path / f"a-{i}.tar") for i in (5, 6, 7)]
    assert reported == writer.shards


def test_files_become_samples(tmp_path):
    (tmp_path / "image").write_bytes(b"jpeg" * 1_000_000)
    (tmp_path / "label").write_bytes(b"7")
    with shardfeed.Writer(tmp_path / "a.zip") as writer:
        writer.write_files("a", {"jpg": tmp_path / "image", "cls": tmp_path / "label"})
        with pytest.raises(FileNotFoundError):
            writer.write_files("b", {"jpg": tmp_path / "none"})
        writer.write_files("b", {"cls": f"file://{tmp_path}/label"})
        with pytest.raises(FileNotFoundError, match="file:///none"):
            writer.write_files("c", {"cls": "file:///none"})
    assert samples_of(str(tmp_path / "a.zip")) == [
        ("a", {"jpg": b"jpeg" * 1_000_000, "cls": b"7"}),
        ("b", {"cls": b"7"}),
    ]


def odd_samples():
    """Names and sizes at the borders of the formats."""
    keys = ["a", "a b", "ä/ö", "d/" * 60 + "e", "x" * 99, "x" * 96, "y" * 150 + "/" + "z" * 96,
            "w" * 250, "p" * 155 + "/" + "q" * 96, "v" * 156 + "/" + "q"]  # fmt: skip
    for number, key in enumerate(keys):
        yield {"__key__": key, "txt": f"{number}", "bin": bytes(511 + number % 3)}


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.bz2", "tar.xz"])
def test_tars_are_what_other_programs_read(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    with shardfeed.Writer(path) as writer:
        writer.write_all(odd_samples())
    wanted = {
        f"{s['__key__']}.{name}": value.encode() if isinstance(value, str) else value
        for s in odd_samples()
        for name, value in s.items()
        if name != "__key__"
    }
    with tarfile.open(path) as tar:
        assert {m.name: tar.extractfile(m).read() for m in tar} == wanted
        assert all((m.mode, m.uid, m.gid, m.mtime) == (0o644, 0, 0, 0) for m in tar.getmembers())
    for program in ("tar", "bsdtar"):
        if shutil.which(program):
            done = subprocess.run(
                [program, "-tf", path], capture_output=True, text=True, check=True,
                env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
            )  # fmt: skip
            assert done.stderr == ""
            listed = done.stdout.splitlines()
            if program == "bsdtar":
                assert listed == list(wanted)
            assert len(listed) == len(wanted)


def test_zip_files_are_what_other_programs_read(tmp_path):
    path = tmp_path / "a.zip"
    with shardfeed.Writer(path) as writer:
        writer.write_all(odd_samples())
        writer.write({"__key__": "t", "txt": "compresses " * 1000, "jpg": bytes(5000)})
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert "ä/ö.txt" in archive.namelist()
        methods = {info.filename: info.compress_type for info in archive.infolist()}
    assert methods["t.txt"] == zipfile.ZIP_DEFLATED
    assert methods["t.jpg"] == zipfile.ZIP_STORED
    if shutil.which("unzip"):
        done = subprocess.run(["unzip", "-tqq", path], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_samples_of_a_stream_are_passed_on_as_they_are(tmp_path):
    with shardfeed.Writer(tmp_path / "a.tar") as writer:
        writer.write_all(odd_samples())
    with (
        shardfeed.Stream(str(tmp_path / "a.tar")) as stream,
        shardfeed.Writer(tmp_path / "b.tar") as writer,
    ):
        writer.write_all(stream)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_standard_output_and_one_thread_at_a_time(tmp_path, capfd):
    with shardfeed.Writer("-") as writer:
        writer.write({"__key__": "a", "txt": "x"})
    (tmp_path / "a.tar").write_bytes(capfd.readouterr().out.encode("latin-1"))
    assert samples_of(str(tmp_path / "a.tar")) == [("a", {"txt": b"x"})]

    inside, leave = threading.Event(), threading.Event()

    def wait(sample):
        inside.set()
        leave.wait()
        return sample

    with shardfeed.Writer(tmp_path / "b.tar", encoder=wait) as writer:
        thread = threading.Thread(target=writer.write, args=({"__key__": "a", "txt": b"x"},))
        thread.start()
        inside.wait()
        with pytest.raises(shardfeed.UsageError, match="in use"):
            writer.write({"__key__": "b", "txt": b"x"})
        leave.set()
        thread.join()
    assert [key for key, _ in samples_of(str(tmp_path / "b.tar"))] == ["a"]


def test_on_shard_is_called_once_for_each_shard_also_when_shards_are_looked_at(tmp_path):
    reported = []
    with shardfeed.Writer(
        tmp_path / "a-%d.tar", max_samples=1, on_shard=reported.append, durable=False
    ) as writer:
        for i in range(20):
            writer.write({"__key__": str(i), "txt": "x"})
            assert len(writer.shards) <= 20
    assert reported == writer.shards
    assert len(reported) == 20


def test_a_buffer_that_is_filled_again_is_written_as_it_was(tmp_path):
    buffer = bytearray(4)
    with shardfeed.Writer(tmp_path / "a.tar", encode_threads=2) as writer:
        for i in range(50):
            buffer[:] = b"%04d" % i
            writer.write({"__key__": f"{i:02}", "bin": buffer})
    assert [fields["bin"] for _, fields in samples_of(str(tmp_path / "a.tar"))] == [
        b"%04d" % i for i in range(50)
    ]


def test_a_sample_that_cannot_be_encoded_by_a_thread_costs_itself_alone(tmp_path):
    refused = 0
    with shardfeed.Writer(tmp_path / "a.tar", encode_threads=2) as writer:
        for i in range(40):
            try:
                writer.write({"__key__": f"{i:02}", "json": object() if i == 20 else i})
            except shardfeed.UsageError:
                refused += 1
    keys = [key for key, _ in samples_of(str(tmp_path / "a.tar"))]
    assert refused == 1
    assert keys == [f"{i:02}" for i in range(40) if i != 20]


def test_a_close_during_a_call_of_another_thread_ends_it(tmp_path):
    inside, leave = threading.Event(), threading.Event()

    def wait(sample):
        inside.set()
        leave.wait()
        return sample

    caught = []

    def write(writer):
        try:
            writer.write({"__key__": "a", "txt": b"x"})
        except shardfeed.Error as error:
            caught.append(type(error))

    writer = shardfeed.Writer(tmp_path / "a.tar", encoder=wait)
    thread = threading.Thread(target=write, args=(writer,))
    thread.start()
    inside.wait()
    writer.close()
    leave.set()
    thread.join()
    assert caught in ([shardfeed.UsageError], [shardfeed.CancelledError])
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_cannot_write_and_does_not_hang(tmp_path):
    writer = shardfeed.Writer(tmp_path / "a.tar", encode_threads=1)
    writer.write({"__key__": "a", "json": 1})
    child = os.fork()
    if child == 0:
        try:
            writer.finish()
        except shardfeed.ForkedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    writer.finish()
    assert [key for key, _ in samples_of(str(tmp_path / "a.tar"))] == ["a"]
