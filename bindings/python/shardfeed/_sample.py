"""Samples: a key and named byte fields, read where they lie."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from ._batch import Batch, new_holder
from ._column import MIXED, checked_array
from ._errors import NoMemberError, UsageError, error_from
from ._native import ffi, lib
from ._options import native_options, option_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._native import DecodeOptions, _CData

_T = TypeVar("_T")


class _Column(Protocol):
    """Numbers of fields, by the number of the field in the block."""

    def __getitem__(self, index: int, /) -> int: ...


class SampleBlock(Protocol):
    """What samples are read from: fields are numbered, and lie in a few views."""

    @property
    def views(self) -> list[memoryview]: ...
    @property
    def buffers(self) -> _Column: ...  # of each field: the number of its view,
    @property
    def starts(self) -> _Column: ...  # where it starts there,
    @property
    def stops(self) -> _Column: ...  # and where it stops
    def native(self, index: int) -> _CData: ...  # borrowed from the block
    def decode_texts(self, texts: dict[str, str]) -> dict[str, str]: ...  # options, completed
    def key(self, index: int) -> str: ...
    def shard(self, index: int) -> str: ...


# Words of images that choose at random. Of others the value says so, as in crop=random:32x32.
_CHANCES = frozenset(("grayscale", "solarize"))
_RANDOM = _CHANCES | frozenset(
    (
        *("rrc", "brightness", "contrast", "saturation", "hue", "blur"),
        *("randaugment", "trivialaugment", "mixup", "cutmix"),
    )
)


def has_random_choices(decode: str) -> bool:
    """Whether images or sounds of the option decode differ between epochs."""
    for column in decode.split(","):
        kind, *words = map(str.strip, column.partition(":")[2].split("/"))
        if kind not in ("image", "audio"):
            continue
        for name, _, value in (word.partition("=") for word in words):
            never_or_always = name in _CHANCES and value in ("0", "1")
            if value.startswith("random") or (name in _RANDOM and not never_or_always):
                return True
    return False


class Sample(Mapping[str, memoryview]):
    """A Mapping from field name to bytes, as read-only memoryviews: sample["jpg"].

    Nothing is copied: bytes(sample["jpg"]) copies one field, sample.to_dict() all of them. Views
    stay valid when the sample, the iterator and the stream are gone. Samples of a stream cannot be
    changed, and pickle as copies. Names and keys that are not UTF-8 are str with surrogate escapes.

    Sample(items), of a mapping or of pairs, is for packages that rebuild a Mapping of what they
    made of its values, as grain does without JAX: it has those values, but no key and no shard.
    """

    __slots__ = ("_block", "_field", "_index", "_schema")

    def __init__(
        self,
        block: SampleBlock | Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
        index: int = 0,
        schema: dict[str, int] | None = None,
        field: int = 0,
    ) -> None:
        if schema is None:
            items: dict[str, Any] = dict(block)  # type: ignore[arg-type]
            schema = {name: position for position, name in enumerate(items)}
            block = _RebuiltBlock(items)
        self._block: SampleBlock = block  # type: ignore[assignment]
        self._index = index  # number of the sample in the block
        self._schema = schema  # field name -> position in the sample
        self._field = field  # number of the sample's first field in the block

    @property
    def key(self) -> str:
        """What the names of the sample's members have in common: "a/0001"."""
        return self._block.key(self._index)

    @property
    def shard(self) -> str:
        """The URL of the shard the sample came from, without secrets."""
        return self._block.shard(self._index)

    def to_dict(self) -> dict[str, bytes]:
        """A copy: field name -> bytes."""
        return {name: bytes(view) for name, view in self.items()}

    def array(self, name: str, kind: str | None = None) -> NDArray[Any]:
        """A field decoded to a NumPy array: sample.array("x.npy"), sample.array("png").

        kind: what it becomes where its suffix does not say it: sample.array("jpg", "image/l8"),
        sample.array("embedding", "npy"), as the option decode has it.
        """
        if name not in self._schema:
            raise self._absent(name)
        batch = self._batch({"decode": name if kind is None else f"{name}:{kind}"})
        array: NDArray[Any] = checked_array(batch.column(name)).numpy()[0, ...]
        return array

    def decode(self, decode: str = "auto", **options: Unpack[DecodeOptions]) -> dict[str, Any]:
        """The decoded fields: field name -> array, number, text, object or bytes.

            sample.decode()                          # every field, as its suffix says
            sample.decode("jpg:image/rgb8, cls")     # as the option decode has it

        options: missing, max_decoded, and seed, the key of random crops and flips; that of a
        sample of a Dataset is also the epoch of its set_epoch().
        """
        batch = self._batch({"decode": decode, **option_texts(options)})
        return {name: values[0] for name, values in batch.items() if name not in MIXED}

    def _batch(self, texts: dict[str, str]) -> Batch:
        """A batch of this sample alone."""
        texts = self._block.decode_texts(texts)
        samples = ffi.new("shf_sample *[]", [self._block.native(self._index)])
        holder = new_holder()
        error = ffi.new("shf_error *")
        if lib.shf_batch_make(holder, samples, 1, native_options(texts), error):
            raise error_from(error)
        return Batch.received(holder, texts)

    def __getitem__(self, name: str) -> memoryview:
        try:
            at = self._field + self._schema[name]
        except KeyError:
            raise self._absent(name) from None
        block = self._block
        return block.views[block.buffers[at]][block.starts[at] : block.stops[at]]

    def _absent(self, name: str) -> NoMemberError:
        fields = ", ".join(map(repr, self._schema)) or "none"
        return NoMemberError(f"the sample has no field {name!r}; help: its fields are {fields}")

    def __contains__(self, name: object) -> bool:
        return name in self._schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema)

    def __len__(self) -> int:
        return len(self._schema)

    def keys(self) -> KeysView[str]:
        """The names of the fields, in the order of the shard."""
        return self._schema.keys()

    # The inner loops of most programs, and therefore written out twice: a plain loop is faster than
    # any comprehension, zip or map, and each call saved is a tenth of the time (measured).

    def values(self) -> ValuesView[memoryview]:
        """The bytes of each field."""
        block = self._block
        views, buffers, starts, stops = block.views, block.buffers, block.starts, block.stops
        at = self._field
        fields = {}
        for name in self._schema:
            fields[name] = views[buffers[at]][starts[at] : stops[at]]
            at += 1
        return fields.values()

    def items(self) -> ItemsView[str, memoryview]:
        """Name and bytes of each field."""
        block = self._block
        views, buffers, starts, stops = block.views, block.buffers, block.starts, block.stops
        at = self._field
        fields = {}
        for name in self._schema:
            fields[name] = views[buffers[at]][starts[at] : stops[at]]
            at += 1
        return fields.items()

    @overload
    def get(self, name: str) -> memoryview | None: ...
    @overload
    def get(self, name: str, default: memoryview | _T) -> memoryview | _T: ...
    def get(self, name: str, default: object = None) -> object:
        """The bytes of a field, or `default` when it is not there."""
        return self[name] if name in self._schema else default

    def __repr__(self) -> str:
        if isinstance(self._block, _RebuiltBlock):
            return f"<shardfeed.Sample rebuilt {dict(self.items())!r}>"
        sizes = ", ".join(f"{name}: {len(view)} bytes" for name, view in self.items())
        return f"<shardfeed.Sample {self.key!r} {sizes}>"

    def _repr_html_(self) -> str:
        from ._notebook import sample_html

        return sample_html(self)

    def __copy__(self) -> Sample:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Sample:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if isinstance(self._block, _RebuiltBlock):
            fields = self.items()
            values = {n: bytes(v) if isinstance(v, memoryview) else v for n, v in fields}
            return Sample, (values,)
        return _copied_sample, (self.key, self.shard, self.to_dict())


