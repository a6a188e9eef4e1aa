"""Stages: functions of an iterator with their arguments, as values that can be pickled and read."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class FilterFunction:
    """A stage: f(data, *args, **kw) with all arguments but the data."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kw: Any) -> None:
        self.f = f
        self.args = args
        self.kw = kw

    def __call__(self, data: Any) -> Iterator[Any]:
        iterator: Iterator[Any] = self.f(data, *self.args, **self.kw)
        return iterator

    def __str__(self) -> str:
        return f"<{self.f.__name__} {self.args} {self.kw}>"

    def __repr__(self) -> str:
        return str(self)


def arguments_of(stage: Any, function: Any, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The arguments of a stage of this function by name, if it has only these."""
    if not isinstance(stage, FilterFunction) or stage.f is not function:
        return None
    if len(stage.args) > len(names):
        return None
    given = {**dict(zip(names, stage.args)), **stage.kw}
    return given if set(given) <= set(names) else None


class RestCurried:
    """Makes stages of a function: RestCurried(f)(2, x=3)(data) is f(data, 2, x=3)."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f

    def __call__(self, *args: Any, **kw: Any) -> FilterFunction:
        return FilterFunction(self.f, *args, **kw)


def pipelinefilter(f: Callable[..., Any]) -> RestCurried:
    """Makes f(data, ...) a function of the other arguments that gives a stage."""
    result = RestCurried(f)
    functools.update_wrapper(result, f)
    return result
