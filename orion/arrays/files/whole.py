"""Files that are there as a whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from orion.errors import StorageError, describe


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Write a file, which replaces one that is there and keeps its permissions; where `path` is a link, that which it
    leads to. `~` at its beginning is the user's folder.

    `StorageError` where it cannot be written, as on a full disk: what was at `path` is then as it was, and nothing of
    the new file is left. What a process has left that was killed while it wrote is removed.
    """
    path = Path(os.path.realpath(Path(path).expanduser()))
    refuse_special(path, "written")
    _remove_unfinished(path)
    temporary = path.with_name(f".{path.name[:200]}.{uuid4().hex}.tmp")  # others may write a file of that name, too
    try:
        with _locked(temporary) as file:
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            write(file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except OSError as error:
        why = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
        hint = "what was there before is as it was; make room, or choose another folder"
        raise StorageError(describe(f"{path} cannot be written", why=why, hint=hint)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    with suppress(OSError):  # the file is there: a folder that nobody may list keeps its name as well
        _sync_folder(path.parent)


def _locked(temporary: Path) -> IO[bytes]:
    """A new file that is locked while it is open, which ends with its process, however that ends. Made anew where
    somebody has taken it for one without a writer before it was locked."""
    while True:
        file = temporary.open("xb")
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if temporary.exists():
            return file
        file.close()


def _remove_unfinished(path: Path) -> None:
    """Remove what others have begun to write in place of a file, and whose writers are no more."""
    name = re.compile(re.escape(f".{path.name[:200]}.") + r"[0-9a-f]{32}\.tmp")
    with suppress(OSError):
        for one in path.parent.iterdir():
            if name.fullmatch(one.name):
                with suppress(OSError), one.open("rb") as file:
                    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                    one.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """The same for a text, in UTF-8."""
    write_whole(path, lambda file: file.write(text.encode()))


def refuse_special(path: Path, done: str) -> None:
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise StorageError(describe(f"{path} cannot be {done}", why=f"it is {what}"))


def _sync_folder(folder: Path) -> None:
    """Bring the name of a new file to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
