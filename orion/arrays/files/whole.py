"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
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
    the new file is left.
    """
    path = Path(os.path.realpath(Path(path).expanduser()))
    refuse_special(path, "written")
    temporary = path.with_name(f".{path.name[:200]}.{uuid4().hex}.tmp")  # others may write a file of that name, too
    try:
        with temporary.open("xb") as file:
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
