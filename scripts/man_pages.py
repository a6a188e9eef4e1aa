"""Makes the manual pages of section 3 from the public header, and from nothing else but the table
of options in docs/options.md, which a test keeps equal to the library's.

man_pages.py --names HEADER                    prints the names of the files
man_pages.py HEADER OPTIONS VERSION FOLDER      writes them

shardfeed(3) is the comment on top of the header. Each section of the header is a page, named after
the type that most of its functions belong to (or the first function, where there is none); every
other name in it is a file that leads there, so that `man shf_stream_next` works.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import textwrap
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

INCLUDE = "#include <shardfeed.h>"
NAME = re.compile(r"\b(shf_[a-z0-9_]+|SHF_[A-Z0-9_]+\b\*?)")
FOOTER = re.compile(r"(?:(?<=[.;:)] )|^)(Owns|Threads|Errors|Since): ")


@dataclass
class Item:
    """A declaration with the comment before it, or a comment that stands alone."""

    comment: list[str]
    declaration: str

    @property
    def name(self) -> str:
        """What is declared: a function, a type, or the constants of an enum."""
        found = re.search(r"\(\*(shf_\w+)\)|\b(shf_\w+)\(|\}? ?\b(shf_\w+);$", self.declaration)
        if found:
            return found[1] or found[2] or found[3]
        constants = [constant.name.split("_") for constant in enumerators(self.declaration)]
        shared = itertools.takewhile(lambda words: len(set(words)) == 1, zip(*constants))
        return "_".join(words[0] for words in shared) + "_*"

    @property
    def kind(self) -> str:
        """Of text, enum, handle, struct, callback and function."""
        if not self.declaration:
            return "text"
        if self.declaration.startswith("enum"):
            return "enum"
        if not self.declaration.startswith("typedef"):
            return "function"
        if "(*" in self.declaration:
            return "callback"
        return "struct" if "{" in self.declaration else "handle"


@dataclass
class Constant:
    """One enumerator."""

    name: str
    value: str
    comment: str


@dataclass
class Page:
    """A section of the header."""

    title: str
    items: list[Item]
    names: list[str] = field(default_factory=list)  # its own first, then those of all in it

    def named(self, *kinds: str) -> list[str]:
        """The names of the items of some kinds."""
        return [item.name for item in self.items if item.kind in kinds]


def comment_lines(comment: str) -> list[str]:
    """The text of a block comment, without its marks."""
    body = comment.removeprefix("/*").removesuffix("*/").rstrip()
    lines = body.split("\n")
    return [lines[0].strip()] + [re.sub(r"^ \* ?", "", line).rstrip() for line in lines[1:]]


def enumerators(declaration: str) -> list[Constant]:
    """The constants of an enum."""
    return [
        Constant(name, value, " ".join(comment.split()))
        for name, value, comment in re.findall(
            r"(SHF_\w+) = (-?\d+),?(?:[ \n]*/\*(.*?)\*/)?", declaration, flags=re.DOTALL
        )
    ]


def items_of(section: str) -> list[Item]:
    """The declarations of a section, each with its comment."""
    items: list[Item] = []
    comment: list[str] = []
    declaration = ""
    # Comments at the start of a line, empty lines, those of the preprocessor, whose comments say
    # their names, and the lines of declarations.
    for token in re.findall(r"^/\*(?:[^*]|\*(?!/))*\*/\n|^[^\n]*\n", section, flags=re.MULTILINE):
        for part in (
            [token] if token.startswith("/*") and not declaration else token.splitlines(True)
        ):
            if not declaration and part.startswith("/*"):
                comment = comment_lines(part.strip())
            elif not declaration and (not part.strip() or part.startswith("#")):
                if comment:
                    items.append(Item(comment, ""))
                comment = []
            else:
                declaration += part
                code = re.sub(r"/\*.*?\*/", "", declaration, flags=re.DOTALL)
                if code.rstrip().endswith(";") and code.count("{") == code.count("}"):
                    items.append(Item(comment, declaration.strip()))
                    comment, declaration = [], ""
    return items


def parse(header: str) -> tuple[list[str], list[Page]]:
    """The comment on top, and the sections."""
    top = comment_lines(header[: header.index("*/") + 2])
    parts = re.split(r"^/\* ---- (.+?) -+ \*/\n", header, flags=re.MULTILINE)
    end = re.compile(r"^#if.*", re.MULTILINE | re.DOTALL)
    pages = [
        Page(title, items_of(end.sub("", body))) for title, body in zip(parts[1::2], parts[2::2])
    ]
    types = [name for page in pages for name in page.named("handle", "struct")]
    for page in pages:
        functions = page.named("function")
        if not functions:
            sys.exit(f"the section {page.title} of the header has no function")
        owners = Counter(
            kind for kind in types for function in functions if function.startswith(kind + "_")
        )
        page.names = [owners.most_common(1)[0][0] if owners else functions[0]]
    owns = {page.names[0] for page in pages}
    for page in pages:
        others = page.named("function", "callback", "handle", "struct")
        page.names += [name for name in others if name not in owns]
    return top, pages


# ---- roff ----------------------------------------------------------------------------------------


def escape(text: str, *, code: bool = False) -> str:
    """Plain text as roff takes it."""
    text = text.replace("\\", "\\e")
    if code:
        text = (
            text.replace("-", "\\-")
            .replace("^", "\\(ha")
            .replace("~", "\\(ti")
            .replace("'", "\\(aq")
        )
    else:
        text = re.sub(r"(?<![A-Za-z0-9])-", r"\\-", text)
    return "\\&" + text if text.startswith((".", "'")) else text


def verbatim(lines: list[str]) -> list[str]:
    """Lines as they are."""
    shown = textwrap.dedent("\n".join(lines)).split("\n")
    return [".PP", ".RS 4", ".EX", *(escape(line, code=True) for line in shown), ".EE", ".RE"]


class Writer:
    """Turns text of comments into roff, with the names of other pages in bold."""

    def __init__(self, known: set[str]) -> None:
        self.known = known

    def prose(self, text: str) -> list[str]:
        """One paragraph, broken into short lines."""
        lines = textwrap.wrap(
            " ".join(text.split()), 72, break_long_words=False, break_on_hyphens=False
        )
        lines = [NAME.sub(self._mark, escape(line)) for line in lines]
        return [re.sub(r"`(\w+)`", r"\\fI\1\\fR", line) for line in lines]

    def _mark(self, match: re.Match[str]) -> str:
        followed = match.string[match.end() : match.end() + 1] == "("
        section = "(3)" if match[0] in self.known and not followed else ""
        return f"\\fB{match[0]}\\fR{section}"

    def listed(self, term: str, text: str) -> list[str]:
        """An entry of a list."""
        return [".TP", "\\fB" + escape(term, code=True) + "\\fR", *(self.prose(text) or ["\\&"])]

    def footers(self, text: str) -> list[str]:
        """A paragraph; what it says of owners, threads and errors, and since when, as a list."""
        pieces = FOOTER.split(text)
        lines = [".PP", *self.prose(pieces[0])] if pieces[0].strip() else []
        for label, said in zip(pieces[1::2], pieces[2::2]):
            lines += self.listed(label, said)
        return lines

    def text(self, lines: list[str]) -> list[str]:
        """A comment: paragraphs, examples (indented by four or more) and lists.

        In a list the terms stand in a first column, what is said of them in a second one.
        """
        out: list[str] = []
        paragraph: list[str] = []
        column = 0  # where the text of list entries is; 0 outside lists

        def flush() -> None:
            nonlocal paragraph
            if paragraph:
                out.extend(self.footers(" ".join(paragraph)))
            paragraph = []

        number = 0
        while number < len(lines):
            line = lines[number]
            entry = re.match(r"( {0,3})(\S+(?: \S+)*?)  +(\S.*)$", line)
            follows = lines[number + 1] if number + 1 < len(lines) else ""
            crowded = None  # a term too long for its column
            if column and not entry and follows.startswith(" " * column + follows.strip()[:1]):
                crowded = re.match(r"()(\S+) (\S.*)$", line)
            if not line:
                flush()
                column = 0
            elif entry or crowded:
                flush()
                found = entry or crowded
                assert found
                column = found.start(3) if entry else column
                said = [re.sub("  +", ": ", found[3])]  # of a third column
                while number + 1 < len(lines) and re.match(" " * column + r"\S", lines[number + 1]):
                    number += 1
                    said.append(lines[number])
                out.extend(self.listed(found[2], " ".join(said)))
            elif line.startswith("    "):
                flush()
                block = []
                while number < len(lines) and (
                    not lines[number] or lines[number].startswith("    ")
                ):
                    block.append(lines[number])
                    number += 1
                number -= 1
                while not block[-1]:
                    block.pop()
                out.extend(verbatim(block))
            elif re.fullmatch("[A-Z]+(?: [A-Z]+)+", line):
                flush()
                out.append(f".SH {line}")
            else:
                column = 0
                paragraph.append(line)
            number += 1
        flush()
        return out


def prototype(declaration: str) -> list[str]:
    """A declaration in bold, in lines that fit a terminal."""
    # Broken after commas only: a blank that does not break stands in all other places.
    whole = re.sub(r"(?<!,) ", "\0", " ".join(declaration.split()))
    lines = [
        line.replace("\0", " ")
        for line in textwrap.wrap(whole, 68, subsequent_indent=8 * "\0", break_long_words=False)
    ]
    return ["\\fB" + escape(line, code=True) + "\\fR" for line in lines]


def synopsis(page: Page) -> list[str]:
    """The declarations of a page that are not shown further down."""
    lines = [".SH SYNOPSIS", ".nf", f"\\fB{INCLUDE}\\fR"]
    before = ""
    for item in page.items:
        if item.kind in ("handle", "callback", "function"):
            if item.kind != before or item.kind == "function":
                lines.append(".PP")
            lines += prototype(item.declaration)
            before = item.kind
    return [*lines, ".fi"]


def heading(name: str, section: int, version: str, source: Path) -> list[str]:
    """What every page begins with."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", source.stat().st_mtime))
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    title = f'.TH {name.upper()} {section} {date} "shardfeed {version}" "Manual of shardfeed"'
    return [title, ".SH NAME"]


