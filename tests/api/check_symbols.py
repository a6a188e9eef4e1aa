"""Compares the functions that the shared library exports with those that the header declares and
with the committed list: usage check_symbols.py LIBRARY HEADER LIST [NM].
"""

import re
import subprocess
import sys
from pathlib import Path


def declared(header: Path) -> set[str]:
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return set(re.findall(r"\b(shf_\w+)\s*\(", text)) - set(re.findall(r"\(\*(shf_\w+)\)", text))


def exported(library: Path, nm: str) -> set[str]:
    lines = subprocess.run(
        [nm, "-D", "--defined-only", "--format=posix", str(library)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    names = set()
    for name, kind, *_ in (line.split() for line in lines):
        base, _, version = name.partition("@@")
        if kind == "A" and base.startswith("SHARDFEED_"):
            continue  # the version node itself
        names.add(base if version == "SHARDFEED_0" and kind == "T" else f"{name} ({kind})")
    return names


def main() -> int:
    library, header, listed = map(Path, sys.argv[1:4])
    nm = sys.argv[4] if len(sys.argv) > 4 else "nm"
    lists = {
        "the header": declared(header),
        str(listed): set(listed.read_text().split()),
        "the library": exported(library, nm),
    }
    everything = set.union(*lists.values())
    wrong = 0
    for symbol in sorted(everything):
        absent = [place for place, names in lists.items() if symbol not in names]
        if absent:
            wrong += 1
            print(f"{symbol} is missing in {' and '.join(absent)}")
    if listed.read_text().split() != sorted(lists[str(listed)]):
        wrong += 1
        print(f"{listed} is not sorted or has a name twice")
    print(f"{len(everything)} symbols, {wrong} disagreements")
    return 1 if wrong or not everything else 0


if __name__ == "__main__":
    sys.exit(main())
