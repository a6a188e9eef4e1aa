"""What is decoded or opened ahead: handlers see faults where webdataset calls them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed.wds as wds
from conftest import write_tar
from shardfeed.wds import _native_images, _reading
from wds_grammar import image, original_name

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")
original = pytest.importorskip("webdataset")


@pytest.fixture(autouse=True)
def by_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shards are not read as members."""
    monkeypatch.setattr(_reading, "small_shard", 0)


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    """Shards of images, of which some are damaged, among shards that are none."""
    rng = random.Random(1)
    found = []
    for n in range(6):
        members = []
        for i in range(20):
            data = image(rng, "JPEG", (16, 12))
            members.append((f"{n}{i:02d}.jpg", data[: len(data) // 2] if i in (3, 19) else data))
            members.append((f"{n}{i:02d}.cls", b"%d" % i))
        found.append(str(write_tar(tmp_path / f"{n}.tar", members)))
        if n % 2:
            found += [str(tmp_path / "missing.tar"), "nosuch:shard"]
    return found


def events(package: Any, source: Any, build: Any, answer: bool | None) -> list[Any]:
    """What a program and its handler see, in the order of time; answer None: an exception."""
    seen: list[Any] = []

    def handler(exn: Exception) -> bool:
        seen.append(original_name([kind.__name__ for kind in type(exn).__mro__]))
        if answer is None:
            raise exn
        return answer

    pipeline = build(package.WebDataset(source, shardshuffle=False, handler=handler), handler)
    if package is wds:
        pipeline = pipeline.engine(threads=3)
    try:
        for sample in pipeline:
            seen.append(sample["__key__"])
    except Exception as exn:
        seen.append(("raised", original_name([kind.__name__ for kind in type(exn).__mro__])))
    return seen


def decoded(source: Any, handler: Any) -> Any:
    return source.decode("rgb8", handler=handler)


def shuffled(source: Any, handler: Any) -> Any:
    return source.shuffle(7, initial=4, seed=1).decode("rgb8", handler=handler)


def sliced(source: Any, handler: Any) -> Any:
    return source.slice(2, 110, 3).shuffle(5, seed=2).decode("torchrgb8", handler=handler)


@pytest.mark.parametrize("answer", [True, False, None])
@pytest.mark.parametrize("build", [decoded, shuffled, sliced])
def test_faults_of_shards_come_after_those_of_samples_before_them(
    urls: list[str], build: Any, answer: bool | None
) -> None:
    if build is sliced:
        pytest.importorskip("torch")
    expected = events(original, urls, build, answer)
    assert "DecodingError" in expected
    assert events(wds, urls, build, answer) == expected


@pytest.mark.parametrize("answer", [True, False, None])
def test_a_shard_without_a_handler_is_a_fault_after_the_samples_before_it(
    urls: list[str], answer: bool | None
) -> None:
    urls = [url for url in urls if "missing" not in url]
    expected = events(original, urls, lambda source, _: source, answer)
    assert expected[:40] == [f"{n}{i:02d}" for n in (0, 1) for i in range(20)]
    assert events(wds, urls, lambda source, _: source, answer) == expected


def test_a_list_of_shards_of_the_program_is_asked_where_it_was(urls: list[str]) -> None:
    def made(package: Any) -> list[Any]:
        seen: list[Any] = []

        def listed() -> Iterator[dict[str, str]]:
            for url in urls:
                seen.append(f"asked for {Path(url).name}")
                yield {"url": url}

        def handler(exn: Exception) -> bool:
            seen.append(original_name([kind.__name__ for kind in type(exn).__mro__]))
            return True

        stages = [
            package.tarfile_to_samples(handler=handler),
            package.decode("rgb8", handler=handler),
        ]
        pipeline = package.FluidWrapper(listed).compose(*stages)
        if package is wds:
            pipeline = pipeline.engine(threads=3)
        for sample in pipeline:
            seen.append(sample["__key__"])
        return seen

    assert made(wds) == made(original)


def test_images_are_decoded_ahead(urls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    submitted = 0
    submit = _native_images._submitted

    def counted(*args: Any) -> Any:
        nonlocal submitted
        submitted += 1
        return submit(*args)

    monkeypatch.setattr(_native_images, "_submitted", counted)
    dataset = wds.WebDataset(urls[:2], shardshuffle=False, handler=wds.ignore_and_continue)
    items = iter(decoded(dataset, wds.ignore_and_continue).engine(threads=2))
    next(items)
    assert submitted == 2 * _native_images._AHEAD


@pytest.mark.parametrize("spec", ["rgb8", "l8", "rgb", "l"])
def test_arrays_can_be_written_to_where_those_of_pillow_can(tmp_path: Path, spec: str) -> None:
    data = image(random.Random(2), "JPEG", (16, 12))
    url = str(write_tar(tmp_path / "a.tar", [("a.jpg", data), ("b.jpg", data)]))
    for threads in (1, 2):
        a, b = (
            [sample["jpg"] for sample in pipeline]
            for pipeline in (
                original.WebDataset(url, shardshuffle=False).decode(spec),
                wds.WebDataset(url, shardshuffle=False).decode(spec).engine(threads=threads),
            )
        )
        assert [each.flags.writeable for each in b] == [each.flags.writeable for each in a]
        assert all(np.array_equal(x, y) for x, y in zip(a, b))


def test_a_generator_of_the_program_draws_where_it_did(urls: list[str]) -> None:
    """A shuffle draws from a generator that the decoding of samples draws from, too."""

    def made(package: Any) -> list[Any]:
        rng = random.Random(3)
        pipeline = package.WebDataset(urls[:1], shardshuffle=False)
        pipeline = pipeline.compose(package.shuffle(8, 4, rng)).decode(
            "rgb8", handler=package.ignore_and_continue
        )
        if package is wds:
            pipeline = pipeline.engine(threads=2)
        return [(sample["__key__"], rng.random()) for sample in pipeline]

    assert made(wds) == made(original)
