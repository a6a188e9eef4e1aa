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
        (b"a.b text:twice", "the field is there already"),
    ]:
        message = fails(1, "create", "-", "-o", out, data=b"a.b text:\n" + line + b"\n")
        assert "-: line 2: " in message, line
        assert cause in message, message
        assert list(tmp_path.iterdir()) == []


def test_missing_recipe() -> None:
    assert "no-such-recipe" in fails(1, "create", "no-such-recipe")
