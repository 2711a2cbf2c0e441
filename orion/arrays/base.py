"""What dense and sparse distributed arrays have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray


class DistArray(ABC):
    """An array that Orion may split into partitions and that stays split from one loop to the next.

    `DenseArray` holds every element of its shape, `SparseArray` only the elements it was given.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The number of indices in each dimension."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """The type of the elements, in native byte order."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory that the array holds, padding included."""

    @abstractmethod
    def __len__(self) -> int:
        """What a `for` loop over the array goes through: rows if dense, stored elements if sparse."""

    @abstractmethod
    def to_numpy(self) -> NDArray[np.generic]:
        """A dense NumPy copy of the array."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)
