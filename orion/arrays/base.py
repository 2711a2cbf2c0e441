"""Common base of dense and sparse distributed arrays."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from orion.arrays.storage import file_memory
from orion.tracebacks import ends_in_users_line


class DistArray(ABC):
    """Array that Orion may split into partitions, and that stays split between loops.

    `orion.DenseArray` holds every element of its shape, `orion.SparseArray` only the elements it was given.

    >>> import orion
    >>> isinstance(orion.zeros(3), orion.DistArray)
    True
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Number of indices in each dimension."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Type of the elements, in native byte order."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory that the array holds, padding included."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of iterations of a `for` loop over the array: rows if dense, stored elements if sparse."""

    @abstractmethod
    def to_numpy(self) -> NDArray[np.generic]:
        """Return a dense NumPy copy of the array."""

    @ends_in_users_line
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the array to a file for `orion.load`: a zip archive of NumPy's `.npy` files.

        `path` is the file; a complete new file replaces an older one. `StorageError` where it cannot be written, as on
        a full disk; an older file then stays.
        """
        from orion.arrays.files.saved import save

        save(self, path)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @abstractmethod
    def _facts(self) -> Mapping[str, str]:
        """Return the facts that a notebook shows about the array, by name."""

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in self._facts().items())
        return f"<table><caption>orion.{type(self).__name__}</caption><tbody>{rows}</tbody></table>"


def bytes_text(count: int) -> str:
    """A number of bytes as people read it.

    >>> bytes_text(72_351_744)
    '69.0 MiB'
    """
    size, units = float(count), iter(("bytes", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while size >= 1024 and unit != "TiB":
        size, unit = size / 1024, next(units)
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def place_text(array: NDArray[np.generic]) -> str:
    """Return where the memory of an array is."""
    file = file_memory(array)
    if file is not None:
        return f"a file in {file.folder}"
    owner: object = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return "memory shared by the workers of this machine" if isinstance(owner, mmap.mmap) else "this process"
