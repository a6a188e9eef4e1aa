"""The examples of the documentation of tarp and tarproc, verb for verb, with their flags."""

from __future__ import annotations

import os
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from conftest import (
    COMMAND,
    SECONDS_OF_COMMAND,
    Fields,
    keys_of,
    numbered,
    run,
    samples_of,
    tar_bytes,
)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs under their own names; the samples of all examples."""
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "tarp").write_text(f'#!/bin/sh\nexec {COMMAND} "$@"\n')
    for name in ("cats", "proc", "sort", "split", "show", "first", "2tsv", "2json"):
        (programs / f"tar{name}").write_text(f'#!/bin/sh\nexec {COMMAND} tar{name} "$@"\n')
    (programs / "upload").write_text('#!/bin/sh\ncp "$1" bucket/\n')  # in place of gsutil cp
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (tmp_path / "bucket").mkdir()
    (tmp_path / "file.tar").write_bytes(tar_bytes(numbered(0, 25)))


def shell(script: str, status: int = 0) -> str:
    done = subprocess.run(
        ["/bin/bash", "-c", "set -o pipefail; " + script],
        capture_output=True,
        timeout=SECONDS_OF_COMMAND,
        check=False,
    )
    assert done.returncode == status, done
    return done.stdout.decode()


def shards(pattern: str) -> list[Path]:
    return sorted(Path().glob(pattern))


def test_shuffle_and_split() -> None:
    shell("cat file.tar | tarp sort - -o - | tarp split -c 10 - -o 'output-%06d.tar'")
    parts = [samples_of(path) for path in shards("output-*.tar")]
    assert [len(part) for part in parts] == [10, 10, 5]
    assert sorted(
        (sample for part in parts for sample in part), key=lambda sample: sample[0]
    ) == numbered(0, 25)
    # tarp's default is random; ours needs the switch.
    shell("tarp sort file.tar --tarp-compat -o random.tar")
    assert keys_of(Path("random.tar")) != keys_of(Path("file.tar"))
    assert sorted(keys_of(Path("random.tar"))) == keys_of(Path("file.tar"))


def test_dataset_of_folders_of_classes() -> None:
    for name in ("cat", "dog"):
        Path(name).mkdir()
        for i in range(3):
            Path(name, f"{name}{i}.png").write_bytes(f"{name}{i}".encode())
    shell(
        """
        for classdir in *; do
            test -d $classdir || continue
            for image in $classdir/*.png; do
                test -f $image || continue
                imageid=$(basename $image .png)
                echo "$imageid.txt text:$classdir"
                echo "$imageid.png file:$image"
            done
        done |
        sort |
        tarp create -o - - |
        tarp split -c 4 -o 'dataset-%06d.tar' -p 'upload %s; rm %s' -
        """
    )
    assert shards("dataset-*.tar") == []
    names = [path.name for path in shards("bucket/*.tar")]
    assert names == ["dataset-000000.tar", "dataset-000001.tar"]
    found = [sample for path in shards("bucket/*.tar") for sample in samples_of(path)]
    assert found == [
        (f"{name}{i}", {"png": f"{name}{i}".encode(), "txt": name.encode()})
        for name in ("cat", "dog")
        for i in range(3)
    ]


def test_cat_in_turns_sliced_renamed_and_numbered() -> None:
    for name in "abc":
        Path(f"{name}.tar").write_bytes(
            tar_bytes([(f"{name}{i}", {"png": b"P", "cls": b"%d" % i}) for i in (1, 2, 3)])
        )
    turns = shell("tarp cat -m 2 a.tar b.tar c.tar -o - | tar t | grep cls")
    assert turns.split() == [
        f"{key}.cls" for key in ("a1", "b1", "a2", "b2", "a3", "b3", "c1", "c2", "c3")
    ]
    shell("tarp cat '{a,b}.tar' --slice 1:5:3 --tarp-compat -f 'image:jpg,png cls' -R '#' -o x.tar")
    assert samples_of(Path("x.tar")) == [("000000000", {"image": b"P", "cls": b"1"})]
    shell("tarp cat --shardslice :1 a.tar b.tar -o y.tar")
    assert keys_of(Path("y.tar")) == ["a1", "b1"]
    shell("tarp cat -s 100 a.tar b.tar -o z.tar")
    assert sorted(keys_of(Path("z.tar"))) == ["a1", "a2", "a3", "b1", "b2", "b3"]
    shell("tarp cat a.tar -f nosuch -o w.tar", status=1)
    assert not Path("w.tar").exists()


def test_maxerr_accepts_damage() -> None:
    data = Path("file.tar").read_bytes()
    Path("cut.tar").write_bytes(data[:20_000])
    shell("tarp cat cut.tar file.tar -o out.tar", status=1)
    assert not Path("out.tar").exists()
    shell("tarp cat cut.tar --maxerr 1 -o out.tar")
    assert samples_of(Path("out.tar")) == numbered(0, len(keys_of(Path("out.tar"))))


def test_create_counts_lines_and_reads_every_source() -> None:
    Path("f").write_bytes(b"file")
    recipe = "1.a f\n1.b file:f\n1.c text: two words \n2.a pipe:echo command\n2.b text:x\n"
    Path("recipe").write_text(recipe)
    shell("tarp create --count 4 recipe -o out.tar")
    assert samples_of(Path("out.tar")) == [
        ("1", {"a": b"file", "b": b"file", "c": b" two words "}),
        ("2", {"a": b"command\n"}),
    ]
    Path("recipe").write_text("1.a f\n\n2.a f\n")
    done = run("create", "recipe", "-o", "bad.tar")
    assert done.returncode == 1
    assert b"recipe: line 2" in done.stderr
    assert not Path("bad.tar").exists()


def test_sort_by_a_field_loses_nothing() -> None:
    shell("tarp sort -s cls file.tar -o out.tar")
    wanted = sorted(numbered(0, 25), key=lambda sample: sample[1]["cls"])
    assert samples_of(Path("out.tar")) == wanted
    Path("tmp").mkdir()
    shell("tarp sort -s __key__ -f cls --tmpdir tmp file.tar -o keys.tar")
    assert samples_of(Path("keys.tar")) == [(k, {"cls": f["cls"]}) for k, f in numbered(0, 25)]
    assert Path("tmp").is_dir()


def test_split_counts_as_tarp() -> None:
    """A shard begins before a sample when the one before has the count or the size."""
    samples: list[tuple[str, Fields]] = [(f"{i}", {"bin": bytes(400)}) for i in range(10)]
    Path("s.tar").write_bytes(tar_bytes(samples))
    shell("tarp split -s 1000 -o 's-%03d.tar' s.tar --tarp-compat")
    # Of each sample 400 bytes, "bin", "__key__" and the key: 411; the third reaches 1000.
    assert [len(keys_of(path)) for path in shards("s-*.tar")] == [3, 3, 3, 1]
    shell("tarp split s.tar -o k.tar -c 3", status=2)


def test_proc_and_its_samples() -> None:
    shell("tarp proc -c 'wc -c < sample.txt > sample.size; rm sample.cls' file.tar -o out.tar")
    found = samples_of(Path("out.tar"))
    assert found[0] == ("0000", {"txt": b"text 0\n", "size": b"7\n"})
    assert len(found) == 25
    many = "for i in 000000 000001; do cp sample.cls sample-$i.cls; done"
    shell(f"tarp proc --slice 0:2 -m '{many}' file.tar -o many.tar")
    assert keys_of(Path("many.tar")) == [
        "0000/000000",
        "0000/000001",
        "0001/000000",
        "0001/000001",
    ]
    shell("tarp proc -c false file.tar -o fails.tar", status=1)
    assert not Path("fails.tar").exists()
    shell("tarp proc -c false --tarp-compat file.tar -o kept.tar")
    assert samples_of(Path("kept.tar")) == numbered(0, 25)


def headers_of(path: Path) -> set[bytes]:
    """What the headers say beside names, sizes and times."""
    found = set()
    with tarfile.open(path) as tar:
        for info in tar:
            info.name, info.size, info.mtime = "n", 0, 0
            found.add(info.tobuf(tarfile.USTAR_FORMAT))
    return found


def test_headers_are_those_of_tarp() -> None:
    Path("recipe").write_text("1.a text:x\n2.a text:y\n")
    theirs = tarfile.TarInfo("n")
    theirs.mode, theirs.uid, theirs.gid = 0o755, 1000, 1000
    theirs.uname = theirs.gname = "bigdata"
    before = int(time.time()) - 2
    for name, words in {
        "create": "recipe -o create-000.tar",
        "cat": "file.tar -o cat-000.tar",
        "sort": "file.tar -s cls -o sort-000.tar",
        "proc": "file.tar --slice :2 -c true -o proc-000.tar",
        "split": "file.tar -c 25 -o split-%03d.tar",
    }.items():
        out = Path(f"{name}-000.tar")
        shell(f"tarp {name} {words} --tarp-compat")
        assert headers_of(out) == {theirs.tobuf(tarfile.USTAR_FORMAT)}, name
        with tarfile.open(out) as tar:
            assert all(before <= info.mtime <= time.time() - 2 for info in tar), name
        shell(f"tarp {name} {words} --overwrite")
        assert headers_of(out) == {tarfile.TarInfo("n").tobuf(tarfile.USTAR_FORMAT)}, name
        shell(f"tarp {name} {words} --overwrite --tarp-compat --tar-headers same")
        assert headers_of(out) == {tarfile.TarInfo("n").tobuf(tarfile.USTAR_FORMAT)}, name
    # The samples are the same, and a ZIP file of a recipe has no such headers.
    assert samples_of(Path("cat-000.tar")) == numbered(0, 25)
    shell("tarp create recipe --tarp-compat -o new.zip")
    shell("tarp create new.zip --tarp-compat -o of-zip.tar")
    assert headers_of(Path("of-zip.tar")) == {theirs.tobuf(tarfile.USTAR_FORMAT)}


def test_samples_without_a_key_are_numbered() -> None:
    removes = "test $(cat sample.cls) = 1 || rm sample.__key__"
    shell(f"tarp proc --slice 3:7 -c '{removes}' file.tar --tarp-compat -o out.tar")
    assert samples_of(Path("out.tar")) == [
        ("0004" if number == 1 else f"_{number:09d}_", fields)
        for number, (_, fields) in enumerate(numbered(3, 4))
    ]
    # Ours keep the key that they had.
    shell(f"tarp proc --slice 3:7 -c '{removes}' file.tar -o kept.tar")
    assert samples_of(Path("kept.tar")) == numbered(3, 4)
    empties = "printf x > sample-$i.txt; : > sample-$i.__key__"
    many = f"tarp proc --slice :2 -m 'for i in 000000 000001; do {empties}; done' file.tar"
    shell(f"{many} --tarp-compat -o many.tar")
    assert keys_of(Path("many.tar")) == [f"_{number:09d}_" for number in range(4)]
    shell(f"{many} -o refused.tar", status=2)
    assert not Path("refused.tar").exists()
    shell(f"{many} --tarp-compat -R 'n/%d' -o named.tar")
    assert keys_of(Path("named.tar")) == ["n/0", "n/1", "n/2", "n/3"]


def test_fields_are_chosen_before_the_sort_as_in_tarp() -> None:
    wanted = sorted(numbered(0, 25), key=lambda sample: sample[1]["cls"])
    shell("tarp sort -f label:cls -s label file.tar --tarp-compat -o out.tar")
    assert samples_of(Path("out.tar")) == [(key, {"label": f["cls"]}) for key, f in wanted]
    shell("tarp sort -f label:cls -s label file.tar -o ours.tar", status=1)
    shell("tarp sort -f label:cls -s cls file.tar --tarp-compat -o theirs.tar", status=1)
    shell("tarp sort -f label:cls -s cls file.tar -o ours.tar")
    assert samples_of(Path("ours.tar")) == samples_of(Path("out.tar"))
    Path("some.tar").write_bytes(tar_bytes([("a", {"txt": b"1"}), *numbered(0, 3)]))
    shell("tarp sort -f cls -s cls --missing skip --tarp-compat some.tar -o some-out.tar")
    assert samples_of(Path("some-out.tar")) == [(k, {"cls": f["cls"]}) for k, f in numbered(0, 3)]


def test_tarproc_tools() -> None:
    shell("tarcats --slice 2:4 -o out.tar file.tar")
    assert keys_of(Path("out.tar")) == ["0002", "0003"]
    shell("tarcats --shuffle 10 file.tar -o - | tarsort - -s cls -S int -o sorted.tar")
    found = samples_of(Path("sorted.tar"))
    assert [fields["cls"] for _, fields in found] == [b"0"] * 9 + [b"1"] * 8 + [b"2"] * 8
    shell("tarsplit -c 20 -o 'part-%06d.tar' file.tar -p 'cp %s bucket/'")
    assert [path.name for path in shards("bucket/*")] == ["part-000000.tar", "part-000001.tar"]
    shell("tarproc -c 'tr a-z A-Z < sample.txt > sample.up' -p 2 -e skip file.tar -o up.tar")
    assert samples_of(Path("up.tar"))[3][1]["up"] == b"TEXT 3\n"
    shell("tarproc -c 'test $(cat sample.cls) = 1' -e skip file.tar -o ones.tar")
    assert len(keys_of(Path("ones.tar"))) == 8
    assert shell("tar2tsv -f cls -c 2 file.tar") == "__key__\tcls\n0000\t0\n0001\t1\n"
    assert shell("tar2json -f cls -c 1 file.tar") == '{"__key__":"0000","cls":"0"}\n'
    assert shell("tarfirst -f 'jpg;txt' file.tar") == "text 0\n"
    assert "text 0" in shell("tarshow -n 1 file.tar")
    shell("printf 'eins\\nzwei\\n' | tarp create --from tsv --columns txt - -o lines.tar")
    assert samples_of(Path("lines.tar")) == [
        ("000000000", {"txt": b"eins"}),
        ("000000001", {"txt": b"zwei"}),
    ]
