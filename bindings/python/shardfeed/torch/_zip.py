"""Images of a ZIP or tar file by number, for DataLoader."""

from __future__ import annotations

import io
import json
import math
import operator
from array import array
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset as _TorchDataset

from .. import Archive, FormatError, NoMemberError, UsageError
from .._integration import read_to_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import SupportsIndex

    from .._integration import URL, Opener

_SUFFIXES = (b".png", b".jpg", b".jpeg", b".webp", b".bmp", b".gif", b".tif", b".tiff", b".ppm")
_RAW_SUFFIX = b".raw"


class ZipDataset(_TorchDataset[Any]):
    """The images of one ZIP or tar file with their labels, as a map-style data set.

    Items are (image, label), in the order of the images' names (as bytes). An image is a file
    whose name ends, in any case, in .png, .jpg, .jpeg, .webp, .bmp, .gif, .tif, .tiff, .ppm or,
    with load_encoded=False, .raw; hidden files (.name, as macOS puts beside others) are left out.

    load_encoded=False: a member is the image's bytes as they are in memory, regardless of its
    suffix, and becomes a torch.uint8 tensor of `shape` that may be written to. True: it is an
    encoded image, and becomes a PIL image in RGB.

    transform: called with the image; what it returns is the item's image.

    labels: the name of a JSON member whose "labels" is a mapping from image name to label, or a
    list of [name, label]. Every image needs one. None: there are no labels, and items are images
    alone.

    opener: as for shardfeed.Stream, for a path that is a URL.

    It chooses nothing at random, and so it has no set_epoch(); that of a transform is its own.

    Use it with any number of workers and any start method of them: a forked worker continues with
    the open file, others open it again. Workers share the list of members and labels, which is not
    made of Python objects, so their memory does not grow with use.
    """

    def __init__(
        self,
        path: URL,
        transform: Callable[[Any], Any] | None = None,
        load_encoded: bool = False,
        labels: str | None = "dataset.json",
        shape: Sequence[int] = (3, 256, 256),
        *,
        opener: Opener | None = None,
    ) -> None:
        self.transform = transform
        self.load_encoded = load_encoded
        self.shape = tuple(map(operator.index, shape))
        self._size = math.prod(self.shape)
        self._archive = Archive(path, opener=opener)
        suffixes = _SUFFIXES if load_encoded else (*_SUFFIXES, _RAW_SUFFIX)
        images = []
        for member in self._archive:
            name = member.name_bytes
            hidden = name.rpartition(b"/")[2].startswith(b".")
            if name.lower().endswith(suffixes) and member.is_file and not hidden:
                images.append((name, member.position))
        if not images:
            raise UsageError(
                f"{self._archive!r} has no images: no file whose name ends in "
                f"{b', '.join(suffixes).decode()}"
            )
        images.sort()
        # Arrays, because a worker that looks at a Python object writes to its reference count, and
        # so gets a copy of the page.
        self._positions = array("Q", [position for _, position in images])
        self._labels = None
        if labels is not None:
            self._labels = _Labels(_read_labels(self._archive, labels), images, labels)

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, index: SupportsIndex) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Any]:
        """Many items with one call, as DataLoader asks for them."""
        listed = list(map(self._checked, indices))
        positions = [self._positions[index] for index in listed]
        images = self._decoded(positions) if self.load_encoded else self._raw(positions)
        if self.transform is not None:
            images = list(map(self.transform, images))
        if self._labels is None:
            return images
        return list(zip(images, map(self._labels.__getitem__, listed)))

    def _checked(self, index: SupportsIndex) -> int:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"item {number} of {len(self)} images")
        return number + len(self) if number < 0 else number

    def _raw(self, positions: list[int]) -> list[Any]:
        for position in positions:
            member = self._archive[position]
            if member.size != self._size:
                raise UsageError(
                    f"the member {member.name!r} has {member.size} bytes, but a uint8 image of "
                    f"shape={self.shape} has {self._size}; help: give the right shape, or "
                    "load_encoded=True if the members are encoded images"
                )
        tensors = [torch.empty(self.shape, dtype=torch.uint8) for _ in positions]
        read_to_addresses(self._archive, positions, [tensor.data_ptr() for tensor in tensors])
        return tensors

    def _decoded(self, positions: list[int]) -> list[Any]:
        from PIL import Image

        images: list[Any] = []
        for position, data in zip(positions, self._archive.read_many(positions)):
            try:
                with Image.open(io.BytesIO(data)) as image:
                    images.append(image.convert("RGB"))
            except OSError as error:
                name = self._archive[position].name
                raise FormatError(
                    f"the member {name!r} cannot be decoded: {error}; help: give "
                    "load_encoded=False if the members are raw bytes"
                ) from error
        return images

    def __repr__(self) -> str:
        return f"<shardfeed.torch.ZipDataset {len(self)} images of {self._archive!r}>"


def _read_labels(archive: Archive, name: str) -> dict[str, Any]:
    try:
        text = archive.read(name)
    except NoMemberError:
        raise NoMemberError(
            f"{archive!r} has no member {name!r} with labels; help: give labels=None for images "
            "without labels, or the name of a JSON member"
        ) from None
    try:
        listed = json.loads(text)["labels"]
        return dict(listed)
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(
            f'the labels in the member {name!r} cannot be read: its "labels" must be a mapping '
            f"from name to label or a list of [name, label] ({error!r}); help: give labels=None "
            "for images without labels"
        ) from None


class _Labels:
    """The labels of images by their number, without an object for each."""

    def __init__(
        self, labels: dict[str, Any], images: list[tuple[bytes, int]], source: str
    ) -> None:
        found = []
        for image, _ in images:
            name = image.decode("utf-8", "surrogateescape")
            try:
                found.append(labels[name])
            except KeyError:
                raise NoMemberError(
                    f"the member {source!r} has no label of the image {name!r}; help: add it, or "
                    "give labels=None for images without labels"
                ) from None
        self._numbers: array[int] | None = None
        self._stops = array("Q")
        self._texts = b""
        if all(type(label) is int and -(1 << 63) <= label < 1 << 63 for label in found):
            self._numbers = array("q", found)
        else:
            texts = [json.dumps(label).encode() for label in found]
            stop = 0
            for text in texts:
                stop += len(text)
                self._stops.append(stop)
            self._texts = b"".join(texts)

    def __getitem__(self, index: int) -> Any:
        if self._numbers is not None:
            return self._numbers[index]
        start = self._stops[index - 1] if index else 0
        return json.loads(self._texts[start : self._stops[index]])
