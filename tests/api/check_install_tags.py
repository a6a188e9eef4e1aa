"""Checks that every installed file has the tag of the package that it belongs to: usage
check_install_tags.py BUILD. Files without a tag are missing after "meson install --tags".
"""

import json
import re
import subprocess
import sys

# Of the path below its folder: {libdir_shared}/libshardfeed.so.0.1.0
TAGS = {
    "runtime": r"\{libdir_\w+\}/libshardfeed\.so\..*|\{bindir\}/shardfeed"
    r"|\{datadir\}/(bash-completion|zsh|fish)/.*",
    "devel": r"\{libdir_static\}/.*\.a|\{includedir\}/.*|\{libdir\}/(pkgconfig|cmake)/.*"
    r"|\{datadir\}/doc/.*",
    "man": r"\{mandir\}/man[13]/.*",
    "python-runtime": r"\{py_\w+\}/.*",
}


def main() -> int:
    plan = json.loads(
        subprocess.run(
            ["meson", "introspect", "--install-plan", sys.argv[1]],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    files = [file for group in plan.values() for file in group.values()]
    wrong = 0
    for file in files:
        if not re.fullmatch(TAGS.get(file["tag"], ""), file["destination"]):
            wrong += 1
            print(f"{file['destination']} has the tag {file['tag']}")
    print(f"{len(files)} files, {wrong} with the wrong tag")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
