"""Generated modules on disk, where Numba's own cache finds them again in the next process.

A module's file is named by a hash of all that its machine code depends on, so that a file is never changed: processes
that race write the same bytes, and the first to put its file in place wins.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import stat
import sys
import tempfile
import threading
from pathlib import Path
from types import ModuleType

MTIME = 946684800
"""The time of every file (2000-01-01): Numba takes a file of another time for another source."""

_importing = threading.Lock()
_temporary: list[tempfile.TemporaryDirectory[str]] = []


def cache_folder() -> Path:
    """The folder of generated modules: `$ORION_CACHE`, or `orion` in the user's cache folder of the platform.

    It belongs to the user, and only the user can write to it: what lies there is executed. Where no such folder can
    be had (a read-only home, or a folder of somebody else's), a new temporary one is taken.
    """
    folder = Path(os.environ.get("ORION_CACHE") or _platform_folder() / "orion")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return _temporary_folder()
    return folder if _is_private(folder) else _temporary_folder()


def _platform_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_private(folder: Path) -> bool:
    """Whether only this user can write to the folder."""
    if sys.platform == "win32":
        return os.access(folder, os.W_OK)
    found = folder.stat()
    shared = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == os.geteuid() and not found.st_mode & shared and os.access(folder, os.W_OK)


def _temporary_folder() -> Path:
    """A folder for the lifetime of this process; the same one each time."""
    if not _temporary:
        _temporary.append(tempfile.TemporaryDirectory(prefix="orion-"))
    return Path(_temporary[0].name)


def load_module(name: str, text: str) -> ModuleType:
    """The module of that name and source, written to the cache folder if need be, and imported once per process."""
    with _importing:
        if name in sys.modules:
            return sys.modules[name]
        path = _written(f"{name}.py", text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _written(name: str, text: str) -> Path:
    """The file of that name in the cache folder; in a temporary one where there is no room."""
    try:
        return write_once(cache_folder() / name, text)
    except OSError:
        return write_once(_temporary_folder() / name, text)


def write_once(path: Path, text: str) -> Path:
    """Write the file unless it is there with that text. Never leaves half a file under its name."""
    data = text.encode()
    with contextlib.suppress(OSError):  # not there yet, or just taken away by whoever cleans the folder
        if path.read_bytes() == data:
            return path
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.utime(temporary, (MTIME, MTIME))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def machine() -> str:
    """What the machine code depends on besides the source and the compilers."""
    return f"{platform.machine()} {sys.platform} {sys.implementation.cache_tag}"
