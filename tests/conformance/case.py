"""One case of the suite while it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from expected import Sample, sample_bytes, xxh64


@dataclass
class Case:
    """A case. What is None in it is known only to the library.

    error: class and offset (None: it has none) of the error that ends the case.
    """

    name: str
    kind: str
    about: str
    urls: Sequence[str]
    options: Mapping[str, str] = field(default_factory=dict)
    count: int | None = None
    digest: str | None = None
    error: tuple[str, int | None] | None = None
    stats: Mapping[str, int] | None = None
    own: Mapping[str, Any] = field(default_factory=dict)  # keys of the kind, as "stop"

    def as_json(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The case as cases.json has it; what is not known here is that of `given`."""
        expect: dict[str, Any] = {
            "count": given.get("count") if self.count is None else self.count,
            "digest": given.get("digest") if self.digest is None else self.digest,
        }
        if self.error is not None:
            kind, offset = self.error
            expect["error"] = {"class": kind, "message": given.get("error", {}).get("message")}
            if offset is not None:
                expect["error"]["offset"] = offset
        if self.stats is not None:
            expect["stats"] = dict(self.stats)
        return {
            "name": self.name,
            "kind": self.kind,
            "about": self.about,
            "urls": list(self.urls),
            "options": dict(self.options),
            **self.own,
            **({"frozen": True} if self.digest is None else {}),
            "expect": expect,
        }

    def differences(self, given: Mapping[str, Any]) -> list[str]:
        """What `given`, from the library or from cases.json, says otherwise."""
        if not given:
            return [f"{self.name}: not there"]
        expect = self.as_json(given)["expect"]
        return [
            f"{self.name}: {key} {expect.get(key)} expected, not {given.get(key)}"
            for key in ("error", "count", "digest", "stats")
            if expect.get(key) != given.get(key)
        ]


def of_samples(
    kind: str,
    name: str,
    about: str,
    urls: str | Sequence[str],
    samples: Iterable[Sample],
    options: Mapping[str, str] | None = None,
    *,
    error: tuple[str, int | None] | None = None,
    stats: Mapping[str, int] | None = None,
    **own: Any,
) -> Case:
    """A case that expects these samples, and then perhaps an error."""
    listed = list(samples)
    return Case(
        name,
        kind,
        about,
        [urls] if isinstance(urls, str) else urls,
        options or {},
        len(listed),
        xxh64(sample_bytes(listed)),
        error,
        stats,
        own,
    )


def frozen(
    kind: str,
    name: str,
    about: str,
    urls: str | Sequence[str],
    options: Mapping[str, str],
    count: int,
    **own: Any,
) -> Case:
    """A case whose digest is taken from the library."""
    listed = [urls] if isinstance(urls, str) else urls
    return Case(name, kind, about, listed, options, count, own=own)
