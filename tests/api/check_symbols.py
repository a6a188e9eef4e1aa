"""Compares the functions that the shared library exports with those that the header declares and
with the committed list, which is the symbols file of the Debian package:
check_symbols.py LIBRARY HEADER MAP SYMBOLS [NM]. The version of each symbol is the node of the
library's version map.
"""

import re
import subprocess
import sys
from pathlib import Path


def declared(header: Path) -> set[str]:
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return set(re.findall(r"\b(shf_\w+)\s*\(", text)) - set(re.findall(r"\(\*(shf_\w+)\)", text))


def exported(library: Path, node: str, nm: str) -> set[str]:
    lines = subprocess.run(
        [nm, "-D", "--defined-only", "--format=posix", str(library)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    names = set()
    for name, kind, *_ in (line.split() for line in lines):
        base, _, version = name.partition("@@")
        if kind == "A" and base == node:
            continue  # the version node itself
        names.add(base if version == node and kind == "T" else f"{name} ({kind})")
    return names


def main() -> int:
    library, header, version_map, symbols = map(Path, sys.argv[1:5])
    nm = sys.argv[5] if len(sys.argv) > 5 else "nm"
    node = re.match(r"(\w+) \{\s*global: shf_\*;\s*local: \*;\s*\};\s*$", version_map.read_text())
    if not node:
        print(f"{version_map} is not one node for all functions of the header")
        return 1
    # One symbol a line: " NAME@NODE VERSION".
    listed = [
        base if version == node[1] else f"{base}@{version}"
        for base, version in re.findall(r"^ (\w+)@(\w+) ", symbols.read_text(), flags=re.MULTILINE)
        if base != node[1]
    ]
    lists = {
        "the header": declared(header),
        str(symbols): set(listed),
        "the library": exported(library, node[1], nm),
    }
    everything = set.union(*lists.values())
    wrong = 0
    for symbol in sorted(everything):
        absent = [place for place, names in lists.items() if symbol not in names]
        if absent:
            wrong += 1
            print(f"{symbol} is missing in {' and '.join(absent)}")
    if listed != sorted(set(listed)):
        wrong += 1
        print(f"{symbols} is not sorted or has a name twice")
    print(f"{len(everything)} symbols, {wrong} disagreements")
    return 1 if wrong or not everything else 0


if __name__ == "__main__":
    sys.exit(main())