class _CopiedBlock:
    """The block of one sample that was pickled: its bytes, without the library."""

    __slots__ = ("_key", "_shard", "buffers", "starts", "stops", "views")

    def __init__(self, key: str, shard: str, fields: Mapping[str, bytes]) -> None:
        self._key = key
        self._shard = shard
        self.views = [memoryview(b"".join(fields.values()))]
        self.buffers = [0] * len(fields)
        self.stops = list(accumulate(map(len, fields.values())))
        self.starts = [0, *self.stops]

    def native(self, index: int) -> _CData:
        raise UsageError(
            "a sample that was pickled cannot be decoded; help: decode it before, and pickle that"
        )

    def decode_texts(self, texts: dict[str, str]) -> dict[str, str]:
        return texts

    def key(self, index: int) -> str:
        return self._key

    def shard(self, index: int) -> str:
        return self._shard


class _Whole:
    """A value that is its own slice."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = memoryview(value).toreadonly() if isinstance(value, bytes) else value

    def __getitem__(self, index: slice) -> Any:
        return self._value


def native_sample(sample: Sample) -> _CData:
    """The sample in C, borrowed from `sample`."""
    return sample._block.native(sample._index)


class _RebuiltBlock:
    """The block of one sample that was made of values of any kind."""

    __slots__ = ("buffers", "starts", "stops", "views")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.views: Any = list(map(_Whole, values.values()))
        self.buffers = range(len(values))
        self.starts = self.stops = [0] * len(values)

    def native(self, index: int) -> _CData:
        raise self._refusal("its bytes in the library")

    def decode_texts(self, texts: dict[str, str]) -> dict[str, str]:
        return texts

    def key(self, index: int) -> str:
        raise self._refusal("key")

    def shard(self, index: int) -> str:
        raise self._refusal("shard")

    def _refusal(self, what: str) -> UsageError:
        return UsageError(
            f"a sample that was rebuilt from its fields has lost {what}; help: take what is needed "
            "of it before, in the first transformation; with JAX installed grain rebuilds none"
        )


def _copied_sample(key: str, shard: str, fields: dict[str, bytes]) -> Sample:
    schema = {name: position for position, name in enumerate(fields)}
    return Sample(_CopiedBlock(key, shard, fields), 0, schema, 0)
