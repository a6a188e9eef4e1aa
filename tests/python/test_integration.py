"""Integrations (torch, grain) use the package as any other package could.

They import public names and those of shardfeed._integration, and touch no private attribute of the
package's classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import shardfeed

PACKAGE = Path(__file__).parents[2] / "bindings/python/shardfeed"
INTEGRATIONS = [
    *sorted((PACKAGE / "torch").glob("*.py")),
    *sorted((PACKAGE / "cluster").glob("*.py")),
    PACKAGE / "grain.py",
]
CORE = sorted(set(PACKAGE.glob("*.py")) - set(INTEGRATIONS))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def own_names(tree: ast.Module) -> Iterator[str]:
    """The private attributes and methods that the classes of a file have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.FunctionDef):
                    yield line.name
                elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield line.target.id
                elif isinstance(line, ast.Assign):
                    yield from (name.id for name in line.targets if isinstance(name, ast.Name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


PRIVATE_OF_CORE = {name for path in CORE for name in own_names(tree_of(path)) if is_private(name)}


def foreign_private(tree: ast.Module) -> list[str]:
    """Where a file takes an attribute of another object that is private in the core."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in PRIVATE_OF_CORE
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


def foreign_imports(tree: ast.Module, level: int) -> list[str]:
    """What a file imports from the package; `level` dots lead to that."""
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == level:
            public = shardfeed.__all__ if node.module is None else ()
            if node.module == "_integration":
                public = [alias.name for alias in node.names if not is_private(alias.name)]
            wrong += [
                f"line {node.lineno}: {node.module or ''}.{alias.name}"
                for alias in node.names
                if alias.name not in public
            ]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            named = [alias.name for alias in node.names]
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [
                f"line {node.lineno}: {name}" for name in named if name.startswith("shardfeed.")
            ]
    return wrong


@pytest.mark.parametrize("path", INTEGRATIONS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_integrations_use_public_names(path: Path) -> None:
    tree = tree_of(path)
    assert foreign_private(tree) == []
    level = len(path.relative_to(PACKAGE).parts)
    assert foreign_imports(tree, level) == []


def test_this_test_finds_private_names() -> None:
    assert {"_recipe", "_next_epoch", "_source", "_resume", "_options"} <= PRIVATE_OF_CORE
    bad = ast.parse("from ._stream import x\nfrom . import Stream, lib\nsamples._next_epoch")
    assert foreign_imports(bad, 1) == ["line 1: _stream.x", "line 2: .lib"]
    assert foreign_private(bad) == ["line 3: samples._next_epoch"]
