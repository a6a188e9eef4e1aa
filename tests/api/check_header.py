"""Checks the public header as a manual: usage check_header.py HEADER VERSION. Every function has a
comment that says since when it exists, the version enumerators are those of the build, and the
rules for generated bindings hold (no macros on declarations, no enum types, no struct by value).
"""

import re
import sys
from pathlib import Path


def main() -> int:
    header, version = Path(sys.argv[1]), sys.argv[2]
    text = header.read_text()
    wrong: list[str] = []

    numbers = dict(re.findall(r"SHF_VERSION_(MAJOR|MINOR|PATCH) = (\d+)", text))
    found = ".".join(numbers.get(part, "?") for part in ("MAJOR", "MINOR", "PATCH"))
    if found != version:
        wrong.append(f"the enumerators say {found}, the build says {version}")
    release = tuple(map(int, version.split(".")[:2]))

    # A declaration is what stands between a comment (or nothing) and ";" and has a parameter list.
    functions = 0
    for comment, declaration in re.findall(
        r"(/\*(?:[^*]|\*(?!/))*\*/\n)?^((?!typedef|static|#|\s|/|\*)[\w ]+[ *]shf_\w+\([^;{]*\);)",
        text,
        flags=re.MULTILINE,
    ):
        functions += 1
        name = re.search(r"(shf_\w+)\(", declaration)[1]
        since = re.search(r"Since: (\d+)\.(\d+)", comment)
        if not comment:
            wrong.append(f"{name} has no comment")
        elif not since:
            wrong.append(f"{name} has no Since:")
        elif tuple(map(int, since.groups())) > release:
            wrong.append(f"{name} is from the future: {since[0]}")
        if re.search(r"\b[A-Z][A-Z_]{3,}\b", declaration):
            wrong.append(f"{name} has a macro on its declaration")
        if re.search(r"\b(enum|struct|bool|long|_Bool)\b", declaration) or "..." in declaration:
            wrong.append(f"{name} has a type that bindings cannot take")
        if re.search(r"\bshf_(bytes|error|array)\s+\w", declaration):
            wrong.append(f"{name} passes a struct by value")
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    called = set(re.findall(r"\b(shf_\w+)\s*\(", code)) - set(re.findall(r"\(\*(shf_\w+)\)", code))
    if functions != len(called):
        wrong.append(f"{len(called)} functions are declared, {functions} were understood")
    for line in re.findall(r"^\s*#\s*define\s+(\w+)", text, flags=re.MULTILINE):
        # An enumerator cannot be a size_t.
        if line not in {"SHARDFEED_H", "SHF_STRLEN"}:
            wrong.append(f"#define {line}: constants are enumerators")
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > 100 or line != line.rstrip() or "\t" in line:
            wrong.append(f"line {number}: longer than 100, trailing blanks or a tab")

    for message in wrong:
        print(message)
    print(f"{functions} functions, {len(wrong)} faults")
    return 1 if wrong or not functions else 0


if __name__ == "__main__":
    sys.exit(main())
