"""Messages of ZeroMQ as shards of streams and as targets of writers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import free_port

msgpack = pytest.importorskip("msgpack")
zmq = pytest.importorskip("zmq")

PATIENT = 60.0
SLOW_RECEIVER = """
import sys, time
import shardfeed
try:
    for sample in shardfeed.Stream(sys.argv[1], pipe_timeout="3s"):
        print(sample.key, flush=True)
        time.sleep(float(sys.argv[2]))
    print("end")
except shardfeed.ReadError:
    pass
"""
PAIRS = ["zpush zpull", "zrpush zrpull", "zpub zsub", "zrpub zrsub"]
Sample = tuple[str, dict[str, bytes]]


def samples(count: int, size: int = 100, first: int = 0) -> list[Sample]:
    return [
        (f"{number:06d}", {"cls": b"%d" % (number % 10), "seg.png": bytes([number % 256]) * size})
        for number in range(first, first + count)
    ]


def read(url: str | list[str], **options: Any) -> list[Sample]:
    stream = shardfeed.Stream(url, **{"pipe_timeout": "20s", **options})
    return [(s.key, {name: bytes(data) for name, data in s.items()}) for s in stream]


def write(url: str, wanted: list[Sample], **options: Any) -> None:
    with shardfeed.Writer(url, **{"pipe_timeout": "20s", **options}) as writer:
        for key, fields in wanted:
            writer.write({"__key__": key, **fields})


@pytest.fixture
def aside() -> Iterator[Callable[..., Future[Any]]]:
    """Runs a function in a thread: aside(function, *arguments)."""
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A path for a socket of this test alone."""
    return str(tmp_path / "socket")


@pytest.fixture
def raw() -> Iterator[Callable[..., Any]]:
    """A socket of pyzmq itself: raw(kind, bind=ADDRESS) or connect=."""
    with zmq.Context() as context:
        sockets = []

        def make(kind: int, bind: str = "", connect: str = "") -> Any:
            made = context.socket(kind)
            sockets.append(made)
            made.linger = 0
            made.rcvhwm = 2
            made.rcvtimeo = made.sndtimeo = int(PATIENT * 1000)
            made.bind(bind) if bind else made.connect(connect)
            return made

        yield make
        for one in sockets:
            one.close()


def packed(fields: dict[str, Any]) -> bytes:
    made: bytes = msgpack.packb(fields, use_bin_type=True)
    return made


END = packed({"__EOF__": b"true"})


# ---- Both sides are ours ------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("transport", ["", "+tcp", "+ipc"])
def test_every_pair(
    pair: str, transport: str, tmp_path: Path, aside: Callable[..., Future[Any]]
) -> None:
    sends, receives = (f"{scheme}{transport}://" for scheme in pair.split())
    where = str(tmp_path / "s") if transport == "+ipc" else f"127.0.0.1:{free_port()}"
    wanted = samples(300)
    reading = aside(read, receives + where)
    write(sends + where, wanted)
    assert reading.result(PATIENT) == wanted


@pytest.mark.parametrize("transport", ["", "+ipc"])
def test_a_sender_waits_until_all_is_read(
    transport: str, tmp_path: Path, aside: Callable[..., Future[Any]]
) -> None:
    """Its receiver comes later, and reads slowly."""
    where = str(tmp_path / "s") if transport else f"127.0.0.1:{free_port()}"
    wanted = samples(400, 20_000)
    writing = aside(write, f"zpush{transport}://{where}", wanted)
    time.sleep(0.2)
    found = []
    for sample in shardfeed.Stream(f"zpull{transport}://{where}"):
        found.append(sample.key)
        time.sleep(0.001)
    writing.result(PATIENT)
    assert found == [key for key, _ in wanted]


def test_fields_of_every_size(place: str, aside: Callable[..., Future[Any]]) -> None:
    sizes = [0, 1, 31, 32, 255, 256, 511, 512, 513, 65_535, 65_536, 3_000_000]
    wanted = [(f"k{size}", {"bin": b"x" * size, "b.c": b"y"}) for size in sizes]
    many = {f"f{number:03d}": b"%d" % number for number in range(300)}
    wanted += [("many", many), ("one", {"x": b"1"}), ("ä/€ " + "z" * 300, {"txt": b"1"})]
    reading = aside(read, f"zpull+ipc://{place}")
    write(f"zpush+ipc://{place}", wanted)
    assert reading.result(PATIENT) == wanted


