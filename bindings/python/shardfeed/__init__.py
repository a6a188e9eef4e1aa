"""shardfeed: feeds machine-learning training from tar and ZIP files.

    import shardfeed

    with shardfeed.Stream("train-{000000..000099}.tar", shuffle=1000, seed=1) as stream:
        for sample in stream:
            image, label = sample["jpg"], int(bytes(sample["cls"]))

A sample is a Mapping from field name to a read-only memoryview, with .key and .shard.

    with shardfeed.Archive("images.zip") as archive:
        archive.read("img_000.png"), archive[5].read(), archive.read_many([7, 5, 8])

    with shardfeed.Members("pipe:zcat old.tar.gz") as members:
        for member in members:
            print(member.name, len(member.read()))

    with shardfeed.Stream(urls, decode="jpg:image/rgb8/resize=64x64, cls:int") as stream:
        for batch in stream.batches(256):
            images, labels = batch["jpg"], batch["cls"]

    with shardfeed.mix([photographs, drawings], weights=[3, 1]) as stream:
        for sample in stream: ...

Streams that are mixed deliver their samples in turn, at random by weight.

A batch has a column for each field, decoded: a NumPy array over memory of the library, which other
packages take without a copy too.

An archive gives the members of one tar or ZIP file in any order; shardfeed.torch has a data set
over it. Members gives all of them from front to back, of any size. Options are listed by
shardfeed.options(). All errors are shardfeed.Error, and also the built-in ones people catch.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._archive import Archive, Member
from ._batch import Batch
from ._column import BytesColumn, Column, Ragged
from ._dataset import Dataset
from ._errors import (
    AccessError,
    AmbiguousError,
    AuthError,
    CancelledError,
    ChangedError,
    ChildError,
    Error,
    ForkedError,
    FormatError,
    IntegrityError,
    InternalError,
    LimitError,
    NetPermanentError,
    NetTransientError,
    NoMemberError,
    NoMemoryError,
    NoSpaceError,
    NotFoundError,
    ReadError,
    ThrottledError,
    TimeoutError,
    TLSError,
    TransformError,
    TruncatedError,
    UnsupportedError,
    UsageError,
)
from ._iterators import BatchIterator, SampleIterator
from ._members import CurrentMember, Members
from ._mix import Mix, mix
from ._native import ffi as _ffi
from ._native import lib as _lib
from ._options import features, options
from ._plan import Plan, plan, simulate_plan
from ._prepared import PublishError, discard_left, discard_prepared, publish_prepared
from ._receivers import Skip
from ._recipe import MixRecipe, Recipe, StreamRecipe
from ._sample import Sample
from ._state import merge_states
from ._stream import Stream
from ._urls import expand_urls
from ._writer import Shard, Writer

if _TYPE_CHECKING:
    from .cluster import map_shards, reshard

__version__: str = _ffi.string(_lib.shf_version_string()).decode("ascii")

__all__ = [
    "AccessError",
    "AmbiguousError",
    "Archive",
    "AuthError",
    "Batch",
    "BatchIterator",
    "BytesColumn",
    "CancelledError",
    "ChangedError",
    "ChildError",
    "Column",
    "CurrentMember",
    "Dataset",
    "Error",
    "ForkedError",
    "FormatError",
    "IntegrityError",
    "InternalError",
    "LimitError",
    "Member",
    "Members",
    "Mix",
    "MixRecipe",
    "NetPermanentError",
    "NetTransientError",
    "NoMemberError",
    "NoMemoryError",
    "NoSpaceError",
    "NotFoundError",
    "Plan",
    "PublishError",
    "Ragged",
    "ReadError",
    "Recipe",
    "Sample",
    "SampleIterator",
    "Shard",
    "Skip",
    "Stream",
    "StreamRecipe",
    "TLSError",
    "ThrottledError",
    "TimeoutError",
    "TransformError",
    "TruncatedError",
    "UnsupportedError",
    "UsageError",
    "Writer",
    "__version__",
    "discard_left",
    "discard_prepared",
    "expand_urls",
    "features",
    "map_shards",
    "merge_states",
    "mix",
    "options",
    "plan",
    "publish_prepared",
    "reshard",
    "simulate_plan",
]


def __getattr__(name: str) -> object:
    if name not in ("map_shards", "reshard"):
        raise AttributeError(f"module 'shardfeed' has no attribute {name!r}")
    from . import cluster  # with the processes that it starts: slow to import

    globals()[name] = getattr(cluster, name)
    return globals()[name]
