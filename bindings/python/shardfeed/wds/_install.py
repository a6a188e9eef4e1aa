"""Makes `import webdataset` mean this package, for libraries that import it themselves."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_NAME = "webdataset"
_replaced: dict[str, ModuleType] = {}
_FOLDER = str(Path(__file__).parent / "_spawned")  # for processes that get our sys.path


class _Alias:
    """Finds webdataset.x where shardfeed.wds.x is: the same module under two names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        if fullname != _NAME and not fullname.startswith(_NAME + "."):
            return None
        import importlib.util

        own = _own(fullname)
        if fullname != _NAME and importlib.util.find_spec(own) is None:
            return None
        loader: Any = self
        return importlib.util.spec_from_loader(fullname, loader, is_package=fullname == _NAME)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return importlib.import_module(_own(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """It was executed under its own name."""


def _own(fullname: str) -> str:
    package = __name__.rpartition(".")[0]
    return package + fullname[len(_NAME) :]


_alias: Any = _Alias()  # both a finder and a loader


def install() -> None:
    """Makes `import webdataset` and `import webdataset.filters` give this package.

    Before libraries import it: what they have of another package stays what it is. Processes that
    multiprocessing forks or spawns from now on have it too.
    """
    if _alias in sys.meta_path:
        return
    for name in [name for name in sys.modules if name == _NAME or name.startswith(_NAME + ".")]:
        _replaced[name] = sys.modules.pop(name)
    sys.meta_path.insert(0, _alias)
    if _FOLDER not in sys.path:
        sys.path.insert(1, _FOLDER)  # the first one is that of the program
    package = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            sys.modules[_NAME + name[len(package) :]] = module


def uninstall() -> None:
    """Makes `import webdataset` mean again what it meant before install()."""
    if _alias not in sys.meta_path:
        return
    sys.meta_path.remove(_alias)
    if _FOLDER in sys.path:
        sys.path.remove(_FOLDER)
    for name in [name for name in sys.modules if name == _NAME or name.startswith(_NAME + ".")]:
        del sys.modules[name]
    sys.modules.update(_replaced)
    _replaced.clear()
