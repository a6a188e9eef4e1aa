"""Arrays and samples as messages of ZeroMQ: against sockets of pyzmq, and tensorcom itself."""

from __future__ import annotations

import io
import multiprocessing
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import shardfeed
from shardfeed.tensorcom import Address, Connection, SampleReceiver, SampleSender

zmq = pytest.importorskip("zmq")

PATIENT = 30.0


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A path for a socket of this test alone."""
    return str(tmp_path / "socket")


@pytest.fixture
def raw() -> Iterator[Any]:
    """Sockets of pyzmq itself: raw(kind)."""
    with zmq.Context() as context:
        sockets = []

        def make(kind: int) -> Any:
            made = context.socket(kind)
            made.linger = 0
            made.rcvtimeo = made.sndtimeo = int(PATIENT * 1000)
            sockets.append(made)
            return made

        yield make
        for one in sockets:
            one.close()


def run(*words: object, wait: bool = True) -> Any:
    command = [sys.executable, "-m", "shardfeed.tensorcom", *map(str, words)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return finished(started) if wait else started


def finished(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = started.communicate(timeout=PATIENT)
    return started.returncode, out, err


@pytest.mark.parametrize(
    ("scheme", "kind", "binds"),
    [
        ("zpush", "PUSH", False),
        ("zpull", "PULL", True),
        ("zpub", "PUB", True),
        ("zsub", "SUB", False),
        ("zrpush", "PUSH", True),
        ("zrpull", "PULL", False),
        ("zrpub", "PUB", False),
        ("zrsub", "SUB", True),
    ],
)
def test_the_schemes(scheme: str, kind: str, binds: bool) -> None:
    assert Address.parse(f"{scheme}://h:1") == Address(kind, binds, "tcp://h:1", "")
    assert Address.parse(f"{scheme}+ipc:///a/b#top") == Address(kind, binds, "ipc:///a/b", "top")
    assert Address.parse(f"{scheme}+inproc://x").location == "inproc://x"
    assert Address.parse(f"{scheme}://h:1").sends is (kind in ("PUSH", "PUB"))


@pytest.mark.parametrize("url", ["", "zpush", "zpush:h:1", "zpsh://h:1", "tcp://h:1", "zpush://"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(shardfeed.UsageError, match=r"no address of ZeroMQ.*help: .*zpush zpull"):
        Address.parse(url)


ARRAYS = [
    *(
        (np.arange(24) * 3).astype(f"{kind}{size}").reshape(2, 3, 4)
        for kind, sizes in (("f", (2, 4, 8)), ("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)))
        for size in sizes
    ),
    np.float32(2.5) * np.ones(()),
    np.empty((0, 7), "u1"),
    np.arange(12, dtype=">i4").reshape(3, 4)[:, ::2],
]


@pytest.mark.parametrize("multipart", [True, False])
@pytest.mark.parametrize(("send", "receive"), [("zpush", "zpull"), ("zrpush", "zrpull")])
def test_arrays_come_as_they_were(place: str, multipart: bool, send: str, receive: str) -> None:
    with (
        Connection(f"{receive}+ipc://{place}", multipart=multipart, timeout=PATIENT) as receiver,
        Connection(f"{send}+ipc://{place}", multipart=multipart, allow64=True) as sender,
    ):
        sender.send(ARRAYS)
        came = receiver.recv()
    assert len(came) == len(ARRAYS)
    for before, after in zip(ARRAYS, came):
        assert after.dtype == before.dtype.newbyteorder("=")
        assert after.shape == before.shape
        np.testing.assert_array_equal(after, before)
    assert sender.stats.bytes == receiver.stats.bytes == sum(array.nbytes for array in ARRAYS)


def test_the_frames_are_those_of_the_format(place: str, raw: Callable[[int], Any]) -> None:
    pull = raw(zmq.PULL)
    pull.bind(f"ipc://{place}")
    array = np.arange(6, dtype="u4").reshape(2, 3)
    with Connection(f"zpush+ipc://{place}", infos=["image", "cls"]) as sender:
        sender.send([array, np.float16([1, 2])])
        frames = pull.recv_multipart()
    assert len(frames) == 4
    assert frames[0] == b"u4".ljust(8, b"\0") + b"image\0\0\0" + struct.pack("@qqq", 2, 2, 3)
    assert frames[1] == array.tobytes()
    assert frames[2] == b"f2".ljust(8, b"\0") + b"cls".ljust(8, b"\0") + struct.pack("@qq", 1, 2)
    with Connection(f"zpush+ipc://{place}", multipart=False) as sender:
        sender.send([array])
        (whole,) = pull.recv_multipart()
    assert whole[:16] == b"~TenBin~" + struct.pack("@q", 40)
    assert len(whole) == 16 + 64 + 16 + 64
    assert np.array_equal(shardfeed.wds.tenbin.decode_buffer(whole)[0], array)


@pytest.mark.parametrize("multipart", [True, False])
def test_tensorcom_is_at_the_other_end(place: str, multipart: bool) -> None:
    theirs = pytest.importorskip("tensorcom")
    arrays = [np.arange(24, dtype="u1").reshape(1, 2, 4, 3), np.array([7], "i4")]
    receiver = theirs.Connection(f"zpull+ipc://{place}", multipart=multipart)
    with Connection(f"zpush+ipc://{place}", multipart=multipart) as sender:
        sender.send(arrays)
        came = receiver.recv()
    receiver.close()
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(came, arrays))
    with Connection(f"zpull+ipc://{place}2", multipart=multipart, timeout=PATIENT) as mine:
        sender = theirs.Connection(f"zpush+ipc://{place}2", multipart=multipart)
        sender.send(arrays)
        came = mine.recv()
        sender.close()
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(came, arrays))


def test_all_of_several_addresses_are_read(place: str) -> None:
    senders = [Connection(f"zrpush+ipc://{place}{i}") for i in range(3)]
    with Connection(f"zrpull+ipc://{place}{{0..2}}", total=9, timeout=PATIENT) as receiver:
        for i, sender in enumerate(senders):
            for j in range(3):
                sender.send([np.array([10 * i + j], "i4")])
        came = sorted(int(one[0][0]) for one in receiver)
    for sender in senders:
        sender.close()
    assert came == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_what_is_on_its_way_is_not_dropped_by_close(place: str, raw: Callable[[int], Any]) -> None:
    sender = Connection(f"zpush+ipc://{place}", queue=100, linger=PATIENT)
    pull = raw(zmq.PULL)
    pull.bind(f"ipc://{place}")
    for i in range(50):
        sender.send([np.full(100_000, i, "u1")])
    sender.close()
    sender.close()
    assert [pull.recv_multipart()[1][0] for _ in range(50)] == list(range(50))


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
@pytest.mark.parametrize("scheme", ["zpush", "zrpush"])
def test_a_full_receiver_gets_what_a_sender_that_ended_has_sent(
    scheme: str, transport: str, place: str, tmp_path: Path
) -> None:
    where = f"+ipc://{place}" if transport == "ipc" else f"://127.0.0.1:{free_port()}"
    program = (
        "import sys, numpy, shardfeed.tensorcom as t\n"
        "with t.Connection(sys.argv[1], queue=100) as sender:\n"
        "    for i in range(60): sender.send([numpy.full(1000, i, 'u1')])\n"
    )
    reading = {"zpush": "zpull", "zrpush": "zrpull"}[scheme]
    with Connection(reading + where, queue=2, timeout=PATIENT) as receiver:
        sender = subprocess.Popen([sys.executable, "-c", program, scheme + where])
        came = [int(receiver.recv()[0][0])]
        time.sleep(0.5)  # all is written, and the queue is full
        came += [int(receiver.recv()[0][0]) for _ in range(59)]
    assert came == list(range(60))
    assert sender.wait(timeout=PATIENT) == 0


def sent_before_it_is_full(sender: Connection) -> int:
    for sent in range(1000):
        try:
            sender.send([np.zeros(1_000_000, "u1")])
        except shardfeed.TimeoutError:
            return sent
    return 1000


def test_a_sender_waits_for_a_slow_receiver(place: str) -> None:
    with Connection(f"zrpush+ipc://{place}", queue=2, timeout=0.2, linger=0) as sender:
        with pytest.raises(
            shardfeed.TimeoutError, match=r"no receiver at ipc://.*help: see whether"
        ):
            sender.send([np.zeros(10, "u1")])
        with Connection(f"zrpull+ipc://{place}", queue=2, timeout=PATIENT) as receiver:
            sent = sent_before_it_is_full(sender)
            assert 2 <= sent < 20  # the kernel holds some too
            for _ in range(sent):
                assert receiver.recv()[0].nbytes == 1_000_000


def test_a_topic_picks_messages(place: str) -> None:
    with (
        Connection(f"zpub+ipc://{place}", infos=["a"]) as sender,
        Connection(f"zsub+ipc://{place}#f4", timeout=PATIENT) as receiver,
    ):
        came: list[Any] = []
        reading = threading.Thread(target=lambda: came.append(receiver.recv()))
        reading.start()
        while reading.is_alive():  # until the subscription has arrived
            sender.send([np.zeros(3, "i4")])
            sender.send([np.ones(2, "f4")])
            time.sleep(0.01)
        reading.join()
    assert came[0][0].dtype == np.float32


def bad_messages() -> dict[str, list[bytes]]:
    good = b"u1".ljust(8, b"\0") + bytes(8) + struct.pack("@qq", 1, 4)
    return {
        "one frame": [b"hello"],
        "no data": [good],
        "short data": [good, b"abc"],
        "negative": [good[:24] + struct.pack("@q", -4), b"abcd"],
        "huge": [good[:24] + struct.pack("@q", 1 << 62), b"abcd"],
        "many dimensions": [good[:16] + struct.pack("@q", 1 << 40), b"abcd"],
        "dtype": [b"O8".ljust(8, b"\0") + good[8:], b"abcd"],
        "not ASCII": [b"\xff" * 8 + good[8:], b"abcd"],
        "odd header": [good + b"x", b"abcd"],
    }


@pytest.mark.parametrize("name", bad_messages())
def test_a_message_that_is_no_arrays_is_an_error_and_the_next_one_comes(
    name: str, place: str, raw: Callable[[int], Any]
) -> None:
    push = raw(zmq.PUSH)
    push.connect(f"ipc://{place}")
    push.send_multipart(bad_messages()[name])
    push.send_multipart([b"u1".ljust(8, b"\0") + bytes(8) + struct.pack("@qq", 1, 4), b"abcd"])
    with Connection(f"zpull+ipc://{place}", timeout=PATIENT) as receiver:
        with pytest.raises(shardfeed.FormatError, match=r"a message of \d+ bytes.*help: "):
            receiver.recv()
        assert receiver.recv()[0].tobytes() == b"abcd"


def test_wrong_use(place: str) -> None:
    with Connection(f"zpull+ipc://{place}", timeout=0.05) as receiver:
        with pytest.raises(
            shardfeed.UsageError, match=r"a PULL socket does not send; help: .*zpush"
        ):
            receiver.send([np.zeros(1, "u1")])
        with pytest.raises(shardfeed.TimeoutError, match=r"no message at ipc://.* within 0.05 s"):
            receiver.recv()
        with pytest.raises(shardfeed.UsageError, match="connected already"):
            receiver.connect(f"zpull+ipc://{place}")
    with pytest.raises(shardfeed.UsageError, match="not connected, or closed"):
        receiver.recv()
    with Connection(f"zpush+ipc://{place}", linger=0) as sender:
        with pytest.raises(ValueError, match="64 bit datatypes"):
            sender.send([np.zeros(1)])
        with pytest.raises(shardfeed.UsageError, match="without arrays"):
            sender.send([])
    with pytest.raises(shardfeed.UsageError, match="sockets of PULL and PUSH in one list"):
        Connection([f"zpull+ipc://{place}", f"zpush+ipc://{place}"])
    with pytest.raises(shardfeed.UsageError, match=r"cannot be bound: .*help: look at"):
        Connection("zpull+ipc:///not/there/socket")
    with pytest.raises(shardfeed.UsageError, match="converters='tf'; help: torch"):
        Connection(f"zpull+ipc://{place}", converters="tf")
    with pytest.raises(shardfeed.UsageError, match="samples are sent to"):
        SampleSender(f"zpull+ipc://{place}")
    with pytest.raises(shardfeed.UsageError, match="samples come from"):
        SampleReceiver(f"zpush+ipc://{place}")


def test_functions_are_taken_in_turn(place: str) -> None:
    with (
        Connection(
            f"zpull+ipc://{place}", batch_transforms=[None, lambda a: a + 1], timeout=PATIENT
        ) as receiver,
        Connection(f"zpush+ipc://{place}") as sender,
    ):
        sender.send([np.zeros(1, "i4")] * 3)
        assert [int(array[0]) for array in receiver.recv()] == [0, 1, 0]


@pytest.mark.slow
def test_a_data_set_of_pytorch(place: str) -> None:
    torch = pytest.importorskip("torch")
    from shardfeed.tensorcom import TensorcomDataset

    images = np.arange(2 * 4 * 5 * 3, dtype="u1").reshape(2, 4, 5, 3)
    dataset = TensorcomDataset(f"zrpull+ipc://{place}", 4, converters="torch", timeout=PATIENT)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)

    def serve() -> None:
        with Connection(f"zrpush+ipc://{place}", timeout=PATIENT) as sender:
            sender.serve([[images, np.array([3, 4], "i4")]] * 2)

    # Not before the worker was forked.
    rows = iter(loader)
    serving = threading.Thread(target=serve)
    serving.start()
    came = list(rows)
    serving.join()
    assert len(dataset) == 4
    assert len(came) == 2
    for pixels, classes in came:
        assert pixels.shape == (2, 3, 4, 5)
        assert torch.equal(pixels, torch.as_tensor(images).permute(0, 3, 1, 2))
        assert classes.dtype == torch.int64


def contents(samples: Any) -> list[tuple[str, dict[str, bytes]]]:
    return [
        (
            sample.key if isinstance(sample, shardfeed.Sample) else sample["__key__"],
            {name: bytes(data) for name, data in sample.items() if not name.startswith("_")},
        )
        for sample in samples
    ]


def test_samples_come_as_they_were(place: str, shards: Callable[..., str]) -> None:
    url = shards(2, 30)
    with SampleReceiver(f"zpull+ipc://{place}", timeout=PATIENT) as receiver:
        sent = []

        def send() -> None:
            with SampleSender(f"zpush+ipc://{place}") as sender:
                sender.send_all(shardfeed.Stream(url))
            sent.append(sender.sent)

        sending = threading.Thread(target=send)
        sending.start()
        came = contents(receiver)
        sending.join()
        assert list(receiver) == []
    assert came == contents(shardfeed.Stream(url))
    assert sent == [receiver.received] == [60]


def test_the_messages_of_samples_are_those_of_tarp(place: str, raw: Callable[[int], Any]) -> None:
    pull = raw(zmq.PULL)
    pull.bind(f"ipc://{place}")
    with SampleSender(f"zpush+ipc://{place}") as sender:
        sender.send({"__key__": "a/\udcff", "cls": 7, "txt": "é", "_meta": b"x"})
    first, end = (msgpack.unpackb(pull.recv()) for _ in range(2))
    assert first == {"__key__": b"a/\xff", "cls": b"7", "txt": "é".encode()}
    assert end == {"__EOF__": b"true"}


def test_each_sender_has_an_end_mark(place: str, raw: Callable[[int], Any]) -> None:
    push = raw(zmq.PUSH)
    with SampleReceiver(f"zpull+ipc://{place}", senders=2, timeout=PATIENT) as receiver:
        push.connect(f"ipc://{place}")
        for fields in (
            {"__key__": b"a", "x": b"1"},
            {"__EOF__": True},  # as tarproc marks it
            {"__key__": "b", "x": b"2"},
            {"__EOF__": b"true"},
        ):
            push.send(msgpack.packb(fields))
        assert contents(receiver) == [("a", {"x": b"1"}), ("b", {"x": b"2"})]


def fails_behind_a_sample(url: str) -> None:
    with SampleSender(url) as sender:
        sender.send({"__key__": "a", "x": b"1"})
        raise KeyError


def test_an_exception_sends_no_end_mark(place: str) -> None:
    with SampleReceiver(f"zpull+ipc://{place}", timeout=0.5) as receiver:
        with pytest.raises(KeyError):
            fails_behind_a_sample(f"zpush+ipc://{place}")
        with pytest.raises(shardfeed.TimeoutError):
            list(receiver)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ([b"\xc1"], "is no MessagePack"),
        ([msgpack.packb({"__key__": b"a"})[:-1]], "is no MessagePack"),
        ([msgpack.packb([1, 2])], "is no map of fields"),
        ([msgpack.packb({1: b""}, use_bin_type=True)], "is no MessagePack"),
        ([msgpack.packb({"x": b""})], "a sample without __key__, but with \\['x'\\]"),
        (
            [msgpack.packb({"__key__": b"a", "x": 1})],
            "field 'x' of the sample 'a' is no bytes but int",
        ),
        ([msgpack.packb({"__key__": b"a"}), b""], "a message of 2 frames"),
        ([b"\xdf\xff\xff\xff\xff"], "is no MessagePack"),
    ],
)
def test_a_message_that_is_no_sample(
    message: list[bytes], cause: str, place: str, raw: Callable[[int], Any]
) -> None:
    push = raw(zmq.PUSH)
    push.connect(f"ipc://{place}")
    push.send_multipart(message)
    push.send(msgpack.packb({"__key__": b"b", "x": b"2"}))
    with SampleReceiver(f"zpull+ipc://{place}", timeout=PATIENT) as receiver:
        with pytest.raises(shardfeed.FormatError, match=cause + r".*help: "):
            next(receiver)
        assert next(receiver) == {"__key__": "b", "x": b"2"}


def test_samples_between_commands(place: str, shards: Callable[..., str], tmp_path: Path) -> None:
    url = shards(2, 25)
    receiver = run(
        "receive", f"zpull+ipc://{place}", "-o", tmp_path / "out-%03d.tar", "--max-samples", 20,
        "--senders", 2, "-t", PATIENT, wait=False,
    )  # fmt: skip
    for shard in shardfeed.expand_urls(url):
        assert run("send", f"zpush+ipc://{place}", "-u", shard) == (0, "", "25 samples sent\n")
    assert finished(receiver) == (0, "", "50 samples received\n")
    read = contents(shardfeed.Stream(str(tmp_path / "out-{000..002}.tar")))
    assert sorted(read) == contents(shardfeed.Stream(url))


def test_a_command_says_what_is_wrong(place: str, tmp_path: Path) -> None:
    status, out, err = run("tensormon", f"zpull+ipc://{place}", "-t", "0.1")
    assert (status, out) == (1, "")
    assert err.startswith("shardfeed: no message at ipc://")
    status, out, err = run("send", "zpush:h", "-u", tmp_path / "none.tar")
    assert (status, out) == (1, "")
    assert err.startswith("shardfeed: no address of ZeroMQ: 'zpush:h'; help: ")
    status, out, err = run("serve-imagenet-dir", f"zpush+ipc://{place}", "-d", tmp_path)
    assert status == 1
    assert "no images in" in err


def images_in(folder: Path) -> None:
    from PIL import Image

    for number, name in enumerate(("cat", "dog")):
        (folder / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (60 + i, 40), (100 * number, 10 * i, 0)).save(
                folder / name / f"{i}.png"
            )


@pytest.mark.parametrize("server", ["serve-imagenet-dir", "serve-imagenet-shards"])
def test_images_are_served_monitored_and_shown(server: str, place: str, tmp_path: Path) -> None:
    images_in(tmp_path / "images")
    if server == "serve-imagenet-dir":
        source = ["-d", tmp_path / "images", "-S"]
    else:
        with shardfeed.Writer(str(tmp_path / "all.tar")) as writer:
            for path in sorted((tmp_path / "images").glob("*/*.png")):
                number = ("cat", "dog").index(path.parent.name)
                writer.write(
                    {"__key__": f"{number}{path.stem}", "png": path.read_bytes(), "cls": number}
                )
        source = ["-u", tmp_path / "all.tar"]
    where = f"zrpush+ipc://{place}"
    # The monitor, the statistics and the images take what they ask for, one after the other.
    serving = run(
        server, where, *source, "-b", 2, "--resize", 32, "--size", 24, "--epochs", 3, wait=False
    )
    reading = f"zrpull+ipc://{place}"
    with Connection(reading, total=6, timeout=PATIENT, queue=1) as receiver:
        batches = list(receiver)
    assert [list(classes) for _, classes in batches] == [[0, 0], [0, 1], [1, 1]]
    assert all(pixels.shape == (2, 24, 24, 3) and pixels.dtype == np.uint8 for pixels, _ in batches)
    assert [int(pixels[0, 5, 5, 0]) for pixels, _ in batches] == [0, 0, 100]
    serving.terminate()
    finished(serving)


def test_what_the_commands_print_of_messages(place: str, tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.zeros((2, 8, 6, 3), "u1")
    pixels[1] = 200
    for words, shown in [
        (["tensormon", "-c", 2, "-r", 1], r"2 messages, 0\.0 MB; "),
        (
            ["tensorstat", "-c", 1],
            "0: uint8 2x8x6x3 min 0 max 200 mean 100 std 100\n1: int32 2 min 3",
        ),
        (["tensorshow", "-c", 1, "-B", 2, "-o", tmp_path], f"{tmp_path}/000000-3.png\n"),
    ]:
        with Connection(f"zrpush+ipc://{place}", linger=0) as sender:
            reader = run(words[0], f"zrpull+ipc://{place}", *words[1:], "-t", PATIENT, wait=False)
            for _ in range(2):
                sender.send([pixels, np.array([3, 4], "i4")])
            status, out, _ = finished(reader)
        assert status == 0
        assert shown.replace("\\", "") in out
    assert np.asarray(Image.open(io.BytesIO((tmp_path / "000001-4.png").read_bytes()))).min() == 200


def sends_for_ever(url: str) -> None:
    with Connection(url, queue=4) as sender:
        for number in range(1_000_000_000):
            sender.send([np.full(50_000, number % 251, "u1"), np.array([number], "i4")])


def test_a_sender_that_is_killed_leaves_whole_messages(place: str) -> None:
    context = multiprocessing.get_context("spawn")
    killed = 0
    with Connection(f"zpull+ipc://{place}", timeout=PATIENT) as receiver:
        for round_ in range(5):
            sender = context.Process(target=sends_for_ever, args=(f"zpush+ipc://{place}",))
            sender.start()
            for _ in range(40 + round_):
                values, number = receiver.recv()
                assert (values == int(number[0]) % 251).all()
            sender.kill()
            sender.join()
            killed += 1
    assert killed == 5


def test_the_page_of_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    with shardfeed.Writer("train-%03d.tar", max_samples=20) as writer:
        for number in range(60):
            image = Image.new("RGB", (8, 8), (number, 0, 0))
            writer.write({"__key__": f"{number:03d}", "png": image, "cls": number})
    page = (Path(__file__).parents[2] / "docs/messages.md").read_text()
    found = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE
    )
    assert len(found) == 3
    names: dict[str, Any] = {}
    for program, shown in found:
        for port in ("7880", "7881", "7882"):
            program = program.replace(port, str(free_port()) if port in program else port)
        exec(compile(program, "docs/messages.md", "exec"), names)
        assert capsys.readouterr().out == shown


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def test_without_pyzmq_the_package_to_install_is_named() -> None:
    program = (
        "import sys; sys.modules['zmq'] = None\n"
        "import shardfeed.tensorcom\n"
        "try:\n    shardfeed.tensorcom.Connection('zpull://127.0.0.1:1')\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "messages of ZeroMQ need the package pyzmq; help: pip install 'shardfeed[tensorcom]'\n"
    )
