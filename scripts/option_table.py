"""Keeps the table of docs/options.md equal to the library's.

python scripts/option_table.py           compares, and fails when they differ
python scripts/option_table.py --write   writes the table again
"""

import sys
from pathlib import Path

import shardfeed

BEGIN, END = "<!-- options -->\n", "<!-- /options -->\n"


def table() -> str:
    """The options as a Markdown table."""
    rows = ["| option | default | values | |", "|---|---|---|---|"]
    for option in shardfeed.options():
        values = option["range"].replace("|", " \\| ")
        if option["type"] == "bool":
            values = "bool"
        default = f"`{option['default']}`" if option["default"] else ""
        rows.append(f"| `{option['name']}` | {default} | {values} | {option['help']} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Compares or writes."""
    page = Path(__file__).parent.parent / "docs/options.md"
    text = page.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    fresh = head + BEGIN + table() + END + tail
    if "--write" in sys.argv[1:]:
        page.write_text(fresh)
    elif fresh != text:
        sys.exit("the options in docs/options.md are not those of the library: run it with --write")


if __name__ == "__main__":
    main()
