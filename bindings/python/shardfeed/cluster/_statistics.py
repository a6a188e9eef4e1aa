"""Statistics that are often needed, as reducers."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from .. import UsageError
from .._integration import function_named
from ._reducer import Reducer, field_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class ChannelStatistics(Reducer):
    """Mean and standard deviation of each channel of images, on the scale 0 to 1.

        report = shardfeed.map_shards(urls, None, reduce=ChannelStatistics("jpg"))
        report.result["mean"], report.result["std"]    # what normalize= takes

    kind: how images are decoded ("image/rgb8", "image/l8", with steps such as resize=256). The sums
    are whole numbers: the result does not depend on the order. A function may return arrays
    instead, of uint8 with the channels last.
    """

    def __init__(self, field: str, kind: str = "image/rgb8") -> None:
        self.field = field
        self.kind = kind

    def empty(self) -> Any:
        return {"images": 0, "pixels": 0, "sums": [], "squares": []}

    def add(self, partial: Any, sample: Mapping[str, Any]) -> Any:
        import numpy as np

        image = np.asarray(field_of(sample, self.field, self.kind))
        if image.dtype != np.uint8:
            raise UsageError(
                f'the field "{self.field}" has {image.dtype}; help: statistics of channels take '
                'uint8, such as "image/rgb8"'
            )
        pixels = image.reshape(-1, image.shape[-1] if image.ndim == 3 else 1)
        levels = np.arange(256, dtype=np.int64)
        counts = [np.bincount(channel, minlength=256) for channel in pixels.T]
        return self.merge(
            partial,
            {
                "images": 1,
                "pixels": len(pixels),
                "sums": [int(count @ levels) for count in counts],
                "squares": [int(count @ (levels * levels)) for count in counts],
            },
        )

    def merge(self, first: Any, second: Any) -> Any:
        if not first["images"] or not second["images"]:
            return first if first["images"] else second
        if len(first["sums"]) != len(second["sums"]):
            raise UsageError(
                f'images in the field "{self.field}" have {len(first["sums"])} and '
                f'{len(second["sums"])} channels; help: kind="image/rgb8" gives all of them 3'
            )
        return {
            "images": first["images"] + second["images"],
            "pixels": first["pixels"] + second["pixels"],
            "sums": [a + b for a, b in zip(first["sums"], second["sums"])],
            "squares": [a + b for a, b in zip(first["squares"], second["squares"])],
        }

    def finish(self, partial: Any) -> Any:
        pixels = partial["pixels"]
        spreads = [
            math.sqrt(pixels * squares - total * total) / pixels / 255  # exact below the root
            for total, squares in zip(partial["sums"], partial["squares"])
        ]
        return {
            "images": partial["images"],
            "pixels": pixels,
            "mean": [total / pixels / 255 for total in partial["sums"]],
            "std": spreads,
        }


class Histogram(Reducer):
    """How often each value of a field occurs, or how many numbers lie between edges.

        Histogram("cls")                             # {"0": 1200, "1": 980, ...}
        Histogram("width", edges=[0, 256, 512])      # {"below": 3, "counts": [8, 5], ...}

    kind: how the field is decoded: "text", "int", "float64", ... An edge belongs to the bin that
    begins with it.
    """

    def __init__(
        self, field: str, kind: str = "text", edges: Sequence[float] | None = None
    ) -> None:
        self.field = field
        self.kind = kind if edges is None or kind != "text" else "float64"
        self.edges = None if edges is None else list(edges)
        if self.edges is not None and (
            len(self.edges) < 2 or self.edges != sorted(set(self.edges))
        ):
            raise UsageError(f"edges={self.edges}; help: give two or more numbers that ascend")

    def empty(self) -> Any:
        return {} if self.edges is None else [0] * (len(self.edges) + 1)

    def add(self, partial: Any, sample: Mapping[str, Any]) -> Any:
        value = field_of(sample, self.field, self.kind)
        if self.edges is None:
            name = value.strip() if isinstance(value, str) else str(value)
            partial[name] = partial.get(name, 0) + 1
        else:
            partial[bisect_right(self.edges, float(value))] += 1
        return partial

    def merge(self, first: Any, second: Any) -> Any:
        if self.edges is not None:
            return [a + b for a, b in zip(first, second)]
        for name, count in second.items():
            first[name] = first.get(name, 0) + count
        return first

    def finish(self, partial: Any) -> Any:
        if self.edges is None:
            return dict(sorted(partial.items(), key=lambda item: (-item[1], item[0])))
        below, *counts, above = partial
        return {"below": below, "counts": counts, "above": above, "edges": self.edges}


class TokenCounts(Reducer):
    """How many tokens a field has: of all samples, the fewest and the most of one.

    tokenizer: a function from text to tokens, or its name "module:function"; by default words that
    blanks separate. With `kind` "npy" the field holds tokens already, and all its numbers count.
    vocabulary: also how often each token occurs.
    """

    def __init__(
        self,
        field: str,
        tokenizer: Callable[[str], Sequence[Any]] | str | None = None,
        kind: str = "text",
        vocabulary: bool = False,
    ) -> None:
        self.field = field
        self.tokenizer = tokenizer
        self.kind = kind
        self.vocabulary = vocabulary
        self._called: Callable[[str], Sequence[Any]] | None = None

    @property
    def name(self) -> str:
        called = self.tokenizer
        shown = called if called is None or isinstance(called, str) else _name_of(called)
        return f"TokenCounts({self.field!r}, {shown}, {self.kind!r}, {self.vocabulary})"

    def empty(self) -> Any:
        return {"samples": 0, "tokens": 0, "fewest": None, "most": None, "vocabulary": {}}

    def add(self, partial: Any, sample: Mapping[str, Any]) -> Any:
        value = field_of(sample, self.field, self.kind)
        tokens = self._split(value) if isinstance(value, str) else value.reshape(-1).tolist()
        count = len(tokens)
        words: dict[str, int] = {}
        if self.vocabulary:
            for token in tokens:
                words[str(token)] = words.get(str(token), 0) + 1
        one = {
            "samples": 1,
            "tokens": count,
            "fewest": count,
            "most": count,
            "vocabulary": words,
        }
        return self.merge(partial, one)

    def _split(self, text: str) -> Sequence[Any]:
        if self.tokenizer is None:
            return text.split()
        if self._called is None:
            called = self.tokenizer
            self._called = function_named(called) if isinstance(called, str) else called
        return self._called(text)

    def merge(self, first: Any, second: Any) -> Any:
        both = [part for part in (first, second) if part["samples"]]
        if len(both) < 2:
            return both[0] if both else first
        first["samples"] += second["samples"]
        first["tokens"] += second["tokens"]
        first["fewest"] = min(first["fewest"], second["fewest"])
        first["most"] = max(first["most"], second["most"])
        for token, count in second["vocabulary"].items():
            first["vocabulary"][token] = first["vocabulary"].get(token, 0) + count
        return first

    def finish(self, partial: Any) -> Any:
        result = {**partial, "mean": partial["tokens"] / max(partial["samples"], 1)}
        if not self.vocabulary:
            del result["vocabulary"]
        return result


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}:{name}"
