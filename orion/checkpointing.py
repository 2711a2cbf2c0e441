"""`orion.checkpoint` and `orion.restore`: what a program needs to go on, kept in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from orion.runtime.checkpoints import restored
from orion.runtime.session import current_session
from orion.tracebacks import ends_in_users_line


@ends_in_users_line
def checkpoint(path: str | os.PathLike[str], /, *, every: float | None = None, **values: Any) -> Path:
    """Write arrays, numbers and strings, each by a name, to a new file in the folder `path`, and return its path.

    The file is there as a whole or not at all, whatever happens meanwhile; the newest two stay. With `every`, the same
    arrays are written again after the first call of a loop that ends so many seconds later, and so on, until the
    session ends or the function is called again for this folder. Of a replica (`orion.replicate`) they hold the centre
    and the momentum, of an accumulator its value. A session has its folders for itself.

    `ArgumentError` for values that no file holds, and where another session writes to the folder; `StorageError` where
    the file cannot be written, as on a full disk: the checkpoints before it are as they were.

    >>> import orion, tempfile
    >>> folder, W = tempfile.mkdtemp(), orion.ones((2, 3))
    >>> orion.checkpoint(folder, W=W, epoch=4).name
    'checkpoint-000001.npz'
    >>> W[0, 0] = 7.0
    >>> orion.restore(folder, W=W)["epoch"], float(W[0, 0])
    (4, 1.0)
    """
    return current_session().checkpoint(Path(path).expanduser(), values, every)


@ends_in_users_line
def restore(path: str | os.PathLike[str], /, **into: Any) -> dict[str, Any]:
    """Read the newest checkpoint in the folder `path`, and return what it holds by name. `path` may also be a file.

    Dense arrays given by name, NumPy's or Orion's, take their contents in place; they need the same shape and dtype.
    Replicas take their centre and momentum, and their copies begin as the centre. Accumulators take their value. Where
    there is an error, nothing changes.

    `ArgumentError` where there is no checkpoint, or arrays do not fit; `DataFormatError` where the file is damaged: the
    one before it, in the same folder, can then be given by its path.
    """
    return restored(Path(path).expanduser(), into)
