"""The README and the pages: their examples run, show the same, and their links lead somewhere."""

from __future__ import annotations

import gzip
import importlib.util
import inspect
import io
import json
import re
import shlex
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import ranged, stand_in
from shardfeed.__main__ import main
from shardfeed.cluster.__main__ import is_for_tasks

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_python_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in range(3):
        with tarfile.open(tmp_path / f"train-{shard:03}.tar", "w") as tar:
            for number in range(20):
                for field, data in (("cls", b"%d" % number), ("jpg", b"x" * number)):
                    info = tarfile.TarInfo(f"{shard}/{number:02}.{field}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    monkeypatch.chdir(tmp_path)
    examples = blocks("docs/python.md", "python")
    names: dict[str, Any] = {}
    exec(compile(examples[0], "docs/python.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    samples, batches = lines[:60], lines[60:]
    assert sorted(samples) == sorted(
        f"{shard}/{number:02} of class {number} has {number} bytes of jpg"
        for shard in range(3)
        for number in range(20)
    )
    assert batches == ["(32,) int64", "(28,) int64"]
    exec(compile(examples[1], "docs/python.md, example 1", "exec"), names)
    shares = capsys.readouterr().out.splitlines()
    assert shares == [f"{rank} reads 20 samples" for rank in range(3)]
    assert len(examples) == 2


def test_the_example_of_the_page_about_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("docs/cache.md", "python")
    shards = {}
    for shard in range(3):
        path = write_tar(tmp_path / f"s-{shard}.tar", numbered(shard * 10, 10, 100))
        shards[f"/s-{shard}.tar"] = ranged(path.read_bytes())
    with stand_in(lambda request: shards[request.path](request)) as server:
        example = example.replace("https://host/", server.url(""))
        exec(compile(example, "docs/cache.md", "exec"), {})
    assert capfd.readouterr().out == "30\n30\n"
    for line in blocks("docs/cache.md", "sh")[0].splitlines():
        assert main(shlex.split(line)[1:]) == 0
        assert "versions of shards" in capfd.readouterr().out


def test_the_examples_of_the_page_about_many_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for shard in range(3):
        write_tar(tmp_path / f"train-{shard:03}.tar", numbered(shard * 20, 20))
    monkeypatch.chdir(tmp_path)
    shown = blocks("docs/cluster.md", "text")
    for example, lines in zip(blocks("docs/cluster.md", "python"), shown):
        exec(compile(example, "docs/cluster.md", "exec"), {})
        assert capfd.readouterr().out == lines


def test_the_manifest_of_the_page_about_many_machines() -> None:
    yaml = pytest.importorskip("yaml")
    (text,) = blocks("docs/cluster.md", "yaml")
    job = yaml.safe_load(text)
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["spec"]["completionMode"] == "Indexed"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    assert environment == {"SHARDFEED_TASK_COUNT": str(job["spec"]["completions"])}
    assert is_for_tasks(container["command"][1:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_examples_of_the_pytorch_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from batches import ramps

    for shard in range(4):
        ramps(tmp_path / f"train-{shard:03}.tar", 20)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}

    def run(number: int) -> None:
        exec(compile(examples[number], f"docs/pytorch.md, example {number}", "exec"), names)

    examples = blocks("docs/pytorch.md", "python")
    run(0)
    assert names["batches"].epoch == 3
    state = json.loads((tmp_path / "data.json").read_text())
    run(0)  # a run that had come to its end
    assert names["batches"].epoch == 3
    assert json.loads((tmp_path / "data.json").read_text()) == state
    run(1)
    assert sum(len(batch["cls"]) for batch in names["batches"]) == 80 - 3 * 8
    run(2)
    assert sorted(names["numbers"]) == sorted(4 * list(range(1, 20, 2)))
    assert [len(batch) for batch in names["tensors"]] == [8] * 10
    run(3)
    assert sorted(n for batch in names["two"] for n in batch) == sorted(4 * list(range(20)))
    pytest.importorskip("accelerate")
    run(4)
    run(5)
    assert len(names["batch"]["cls"]) == 8
    pytest.importorskip("transformers")
    run(6)
    assert len(names["FedTrainer"].get_train_dataloader(None)) == 10
    assert len(examples) == 8


def test_the_masks_of_the_pytorch_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    import numpy as np
    import shardfeed.torch
    from batches import npy, rows_tar

    for shard in range(4):
        arrays = [np.full(n, n) for n in range(shard + 1, shard + 5)]
        rows_tar(tmp_path / f"tokens-{shard:03}.tar", ({"npy": npy(array)} for array in arrays))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"torch": torch, "shardfeed": shardfeed}
    code = blocks("docs/pytorch.md", "python")[7]
    exec(compile(code, "docs/pytorch.md, masks", "exec"), names)
    assert names["tokens"].shape == (8, 7)
    assert torch.equal(names["mask"], names["tokens"] > 0)


def test_the_page_about_decode_mixes_as_the_columns_say() -> None:
    torch = pytest.importorskip("torch")
    names: dict[str, Any] = {}
    function = blocks("docs/decode.md", "python")[3].partition("decode = ")[0]
    exec(compile(function, "docs/decode.md", "exec"), names)
    images = torch.rand(3, 3, 12, 10)
    index, weight = torch.tensor([1, 2, 0]), torch.tensor([0.25, 0.5, 1 - 12 / 120])
    box = torch.tensor([[0, 0, 12, 10], [0, 0, 6, 10], [9, 2, 12, 6]])
    found = names["mixed"](images, index, weight, box)
    wanted = images.clone()
    wanted[0] = 0.25 * images[0] + 0.75 * images[1]
    wanted[1, :, :6] = images[2, :, :6]
    wanted[2, :, 9:, 2:6] = images[0, :, 9:, 2:6]
    assert torch.allclose(found, wanted)


def test_the_example_of_the_page_about_decode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image")
    import numpy as np
    from batches import npy, rows_tar, safetensors

    file = io.BytesIO()
    image.new("RGB", (20, 16), (1, 2, 3)).save(file, "png")
    with tarfile.open(tmp_path / "pictures.tar", "w") as tar:
        for number in range(3):
            for field, data in (("cls", b"%d" % number), ("png", file.getvalue())):
                info = tarfile.TarInfo(f"{number}.{field}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    monkeypatch.chdir(tmp_path)
    tensors, compressed, boxes, mixing, choices = blocks("docs/decode.md", "python")
    from shardfeed.wds import tenbin

    arrays = [np.zeros((2, 3), np.float32), np.arange(2)]
    rows_tar(
        tmp_path / "tensors.tar",
        [
            {
                "ten": bytes(tenbin.encode_buffer(arrays)),
                "safetensors": safetensors({"model/w": np.ones(3, np.float16), "b": arrays[0]}),
            }
        ],
    )
    exec(compile(tensors, "docs/decode.md", "exec"), {})
    assert capsys.readouterr().out == "(1, 2, 3) [[0, 1]] float16\n"
    rows = [
        {"json.gz": b'{"n": 1}', "ids.npy.gz": npy([1, 2, 3]), "cls.gz": b"7"},
        {"json.gz": b"[]", "ids.npy.gz": npy([4, 5, 6]), "cls": b"8"},
    ]
    rows_tar(
        tmp_path / "compressed.tar",
        (
            {
                name: gzip.compress(data) if name[-3:] == ".gz" else data
                for name, data in row.items()
            }
            for row in rows
        ),
    )
    exec(compile(compressed, "docs/decode.md", "exec"), {})
    assert capsys.readouterr().out == "{'n': 1} (2, 3) [7, 8]\n"
    objects = {"objects": {"bbox": [[2, 3, 18, 14], [0, 0, 4, 4]], "category": ["cat", "dog"]}}
    with tarfile.open(tmp_path / "detection.tar", "w") as tar:
        for field, data in (("json", json.dumps(objects).encode()), ("png", file.getvalue())):
            info = tarfile.TarInfo(f"0.{field}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    names: dict[str, Any] = {}
    if importlib.util.find_spec("torch") is None:
        boxes = boxes.replace(".torch()", "")
    exec(compile(boxes, "docs/decode.md", "exec"), names)
    assert names["labels"] == [["cat", "dog"][number] for number in names["kept"]]
    assert len(names["targets"]) == 1
    exec(compile(mixing, "docs/decode.md", "exec"), names)
    first, second = capsys.readouterr().out.rstrip().split(" with ")
    assert sorted(first) == sorted(second) == sorted("[0 1 2]")
    assert not any(a == b for a, b in zip(first[1:-1:2], second[1:-1:2]))
    exec(compile(choices, "docs/decode.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "(3, 8, 8) [2, 0, 1]",
        "(3, 8, 8) [2, 0, 1]",
        "(1, 3, 16, 20)",
    ]


@pytest.mark.slow
def test_the_examples_of_the_page_about_transforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("numpy")
    from batches import ramps, rows_tar

    for shard in range(4):
        ramps(tmp_path / f"train-{shard:03}.tar", 20)
    monkeypatch.chdir(tmp_path)
    examples = blocks("docs/transforms.md", "python")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(examples[0], "docs/transforms.md", "exec"), names)
    names["stream"].close()
    assert capsys.readouterr().out == "4 dropped\n"
    assert names["batch"]["x"].shape[1:] == (16,)
    assert names["batch"]["x"].dtype == "float64"

    image = pytest.importorskip("PIL.Image")
    pictures = []
    for number in range(16):
        file = io.BytesIO()
        image.new("RGB", (20 + number, 16), (1, 2, 3)).save(file, "png")
        pictures.append({"png": file.getvalue(), "cls": b"%d" % number})
    rows_tar(tmp_path / "pictures.tar", pictures)
    pytest.importorskip("torchvision.transforms.v2")
    exec(compile(examples[1], "docs/transforms.md, example 1", "exec"), names)
    assert names["batch"]["png"].shape == (8, 3, 32, 32)
    pytest.importorskip("albumentations")
    exec(compile(examples[2], "docs/transforms.md, example 2", "exec"), names)
    names["stream"].close()
    assert names["batch"]["image"].shape == (8, 32, 32, 3)
    assert len(examples) == 3


# Of the tables of docs/decode.md: what they are about, by their first cell.
TABLES_OF_WORDS = {"kind", "word", "step"}


def words_of_decode() -> list[str]:
    """What the tables of the page have in their first cells, without the values: "rrc=", "chw"."""
    words = []
    table = ""
    for line in (ROOT / "docs/decode.md").read_text().splitlines():
        cell = line.split(" | ")[0].removeprefix("| ") if line.startswith("| ") else ""
        table = (table or cell) if cell or line.startswith("|---") else ""
        if table in TABLES_OF_WORDS:
            for text in re.findall(r"`([a-z][^`]*)`", cell):
                name, equals, value = text.partition("=")
                start = re.match(r"(to:|fit:|start:|random:|always|random$)", value)
                words.append(name + equals + (start[0] if start else ""))
    return [word for word in words if word.removesuffix("=") not in words or word[-1] != "="]


def test_help_and_the_page_name_every_word_of_decode() -> None:
    import shardfeed

    words = words_of_decode()
    known = ("msgpack", "npz/NAME", "boxes", "chw", "resize=fit:", "crop=random:", "jitter=")
    assert set(known) | {"exact", "randaugment=", "relative", "mono", "crop=start:"} <= set(words)
    for place, text in (
        ("help", shardfeed.Stream.batches.__doc__ or ""),
        ("header", (ROOT / "include/shardfeed.h").read_text()),
    ):
        ends = {word: "" if word[-1] in "=:" else r"(?!\w)" for word in words}
        missing = [word for word in words if not re.search(rf"(?<![\w=]){word}{ends[word]}", text)]
        assert not missing, place


PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in ROOT.glob("docs/*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    def anchors(text: str) -> set[str]:
        titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
        return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}

    for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if link.startswith("https://"):
            continue  # the tests have no network
        target, _, anchor = link.partition("#")
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), link
        if anchor:
            assert anchor in anchors(file.read_text()), link


@pytest.mark.parametrize("page", PAGES)
def test_every_python_example_compiles(page: str) -> None:
    for number, text in enumerate(blocks(page, "python")):
        compile(text, f"{page}, example {number}", "exec")


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


def run_first(page: str, number: int = 0, **names: Any) -> dict[str, Any]:
    exec(compile(blocks(page, "python")[number], f"{page}, example {number}", "exec"), names)
    return names


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hundred shards of two pictures, a/0000 to a/0199, and a ZIP file of pictures."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("RGB", (20, 16), (1, 2, 3)).save(file, "png")
    png = file.getvalue()
    for shard in range(100):
        with tarfile.open(tmp_path / f"train-{shard:06}.tar", "w") as tar:
            for number in (2 * shard, 2 * shard + 1):
                for field, data in (("cls", b"%d" % number), ("jpg", png), ("json", b"[1]")):
                    info = tarfile.TarInfo(f"a/{number:04}.{field}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        names = [f"img_{number:03}.png" for number in range(9)]
        archive.writestr("dataset.json", json.dumps({"labels": [[name, 1] for name in names]}))
        for name in names:
            archive.writestr(name, png)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_of_the_readme(pictures: Path) -> None:
    names = run_first("README.md")
    assert names["label"] < 200
    assert bytes(names["image"][:4]) == b"\x89PNG"
    assert names["stream"].epoch == 2
    ended = json.loads((pictures / "data.json").read_text())
    assert ended["epoch"] == 2
    # A run that was stopped: it resumes behind the 150th sample of the second epoch.
    stopped = names["stream"].recipe.open()
    list(stopped)
    iterator = iter(stopped)
    keys = [next(iterator).key for _ in range(150)]
    assert stopped.epoch == 1
    (pictures / "data.json").write_text(json.dumps(stopped.state_dict()))
    resumed = run_first("README.md")["stream"]
    assert resumed.stats()["samples"] == 200 - len(keys)
    assert json.loads((pictures / "data.json").read_text()) == ended


def test_the_example_of_the_page_about_batches(pictures: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("pyarrow")
    names = run_first("docs/batches.md")
    assert names["images"].shape == (200, 3, 224, 224)
    assert names["tensors"]["cls"].shape == (200,)
    assert names["table"].num_rows == 200


def test_the_examples_of_the_page_about_random_access(pictures: Path) -> None:
    pytest.importorskip("torch")
    names = run_first("docs/random-access.md")
    assert len(names["labels"]["labels"]) == 9
    assert [bytes(view[:4]) for view in names["views"]] == 3 * [b"\x89PNG"]
    assert len(names["loader"].dataset) == 9
    data = run_first("docs/random-access.md", 1, shardfeed=shardfeed)["data"]
    assert len(data) == 200


def test_the_example_of_the_page_about_members(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_first("docs/members.md")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    size = len(zipfile.ZipFile("images.zip").read("img_008.png"))
    assert lines[-1] == f"img_008.png: {size} bytes, file, mode 600"


def test_the_example_of_the_page_about_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_first("docs/writing.md")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" bytes")[0] for line in lines] == [
        "train-000000.tar: 1000 samples, 3082240",
        "train-000001.tar: 1000 samples, 3082240",
        "train-000002.tar: 500 samples, 1546240",
    ]
    assert len(shardfeed.Dataset("train-{000000..000002}.tar", index="require")) == 2500


def test_the_example_of_shards_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = (text for text in blocks("docs/writing.md", "python") if "prepared = [" in text)
    exec(compile(example, "docs/writing.md", "exec"), names := {})
    urls = [f"out-{task:03}-{number:03}.tar" for task in range(2) for number in range(3)]
    assert [shard.url for shard in names["prepared"]] == urls
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        name for url in urls for name in (url, f"{url}.sfidx")
    )


@pytest.mark.parametrize("language", ["rust", "julia"])
def test_the_readme_shows_the_example_of_the_page(language: str) -> None:
    # Those of the pages are run by the tests of these languages, the README's of C by tests/c.
    (shown,) = blocks("README.md", language)
    assert shown == blocks(f"docs/{language}.md", language)[0]


def public_names(one: type) -> set[str]:
    """What a class of the package defines, and not what it has from abstract classes of Python."""
    own = [base for base in one.__mro__ if base.__module__.startswith("shardfeed")]
    return {name for base in own for name in vars(base) if not name.startswith("_")}


@pytest.mark.parametrize(
    "name",
    [
        "Stream",
        "Mix",
        "StreamRecipe",
        "MixRecipe",
        "Sample",
        "Batch",
        "Dataset",
        "Archive",
        "Members",
    ],
)
def test_help_and_the_page_have_every_method(name: str) -> None:
    described = getattr(shardfeed, name)
    assert len(described.__doc__.splitlines()) > 3
    page = (ROOT / "docs/python.md").read_text()
    head = {"Mix": "Stream", "MixRecipe": "StreamRecipe"}.get(name, name)
    (table,) = re.findall(rf"^\| `{head}[`(].*\n(?:\|.*\n)+", page, re.MULTILINE)
    words = set(re.findall(r"\w+", table))
    of_the_package = {"received", "use_hooks", "hooked", "with_columns"}
    for method in sorted(public_names(described) - of_the_package):
        assert inspect.getdoc(getattr(described, method)), f"{name}.{method} has no docstring"
        assert method in words, f"docs/python.md does not list {name}.{method}"
