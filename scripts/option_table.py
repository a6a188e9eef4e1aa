"""Keeps the tables of docs/options.md equal to those of the library.

python scripts/option_table.py           compares, and fails when they differ
python scripts/option_table.py --write   writes the tables again
"""

import sys
from pathlib import Path

import shardfeed

BEGIN, END = "<!-- options -->\n", "<!-- /options -->\n"


HEADINGS = {
    "reading": "Reading",
    "network": "Network",
    "s3": "S3",
    "gs": "Google Cloud Storage",
    "az": "Azure Blob Storage",
    "hf": "Hugging Face",
    "ais": "AIStore",
    "feed": "Feeds",
    "order": "Order and epochs",
    "consumer": "Ranks and workers",
    "selection": "Which samples",
    "errors": "Errors",
    "leniency": "What is accepted",
    "limits": "Limits",
    "batches": "Batches",
    "index": "Index files",
    "writing": "Writing",
}


def tables() -> str:
    """The options as Markdown tables, one for each group."""
    groups: dict[str, list[dict[str, str]]] = {group: [] for group in HEADINGS}
    for option in shardfeed.options():
        groups[option["group"]].append(option)
    return "\n".join(f"## {HEADINGS[name]}\n\n{table(group)}" for name, group in groups.items())


def table(options: list[dict[str, str]]) -> str:
    """These options as a Markdown table."""
    rows = ["| option | default | values | |", "|---|---|---|---|"]
    for option in options:
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
    fresh = head + BEGIN + tables() + END + tail
    if "--write" in sys.argv[1:]:
        page.write_text(fresh)
    elif fresh != text:
        sys.exit("the options in docs/options.md are not those of the library: run it with --write")


if __name__ == "__main__":
    main()
