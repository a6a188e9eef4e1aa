"""Plans: what each rank and worker of a run will read, before it starts."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from ._errors import UsageError, error_from
from ._native import ffi, lib
from ._opener import set_opener
from ._options import native_options, option_texts
from ._signals import Signals
from ._urls import native_urls, url_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Unpack

    from ._native import StreamOptions, _CData
    from ._opener import Opener
    from ._urls import URLs

_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF


class Plan:
    """What a run would read, and what is wrong with that; plan() and simulate_plan() make one.

    str(plan) is the text for people: a summary, a line for each rank and worker (of many: the first
    eight and the last one), and the warnings.
    warnings: each is a line that says what, and after "help: " what to do.
    """

    def __init__(self, native: _CData) -> None:
        self._native = native
        self.warnings: list[str] = []
        text = ffi.new("shf_bytes *")
        while lib.shf_plan_warning(native, len(self.warnings), text) == lib.SHF_OK:
            self.warnings.append(_decoded(text))
        lib.shf_plan_text(native, text)
        self._text = _decoded(text)

    @property
    def consumers(self) -> list[dict[str, int | None]]:
        """What each worker of each rank reads in the first epoch.

        "rank", "worker", "lanes", "shards", and "samples" and "bytes", which are None when they are
        not known. The list is made again each time.
        """
        properties = {
            "rank": lib.SHF_PLAN_RANK,
            "worker": lib.SHF_PLAN_WORKER,
            "lanes": lib.SHF_PLAN_LANES,
            "shards": lib.SHF_PLAN_SHARDS,
            "samples": lib.SHF_PLAN_SAMPLES,
            "bytes": lib.SHF_PLAN_BYTES,
        }
        count = lib.shf_plan_consumer_count(self._native)
        return self._table(properties, lib.shf_plan_info, count)

    @property
    def shards(self) -> list[dict[str, int | None]]:
        """Each shard of the expanded list: "samples" and "bytes", None when they are not known.

        The list is made again each time.
        """
        properties = {
            "samples": lib.SHF_PLAN_SHARD_SAMPLES,
            "bytes": lib.SHF_PLAN_SHARD_BYTES,
        }
        count = lib.shf_plan_shard_count(self._native)
        return self._table(properties, lib.shf_plan_shard_info, count)

    def reads(self, consumer: int) -> list[dict[str, int]]:
        """When consumers[consumer] reads which shard in the first epoch, in the order of beginning.

        "shard", its place in shards; "samples" that are read of it; "first" and "last", the
        numbers, from 0, of the samples that the consumer takes while it is read. A sample is read
        when its lane needs it to give the next one: threads read ahead of that. UsageError when
        samples are not known, or there is no such consumer.
        """
        if consumer < 0:
            raise UsageError(f"consumer {consumer} of a plan; help: they are numbered from 0")
        error = ffi.new("shf_error *")
        count = ffi.new("size_t *")
        room, found = 0, ffi.NULL
        for _ in range(2):  # how many there are, and they
            if lib.shf_plan_reads(self._native, consumer, found, room, count, error):
                raise error_from(error)
            if room == count[0]:
                break
            room = count[0]
            found = ffi.new("uint64_t[]", 4 * room)
        numbers = ffi.unpack(found, 4 * room) if room else []
        names = ("shard", "samples", "first", "last")
        return [
            dict(zip(names, numbers[at : at + 4], strict=True)) for at in range(0, len(numbers), 4)
        ]

    def _table(
        self, properties: dict[str, int], info: Callable[[_CData, int, int], int], count: int
    ) -> list[dict[str, int | None]]:
        def value(number: int, what: int) -> int | None:
            found = info(self._native, number, what)
            return None if found == _UNKNOWN else found

        return [
            {name: value(number, what) for name, what in properties.items()}
            for number in range(count)
        ]

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        from ._notebook import text_html

        return text_html(self._text)

    def __repr__(self) -> str:
        return f"<shardfeed.Plan: {self._text.splitlines()[0]}; {len(self.warnings)} warnings>"


def _decoded(text: _CData) -> str:
    return bytes(ffi.buffer(text.data, text.size)).decode("utf-8", "backslashreplace")


def samples_of_consumer(
    urls: list[str], texts: Mapping[str, str], consumer: int, opener: Opener | None
) -> int | None:
    """What one of rank x num_workers + worker consumers reads in the first epoch; None: unknown."""
    number = lib.shf_plan_info(_made(urls, texts, opener), consumer, lib.SHF_PLAN_SAMPLES)
    return None if number == _UNKNOWN else number


def _made(urls: list[str], options: Mapping[str, str], opener: Opener | None) -> _CData:
    array, texts = native_urls(urls)
    made = ffi.new("shf_plan **")
    error = ffi.new("shf_error *")
    native = native_options(options)
    set_opener(native, opener)
    signals = Signals(native)
    failed = lib.shf_plan_make(made, array, len(texts), native, error)
    signals.raise_exception()
    if failed:
        raise error_from(error)
    return ffi.gc(made[0], lib.shf_plan_free)


def plan(urls: URLs, *, opener: Opener | None = None, **options: Unpack[StreamOptions]) -> Plan:
    """What each rank and worker will read of these shards, and warnings, before the run.

        print(shardfeed.plan(urls, world_size=8, num_workers=4, shuffle=1000))

    Takes the options and the opener of Stream, and plans for all ranks and workers. Opens no shard.
    Samples and bytes are known when all shards have index files, as shardfeed.Dataset(urls) or a
    run with write_index=True makes them, and no filter leaves samples out.
    """
    listed = url_list(urls)
    return Plan(_made(listed, option_texts(options, listed), opener))


def simulate_plan(
    samples: Iterable[int],
    shard_bytes: Iterable[int] | None = None,
    **options: Unpack[StreamOptions],
) -> Plan:
    """A plan of shards that need not be there: `samples` has the number of each of them.

        plan = shardfeed.simulate_plan([1000] * 100_000, world_size=1024, shuffle_shards=True)
        print(plan, plan.reads(0))

    shard_bytes: likewise their sizes, where they are to be known. Options are those of plan().
    UsageError for no shard, and for numbers that no shard has.
    """
    counts = _numbers(samples)
    sizes = None if shard_bytes is None else _numbers(shard_bytes)
    if sizes is not None and len(sizes) != len(counts):
        raise UsageError(f"samples of {len(counts)} shards, and bytes of {len(sizes)}")
    made = ffi.new("shf_plan **")
    error = ffi.new("shf_error *")
    if lib.shf_plan_simulate(
        made,
        ffi.from_buffer("uint64_t[]", counts) if counts else ffi.NULL,
        ffi.from_buffer("uint64_t[]", sizes) if sizes else ffi.NULL,
        len(counts),
        native_options(option_texts(options)),
        error,
    ):
        raise error_from(error)
    return Plan(ffi.gc(made[0], lib.shf_plan_free))


def _numbers(given: Iterable[int]) -> array[int]:
    numbers = list(given)
    try:
        return array("Q", numbers)
    except OverflowError:
        place = next(i for i, number in enumerate(numbers) if not 0 <= number < 2**64)
        raise UsageError(f"shard {place} has {numbers[place]} samples or bytes") from None
