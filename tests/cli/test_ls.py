from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import fails, numbered, output, run, tar_bytes


def archive(path: Path) -> Path:
    """A tar with all that a list can have."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, link in (
            ("dir", tarfile.DIRTYPE, ""),
            ("dir/a.txt", tarfile.REGTYPE, ""),
            ("dir/a.txt", tarfile.REGTYPE, ""),
            ("sym", tarfile.SYMTYPE, "dir/a.txt"),
            ("line\nfeed\x1b[31m", tarfile.REGTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = link
            info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o640
            info.mtime = 86400
            info.uname = "ada"
            info.gid = 7
            info.size = 5 if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(b"12345") if info.size else None)
    return path


def test_lists_every_member_in_its_order(tmp_path: Path) -> None:
    tar = archive(tmp_path / "a.tar")
    names = [b"dir/", b"dir/a.txt", b"dir/a.txt", b"sym", b"line\nfeed\x1b[31m"]
    assert output("ls", "-0", tar) == b"".join(name + b"\0" for name in names)
    assert output("ls", tar) == b"".join(name + b"\n" for name in names)
    assert output("ls", "--shard", tar).split(b"\n")[0] == str(tar).encode() + b"\tdir/"
    assert output("ls", "-0", "-", data=tar.read_bytes()) == output("ls", "-0", tar)


def test_prints_what_headers_say(tmp_path: Path) -> None:
    lines = output("ls", "-l", archive(tmp_path / "a.tar")).decode().split("\n")
    assert lines[0] == "drwxr-xr-x ada/7      0 1970-01-02 00:00:00 dir/"
    assert lines[1] == "-rw-r----- ada/7      5 1970-01-02 00:00:00 dir/a.txt"
    assert lines[3] == "lrw-r----- ada/7      0 1970-01-02 00:00:00 sym -> dir/a.txt"


def test_lines_of_json_keep_every_byte_of_names(tmp_path: Path) -> None:
    rows = [
        json.loads(line)
        for line in output("ls", "--json", archive(tmp_path / "a.tar")).splitlines()
    ]
    assert [row["kind"] for row in rows] == ["directory", "file", "file", "symbolic link", "file"]
    assert rows[3]["link"] == "dir/a.txt"
    assert rows[1]["mtime_ns"] == 86400 * 10**9
    assert rows[4]["name"] == "line\\x0afeed\\x1b[31m"
    assert bytes.fromhex(rows[4]["name_hex"]) == b"line\nfeed\x1b[31m"
    assert "name_hex" not in rows[1]


def test_a_zip_has_what_its_directory_says(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/1.txt", b"a" * 1000)
    row = json.loads(output("ls", "--json", path))
    assert (row["name"], row["size"], row["method"]) == ("x/1.txt", 1000, 8)
    assert row["stored"] < 1000
    assert output("ls", path) == b"x/1.txt\n"
    assert output("ls", "-", data=path.read_bytes()) == b"x/1.txt\n"


def test_samples_with_the_sizes_of_their_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar_bytes(numbered(8, 3)))
    assert output("ls", "--samples", path) == (
        b"0008\ttxt 7\tcls 1\n0009\ttxt 7\tcls 1\n0010\ttxt 8\tcls 1\n"
    )
    row = json.loads(output("ls", "--samples", "--json", path).splitlines()[2])
    assert row == {
        "shard": str(path),
        "key": "0010",
        "size": 9,
        "fields": [{"name": "txt", "size": 8}, {"name": "cls", "size": 1}],
    }


def test_a_bad_archive_is_said_and_the_others_are_listed(tmp_path: Path) -> None:
    good = tmp_path / "b.tar"
    good.write_bytes(tar_bytes(numbered(0, 2)))
    bad = tmp_path / "a.tar"
    bad.write_bytes(good.read_bytes()[:1600])
    done = run("ls", bad, good)
    assert done.returncode == 1
    assert done.stdout.endswith(b"0000.txt\n0000.cls\n0001.txt\n0001.cls\n")
    assert str(bad) in done.stderr.decode()
    assert "help: " in fails(1, "ls", bad)
    fails(1, "ls", tmp_path / "none.tar")
    fails(2, "ls")


def test_a_folder_that_is_called_as_that_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern may match it, and then it is no other one."""
    home, here = tmp_path / "home", tmp_path / "here"
    for folder, name in ((home, "of-the-user"), (here / "~", "of-a-folder")):
        folder.mkdir(parents=True)
        (folder / "a.tar").write_bytes(tar_bytes([(name, {"txt": b""})]))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    assert output("ls", "*/a.tar") == b"of-a-folder.txt\n"
    assert output("ls", "~/a.tar") == b"of-the-user.txt\n"
