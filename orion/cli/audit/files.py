"""The Python files of what an audit is asked for: a file, a folder, or an installed package."""

from __future__ import annotations

import importlib.machinery
import linecache
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from orion.cli.cells import LoadError, Part, parts_of
from orion.cli.given import UsageError
from orion.source import SourceText

SUFFIXES = (".py", ".ipynb")
LEFT_OUT = frozenset({"__pycache__", "node_modules"})
MAX_BYTES = 5_000_000
WORD = b"prange"


def files_of(target: str) -> tuple[list[Path], tuple[Path, ...]]:
    """Return the files of a target, and the folders that its packages lie in. `UsageError` where there is no such."""
    if not target:
        raise UsageError("the path is empty")
    path = Path(target)
    if path.is_dir():
        return list(_below(path)), (path.resolve(), _root_of(path.resolve()))
    if path.exists():
        return [path], (_root_of(path.resolve().parent),)
    found = _installed(target)
    if found is None:
        raise UsageError(f"{target} is no file, no folder and no installed package")
    root = found if found.is_dir() else found.parent
    files = list(_below(found)) if found.is_dir() else [found]
    return files, (root.parent, root)


def _root_of(folder: Path) -> Path:
    """Return the folder that the package lies in which a folder is part of."""
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def _below(folder: Path) -> Iterator[Path]:
    """The files of a folder, those of hidden folders left out, in the order of their names."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in LEFT_OUT)
        yield from (Path(where, name) for name in sorted(names) if name.endswith(SUFFIXES))


def _installed(name: str) -> Path | None:
    """Return the folder or the file of an installed module, which is looked up without importing anything."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    places: list[str] | None = list(sys.path)
    found = None
    for part in parts:
        found = importlib.machinery.PathFinder.find_spec(part, places)
        if found is None:
            return None
        places = list(found.submodule_search_locations or [])
    assert found is not None
    if places:
        return Path(places[0])
    return Path(found.origin) if found.origin and found.origin.endswith(".py") else None


def holds_loops(path: Path) -> bool:
    """Whether a file may have loops over `prange`. Raises `LoadError` where it cannot be read."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # a pipe may never end
            raise LoadError(f"{path} is no regular file")
        if about.st_size > MAX_BYTES:
            raise LoadError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB")
        data = path.read_bytes()
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror or error}") from None
    return WORD in data or b"\x00" in data[:200]  # UTF-16 and such are for the parser to refuse


def read_parts(path: Path) -> list[Part]:
    """Return the program of a file. Raises `LoadError` also where Python gives up on it."""
    try:
        parts = parts_of(path)
    except (RecursionError, MemoryError, OverflowError) as error:
        raise LoadError(f"{path}: Python cannot parse it: {type(error).__name__}") from None
    for part in parts:
        if part.file == str(path):
            linecache.checkcache(part.file)
    return parts


def source_of(file: str) -> SourceText:
    """Return the lines of a file, or of a cell."""
    return SourceText(file, 1, tuple(line.rstrip("\r\n") for line in linecache.getlines(file)))