def options(table_page: str, writer: Writer) -> list[str]:
    """The tables of options, a list for each group."""
    tables = table_page.partition("<!-- options -->\n")[2].partition("<!-- /options -->")[0]
    lines = [".SH OPTIONS"]
    for line in tables.splitlines():
        if line.startswith("## "):
            lines.append(f".SS {line.removeprefix('## ')}")
        elif line.startswith("| `"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            name, default, values, text = (
                cell.strip().replace("\\|", "|").strip("`") for cell in cells
            )
            lines += writer.listed(f"{name}={default}", f"({values}) {text}.")
    if len(lines) == 1:
        sys.exit("docs/options.md has no table of options")
    return lines


def section_page(page: Page, writer: Writer, table_page: str) -> list[str]:
    """The body of a page of one section."""
    acronym = page.title[1].isupper()
    title = page.title if acronym else page.title[0].lower() + page.title[1:]
    handles = [item for item in page.items if item.kind in ("handle", "text") and item.comment]
    lines = [
        ", ".join(page.names) + " \\- " + title,
        *synopsis(page),
    ]
    if handles:
        lines.append(".SH DESCRIPTION")
        for item in handles:
            lines += writer.text(item.comment)
    lines.append(".SH INTERFACE")
    for item in page.items:
        if item.kind in ("text", "handle"):
            continue
        lines.append(f".SS {item.name}")
        comment = item.comment
        lines += writer.text(comment)
        if item.kind == "struct":
            lines += verbatim(re.sub(r" +\*/", " */", item.declaration).split("\n"))
        for constant in enumerators(item.declaration) if item.kind == "enum" else []:
            lines += writer.listed(f"{constant.name} = {constant.value}", constant.comment)
    if "shf_options" in page.names:
        lines += options(table_page, writer)
    return lines


def top_page(top: list[str], pages: list[Page], writer: Writer) -> list[str]:
    """The body of shardfeed(3)."""
    title = top[0].partition(" - ")[2]
    text = top[1:]
    while not text[0] or text[0].startswith("This file"):  # is about the header, not the library
        text = text[text.index("") + 1 :] if text[0] else text[1:]
    lines = [
        f"shardfeed \\- {title}",
        ".SH SYNOPSIS",
        ".nf",
        f"\\fB{INCLUDE}\\fR",
        ".PP",
        "cc file.c $(pkg\\-config \\-\\-cflags \\-\\-libs shardfeed)",
        ".fi",
        ".SH DESCRIPTION",
        *writer.text(text),
        ".SH PAGES",
    ]
    for page in pages:
        lines += [".TP", f"\\fB{page.names[0]}\\fR(3)", escape(page.title)]
    return lines


def see_also(own: str, pages: list[Page]) -> list[str]:
    """The other pages."""
    others = [name for name in ["shardfeed", *(page.names[0] for page in pages)] if name != own]
    lines = [f"\\fB{name}\\fR(3)," for name in others]
    return [".SH SEE ALSO", *lines[:-1], lines[-1].removesuffix(",")]


def main() -> None:
    """Lists or writes the pages."""
    if sys.argv[1] == "--names":
        _, pages = parse(Path(sys.argv[2]).read_text())
        print("shardfeed.3", *(f"{name}.3" for page in pages for name in page.names), sep="\n")
        return
    header, table_page, version, folder = (
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        sys.argv[3],
        Path(sys.argv[4]),
    )
    top, pages = parse(header.read_text())
    writer = Writer({"shardfeed", *(name for page in pages for name in page.names)})
    bodies = {"shardfeed": top_page(top, pages, writer)}
    for page in pages:
        own, *aliases = page.names
        bodies[own] = section_page(page, writer, table_page.read_text())
        for alias in aliases:
            (folder / f"{alias}.3").write_text(f".so man3/{own}.3\n")
    for name, body in bodies.items():
        lines = [*heading(name, 3, version, header), *body, *see_also(name, pages)]
        # A heading begins a paragraph by itself.
        lines = [
            line
            for before, line in zip(["", *lines], lines)
            if line != ".PP" or not before.startswith((".SH", ".SS"))
        ]
        (folder / f"{name}.3").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
