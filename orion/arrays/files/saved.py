"""One array in a file."""

from __future__ import annotations

import os
from pathlib import Path

from orion.arrays.base import DistArray
from orion.arrays.files.archive import read_archive, write_archive
from orion.errors import DataFormatError, describe
from orion.tracebacks import ends_in_users_line

NAME = "array"


def save(array: DistArray, path: str | os.PathLike[str]) -> None:
    """Write an array to a file (`DistArray.save`)."""
    write_archive(Path(path), {NAME: array})


@ends_in_users_line
def load(path: str | os.PathLike[str]) -> DistArray:
    """Read an array from a file that `array.save(path)` wrote. It has the same elements, bit for bit.

    - `path`: the file, a zip archive of NumPy's `.npy` files.

    Returns an `orion.DenseArray` or an `orion.SparseArray`.

    Errors: `StorageError` where the file cannot be read. `DataFormatError` where it is damaged, or holds something else
    than one array.

    >>> import orion, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ones.npz")
    >>> orion.ones((2, 3)).save(path)
    >>> load(path)
    DenseArray(shape=(2, 3), dtype=float64)
    """
    found = read_archive(Path(path)).get(NAME)
    if not isinstance(found, DistArray):
        hint = "values by names are read by `orion.restore`"
        raise DataFormatError(describe(f"{path} does not hold one array of Orion's", hint=hint))
    return found
