"""Saved states of streams: small dicts that JSON can hold."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, NamedTuple

from ._errors import FormatError, UsageError, error_from
from ._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._native import _CData

_VERSION = 1


class SavedState(NamedTuple):
    """The position of a stream."""

    epoch: int  # the number of the one that runs, or of the next one
    blob: bytes | None  # of the library; None: at the start of that epoch
    left: int | None  # samples or batches until the end of the epoch in progress, where counted
    merged: bool  # from those of all consumers: `left` is of all
    samples_or_batches: str  # what `left` counts
    opened: int  # the epoch with which the library's stream was opened


def to_dict(state: SavedState) -> dict[str, object]:
    """The values have the same types in every state, as grain asks for."""
    return {
        "shardfeed": _VERSION,
        "epoch": state.epoch,
        "state": b64encode(state.blob or b"").decode("ascii"),
        "left": -1 if state.left is None else state.left,
        "merged": state.merged,
        "of": state.samples_or_batches,
        "opened": state.opened,
    }


def from_dict(given: Mapping[str, object]) -> SavedState:
    """The state in a dict that to_dict() made, perhaps stored as JSON meanwhile."""
    if not isinstance(given, dict) or "shardfeed" not in given:
        raise FormatError("this is no saved state; help: give what state_dict() gave")
    if given["shardfeed"] != _VERSION:
        raise UsageError(
            f"the state has version {given['shardfeed']!r} of this format; help: restore it with "
            "the version of shardfeed that saved it"
        )
    try:
        epoch, text, left = given["epoch"], given["state"], given["left"]
        merged, of = given["merged"], given["of"]
        opened = given.get("opened", epoch)  # 0.1 before it had "opened"
        if not (isinstance(epoch, int) and isinstance(text, str) and isinstance(left, int)):
            raise TypeError("a value has another type")
        if not (isinstance(merged, bool) and isinstance(of, str) and isinstance(opened, int)):
            raise TypeError("a value has another type")
        blob = b64decode(text, validate=True) or None
    except (KeyError, TypeError, Base64Error) as error:
        raise FormatError(
            f"the saved state is damaged ({error}); help: give what state_dict() gave"
        ) from None
    return SavedState(epoch, blob, None if left < 0 else left, merged, of, opened)


def saved_bytes(state: _CData) -> bytes:
    """The bytes of a shf_state."""
    view = ffi.new("shf_bytes *")
    lib.shf_state_bytes(state, view)
    return bytes(ffi.buffer(view.data, view.size))


def merge_states(states: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """Makes one state of those of all ranks and workers of a run.

        state = shardfeed.merge_states(state_of_each_rank_and_worker)
        stream = shardfeed.Stream(urls, lanes=64, rank=rank, world_size=other_number)
        stream.load_state_dict(state)

    Any number of ranks and workers can resume from it, with the same option lanes; best one that
    divides lanes, else several read the same shards and keep their own samples. The order of all
    samples together does not change.
    """
    parts = [from_dict(state) for state in states]
    if not parts:
        raise UsageError("no states to merge")
    first = parts[0]
    for part in parts:
        for name, mine, other in (
            ("epoch", first.epoch, part.epoch),
            ("the epoch they began with", first.opened, part.opened),
            ("what is taken", first.samples_or_batches, part.samples_or_batches),
            ("counting", first.left is None, part.left is None),
            ("place", first.blob is None, part.blob is None),
        ):
            if mine != other:
                raise UsageError(
                    f"the states differ in {name}: {mine!r} and {other!r}; help: merge states that "
                    "were saved at the same time"
                )
    blob = None
    blobs = [part.blob for part in parts if part.blob is not None]
    if blobs:
        buffers = [ffi.from_buffer("uint8_t[]", blob) for blob in blobs]
        array = ffi.new("shf_bytes[]", len(parts))
        for place, buffer in zip(array, buffers):
            place.data, place.size = buffer, len(buffer)
        error = ffi.new("shf_error *")
        merged = ffi.new("shf_state **")
        if lib.shf_state_merge(array, len(parts), merged, error):
            raise error_from(error)
        try:
            blob = saved_bytes(merged[0])
        finally:
            lib.shf_state_free(merged[0])
    left = None if first.left is None else sum(part.left or 0 for part in parts)
    return to_dict(first._replace(blob=blob, left=left, merged=True))
