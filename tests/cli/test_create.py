"""create: recipes, as tarp has them."""

from __future__ import annotations

from pathlib import Path

from conftest import fails, output, run, samples_of


def test_all_kinds_of_sources(tmp_path: Path) -> None:
    (tmp_path / "a b.jpg").write_bytes(b"JPEG")
    (tmp_path / "c").write_bytes(b"file")
    recipe = tmp_path / "recipe"
    recipe.write_text(
        f"d/0.jpg {tmp_path}/a b.jpg\n"
        "d/0.txt\ttext: two  blanks \n"
        f"d/1.x.y file:{tmp_path}/c\n"
        "d/1.z pipe:printf '%s' piped\n"
        "d/1.long text:" + "x" * 10_000 + "\n"
    )
    out = tmp_path / "out.tar"
    output("create", recipe, "-o", out)
    assert samples_of(out) == [
        ("d/0", {"jpg": b"JPEG", "txt": b" two  blanks "}),
        ("d/1", {"x.y": b"file", "z": b"piped", "long": b"x" * 10_000}),
    ]


def test_recipes_from_standard_input(tmp_path: Path) -> None:
    lines = b"".join(b"%d.t text:%d\r\n" % (i, i) for i in range(5))
    made = output("create", "-", "--count", 3, data=lines)
    assert samples_of(made) == [(str(i), {"t": b"%d\r" % i}) for i in range(3)]


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    lines = b"a.x text:1\na.y text:2\nb.x text:3\n"
    first = output("create", "-", data=lines)
    assert first == output("create", "-", data=lines)
    done = run("create", "-", "--compression", "gzip", data=lines)
    assert done.stdout[:2] == b"\x1f\x8b"


def test_wrong_lines(tmp_path: Path) -> None:
    out = tmp_path / "out.tar"
    for line, cause in [
        (b"name", "no name and source"),
        (b"", "no name and source"),
        (b" x.y text:", "no name and source"),
        (b"nodot text:", "no key and field"),
        (b".hid text:", "no key and field"),
        (b"d/.hid text:", "no key and field"),
        (b"x. text:", "no key and field"),
        (b"x.y /nonexistent/file", "/nonexistent/file"),
        (b"x.y pipe:exit 3", "status 3"),
        (b"../x.y text:", ".."),
    ]:
        message = fails(1, "create", "-", "-o", out, data=b"a.b text:\n" + line + b"\n")
        assert "-: line 2: " in message, line
        assert cause in message, message
        assert list(tmp_path.iterdir()) == []


def test_fields_that_are_there_twice() -> None:
    message = fails(1, "create", "-", data=b"a.b text:1\na.B text:2\n")
    assert "-: line 1: " in message
    assert "the field is there already" in message


def test_missing_recipe() -> None:
    assert "no-such-recipe" in fails(1, "create", "no-such-recipe")


def test_folders_with_classes(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    for name in ("dog/1.jpg", "cat/2.jpg", "cat/2.txt", "cat/deep/3.jpg", "cat/README"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    done = run("create", folder, "--by-folder", "--classes", tmp_path / "classes.txt")
    assert done.returncode == 0
    assert b"README is left out" in done.stderr
    assert samples_of(done.stdout) == [
        ("cat/2", {"jpg": b"cat/2.jpg", "txt": b"cat/2.txt", "cls": b"0"}),
        ("cat/deep/3", {"jpg": b"cat/deep/3.jpg", "cls": b"0"}),
        ("dog/1", {"jpg": b"dog/1.jpg", "cls": b"1"}),
    ]
    assert (tmp_path / "classes.txt").read_text() == "cat\ndog\n"
    assert "classes.txt" in fails(
        1, "create", folder, "--by-folder", "--classes", tmp_path / "classes.txt"
    )
    (folder / "loop").symlink_to("loop")
    (folder / "loose.jpg").write_bytes(b"")
    assert "loose.jpg is in no folder" in fails(1, "create", folder, "--by-folder", "-q")


def test_tables(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"A")
    tsv = tmp_path / "t.tsv"
    tsv.write_bytes(b"__key__\t@jpg\ttxt\nk1\ta.jpg\ttab\\t, line\\n and \\\\\nk2\ta.jpg\t\n")
    wanted = [
        ("k1", {"jpg": b"A", "txt": b"tab\t, line\n and \\"}),
        ("k2", {"jpg": b"A", "txt": b""}),
    ]
    assert samples_of(output("create", tsv, "-C", tmp_path)) == wanted
    csv = tmp_path / "t.csv"
    csv.write_bytes(b'@jpg,txt\r\na.jpg,"a ""quoted"", long\nline"\r\na.jpg,plain\r\n')
    assert samples_of(output("create", csv, "-C", tmp_path, "--keys", "x/%02d")) == [
        ("x/00", {"jpg": b"A", "txt": b'a "quoted", long\nline'}),
        ("x/01", {"jpg": b"A", "txt": b"plain"}),
    ]
    lines = b'{"__key__": "a", "cls": 3, "json": {"x": [1]}, "no": null}\n\n{"txt": "\xc3\xa9"}\n'
    assert samples_of(output("create", "-", "--from", "jsonl", data=lines)) == [
        ("a", {"cls": b"3", "json": b'{"x":[1]}'}),
        ("000000001", {"txt": "é".encode()}),
    ]
    made = output("create", "-", "--from", "tsv", "--columns", "__key__ txt", data=b"a\tb\n")
    assert samples_of(made) == [("a", {"txt": b"b"})]


def test_wrong_tables() -> None:
    for kind, data, cause in [
        ("tsv", b"a\tb\n1\n", "line 2: 1 cells for 2 columns"),
        ("tsv", b"a\n\\x\n", "line 2: a backslash"),
        ("tsv", b"", "the table is empty"),
        ("csv", b'a\n"x\n', "line 2: a quote has no end"),
        ("csv", b"@a\n/nonexistent/x\n", "line 2: "),
        ("jsonl", b"[1]\n", "line 1: this is no JSON object"),
        ("jsonl", b'{"a": ', "line 1: this is no JSON object"),
        ("csv", b"__key__,a\n,b\n", "line 2: the key is empty"),
    ]:
        assert cause in fails(1, "create", "-", "--from", kind, data=data), data


def test_what_a_parquet_file_does_not_take() -> None:
    for switch in ("--json", "--tarp-compat"):
        message = fails(2, "create", "x", "--from", "parquet", switch, "-o", "out.tar")
        assert "not for Parquet files" in message


def test_shards_that_would_wait_for_nobody(tmp_path: Path) -> None:
    for word in ("--prepare", "--prepare=true"):
        assert "tokens" in fails(2, "create", "-", "-o", tmp_path / "a.tar", word)
        assert list(tmp_path.iterdir()) == []
