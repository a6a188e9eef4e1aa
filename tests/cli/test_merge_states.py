"""merge-states on files; tests/python/test_main.py merges states of real streams."""

import json
from pathlib import Path

import pytest
from conftest import fails, output


def state(folder: Path, name: str, **changes: object) -> Path:
    """At the start of an epoch, where the library has no bytes of its own."""
    made: dict[str, object] = {"shardfeed": 1, "epoch": 2, "state": "", "left": 5, "merged": False}
    path = folder / name
    path.write_text(json.dumps({**made, "of": "samples", "opened": 1, **changes}))
    return path


def test_states_at_the_start_of_an_epoch(tmp_path: Path) -> None:
    parts = [state(tmp_path, "0.json"), state(tmp_path, "1.json", left=7)]
    assert output("merge-states", tmp_path / "all.json", *parts) == b""
    assert json.loads((tmp_path / "all.json").read_text()) == {
        "shardfeed": 1, "epoch": 2, "state": "", "left": 12, "merged": True, "of": "samples",
        "opened": 1,
    }  # fmt: skip


def test_a_state_of_an_older_version_has_no_epoch_of_its_opening(tmp_path: Path) -> None:
    path = state(tmp_path, "0.json")
    old = json.loads(path.read_text())
    del old["opened"]
    path.write_text(json.dumps(old))
    output("merge-states", tmp_path / "all.json", path)
    assert json.loads((tmp_path / "all.json").read_text())["opened"] == 2


def test_an_old_file_stays(tmp_path: Path) -> None:
    parts = [state(tmp_path, "0.json"), state(tmp_path, "1.json")]
    before = parts[0].read_bytes()
    message = fails(2, "merge-states", *parts)
    assert message.startswith(f"shardfeed: {parts[0]}: there is such a file already; help: ")
    assert parts[0].read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epoch": 3}, "differ in epoch: 2 and 3"),
        ({"opened": 2}, "the epoch they began with: 1 and 2"),
        ({"of": "batches"}, "what is taken: samples and batches"),
        ({"left": -1}, "counting"),
        ({"state": "AAAA"}, "place"),
    ],
)
def test_states_that_differ(tmp_path: Path, changes: "dict[str, object]", said: str) -> None:
    parts = [state(tmp_path, "0.json"), state(tmp_path, "1.json", **changes)]
    # Bytes that are no state are found before.
    status = 1 if "state" in changes else 2
    message = fails(status, "merge-states", tmp_path / "all.json", *parts)
    assert (said in message) == (status == 2)
    assert not (tmp_path / "all.json").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "this is no JSON"),
        ("{", "this is no JSON"),
        ("[]", "no saved state"),
        ("3", "no saved state"),
        ('{"epoch": 0}', "no saved state"),
        ('{"shardfeed": 1}', 'it has no "epoch"'),
        ('{"shardfeed": 1, "epoch": 1e3}', '"epoch" is no number'),
        ('{"shardfeed": 1, "epoch": 18446744073709551615}', '"epoch" is no number'),
        ("[" * 100_000, "this is no JSON"),
    ],
)
def test_files_that_are_no_state(tmp_path: Path, text: str, said: str) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    message = fails(1, "merge-states", tmp_path / "all.json", state(tmp_path, "0.json"), bad)
    assert message.startswith(f"shardfeed: {bad}: ")
    assert said in message


@pytest.mark.parametrize("text", ["A", "AAA", "AA=A", "A===", "AA A", "AA\u00e4="])
def test_states_that_are_no_base64(tmp_path: Path, text: str) -> None:
    bad = state(tmp_path, "bad.json", state=text)
    assert '"state" is no Base64' in fails(1, "merge-states", tmp_path / "all.json", bad)


def test_another_version(tmp_path: Path) -> None:
    bad = state(tmp_path, "bad.json", shardfeed=2)
    assert "version 2 of this format" in fails(2, "merge-states", tmp_path / "all.json", bad)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    good = state(tmp_path, "0.json")
    assert "nowhere.json" in fails(1, "merge-states", tmp_path / "a", tmp_path / "nowhere.json")
    assert "no_folder" in fails(1, "merge-states", tmp_path / "no_folder" / "a", good)
    assert "IN.json is required" in fails(2, "merge-states", tmp_path / "a")