def test_files_become_fields(place: str, tmp_path: Path, aside: Callable[..., Future[Any]]) -> None:
    """Large ones are read when the sample is sent."""
    large = tmp_path / "large"
    large.write_bytes(b"l" * 3_000_000)
    reading = aside(read, f"zpull+ipc://{place}")
    with shardfeed.Writer(f"zpush+ipc://{place}") as writer:
        writer.write_files("a", {"bin": large})
        writer.write({"__key__": "b", "txt": b"2"})
    assert reading.result(PATIENT) == [
        ("a", {"bin": large.read_bytes()}),
        ("b", {"txt": b"2"}),
    ]


def test_no_samples(place: str, aside: Callable[..., Future[Any]], raw: Any) -> None:
    reading = aside(read, f"zpull+ipc://{place}", allow_empty=True)
    raw(zmq.PUSH, connect=f"ipc://{place}").send(END)
    assert reading.result(PATIENT) == []


def test_several_senders(place: str, aside: Callable[..., Future[Any]]) -> None:
    parts = [samples(50, first=1000 * number) for number in range(3)]
    reading = aside(read, f"zpull+ipc://{place}", senders=3)
    writing = [aside(write, f"zpush+ipc://{place}", part) for part in parts]
    for one in writing:
        one.result(PATIENT)
    found = reading.result(PATIENT)
    for number, part in enumerate(parts):
        assert [s for s in found if int(s[0]) // 1000 == number] == part
    assert len(found) == 150


def test_several_shards(tmp_path: Path, aside: Callable[..., Future[Any]]) -> None:
    reading = aside(read, f"zpull+ipc://{tmp_path}/s{{0..2}}", lanes=3)
    parts = [samples(40, first=100 * number) for number in range(3)]
    for number, part in enumerate(parts):
        write(f"zpush+ipc://{tmp_path}/s{number}", part)
    found = reading.result(PATIENT)
    assert found == [sample for together in zip(*parts) for sample in together]


def test_the_receiver_of_the_end_mark_may_leave_first(place: str) -> None:
    receivers = [
        subprocess.Popen(
            [sys.executable, "-c", SLOW_RECEIVER, f"zrpull+ipc://{place}", pause],
            stdout=subprocess.PIPE,
            text=True,
        )
        for pause in ("0", "0.05")
    ]
    writer = shardfeed.Writer(f"zrpush+ipc://{place}", pipe_timeout="20s")
    keys = [key for key, _ in samples(60)]
    for key, fields in samples(60, 200_000):
        writer.write({"__key__": key, **fields})
    writer.finish()
    said = [receiver.communicate(timeout=PATIENT)[0].split() for receiver in receivers]
    ends = [words.count("end") for words in said]
    assert sorted(ends) == [0, 1]  # the other one waits for an end mark until its timeout
    found = [word for words in said for word in words if word != "end"]
    # A sample is known to be whole when the next message is there.
    assert len(found) >= 59
    assert set(found) <= set(keys)
    assert len(set(found)) == len(found)


def test_batches(place: str, aside: Callable[..., Future[Any]]) -> None:
    writing = aside(write, f"zpush+ipc://{place}", samples(100))
    stream = shardfeed.Stream(f"zpull+ipc://{place}")
    batches = list(stream.batches(30, decode="cls:int"))
    writing.result(PATIENT)
    found = [number for batch in batches for number in batch["cls"].tolist()]
    assert found == [number % 10 for number in range(100)]


def test_a_publisher_waits_for_the_first_subscriber(
    place: str, aside: Callable[..., Future[Any]]
) -> None:
    writing = aside(write, f"zpub+ipc://{place}", samples(10))
    time.sleep(0.3)
    assert not writing.done()
    assert read(f"zsub+ipc://{place}") == samples(10)
    writing.result(PATIENT)


def test_epochs_follow_one_another(place: str, aside: Callable[..., Future[Any]]) -> None:
    url = f"zpull+ipc://{place}"
    reading = aside(read, url, epochs=2)
    for _ in range(2):
        write(f"zpush+ipc://{place}", samples(50))
    assert reading.result(PATIENT) == samples(50) * 2


# ---- The other side is not ----------------------------------------------------------------------


def test_messages_of_others_are_read(
    place: str, aside: Callable[..., Future[Any]], raw: Any
) -> None:
    """The key is text or bytes, wherever it stands; maps have heads of all sizes."""
    reading = aside(read, f"zpull+ipc://{place}")
    sender = raw(zmq.PUSH, connect=f"ipc://{place}")
    sender.send(packed({"__key__": "a", "txt": b"1", "JPG": b"2"}))
    sender.send(packed({"txt": "text", "__key__": b"b"}))
    sender.send(b"\xdf\0\0\0\x02" + packed({"__key__": b"c", "txt": b"3"})[1:])
    sender.send(b"\xde\0\x02" + packed({"__key__": b"d", "txt": b"4"})[1:])
    sender.send(END)
    assert reading.result(PATIENT) == [
        ("a", {"txt": b"1", "jpg": b"2"}),
        ("b", {"txt": b"text"}),
        ("c", {"txt": b"3"}),
        ("d", {"txt": b"4"}),
    ]


def test_our_messages_are_those_of_tarp(
    place: str, aside: Callable[..., Future[Any]], raw: Any
) -> None:
    receiver = raw(zmq.PULL, bind=f"ipc://{place}")
    writing = aside(write, f"zpush+ipc://{place}", samples(3))
    for key, fields in samples(3):
        assert receiver.recv() == packed({"__key__": key, **fields})
    assert receiver.recv() == END
    writing.result(PATIENT)


def test_the_package_tensorcom(place: str, aside: Callable[..., Future[Any]]) -> None:
    from shardfeed.tensorcom import SampleReceiver, SampleSender

    def send() -> None:
        with SampleSender(f"zpush+ipc://{place}") as sender:
            for key, fields in samples(20):
                sender.send({"__key__": key, **fields})

    sending = aside(send)
    assert read(f"zpull+ipc://{place}") == samples(20)
    sending.result(PATIENT)
    writing = aside(write, f"zpush+ipc://{place}", samples(20))
    with SampleReceiver(f"zpull+ipc://{place}", timeout=PATIENT) as receiver:
        assert [(sample.pop("__key__"), sample) for sample in receiver] == samples(20)
    writing.result(PATIENT)


WRONG = [
    (b"", "a message of 0 bytes is no map"),
    (b"\xc1", "a message of 1 byte is no map"),
    (packed([1, 2]), "is no map of fields"),  # type: ignore[arg-type]
    (packed({"__key__": "k", "n": 5}), "field n is a number"),
    (packed({"__key__": "k", "n": [b"x"]}), "field n is no text and no bytes"),
    (packed({"__key__": "k", "n": {"a": b"b"}}), "field n is no text and no bytes"),
    (packed({"__key__": "k", "n": None}), "field n is no text and no bytes"),
    (packed({"__key__": "k", 7: b"x"}), "a field has a number for its name"),
    (packed({"txt": b"x"}), "a message has no __key__"),
    (packed({"__key__": "", "txt": b"x"}), "an empty key"),
    (packed({"__key__": "a.b", "txt": b"x"}), "the key a.b "),
    (packed({"__key__": "a", "t/x": b"x"}), "a field t/x,"),
    (packed({"__key__": "a/", "txt": b"x"}), "the key a/ "),
    (packed({"__key__": "__a__/b", "txt": b"x"}), "the key __a__/b "),
    (packed({"__key__": "a\0", "txt": b"x"}), "which are no key and no field"),
    (b"\x82" + packed({"__key__": "a"})[1:] * 2, "two keys"),
    (packed({"__key__": "a", "txt": b"x" * 300})[:-1], "ends within field txt"),
    (packed({"__key__": "a", "txt": b"x"}) + b"!", "continues after its map, for 1 byte"),
    (b"\xdf\xff\xff\xff\xff", "a message of 4294967295 fields, above 65536"),
    (b"\x81\xdb\xff\xff\xff\xff", "ends within a name"),
]


@pytest.mark.parametrize(("message", "cause"), WRONG)
def test_messages_that_are_wrong(
    message: bytes, cause: str, place: str, aside: Callable[..., Future[Any]], raw: Any
) -> None:
    reading = aside(read, f"zpull+ipc://{place}")
    sender = raw(zmq.PUSH, connect=f"ipc://{place}")
    sender.send(packed({"__key__": "first", "txt": b"1"}))
    sender.send(message)
    with pytest.raises(shardfeed.FormatError) as caught:
        reading.result(PATIENT)
    assert cause in str(caught.value)
    assert f"zpull+ipc://{place}" in str(caught.value)


def test_two_frames(place: str, aside: Callable[..., Future[Any]], raw: Any) -> None:
    reading = aside(read, f"zpull+ipc://{place}")
    raw(zmq.PUSH, connect=f"ipc://{place}").send_multipart([b"a", b"b"])
    with pytest.raises(shardfeed.FormatError, match=r"2 frames.*shardfeed\.tensorcom"):
        reading.result(PATIENT)


def test_one_key_twice(place: str, aside: Callable[..., Future[Any]], raw: Any) -> None:
    """Their fields would make one sample."""
    reading = aside(read, f"zpull+ipc://{place}")
    sender = raw(zmq.PUSH, connect=f"ipc://{place}")
    for field in ("a", "b"):
        sender.send(packed({"__key__": "same", field: b"1"}))
    with pytest.raises(shardfeed.FormatError, match="two messages with the key same"):
        reading.result(PATIENT)


# ---- Who is not there ---------------------------------------------------------------------------


def test_a_sender_that_dies(place: str, aside: Callable[..., Future[Any]], raw: Any) -> None:
    """It sends no end mark: the stream has no end, but an error."""
    stream = shardfeed.Stream(f"zpull+ipc://{place}", pipe_timeout="500ms")
    reader = iter(stream)
    sender = raw(zmq.PUSH, connect=f"ipc://{place}")
    for key, fields in samples(3):
        sender.send(packed({"__key__": key, **fields}))
    # What a sample has is known when the next one comes.
    assert [next(reader).key, next(reader).key] == ["000000", "000001"]
    with pytest.raises(shardfeed.ReadError, match=r"no message came at ipc://.* for 500 ms"):
        next(reader)


def test_no_end_mark_ends_it(place: str, aside: Callable[..., Future[Any]], raw: Any) -> None:
    stream = shardfeed.Stream(f"zpull+ipc://{place}", senders=0, pipe_timeout="500ms")
    reader = iter(stream)
    sender = raw(zmq.PUSH, connect=f"ipc://{place}")
    for key, fields in samples(4):
        sender.send(packed({"__key__": key, **fields}))
        sender.send(END)
    assert [next(reader).key for _ in range(3)] == ["000000", "000001", "000002"]
    with pytest.raises(shardfeed.ReadError, match="no message came"):
        next(reader)


@pytest.mark.parametrize("scheme", ["zpush", "zrpush", "zpub", "zrpub"])
def test_no_receiver(scheme: str, place: str) -> None:
    with pytest.raises(shardfeed.ReadError, match=r"no receiver took .* for 300 ms.*help: "):
        write(f"{scheme}+ipc://{place}", samples(3), pipe_timeout="300ms")


def test_a_receiver_that_stops_reading(place: str, raw: Any) -> None:
    raw(zmq.PULL, bind=f"ipc://{place}")
    with pytest.raises(shardfeed.ReadError, match="no receiver took"):
        write(f"zpush+ipc://{place}", samples(300, 1_000_000), pipe_timeout="500ms")


def test_an_exception_sends_no_end_mark(place: str, raw: Any) -> None:
    receiver = raw(zmq.PULL, bind=f"ipc://{place}")
    with contextlib.suppress(ZeroDivisionError), shardfeed.Writer(f"zpush+ipc://{place}") as writer:
        writer.write({"__key__": "a", "txt": b"1"})
        assert receiver.recv() == packed({"__key__": "a", "txt": b"1"})
        raise ZeroDivisionError
    receiver.rcvtimeo = 300
    with pytest.raises(zmq.Again):
        receiver.recv()


def test_a_wait_can_be_cancelled(place: str) -> None:
    stream = shardfeed.Stream(f"zpull+ipc://{place}", pipe_timeout=0, timeout="200ms")
    with pytest.raises(shardfeed.TimeoutError):
        next(iter(stream))
    stream = shardfeed.Stream(f"zpull+ipc://{place}2", pipe_timeout=0)
    threading.Timer(0.2, stream.cancel).start()
    with pytest.raises(shardfeed.CancelledError):
        next(iter(stream))


def test_ctrl_c_ends_a_writer(place: str) -> None:
    program = (
        "import shardfeed, sys\n"
        "with shardfeed.Writer(sys.argv[1], pipe_timeout=0) as writer:\n"
        "    writer.write({'__key__': 'a', 'txt': b'1'})\n"
        "    print('waits', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, f"zpush+ipc://{place}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        assert started.stdout.readline() == b"waits\n"
        time.sleep(0.2)
        started.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in started.communicate(timeout=PATIENT)[1]


def test_a_forked_child_leaves_them_alone(
    place: str, aside: Callable[..., Future[Any]], raw: Any
) -> None:
    receiver = raw(zmq.PULL, bind=f"ipc://{place}")
    with shardfeed.Writer(f"zpush+ipc://{place}") as writer:
        writer.write({"__key__": "a", "txt": b"1"})
        child = os.fork()
        if child == 0:
            del writer
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        writer.write({"__key__": "b", "txt": b"2"})
    keys = [msgpack.unpackb(receiver.recv()).get("__key__") for _ in range(3)]
    assert keys == ["a", "b", None]


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_receiver_that_dies(
    transport: str, place: str, aside: Callable[..., Future[Any]], raw: Any
) -> None:
    where = place if transport == "ipc" else f"127.0.0.1:{free_port()}"
    receiver = raw(zmq.PULL, bind=f"{transport}://{where}")
    writing = aside(write, f"zpush+{transport}://{where}", samples(400, 100_000))
    receiver.recv()
    receiver.close(0)
    with pytest.raises(shardfeed.ReadError, match=r"a receiver .* went away"):
        writing.result(PATIENT)


def test_what_connects_and_is_no_receiver(place: str, aside: Callable[..., Future[Any]]) -> None:
    url = f"zrpush+ipc://{place}"
    writer = shardfeed.Writer(url, pipe_timeout="20s")
    reading = aside(read, f"zrpull+ipc://{place}")
    for key, fields in samples(10):
        writer.write({"__key__": key, **fields})
    for _ in range(3000):  # more than ZeroMQ has room for events
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(place)
    for key, fields in samples(10, first=10):
        writer.write({"__key__": key, **fields})
    writer.finish()
    assert reading.result(PATIENT) == samples(20)


def test_a_slow_receiver_is_no_silence(
    place: str, aside: Callable[..., Future[Any]], raw: Any
) -> None:
    receiver = raw(zmq.PULL, bind=f"ipc://{place}")
    writing = aside(write, f"zpush+ipc://{place}", samples(100, 500_000), pipe_timeout="3s")
    for _ in range(101):
        time.sleep(0.06)  # of a whole queue longer than the timeout
        receiver.recv()
    writing.result(PATIENT)


def test_memory_bounds_what_a_sender_holds(place: str, raw: Any) -> None:
    raw(zmq.PULL, bind=f"ipc://{place}")
    with pytest.raises(shardfeed.ReadError, match="no receiver took a message"):
        write(f"zpush+ipc://{place}", samples(40, 1_000_000), pipe_timeout="1s", memory="4MiB")


def test_a_message_above_memory(place: str, aside: Callable[..., Future[Any]]) -> None:
    reading = aside(read, f"zpull+ipc://{place}", memory="1MiB")
    writing = aside(write, f"zpush+ipc://{place}", samples(1, 2_000_000))
    with pytest.raises(shardfeed.LimitError, match=r"above memory=1048576.*raise the option"):
        reading.result(PATIENT)
    with contextlib.suppress(shardfeed.ReadError):  # it went away
        writing.result(PATIENT)


# ---- What cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("zpush://127.0.0.1:1", "samples are sent there.*zpull://"),
        ("zpub+ipc:///x", "samples are sent there.*zsub://"),
        ("zpull://", "no address of ZeroMQ"),
        ("zsub://127.0.0.1:1#x", "not chosen by #PREFIX"),
        ("zpull+udp://127.0.0.1:1", r"zpull\+udp"),
    ],
)
def test_addresses_that_cannot_be_read(url: str, cause: str) -> None:
    with pytest.raises((shardfeed.UsageError, shardfeed.UnsupportedError), match=cause):
        read(url)


