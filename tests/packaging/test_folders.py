"""The folders of src include only folders of lower floors."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# docs/architecture.md, from the ground up. Folders of one floor do not know each other.
FLOORS = (
    ("core",),
    ("url", "order"),
    ("io",),
    ("cache", "codec", "http", "audio"),
    ("store", "tar", "zip", "libarchive", "image", "video"),
    ("sample", "decode"),
    ("index",),
    ("interop", "batch"),
    ("dataset",),
    ("stream", "member", "write"),
    ("feed",),
    ("api",),
    ("cli",),  # of the others it knows the public header alone
)
FLOOR_OF = {folder: floor for floor, folders in enumerate(FLOORS) for folder in folders}


def included(path: Path) -> list[str]:
    """The folders whose headers a file includes."""
    return re.findall(r'^#include "(\w+)/', path.read_text(), re.MULTILINE)


def test_includes_go_downward() -> None:
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in {".h", ".cpp"}]
    assert len(sources) > 200
    upward = [
        f"{path.relative_to(ROOT)} includes {folder}"
        for path in sources
        if path.parent.name in FLOOR_OF
        for folder in included(path)
        if folder != path.parent.name and FLOOR_OF[folder] >= FLOOR_OF[path.parent.name]
    ]
    assert not upward


def test_every_folder_has_a_floor_and_a_page() -> None:
    folders = {path.parent.name for path in (ROOT / "src").rglob("*.cpp")}
    assert folders == set(FLOOR_OF)
    assert all((ROOT / "src" / folder / "README.md").is_file() for folder in folders)
