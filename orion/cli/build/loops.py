"""The decorated functions of an importable module or package."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from orion.api import ParallelFunction
from orion.cli.given import UsageError
from orion.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was imported: its name, its folder, and its decorated functions by their names in it. `broken` has
    modules that could not be imported, with why."""

    name: str
    folder: Path
    functions: dict[str, ParallelFunction[..., Any]]
    broken: dict[str, str]

    def holds(self, file: str) -> bool:
        """Whether a file is one of the package."""
        return Path(file).resolve().is_relative_to(self.folder)


def import_package(name: str) -> Package:
    """Import a package with all its modules, from the current folder, from `src` in it, or as it is installed. Modules
    named `__main__` are left out. UsageError where there is none."""
    sys.path[:0] = [str(folder) for folder in (Path.cwd() / "src", Path.cwd()) if folder.is_dir()]
    spec = _spec(name)
    if spec is None or not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"no module is named `{name}`: give a name as `import` takes it, from the project's folder")
    if not spec.submodule_search_locations or spec.origin is None or not Path(spec.origin).is_file():
        raise UsageError(
            f"`{name}` is no package: kernels lie in a folder of one. Make it a folder with an `__init__.py`"
        )
    broken: dict[str, str] = {}
    package = _imported(name, broken)
    if package is None:
        raise UsageError(f"`{name}` cannot be imported: {broken[name]}")
    names = (one.name for one in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=lambda _: None))
    found = [_imported(one, broken) for one in names if one.rpartition(".")[2] != "__main__"]
    modules = [package, *(one for one in found if one is not None)]
    functions = {label: function for module in modules for label, function in _functions(module, name)}
    return Package(name, Path(spec.origin).resolve().parent, functions, broken)


def _spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None


def _imported(name: str, broken: dict[str, str]) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        broken[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        return None


def _functions(module: ModuleType, package: str) -> Iterator[tuple[str, ParallelFunction[..., Any]]]:
    """Yield the decorated functions that a module defines, those in its classes too, by their names in the package."""
    inside = module.__name__.removeprefix(package).lstrip(".")
    is_own: Callable[[Any], bool] = lambda value: getattr(value, "__module__", None) == module.__name__  # noqa: E731
    for value in [*vars(module).values()]:
        members = [*vars(value).values()] if isinstance(value, type) and is_own(value) else [value]
        for member in members:
            found = getattr(member, "__func__", member)
            if isinstance(found, ParallelFunction) and is_own(found):
                yield ".".join(filter(None, (inside, found.__qualname__))), found
