"""Images in GIF, TIFF, JPEG XL and AVIF: the pixels of Pillow, with the steps of all images."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

image = pytest.importorskip("PIL.Image")

from images import encoded, noise  # noqa: E402  they need Pillow

WIDTH, HEIGHT = 61, 47


def needs(*formats: str) -> None:
    for name in formats:
        if not shardfeed.features()[name]:
            pytest.skip(f"no library for {name}")


def decoded(tmp_path, file: bytes, words: str = "rgb8", name: str = "image", **options: str):
    url = rows_tar(tmp_path / "a.tar", [{name: file}])
    with shardfeed.Stream(url) as stream:
        return next(stream.batches(1, decode=f"{name}:image/{words}", **options))[name][0]


def opened(file: bytes, mode: str = "RGB") -> np.ndarray:
    return np.asarray(image.open(io.BytesIO(file)).convert(mode))


def pictures() -> list[image.Image]:
    """Of few and many colours, grey, smooth."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    smooth = np.stack([x * 4, y * 5, 255 - x * 2], -1).astype("u1")
    return [
        image.fromarray(noise(WIDTH, HEIGHT)).quantize(256),
        image.fromarray(smooth).quantize(16),
        image.fromarray(smooth).quantize(3),
        image.fromarray(noise(WIDTH, HEIGHT, 1)),
        image.fromarray(smooth),
    ]


# ---- GIF ----


@pytest.mark.parametrize("interlace", [0, 1])
def test_gif(tmp_path, interlace):
    needs("gif")
    for picture in pictures():
        file = encoded(picture, "gif", interlace=interlace)
        for words, mode in (("rgb8", "RGB"), ("l8", "L"), ("rgba8", "RGBA")):
            assert np.array_equal(decoded(tmp_path, file, words), opened(file, mode)), words


def test_gif_with_a_transparent_colour(tmp_path):
    needs("gif")
    for picture in pictures()[:3]:
        file = encoded(picture, "gif", transparency=2)
        for words, mode in (("rgb8", "RGB"), ("rgba8", "RGBA")):
            assert np.array_equal(decoded(tmp_path, file, words), opened(file, mode)), words
        assert (decoded(tmp_path, file, "rgba8")[..., 3] == 0).any()


def test_the_first_frame_of_a_gif(tmp_path):
    needs("gif")
    frames = pictures()[:3]
    file = io.BytesIO()
    frames[0].save(file, "gif", save_all=True, append_images=frames[1:], duration=20)
    assert np.array_equal(decoded(tmp_path, file.getvalue()), opened(file.getvalue()))


@pytest.mark.parametrize("transparent", [False, True])
def test_a_gif_frame_that_is_smaller_than_the_image(tmp_path, transparent):
    needs("gif")
    file = bytearray(encoded(pictures()[1], "gif", **({"transparency": 2} if transparent else {})))
    struct.pack_into("<HH", file, 6, WIDTH + 9, HEIGHT + 4)
    at = file.index(b"," + struct.pack("<HHHH", 0, 0, WIDTH, HEIGHT))
    struct.pack_into("<HH", file, at + 1, 5, 3)
    for words, mode in (("rgb8", "RGB"), ("rgba8", "RGBA")):
        assert np.array_equal(decoded(tmp_path, bytes(file), words), opened(bytes(file), mode))


# ---- TIFF ----

