"""Image specs: what decode("rgb8") makes of the bytes of an image."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

IMAGE_EXTENSIONS = (  # noqa: SIM905
    "blp bmp dib bufr cur pcx dcx dds ps eps fit fits fli flc ftc ftu gbr gif grib h5 hdf png "
    "apng jp2 j2k jpc jpf jpx j2c icns ico im iim tif tiff jfif jpe jpg jpeg mpg mpeg msp pcd "
    "pxr pbm pgm ppm pnm psd bw rgb rgba sgi ras tga icb vda vst webp wmf emf xbm xpm "
).split()

# The container, the type of its numbers, and the colours.
imagespecs: dict[str, tuple[str, str | None, str]] = {
    **{name + "8": ("numpy", "uint8", name) for name in ("l", "rgb", "rgba")},
    **{name: ("numpy", "float", name) for name in ("l", "rgb", "rgba")},
    **{f"torch{name}8": ("torch", "uint8", name) for name in ("l", "rgb", "rgba")},
    "torchl": ("torch", "float", "l"),
    "torchrgb": ("torch", "float", "rgb"),
    "torch": ("torch", "float", "rgb"),
    "torchrgba": ("torch", "float", "rgba"),
    "pill": ("pil", None, "l"),
    "pil": ("pil", None, "rgb"),
    "pilrgb": ("pil", None, "rgb"),
    "pilrgba": ("pil", None, "rgba"),
}


class ImageHandler:
    """Decodes images: the key is the name of the field, with a dot before it."""

    def __init__(self, imagespec: str, extensions: Iterable[str] = IMAGE_EXTENSIONS) -> None:
        if imagespec not in imagespecs:
            raise ValueError(f"Unknown imagespec: {imagespec}")
        self.imagespec = imagespec.lower()
        self.extensions = set(extensions)

    def __call__(self, key: str, data: bytes) -> Any:
        if self.wants(key):
            return self.image(data)
        return None

    def wants(self, key: str) -> bool:
        """Whether the suffix of a field is that of an image."""
        return re.sub(r".*[.]", "", key, count=1).lower() in self.extensions

    def image(self, data: bytes) -> Any:
        """The bytes of an image as the spec says."""
        import PIL.Image

        container, dtype, mode = imagespecs[self.imagespec]
        with io.BytesIO(data) as stream:
            opened: Any = PIL.Image.open(stream)
            opened.load()
            image = opened.convert(mode.upper())
        if container == "pil":
            return image
        import numpy

        return arranged(numpy.asarray(image), container, dtype)


def arranged(pixels: Any, container: str, dtype: str | None) -> Any:
    """An array (H, W) or (H, W, C) of bytes as a spec says."""
    import numpy

    if container == "numpy":
        return pixels if dtype == "uint8" else pixels.astype("f") / 255.0
    import torch

    if pixels.ndim == 3:
        pixels = pixels.transpose(2, 0, 1)
    if dtype == "uint8":
        return torch.tensor(numpy.ascontiguousarray(pixels))
    return torch.tensor(numpy.ascontiguousarray(pixels)).float() / 255.0


def imagehandler(imagespec: str, extensions: Iterable[str] = IMAGE_EXTENSIONS) -> ImageHandler:
    """A handler for decode() that makes images what the spec says."""
    return ImageHandler(imagespec, extensions)