@pytest.mark.parametrize(
    ("url", "options", "cause"),
    [
        ("zpull://127.0.0.1:1", {}, "samples are read there.*zpush://"),
        ("zpush://127.0.0.1:1", {"format": "zip"}, "sent as messages"),
        ("zpush://127.0.0.1:1", {"compression": "gzip"}, "sent as messages"),
        ("zpush://127.0.0.1:1", {"index": True}, "write_index"),
        ("zpush://127.0.0.1:1", {"prepare": True}, "prepare"),
    ],
)
def test_writers_that_cannot_be(url: str, options: dict[str, Any], cause: str) -> None:
    with pytest.raises(shardfeed.UsageError, match=cause):
        write(url, samples(1), pipe_timeout="2s", **options)


def test_secure_mode(place: str) -> None:
    with pytest.raises(shardfeed.UsageError, match="refused in secure mode"):
        read(f"zpull+ipc://{place}", secure=True)


def test_no_cache_keeps_messages(
    place: str, tmp_path: Path, aside: Callable[..., Future[Any]]
) -> None:
    for first in (0, 50):
        writing = aside(write, f"zpush+ipc://{place}", samples(20, first=first))
        url = f"zpull+ipc://{place}"
        assert read(url, cache=str(tmp_path / "cache")) == samples(20, first=first)
        writing.result(PATIENT)


