"""What programs import: the same names, arguments and defaults as those of webdataset."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

original = pytest.importorskip("webdataset")

MODULES = [
    "tariterators",
    "filters",
    "autodecode",
    "shardlists",
    "utils",
    "handlers",
    "compat",
    "pipeline",
    "mix",
    "extradatasets",
    "cache",
    "gopen",
    "writer",
    "tenbin",
    "pytorch",
]
# Arguments that the original has not, of functions that it has.
BESIDE = [("native", "KEYWORD_ONLY"), ("total", "KEYWORD_ONLY")]


def public(module: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("__") and not inspect.ismodule(value)
    }


def own_names(module: Any) -> dict[str, Any]:
    """What a module defines itself."""
    return {
        name: value
        for name, value in public(module).items()
        if getattr(value, "__module__", module.__name__) == module.__name__
        and name != "PIPE"  # of subprocess
        and not (name.startswith("_") and inspect.isclass(value))
    }


def described(value: Any) -> Any:
    if inspect.isfunction(value) or inspect.isclass(value):
        return value.__name__
    return f"{type(value).__name__}" if " at 0x" in repr(value) else repr(value)


def parameters(function: Any) -> list[Any] | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [
        (p.name, str(p.kind), None if p.default is p.empty else described(p.default))
        for p in signature.parameters.values()
    ]


def is_beside(parameter: Any) -> bool:
    return parameter[:2] in BESIDE


def same_parameters(ours: Any, theirs: Any) -> bool:
    mine, other = parameters(ours), parameters(theirs)
    if mine is None or other is None:
        return True
    names = {"default_decoders", "list", "module"}
    for a, b in zip([p for p in mine if not is_beside(p)], other):
        if a != b and not (
            a[:2] == b[:2] and ("0x" in str(a) or str(b[2])[:1] in "[<" or a[2] in names)
        ):
            return False
    return len([p for p in mine if not is_beside(p)]) == len(other)


def test_every_exported_name_is_there() -> None:
    wds = importlib.import_module("shardfeed.wds")
    assert sorted(set(public(original)) - set(public(wds))) == []
    for name in public(original):
        assert same_parameters(getattr(wds, name), getattr(original, name)), name


@pytest.mark.parametrize("module", MODULES)
def test_submodules_have_the_same_names_and_arguments(module: str) -> None:
    if module == "pytorch":
        pytest.importorskip("torch")
    theirs = importlib.import_module(f"webdataset.{module}")
    ours = importlib.import_module(f"shardfeed.wds.{module}")
    missing = []
    for name, value in own_names(theirs).items():
        if not hasattr(ours, name):
            missing.append(name)
            continue
        found = getattr(ours, name)
        assert same_parameters(found, value), (name, parameters(found), parameters(value))
        if inspect.isclass(value):
            for method in vars(value):
                if method.startswith("_abc") or (method.startswith("__") and method != "__init__"):
                    continue
                assert hasattr(found, method), (name, method)
                if callable(getattr(value, method)):
                    assert same_parameters(getattr(found, method), getattr(value, method)), (
                        name,
                        method,
                    )
    # TypeVars and functions that only the module itself uses may have other names.
    assert [name for name in missing if not name.startswith("_")] == []


@pytest.mark.parametrize("module", MODULES)
def test_submodules_have_the_same_constants(module: str) -> None:
    theirs = importlib.import_module(f"webdataset.{module}")
    ours = importlib.import_module(f"shardfeed.wds.{module}")
    different = {"tenbin.long_to_short"}  # the original misspells uint32
    for name, value in own_names(theirs).items():
        if f"{module}.{name}" in different or name.startswith("_"):
            continue
        if isinstance(value, (int, float, str, bytes, bool)):
            assert getattr(ours, name) == value, name
        elif isinstance(value, dict):
            assert value.keys() <= getattr(ours, name).keys(), name
        elif isinstance(value, (list, tuple, set)):
            assert len(getattr(ours, name)) == len(value), name


def outcome(program: str) -> Any:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_needs_no_torch_and_no_numpy() -> None:
    program = """
import json, sys
sys.modules["torch"] = None
import shardfeed.wds as wds
list(wds.DataPipeline(lambda: iter([1, 2]), wds.shuffle(5)))
print(json.dumps([n for n in ("numpy", "PIL", "torchvision") if sys.modules.get(n)]))
"""
    assert outcome(program) == []


def test_install_makes_other_libraries_use_this_package() -> None:
    program = """
import json
import webdataset
before = webdataset.__file__
import shardfeed.wds as wds
wds.install()
import webdataset, webdataset.filters
from webdataset.filters import _shuffle
from webdataset.tariterators import base_plus_ext, url_opener, tar_file_expander, valid_sample
from webdataset.pytorch import IterableDataset
same = webdataset.filters._shuffle is wds.filters._shuffle
inside = [webdataset is wds, same, webdataset.__name__]
wds.uninstall()
import webdataset
print(json.dumps([*inside, webdataset.__file__ == before]))
"""
    assert outcome(program) == [True, True, "shardfeed.wds", True]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_a_program_starts_have_what_it_has_installed(
    tmp_path: Path, method: str
) -> None:
    (tmp_path / "program.py").write_text(f"""
import json, multiprocessing, sys
def names(number):
    import webdataset.filters  # the submodule first
    from webdataset import TarWriter
    found = [webdataset.__name__, webdataset.filters.__name__, TarWriter.__module__]
    import shardfeed.wds
    shardfeed.wds.install()  # once more
    shardfeed.wds.uninstall()
    import webdataset
    return [*found, webdataset.__name__]
if __name__ == "__main__":
    import shardfeed.wds
    before = list(sys.path)
    shardfeed.wds.install()
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        found = pool.map(names, [1])
    import webdataset
    inside = webdataset.__name__
    shardfeed.wds.uninstall()
    print(json.dumps([found, inside, sys.path == before]))
""")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names = ["shardfeed.wds", "shardfeed.wds.filters", "shardfeed.wds.writer", "webdataset"]
    assert json.loads(done.stdout) == [[names], "shardfeed.wds", True]
