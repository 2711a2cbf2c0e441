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
    """Save arrays, numbers and strings to a new file in a folder, and return the file's path.

    - `path`: the folder. It is made where it does not exist; only one session at a time writes to it.
    - `values`: what to save, each by a name: `W=W, epoch=4`. Of a replica (`orion.replicate`), the file holds the
      centre and the momentum; of an accumulator, its value.
    - `every`: seconds above 0. Orion then saves the same arrays again after a call, each time that so many seconds have
      passed. This ends with the session, or with the next `checkpoint` to the folder. Only arrays, replicas and
      accumulators can be saved so.

    The file is complete or absent, whatever ends the process meanwhile. The newest two files stay.

    Errors: `ArgumentError` for values of other types, and for an `every` of 0 or less. The same if another session
    writes to the folder. `StorageError` where the file cannot be written, as on a full disk; earlier checkpoints then
    stay.

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
    """Read the newest checkpoint in a folder, and return its values by name.

    - `path`: the folder, or one file in it.
    - `into`: arrays to fill in place, by their names in the checkpoint. Dense arrays, NumPy's or Orion's, need the same
      shape and dtype. Replicas take their centre and momentum, and all copies begin as the centre. Accumulators take
      their value.

    Errors: `ArgumentError` where there is no checkpoint, or an array does not fit. `DataFormatError` for a damaged
    file; the one before it can be given by its path. `StorageError` where a file cannot be read. After an error,
    nothing has changed.

    >>> import numpy as np, orion, tempfile
    >>> folder, W = tempfile.mkdtemp(), np.ones(3)
    >>> _ = orion.checkpoint(folder, W=W)
    >>> W[:] = 0.0
    >>> _ = orion.restore(folder, W=W)
    >>> W
    array([1., 1., 1.])
    """
    return restored(Path(path).expanduser(), into)