def test_a_port_that_is_taken() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(shardfeed.ReadError, match=r"bind to .*in use.*what listens there"),
    ):
        read(f"zpull://127.0.0.1:{server.getsockname()[1]}")


def test_the_path_of_a_file(place: str) -> None:
    Path(place).write_bytes(b"precious")
    with pytest.raises(shardfeed.UsageError, match="is there, and no socket"):
        read(f"zpull+ipc://{place}")
    assert Path(place).read_bytes() == b"precious"


def test_the_socket_of_another(place: str, raw: Any) -> None:
    raw(zmq.PULL, bind=f"ipc://{place}")
    with pytest.raises(shardfeed.ReadError, match="is in use"):
        read(f"zpull+ipc://{place}")


def test_a_socket_that_was_left(place: str, aside: Callable[..., Future[Any]]) -> None:
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(place)
    reading = aside(read, f"zpull+ipc://{place}")
    write(f"zpush+ipc://{place}", samples(3))
    assert reading.result(PATIENT) == samples(3)


@pytest.mark.parametrize(
    "url", ["zpull://0.0.0.0:7001", "z{pull,sub}://127.0.0.1:1", "zrpull+ipc:///x"]
)
def test_lists_name_no_messages(tmp_path: Path, url: str) -> None:
    (tmp_path / "list").write_text(f"{url}\n")
    with pytest.raises(shardfeed.UsageError, match="a list file must not open ports"):
        read(f"@{tmp_path}/list")


