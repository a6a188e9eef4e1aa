"""The writer of img2dataset itself, over both packages: the same shards."""

from __future__ import annotations

import importlib.util
import tarfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
import shardfeed
import shardfeed.wds

pytest.importorskip("webdataset")
numpy = pytest.importorskip("numpy")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

try:
    WRITER = distribution("img2dataset").locate_file("img2dataset/writer.py")
except PackageNotFoundError:
    pytest.skip("img2dataset is not installed", allow_module_level=True)

SCHEMA = [("key", "string"), ("caption", "string"), ("status", "string"), ("sizes", "list")]
SAMPLES: list[tuple[bytes | None, str | None, dict[str, Any]]] = [
    (b"\xff\xd8 first", "a picture", {"status": "success", "sizes": numpy.array([1, 2])}),
    (None, "not there", {"status": "failed_to_download", "sizes": [0]}),
    (b"\xff\xd8" + bytes(3000), None, {"status": "success", "sizes": [3]}),
    (b"", "Grüße aus 東京", {"status": "success", "sizes": []}),
]


def writer_module() -> Any:
    """The module, made anew: without its package, which imports OpenCV."""
    spec = importlib.util.spec_from_file_location("img2dataset_writer", str(WRITER))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(module: Any, folder: Path, captions: bool) -> None:
    import pyarrow as pa

    types = {"string": pa.string(), "list": pa.list_(pa.int64())}
    schema = pa.schema([(name, types[kind]) for name, kind in SCHEMA])
    folder.mkdir()
    for shard in range(2):
        writer = module.WebDatasetSampleWriter(shard, str(folder), captions, 5, schema, "jpg")
        for number, (image, caption, meta) in enumerate(SAMPLES):
            key = f"{shard:05d}{number:04d}"
            writer.write(image, key, caption, {"key": key, "caption": caption, **meta})
        writer.close()


def shards_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix != ".tar":
            import pyarrow.parquet

            found[path.name] = pyarrow.parquet.read_table(path).to_pydict()
            continue
        with tarfile.open(path) as archive:
            found[path.name] = [
                (m.name, m.mode, m.uname, m.gname, m.type, archive.extractfile(m).read())  # type: ignore[union-attr]
                for m in archive
            ]
    return found


@pytest.mark.parametrize("captions", [True, False])
def test_shards_are_equal(tmp_path: Path, captions: bool) -> None:
    theirs = writer_module()
    shardfeed.wds.install()
    try:
        ours = writer_module()
    finally:
        shardfeed.wds.uninstall()
    assert (theirs.wds.__name__, ours.wds) == ("webdataset", shardfeed.wds)
    for name, module in (("theirs", theirs), ("ours", ours)):
        write(module, tmp_path / name, captions)
    found = shards_of(tmp_path / "ours")
    assert sorted(found) == ["00000.parquet", "00000.tar", "00001.parquet", "00001.tar"]
    assert found == shards_of(tmp_path / "theirs")
    samples = list(shardfeed.Stream(str(tmp_path / "ours" / "{00000..00001}.tar")))
    assert [s.key for s in samples] == [f"0000{shard}000{n}" for shard in (0, 1) for n in (0, 2, 3)]
    assert bytes(samples[0]["jpg"]) == b"\xff\xd8 first"
    assert ("txt" in samples[2]) == captions
    if captions:
        assert bytes(samples[2]["txt"]).decode() == "Grüße aus 東京"
