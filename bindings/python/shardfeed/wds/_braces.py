"""Braces in URLs, by the rules of the package braceexpand: {a,b}, {1..9}, {a..e..2}."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NUMBERS = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.-?(\d+))?\Z")
_RANGE = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.-?(\d+))?\Z")


class UnbalancedBracesError(ValueError):
    """A brace that nothing closes, or that closes nothing."""


def braceexpand(pattern: str, escape: bool = True) -> Iterator[str]:
    """All texts that a text with braces means; the rightmost group varies fastest."""
    parts = _parts(pattern, escape)
    return ("".join(chosen) for chosen in itertools.product(*map(list, parts)))


def _parts(text: str, escape: bool) -> list[Iterable[str]]:
    parts: list[Iterable[str]] = []
    plain: list[str] = []
    i = 0
    while i < len(text):
        char = text[i]
        if escape and char == "\\" and i + 1 < len(text):
            plain.append(text[i + 1])
            i += 2
            continue
        if char == "}":
            raise UnbalancedBracesError(f"Unbalanced braces: '{text}'")
        if char == "{":
            end = _closing(text, i, escape)
            parts.append(["".join(plain)])
            plain = []
            parts.append(_group(text[i + 1 : end], escape))
            i = end
        else:
            plain.append(char)
        i += 1
    parts.append(["".join(plain)])
    return parts


def _closing(text: str, start: int, escape: bool) -> int:
    depth = 0
    i = start
    while i < len(text):
        if escape and text[i] == "\\":
            i += 1
        elif text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return i
        i += 1
    raise UnbalancedBracesError(f"Unbalanced braces: '{text}'")


def _group(inside: str, escape: bool) -> list[str]:
    if found := _NUMBERS.match(inside):
        return _numbers(found[1], found[2], int(found[3] or 1) or 1)
    if found := _RANGE.match(inside):
        first, last = _LETTERS.index(found[1]), _LETTERS.index(found[2])
        return [_LETTERS[i] for i in _steps(first, last, int(found[3] or 1) or 1)]
    items = _items(inside, escape)
    if len(items) == 1:  # no list: the braces stay
        return ["{" + each + "}" for each in braceexpand(inside, escape)]
    return [each for item in items for each in braceexpand(item, escape)]


def _steps(first: int, last: int, step: int) -> range:
    return range(first, last + 1, step) if first <= last else range(first, last - 1, -step)


def _numbers(first: str, last: str, step: int) -> list[str]:
    padded = any(re.match(r"-?0\d", text) for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [str(i).zfill(width) for i in _steps(int(first), int(last), step)]


def _items(text: str, escape: bool) -> list[str]:
    """The parts between the commas that are in no braces of their own."""
    items, depth, start, i = [], 0, 0, 0
    while i < len(text):
        if escape and text[i] == "\\":
            i += 1
        elif text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
        elif text[i] == "," and depth == 0:
            items.append(text[start:i])
            start = i + 1
        i += 1
    return [*items, text[start:]]
