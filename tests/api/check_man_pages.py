"""Checks the pages of the manual: usage check_man_pages.py HEADER MANDOC GROFF PAGE... Both
formatters take every page without a warning, every function and type of the header has a page that
shows it, and no word of the header was lost on the way.
"""

import re
import subprocess
import sys
from pathlib import Path


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]{4,}", text))


def main() -> int:
    header, mandoc, groff = Path(sys.argv[1]), *sys.argv[2:4]
    paths = [Path(word) for word in sys.argv[4:]]
    pages = {path.stem if path.suffix == ".3" else path.name: path for path in paths}
    wrong: list[str] = []
    shown: dict[str, str] = {}
    for name, path in pages.items():
        source = path.read_text()
        if source.startswith(".so "):
            continue
        for command in (
            [mandoc, "-T", "lint", "-W", "warning", str(path)],
            [groff, "-man", "-ww", "-z", "-T", "utf8", str(path)],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode or done.stdout or done.stderr:
                wrong.append(done.stdout + done.stderr)
        command = [mandoc, "-T", "ascii", "-O", "width=1000", str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        shown[name] = re.sub(".\x08", "", text)  # overstruck characters are bold

    text = header.read_text()
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    names = set(re.findall(r"\b(shf_\w+)(?=\s*\()|(?<=\(\*)(shf_\w+)|\b(shf_\w+)(?=;)", code))
    names = {name for found in names for name in found if name}
    for name in sorted(names):
        if name not in pages:
            wrong.append(f"{name} has no page")
            continue
        source = pages[name].read_text()
        page = re.fullmatch(r"\.so man3/(\w+)\.3\n", source)
        if name not in shown.get(page[1] if page else name, ""):
            wrong.append(f"the page of {name} does not show it")
    comments = " ".join(re.findall(r"/\*.*?\*/", text[text.index("A SAMPLE") :], flags=re.DOTALL))
    for word in sorted(words(comments) - words(" ".join(shown.values()))):
        wrong.append(f"no page has the word {word!r} of the header")

    for message in wrong:
        print(message)
    print(f"{len(shown)} pages, {len(names)} names, {len(wrong)} faults")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
