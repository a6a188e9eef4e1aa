"""open_clip itself, unchanged, over shardfeed.wds: the batches and models that it gives over the
webdataset that it asks for."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from conftest import write_tar
from wds_programs import Programs

numpy = pytest.importorskip("numpy")
image = pytest.importorskip("PIL.Image")
pytest.importorskip("open_clip_train")

# requirements-open-clip.txt
REFERENCE = Path(sys.prefix) / "webdataset-for-open-clip"
if not REFERENCE.is_dir():
    pytest.skip(f"webdataset 0.2.86 is not in {REFERENCE}", allow_module_level=True)

pytestmark = pytest.mark.slow

RUNS = Path(__file__).parent / "open_clip_runs.py"
MODEL = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 12, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


def picture(number: int, kind: str) -> bytes:
    rng = numpy.random.RandomState(number)
    pixels = (numpy.cumsum(rng.randint(-9, 10, (24, 28, 3)), axis=1) % 256).astype("uint8")
    stream = io.BytesIO()
    image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def members_of(shard: int) -> list[tuple[str, bytes]]:
    """Pairs; among those of shard 1 are two that cannot be decoded, and three that are none."""
    members = []
    for number in range(20):
        key = f"{shard}_{number:03d}"
        kind = {7: "png", 8: "webp", 9: "jpeg"}.get(number, "jpg")
        data = picture(100 * shard + number, "jpeg" if kind == "jpg" else kind)
        if shard == 1:
            data = {3: data[:200] + b"\0" * 30, 4: b"no image"}.get(number, data)
        if not (shard == 1 and number == 9):
            members.append((f"{key}.{kind}", data))
        if not (shard == 1 and number in (5, 6)):
            members.append((f"{key}.txt", f"picture {number} of shard {shard}".encode()))
        members.append((f"{key}.json", json.dumps({"number": number, "x": "y" * 900}).encode()))
    return members


def cut(path: Path, member: str, at: int) -> None:
    """Ends a shard so many bytes behind the start of a member, or before it."""
    with tarfile.open(path) as archive:
        size = archive.getmember(member).offset_data + at
    path.write_bytes(path.read_bytes()[:size])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pairs")
    for shard in range(6):
        write_tar(made / f"pairs-{shard}.tar", members_of(shard))
    cut(made / "pairs-3.tar", "3_012.jpg", 100)  # webdataset says so
    cut(made / "pairs-5.tar", "5_015.jpg", -512)  # webdataset takes it for the end
    (made / "model").mkdir()
    config = json.dumps({"model_cfg": MODEL})
    (made / "model" / "open_clip_config.json").write_text(config)
    return made


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    # All that open_clip_train imports, but webdataset; the last one may be missing.
    imports = "torch, torch._dynamo, torchvision.datasets, pandas, open_clip"
    imports += ", torch.utils.tensorboard"
    made = Programs(tmp_path_factory.mktemp("runs") / "output", imports)
    yield made
    made.server.communicate()


def test_the_page_names_the_version() -> None:
    page = Path(__file__).parents[2] / "docs" / "from-webdataset.md"
    assert f"open_clip {version('open_clip_torch')} runs unchanged" in page.read_text()


# ---- Batches ----


def cases_of(folder: Path) -> dict[str, Any]:
    whole, damaged = f"{folder}/pairs-{{0,1,2,4}}.tar", f"{folder}/pairs-{{0..5}}.tar"
    first, second = f"{folder}/pairs-{{0,2}}.tar", f"{folder}/pairs-{{4,1,3}}.tar"
    train = ["--train-num-samples", "70", "--seed", "3", "--train-data"]
    mixed = [*train, f"{first}::{second}", "--dataset-resampled"]
    cases: dict[str, Any] = {}
    for workers in ("0", "2"):
        common = ["--batch-size", "4", "--workers", workers]
        cases[f"train {workers}"] = [*train, damaged, *common]
        cases[f"resampled {workers}"] = [*train, damaged, "--dataset-resampled", *common]
        cases[f"mixed {workers}"] = [*mixed, "--train-data-upsampling-factors", "3::1", *common]
        cases[f"second {workers}"] = [*mixed, "--train-data-upsampling-factors", "0::1", *common]
        cases[f"val {workers}"] = ["--val-data", whole, "--val-num-samples", "75", *common]
        cases[f"damaged {workers}"] = ["--val-data", damaged, *common]
    commands = f"pipe:cat {folder}/pairs-{{0..4}}.tar"
    cases["pipe 2"] = [*train, commands, "--batch-size", "4", "--workers", "2"]
    made = {name: {"arguments": arguments} for name, arguments in cases.items()}
    for rank in ("0", "1"):
        made[f"rank {rank}"] = {
            "arguments": cases["train 2"],
            "environ": {"RANK": rank, "WORLD_SIZE": "2"},
        }
    return made


@pytest.fixture(scope="module")
def batches(runs: Programs, folder: Path) -> dict[str, Any]:
    """Of both packages: what each case gave, and what was logged."""
    found = {}
    for package in (REFERENCE, "shardfeed.wds"):
        said = runs.run(str(RUNS), package, "batches", json.dumps(cases_of(folder)))
        log = Path(f"{runs.output}.err").read_text()
        found[str(package)] = {**json.loads(said), "log": log}
    theirs, ours = found.values()
    assert (theirs["package"], ours["package"]) == ("webdataset", "shardfeed.wds")
    return {"theirs": theirs, "ours": ours}


def rows_of(case: dict[str, Any], epoch: int = 0) -> list[Any]:
    return [row for batch in case["epochs"][epoch] for row in batch["rows"]]


@pytest.mark.parametrize(
    "name",
    [
        *(f"{case} {n}" for case in ("train", "resampled", "mixed", "second", "val") for n in "02"),
        *("pipe 2", "rank 0", "rank 1"),
    ],
)
def test_batches_are_equal(batches: dict[str, Any], name: str) -> None:
    case = name.split()[0]
    theirs, ours = batches["theirs"]["cases"][name], batches["ours"]["cases"][name]
    assert ours == theirs
    first, second = ours["epochs"]
    assert first[0]["shape"] == ["torch.float32", "torch.int64", 3, 16, 16, 12]
    if case == "val":
        # Of 80 samples 3 are no pairs, and 2 no images.
        assert first == second
        assert (len(rows_of(ours)), ours["num_batches"], ours["num_samples"]) == (75, 19, 75)
        return
    assert first != second
    assert len(first) == ours["num_batches"]
    ranks = 2 if case == "rank" else 1
    assert len(rows_of(ours)) == ours["num_samples"] // ranks
    shards = {int(caption.split()[-1]) for caption, _ in rows_of(ours)}
    if case == "second":
        assert shards == {1, 3, 4}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_is_lost_in_silence_is_told_to_the_handler(
    batches: dict[str, Any], workers: str
) -> None:
    theirs, ours = (batches[who]["cases"][f"damaged {workers}"] for who in ("theirs", "ours"))
    # Nobody knows whether the last sample before the cut is whole.
    expected = [row for row in rows_of(theirs) if row[0] != "picture 1 4 of shard 5"]
    assert len(expected) == len(rows_of(theirs)) - 1
    assert sorted(rows_of(ours)) == sorted(expected)
    if workers == "0":
        assert rows_of(ours) == expected
    handled = {
        who: [line for line in made["log"].splitlines() if "Handling webdataset error" in line]
        for who, made in batches.items()
    }
    for number in (3, 5):
        name = f"pairs-{number}.tar"
        faults = {who: [line for line in lines if name in line] for who, lines in handled.items()}
        assert bool(faults["theirs"]) == (number == 3)
        assert faults["ours"]
        assert all("TruncatedError" in line and "help: " in line for line in faults["ours"])
    assert any(
        "sample '1_004' in" in line and "UnidentifiedImage" in line for line in handled["ours"]
    )


# ---- Training ----


@pytest.mark.parametrize("ranks", [1, 2])
def test_training_gives_the_same_model(
    runs: Programs, folder: Path, tmp_path: Path, ranks: int
) -> None:
    arguments = [
        *("--train-data", folder / "pairs-{0..4}.tar", "--train-num-samples", 96),
        *("--val-data", folder / "pairs-{0,1}.tar", "--val-num-samples", 35),
        *("--model", f"local-dir:{folder / 'model'}", "--batch-size", 4, "--workers", 2),
        *("--epochs", 1, "--device", "cpu", "--precision", "fp32", "--warmup", 1),
        *("--log-every-n-steps", 1),
    ]
    found = []
    for package in (REFERENCE, "shardfeed.wds"):
        place = tmp_path / Path(package).name
        place.mkdir()
        said = runs.run(str(RUNS), package, "train", ranks, *arguments, folder=place)
        found.append(json.loads(said.splitlines()[-1]))
    theirs, ours = found
    assert len(ours["losses"]) == 24 // ranks
    assert ours["results"]["epoch"] == 1
    assert ours == theirs