def test_two_streams_at_one_address(place: str, aside: Callable[..., Future[Any]]) -> None:
    url = f"zpull+ipc://{place}"
    first = iter(shardfeed.Stream(url, pipe_timeout="20s"))
    writer = shardfeed.Writer(f"zpush+ipc://{place}", pipe_timeout="20s")
    for key, fields in samples(2):
        writer.write({"__key__": key, **fields})
    assert next(first).key == "000000"
    with pytest.raises(shardfeed.ReadError, match=r"this program reads .* already"):
        read(url)
    writer.finish()
    assert [sample.key for sample in first] == ["000001"]
    reading = aside(read, url)
    write(f"zpush+ipc://{place}", samples(3))
    assert reading.result(PATIENT) == samples(3)


def test_there_are_no_indexes(place: str) -> None:
    with pytest.raises(shardfeed.Error):
        shardfeed.Dataset(f"zpull+ipc://{place}")
    with pytest.raises(shardfeed.Error):
        read(f"zpull+ipc://{place}", by_index=True)


def test_a_state_cannot_bring_back_what_was_read(
    place: str, aside: Callable[..., Future[Any]]
) -> None:
    writing = aside(write, f"zpush+ipc://{place}", samples(10))
    stream = shardfeed.Stream(f"zpull+ipc://{place}")
    start = stream.state_dict()
    reader = iter(stream)
    assert next(reader).key == "000000"
    state = stream.state_dict()
    assert len(list(reader)) == 9
    writing.result(PATIENT)
    stream.close()
    again = shardfeed.Stream(f"zpull+ipc://{place}", pipe_timeout="2s")
    again.load_state_dict(state)
    with pytest.raises(shardfeed.UsageError, match="cannot be read again: zpull"):
        next(iter(again))
    again = shardfeed.Stream(f"zpull+ipc://{place}")
    again.load_state_dict(start)
    writing = aside(write, f"zpush+ipc://{place}", samples(10))
    assert len(list(again)) == 10
    writing.result(PATIENT)


# ---- The command --------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, place: str) -> None:
    tar = write_tar(tmp_path / "in.tar", numbered(0, 200))
    command = [sys.executable, "-m", "shardfeed", "cat"]
    out = tmp_path / "out.tar"
    with subprocess.Popen([*command, f"zpull+ipc://{place}", "-o", out]) as receiver:
        sender = subprocess.run(
            [*command, tar, "-o", f"zpush+ipc://{place}"], timeout=PATIENT, check=False,
            capture_output=True,
        )  # fmt: skip
        assert sender.returncode == 0, sender.stderr
        assert receiver.wait(PATIENT) == 0
    assert read(str(out)) == read(str(tar))
