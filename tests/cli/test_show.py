"""show and first: what is printed of samples."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import COMMAND, Fields, fails, numbered, output, run, tar_bytes
from images import npy, png

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]

JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x0b\x08" + struct.pack(">HH", 30, 40) + b"\1\0\0"
WEBP = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\0\0\x1f\0\0"


def on_terminal(*words: object, columns: int = 80, **environment: str) -> str:
    """What a terminal receives."""
    main, side = pty.openpty()
    subprocess.run(["stty", "cols", str(columns)], stdin=side, check=True)
    plain = {k: v for k, v in os.environ.items() if k not in ("TMUX", "KITTY_WINDOW_ID")}
    command = [COMMAND, *map(str, words)]
    with subprocess.Popen(
        command, stdout=side, stderr=side, stdin=subprocess.DEVNULL, env={**plain, **environment}
    ) as child:
        os.close(side)
        made = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            made += part
    os.close(main)
    assert child.returncode in (0, 1, 2)
    return made.decode().replace("\r\n", "\n")


def shown(fields: Fields) -> dict[str, dict[str, object]]:
    row = json.loads(output("show", "--json", "-", data=tar_bytes([("k", fields)])))
    assert row["key"] == "k"
    return {field["name"]: field for field in row["fields"]}


def test_a_sample_as_people_read_it(shard: Shard) -> None:
    fields = {"txt": b"two\nlines\n", "cls": b"7", "json": b'{"a": [1, null]}', "bin": b"\0\xff"}
    path = shard("a.tar", [("x/1", fields), ("x/2", {"txt": b""})])
    assert output("show", path).decode() == (
        f"x/1  (4 fields, 29 B, {path})\n"
        "  txt          10 B  two\n"
        "                     lines\n"
        "  cls           1 B  7\n"
        "  json         16 B  {\n"
        '                       "a": [\n'
        "                         1,\n"
        "                         null\n"
        "                       ]\n"
        "                     }\n"
        "  bin           2 B  00 ff\n"
        "\n"
        f"x/2  (1 field, 0 B, {path})\n"
        "  txt           0 B  \n"
    )


def test_what_fields_are() -> None:
    fields = shown(
        {
            "png": png(5, 3),
            "jpg": JPEG,
            "webp": WEBP,
            "gif": b"GIF89a\x02\0\x03\0",
            "ppm": b"P6 # made\n6 4\n255\n",
            "npy": npy("<f4", "(2, 1)", struct.pack("<2f", 1.5, -2)),
            "h.npy": npy("<f2", "(3,)", struct.pack("<3e", 0.5, 65504, 6e-8)),
            "big.npy": npy(">i2", "(9,)", struct.pack(">9h", *range(9))),
            "mp": b"\x82\xa1a\x01\xa1b\xc4\x02\0\0",
            "bad.npy": b"\x93NUMPY\x01\0",
            "bad.json": b'{"a":',
            "bad.mp": b"\xdd\xff\xff\xff\xff",
            "esc": b"\x1b[31mred",
            "c1": "\x9b31m".encode(),
        }
    )
    sizes = {n: (f["format"], f["width"], f["height"]) for n, f in fields.items() if "width" in f}
    assert sizes == {
        "png": ("PNG", 5, 3),
        "jpg": ("JPEG", 40, 30),
        "webp": ("WebP", 64, 32),
        "gif": ("GIF", 2, 3),
        "ppm": ("PNM", 6, 4),
    }
    assert fields["npy"]["text"] == "float32 (2, 1): 1.5 -2"
    assert (fields["npy"]["dtype"], fields["npy"]["shape"]) == ("float32", [2, 1])
    assert fields["h.npy"]["text"] == "float16 (3,): 0.5 65504 5.96046e-08"
    assert fields["big.npy"]["text"] == "int16 (9,): 0 1 2 3 4 5 6 7 ..."
    assert fields["mp"]["text"] == '{\n  "a": 1,\n  "b": <2 B of bytes>\n}'
    kinds = {name: fields[name]["kind"] for name in ("bad.npy", "bad.json", "bad.mp", "esc", "c1")}
    assert kinds == {
        "bad.npy": "bytes",
        "bad.json": "text",
        "bad.mp": "bytes",
        "esc": "bytes",
        "c1": "bytes",
    }


def test_deep_and_large_documents_take_no_stack_and_little_time() -> None:
    fields = shown(
        {
            "json": b"[" * 3_000_000,
            "mp": b"\x91" * 3_000_000,
            "long.json": json.dumps(["word"] * 500_000).encode(),
            "wide.json": json.dumps("ü" * 1_000_000).encode(),
        }
    )
    for name in ("json", "mp", "long.json", "wide.json"):
        assert fields[name]["kind"] == ("msgpack" if name == "mp" else "json")
        assert str(fields[name]["text"]).endswith(("...", '..."'))
        assert len(str(fields[name]["text"])) < 3000


def test_which_samples_and_fields(shard: Shard) -> None:
    path = shard("a.tar", numbered(0, 30))
    keys = lambda *words: re.findall(r"^(\d{4})  ", output("show", *words, path).decode(), re.M)  # noqa: E731
    assert len(keys()) == 10
    assert keys("-n", 2) == ["0000", "0001"]
    assert len(keys("-n", 0)) == 30
    assert keys("--key", "001*", "--key", "0003", "-n", 3) == ["0003", "0010", "0011"]
    row = json.loads(output("show", "-n", 1, "-f", "label:none,cls", "--json", path))
    assert [(f["name"], f["text"]) for f in row["fields"]] == [("label", "0")]
    assert "0031" not in fails(1, "show", "--key", "0031x", path)


def test_lines_fit_the_terminal_and_have_no_control_bytes(shard: Shard) -> None:
    path = shard("a.tar", [("k\x1b[2J", {"txt": "ü".encode() * 300, "a\x07b": b"1"})])
    seen = on_terminal("show", path, columns=60, TERM="xterm")
    assert max(len(line) for line in seen.split("\n")[1:]) == 60
    assert "\x1b" not in seen
    assert "\x07" not in seen
    assert "k\\x1b[2J" in seen


def test_images_in_terminals_that_show_them(shard: Shard) -> None:
    image = png(5, 3)
    path = shard("a.tar", [("k", {"png": image})])
    kitty = on_terminal("show", "--images", path, TERM="xterm-kitty")
    sent = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", kitty)
    assert sent[0][0] == "a=T,r=12,q=2,f=100,m=0"
    assert base64.b64decode(sent[0][1]) == image
    iterm = on_terminal("show", "--images", path, TERM="xterm", TERM_PROGRAM="iTerm.app")
    found = re.search(r"\x1b]1337;File=inline=1;height=12;size=(\d+):([^\x07]*)\x07", iterm)
    assert found is not None
    assert base64.b64decode(found[2]) == image
    for environment in ({"TERM": "xterm"}, {"TERM": "xterm-kitty", "TMUX": "/tmp/x"}):
        seen = on_terminal("show", "--images", path, **environment)
        assert "this terminal shows no images" in seen
        assert "\x1b" not in seen
    assert b"\x1b" not in run("show", "--images", path).stdout


def test_first_writes_a_field_and_says_its_name(shard: Shard) -> None:
    path = shard("a.tar", [("a", {"cls": b"1", "png": b"P", "jpg": b"J"}), ("b", {"cls": b"2"})])
    done = run("first", path)
    assert (done.stdout, done.stderr) == (b"J", b"shardfeed: a.jpg\n")
    done = run("tarfirst", "-f", "txt;cls", data=path.read_bytes())
    assert (done.stdout, done.stderr) == (b"1", b"shardfeed: a.cls\n")
    assert run("first", "-q", "-f", "cls", "--select", "b*", path).stdout == b"2"
    assert "it has cls, png, jpg" in fails(1, "first", "-f", "txt", path)
    fails(1, "first", "--select", "c", path)


def test_bytes_are_kept_from_the_terminal(shard: Shard) -> None:
    path = shard("a.tar", [("a", {"bin": b"\x1b[31m", "txt": b"words\n"})])
    assert "no text for a terminal" in on_terminal("first", "-f", "bin", path, TERM="xterm")
    assert "no text for a terminal" in on_terminal("get", path, "a", TERM="xterm")
    assert on_terminal("get", path, "a", "txt", TERM="xterm") == "words\n"


@pytest.mark.parametrize("cut", [20, 21, 22, 23, 29])
def test_image_headers_that_end_early(cut: int) -> None:
    fields = shown({"jpg": JPEG[: cut - 8], "webp": WEBP[:cut], "png": png(1, 1)[: cut - 6]})
    assert {name: "width" in field for name, field in fields.items()} == {
        "jpg": cut - 8 >= 19,
        "webp": False,
        "png": False,
    }