COMPRESSIONS = [None, "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "zstd"]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "LA"])
def test_tiff(tmp_path, mode, compression):
    needs("tiff")
    picture = image.fromarray(noise(WIDTH, HEIGHT, 4), "RGBA" if mode != "CMYK" else "CMYK")
    if mode == "P":
        picture = picture.convert("RGB").quantize(100)
    elif mode not in ("RGBA", "CMYK"):
        picture = picture.convert(mode)
    file = encoded(picture, "tiff", compression=compression)
    for words, wanted in (("rgb8", "RGB"), ("l8", "L"), ("rgba8", "RGBA")):
        expected = picture.convert(wanted)
        if mode == "CMYK" and wanted != "RGB":
            expected = picture.convert("RGB").convert(wanted)
        assert np.array_equal(decoded(tmp_path, file, words), np.asarray(expected)), words


def test_tiff_of_fax(tmp_path):
    needs("tiff")
    picture = image.fromarray(noise(WIDTH, HEIGHT, 1)).convert("1")
    for compression in ("group3", "group4"):
        file = encoded(picture, "tiff", compression=compression)
        assert np.array_equal(decoded(tmp_path, file), np.asarray(picture.convert("RGB")))


def test_tiff_of_jpeg(tmp_path):
    needs("tiff")
    file = encoded(pictures()[4], "tiff", compression="jpeg", quality=90)
    ours, theirs = decoded(tmp_path, file).astype(int), opened(file).astype(int)
    assert np.abs(ours - theirs).max() <= 4
    grey = encoded(pictures()[3], "tiff", compression="jpeg")
    assert np.abs(decoded(tmp_path, grey, "l8").astype(int) - opened(grey, "L")).max() <= 1


def test_tiff_of_16_bits(tmp_path):
    needs("tiff")
    levels = np.random.default_rng(1).integers(0, 65536, (HEIGHT, WIDTH), "u2")
    for compression in ("tiff_lzw", None):
        file = encoded(image.fromarray(levels), "tiff", compression=compression)
        assert np.array_equal(decoded(tmp_path, file, "l16"), levels)
        assert np.array_equal(decoded(tmp_path, file, "l"), levels.astype("f4") / np.float32(65535))
        assert np.array_equal(decoded(tmp_path, file, "l8"), ((levels + 128.0) // 257).astype("u1"))


def test_the_first_page_of_a_tiff(tmp_path):
    needs("tiff")
    file = io.BytesIO()
    pages = [picture.convert("RGB") for picture in pictures()]
    pages[0].save(file, "tiff", save_all=True, append_images=pages[1:])
    assert np.array_equal(decoded(tmp_path, file.getvalue()), np.asarray(pages[0]))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_tiff_is_turned_when_that_is_wanted(tmp_path, orientation):
    needs("tiff")
    picture = image.fromarray(noise(WIDTH, HEIGHT))
    file = encoded(picture, "tiff", tiffinfo={274: orientation})
    assert np.array_equal(decoded(tmp_path, file), np.asarray(picture))
    assert np.array_equal(decoded(tmp_path, file, "rgb8/exif"), opened(file))  # Pillow does


def test_tiff_of_floating_point_is_unsupported(tmp_path):
    needs("tiff")
    file = encoded(image.fromarray(np.ones((3, 3), "f4")), "tiff")
    with pytest.raises(shardfeed.UnsupportedError, match=r"(?s)000000\.image.*help: "):
        decoded(tmp_path, file)


# ---- AVIF and JPEG XL ----


def test_avif(tmp_path):
    needs("avif")
    if not image.registered_extensions().get(".avif"):
        pytest.skip("this Pillow writes no AVIF")
    smooth = pictures()[4]
    for subsampling, most in (("4:4:4", 2), ("4:2:0", 8)):
        file = encoded(smooth, "avif", quality=90, subsampling=subsampling)
        for words, mode in (("rgb8", "RGB"), ("l8", "L"), ("rgba8", "RGBA")):
            ours, theirs = decoded(tmp_path, file, words), opened(file, mode)
            assert ours.shape == theirs.shape
            assert np.abs(ours.astype(int) - theirs).max() <= most, words
    with_alpha = smooth.convert("RGBA")
    with_alpha.putalpha(image.fromarray(noise(WIDTH, HEIGHT, 1)))
    file = encoded(with_alpha, "avif", quality=100, subsampling="4:4:4")
    assert np.abs(decoded(tmp_path, file, "rgba8").astype(int) - opened(file, "RGBA")).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_avif_is_turned_when_that_is_wanted(tmp_path, orientation):
    needs("avif")
    if not image.registered_extensions().get(".avif"):
        pytest.skip("this Pillow writes no AVIF")
    from PIL import ImageOps

    exif = image.Exif()
    exif[274] = orientation
    file = encoded(pictures()[4], "avif", quality=95, subsampling="4:4:4", exif=exif)
    turned = np.asarray(ImageOps.exif_transpose(image.open(io.BytesIO(file))).convert("RGB"))
    ours = decoded(tmp_path, file, "rgb8/exif")
    assert ours.shape == turned.shape
    assert np.abs(ours.astype(int) - turned).max() <= 2
    assert decoded(tmp_path, file).shape == (HEIGHT, WIDTH, 3)


def test_jpeg_xl(tmp_path):
    needs("jxl")
    pytest.importorskip("pillow_jxl")
    for picture in pictures()[3:]:
        lossless = encoded(picture, "jxl", lossless=True)
        for words, mode in (("rgb8", "RGB"), ("rgba8", "RGBA"), ("l8", "L")):
            assert np.array_equal(
                decoded(tmp_path, lossless, words), np.asarray(picture.convert(mode))
            )
        lossy = encoded(picture, "jxl", quality=90)
        if picture.mode == "RGB":
            difference = decoded(tmp_path, lossy).astype(int) - opened(lossy)
            assert np.abs(difference).max() <= 2


# ---- All of them ----


def files() -> dict[str, bytes]:
    smooth = pictures()[4]
    made = {
        "gif": encoded(pictures()[1], "gif"),
        "tiff": encoded(smooth, "tiff", compression="tiff_lzw"),
    }
    if image.registered_extensions().get(".avif"):
        made["avif"] = encoded(smooth, "avif")
    try:
        import pillow_jxl  # noqa: F401  it registers itself
    except ImportError:
        return made
    made["jxl"] = encoded(smooth, "jxl")
    return made


def file_of(name: str) -> bytes:
    """A file of this format; the test is skipped where nothing reads or writes it."""
    needs(name)
    if name not in files():
        pytest.skip(f"nothing here writes {name}")
    return files()[name]


@pytest.mark.parametrize("name", ["gif", "tiff", "avif", "jxl"])
def test_steps_and_suffixes(tmp_path, name):
    file = file_of(name)
    pixels = decoded(tmp_path, file)
    url = rows_tar(tmp_path / "b.tar", [{name: file, "png": encoded(pixels, "png")}] * 4)
    steps = "rgb/chw/rrc=24x20/flip=random/normalize=imagenet"
    with shardfeed.Stream(url, seed=3) as stream:
        batch = next(stream.batches(4, decode=f"{name}:image/{steps}, png:image/{steps}"))
    assert np.array_equal(batch[name], batch["png"])
    with shardfeed.Stream(url) as stream:
        assert np.array_equal(next(stream.batches(4))[name][1], pixels)  # by its suffix


@pytest.mark.parametrize("name", ["gif", "tiff", "avif", "jxl"])
def test_a_thousand_damaged_files(tmp_path, name):
    file = file_of(name)
    dice = random.Random(name)
    variants = []
    for number in range(1000):
        damaged = bytearray(file)
        if number % 4 == 0:
            del damaged[dice.randrange(len(damaged)) :]
        else:
            for _ in range(dice.randrange(1, 4)):
                at = dice.randrange(len(damaged) if number % 4 == 1 else min(200, len(damaged)))
                damaged[at] = dice.randrange(256)
        variants.append({name: bytes(damaged)})
    url = rows_tar(tmp_path / "a.tar", variants)
    faults = []
    with shardfeed.Dataset(url) as data:
        for number in range(len(data)):
            try:
                batch = data.batch([number], decode=f"{name}:image/rgb8", max_decoded="1MiB")
            except shardfeed.Error as error:
                faults.append(error)
            else:
                assert batch[name].dtype == "u1"
    allowed = (shardfeed.FormatError, shardfeed.UnsupportedError, shardfeed.LimitError)
    assert len(faults) > 300
    for fault in faults:
        assert isinstance(fault, allowed), fault
        assert "help: " in str(fault), fault
    cuts = sum(isinstance(fault, shardfeed.FormatError) for fault in faults)
    assert cuts > 200


@pytest.mark.parametrize("name", ["gif", "tiff", "avif", "jxl"])
def test_every_cut_is_an_error(tmp_path, name):
    file = file_of(name)
    cuts = range(12, len(file) - 1, max(len(file) // 100, 1))  # fewer bytes tell no format
    url = rows_tar(tmp_path / "a.tar", [{name: file[:cut]} for cut in cuts])
    with shardfeed.Dataset(url) as data:
        for number in range(len(data)):
            with pytest.raises(shardfeed.FormatError):
                data.batch([number], decode=f"{name}:image/rgb8")
