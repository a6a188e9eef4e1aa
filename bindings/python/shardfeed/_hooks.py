"""Hooks: functions, of the user or with a name, that make objects of the bytes of a field.

None is chosen by a suffix: bytes of a shard that are unpickled may run any program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import UsageError
from ._ready_hooks import READY
from ._urls import expand_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import TypeAlias

    Hook: TypeAlias = Callable[[bytes], Any]


def checked_hooks(
    hooks: Mapping[str, Hook | str] | None, options: Mapping[str, str]
) -> dict[str, Hook]:
    """Field or suffix -> function. UsageError for a hook that is unknown or not secure."""
    checked: dict[str, Hook] = {}
    for field, hook in (hooks or {}).items():
        if not isinstance(hook, str):
            checked[field] = hook
        elif hook not in READY:
            raise UsageError(
                f'hooks: unknown hook "{hook}" of the field "{field}"; help: give a function that '
                f"takes bytes, or one of {', '.join(READY)}"
            )
        elif hook == "pickle" and _is_secure(options):
            raise UsageError(
                f'hooks: "{hook}" of the field "{field}" can run any program that a shard brings, '
                "and is refused in secure mode; help: secure mode comes from the option secure or "
                "from SHARDFEED_SECURE=1 in the environment"
            )
        else:
            checked[field] = READY[hook]
    return checked


def _is_secure(options: Mapping[str, str]) -> bool:
    # The library says it, so that there is one rule: a command is refused, and not started here.
    try:
        expand_urls("pipe:true", secure=options.get("secure", "false"))
    except UsageError:
        return True
    return False


def _names_of_hooks(column: str) -> list[str]:
    names = [column]
    before, _, suffix = column.rpartition(".")
    if suffix in ("gz", "zst") and before:
        inner = before.rpartition(".")[2]
        names += [f"{inner}.{suffix}", inner]
    return [*names, suffix]


def hooks_of_columns(hooks: Mapping[str, Hook], names: Iterable[str]) -> dict[str, Hook]:
    """Column -> its hook: that of the whole name, or that of the last suffix.

    The suffix of a compressed field, whose bytes are unpacked, is the one before .gz or .zst.
    """
    listed = list(names)
    chosen: dict[str, Hook] = {}
    unused = set(hooks)
    for name in listed:
        for field in _names_of_hooks(name):
            if field in hooks:
                chosen[name] = hooks[field]
                unused.discard(field)
                break
    if unused:
        raise UsageError(
            f"hooks: no column is called {' or '.join(map(repr, sorted(unused)))}, or has that "
            f"suffix; help: the columns are {', '.join(map(repr, listed))}"
        )
    return chosen
