"""Compares the binary interface of the header with the one that was promised, by abidiff.

check_abi.py HEADER SOVERSION            compares; fails when a program that is in use would break
check_abi.py HEADER SOVERSION --write    writes what is promised from now on

What is promised is the header of the last tag (v1.2.3) of this soversion. Where there is none,
before the first release and in a copy without history, it is tests/abi/shardfeed-SOVERSION.abi,
which --write makes. New functions and constants break nothing.

abidiff takes libraries with debug information. Here they are made of the header alone, each
function with an empty body, so that this takes no build: that the real library has these functions
with these types is what its compiler and tests/api/check_symbols.py check. Each enum is the type of
a variable too, because abidiff looks at no type that no symbol has.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent

# What would break programs, and what would not: (what, pattern in the header, replacement).
BREAKS = [
    ("a function is gone", r"const char \*shf_strerror\(int32_t code\);", ""),
    ("another result", r"uint64_t (shf_archive_member_count\()", r"uint32_t \1"),
    ("another parameter", r"(shf_block_sample\([^;]*)size_t index", r"\1uint32_t index"),
    ("a parameter more", r"(shf_option_describe\([^;]*)\);", r"\1, int32_t more);"),
    ("a smaller structure", r"message\[1008\]", "message[1000]"),
    ("a member more", r"(size_t size;\n\} shf_bytes;)", r"int32_t more; \1"),
    ("another value of a constant", r"SHF_END = 1\b", "SHF_END = 2"),
    ("a constant is gone", r"SHF_LOG_INFO = 2\b", ""),
]
ADDITIONS = [
    ("a new function", r"const char \*shf_strerror", r"int32_t shf_new(void);\n\g<0>"),
    ("a new constant", r"SHF_LOG_INFO = 2\b", r"\g<0>, SHF_LOG_DEBUG = 3"),
]


def library(header: str, soversion: str, path: Path) -> Path:
    """Compiles a library that has the interface of a header and does nothing."""
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    enums = re.findall(r"^enum \{\s*(\w+)", code, flags=re.MULTILINE)
    code = re.sub(r"^enum \{(\s*)(\w+)", r"enum of_\2 {\1\2", code, flags=re.MULTILINE)
    code, functions = re.subn(
        r"^((?!typedef\b)[\w ]+[ *]shf_\w+\([^;{]*\));",
        lambda match: match[1] + (" {}" if match[1].startswith("void shf_") else " { return 0; }"),
        code,
        flags=re.MULTILINE,
    )
    if not functions or not enums:
        sys.exit("no functions or no constants were found in the header")
    code += "\n" + "".join(f"enum of_{name} shf_enum_of_{name};\n" for name in enums)
    source = path.with_suffix(".c")
    source.write_text(code)
    command = [
        "cc",
        "-std=c99",
        "-g",
        "-O0",
        "-shared",
        "-fPIC",
        "-w",
        "-o",
        path.name,
        source.name,
    ]
    command.append(f"-Wl,-soname,libshardfeed.so.{soversion}")
    subprocess.run(command, check=True, cwd=path.parent)  # the names of the folders stay out of it
    return path


def differences(promised: Path, now: Path) -> str:
    """What programs built with the one miss in the other; empty when nothing."""
    command = ["abidiff", "--no-added-syms", "--no-architecture", str(promised), str(now)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode & 3:  # it did not understand the files or its arguments
        sys.exit(done.stdout + done.stderr)
    return done.stdout if done.returncode else ""


def git(*arguments: str) -> str:
    """The output of git, empty when it fails."""
    command = ["git", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def last_release(soversion: str) -> str:
    """The last tag with this soversion, empty when there is none."""
    tag = git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    build = git("show", f"{tag}:meson.build") if tag else ""
    return tag if f"soversion = '{soversion}'" in build else ""


def main() -> int:
    """Writes or compares."""
    header, soversion = Path(sys.argv[1]).read_text(), sys.argv[2]
    written = HERE / f"shardfeed-{soversion}.abi"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        now = library(header, soversion, folder / "now.so")
        if "--write" in sys.argv[3:]:
            options = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs"]
            subprocess.run(["abidw", *options, "--out-file", str(written), str(now)], check=True)
            return 0
        wrong = []
        for what, pattern, replacement in BREAKS + ADDITIONS:
            changed, times = re.subn(pattern, replacement, header, count=1)
            other = library(changed, soversion, folder / "other.so")
            if not times:
                wrong.append(f"nothing in the header is {pattern}")
            elif (what, pattern, replacement) in BREAKS and not differences(now, other):
                wrong.append(f"abidiff does not see that {what} breaks programs")
            elif (what, pattern, replacement) in ADDITIONS and differences(now, other):
                wrong.append(f"abidiff takes {what} for a break")
        tag = last_release(soversion)
        if tag:
            promised = library(
                git("show", f"{tag}:include/shardfeed.h"), soversion, folder / "tag.so"
            )
        else:
            promised = written
        broken = differences(promised, now)
        if broken:
            wrong.append(f"the interface of {tag or written.name} is broken:\n{broken}")
    for message in wrong:
        print(message)
    print(f"compared with {tag or written.name}: {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
