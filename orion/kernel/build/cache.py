"""Generated modules on disk, where Numba's own cache finds them again in the next process.

A module's file is named by a hash of all that its machine code depends on, so that a file is never changed: processes
that race write the same bytes, and the first to put its file in place wins.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.abc
import importlib.util
import linecache
import os
import platform
import shutil
import stat
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, ModuleType

MTIME = 946684800
"""The time of every file (2000-01-01): Numba takes a file of another time for another source."""

_importing = threading.Lock()
_temporary: list[Path] = []
_told: list[str] = []


def cache_folder() -> Path:
    """The folder of generated modules: `$ORION_CACHE`, or `orion` in the user's cache folder of the platform.

    It belongs to the user, and only the user can write to it: what lies there is executed. Where no such folder can
    be had (a read-only home, or a folder of somebody else's), that is said, and a new temporary one is taken.
    """
    try:
        folder = named_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        trouble = trouble_with(folder)
    except FileExistsError as error:
        trouble = f"{error.filename} is a file, and no folder"
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        trouble = in_words(error)
    if not trouble:
        return folder
    tell_not_kept(trouble)
    return _temporary_folder()


def named_folder() -> Path:
    """The folder of generated modules, whether it is there or not. RuntimeError where there is no home."""
    return Path(os.environ.get("ORION_CACHE") or _platform_folder() / "orion").expanduser()


def _platform_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def trouble_with(folder: Path) -> str:
    """What is wrong with a folder that there is; "" where only this user can write to it, and can."""
    if sys.platform != "win32":
        found = folder.stat()
        if found.st_uid != os.geteuid():
            return f"{folder} belongs to another user"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"other users can write to {folder}"
    return "" if os.access(folder, os.W_OK) else f"{folder} cannot be written to"


def _is_trusted(folder: Path) -> bool:
    """Whether this user or root alone can have written to a folder, so that its code may run: a layer of an image, a
    read-only mount."""
    if sys.platform == "win32":
        return folder.is_dir()
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _copy_machine_code(path: Path) -> None:
    """Copy the machine code of the module at `path` from the named folder, which can only be read, to the folder of
    that module. OSError where a file cannot be copied; then the module is compiled."""
    kept = named_folder() / "__pycache__"
    own = path.parent / "__pycache__"
    if kept == own or not (_is_trusted(kept.parent) and _is_trusted(kept)):
        return
    own.mkdir(exist_ok=True)
    for one in kept.glob(f"{path.stem}.*"):
        if not (own / one.name).exists():
            write_whole(own / one.name, one.read_bytes())


def machine_code_folder(stem: str) -> Path:
    """Return the folder of machine code. A temporary one gets copies of the files of that stem from a cache folder that
    can only be read. OSError where no folder can be written."""
    for chosen in (cache_folder, _temporary_folder):
        folder = chosen()
        own = folder / "__pycache__"
        try:
            own.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            tell_not_kept(in_words(error, folder))
            continue
        if folder in _temporary:
            with contextlib.suppress(OSError, RuntimeError):
                _copy_machine_code(folder / stem)
        return own
    raise OSError("no folder can be written")


def _temporary_folder() -> Path:
    """A folder for the lifetime of this process; the same one each time, unless somebody has removed it."""
    if not _temporary or not _temporary[-1].is_dir():
        _temporary.append(Path(tempfile.mkdtemp(prefix="orion-")))
        atexit.register(_remove, _temporary[-1], os.getpid())
    return _temporary[-1]


def _remove(folder: Path, process: int) -> None:
    """Remove a folder, at the end of the process that made it, not of those forked off from it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def in_words(error: Exception, folder: object = None) -> str:
    """Why no file could be read or written (in that folder), in half a line.

    >>> in_words(OSError(28, "No space left on device"), "/home/me/.cache/orion")
    '/home/me/.cache/orion: No space left on device'
    """
    if not isinstance(error, OSError) or not error.strerror:
        return " ".join(str(error).split())
    place = folder or error.filename
    return f"{place}: {error.strerror}" if place else error.strerror


def tell_not_kept(why: str, what: str = "compiled loops", variable: str = "ORION_CACHE") -> None:
    """Say on the standard error stream, once per process, that the next process will have to make something anew."""
    if what not in _told:
        _told.append(what)
        text = f"orion: {what} are not kept for later runs: {why}; {variable} can name another folder\n"
        with contextlib.suppress(Exception):  # closed, or none at all
            sys.stderr.write(text)
            sys.stderr.flush()


# ------------------------------------------------------------ modules


def load_module(name: str, text: str) -> ModuleType:
    """The module of that name and source, written to the cache folder if need be, and imported once per process."""
    with _importing:
        if name in sys.modules:
            return sys.modules[name]
        module = _made(name, text)
        sys.modules[name] = module
        try:
            assert module.__spec__ is not None
            assert module.__spec__.loader is not None
            module.__spec__.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _made(name: str, text: str) -> ModuleType:
    """The module, not executed yet: of a file, or in memory where none can be written."""
    path = _written(f"{name}.py", text)
    loader = _Loader(str(path or f"{name}.py"), text)
    if path is None:
        linecache.cache[loader.path] = (len(text), None, text.splitlines(keepends=True), loader.path)
    spec = importlib.util.spec_from_loader(name, loader, origin=loader.path)
    assert spec is not None
    spec.has_location = True
    return importlib.util.module_from_spec(spec)


class _Loader(importlib.abc.InspectLoader):
    """Imports a text, as if from the file at `path`. No bytecode is kept: Python does not notice where that is damaged,
    and compiling the text takes a millisecond."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._text = text

    def get_source(self, fullname: str) -> str:
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._text, self.path)


def _written(name: str, text: str) -> Path | None:
    """The file of that name in the cache folder, in a temporary one where there is no room; None where no file can be
    written."""
    for chosen in (cache_folder, _temporary_folder):
        folder = None
        try:
            folder = chosen()
            path = write_once(folder / name, text)
        except OSError as error:
            tell_not_kept(in_words(error, folder))
            continue
        if folder in _temporary:
            with contextlib.suppress(OSError, RuntimeError):  # then it is compiled
                _copy_machine_code(path)
        return path
    return None


def write_once(path: Path, text: str) -> Path:
    """Write the file unless it is there with that text. Never leaves half a file under its name."""
    data = text.encode()
    with contextlib.suppress(OSError):  # not there yet, or just taken away by whoever cleans the folder
        if path.read_bytes() == data:
            return path
    write_whole(path, data)
    return path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, or leave what was there: never half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.utime(temporary, (MTIME, MTIME))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def machine() -> str:
    """What the machine code depends on besides the source and the compilers."""
    return f"{platform.machine()} {sys.platform} {sys.implementation.cache_tag}"
