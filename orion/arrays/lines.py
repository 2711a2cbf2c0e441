"""The elements of a sparse array by rows or by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.check import Arrays
from orion.arrays.frozen import sealed
from orion.arrays.layout import Elements
from orion.arrays.sorting import counts_of, sorted_columns
from orion.arrays.storage import current_storage
from orion.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Lines:
    """Elements by rows or columns: line i has those at `indptr[i] … indptr[i + 1]` of `indices`, their other keys, and
    of each of `values`."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: Arrays

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.indptr, self.indices, *self.values))


def by_lines(elements: Elements, dim: int, length: int) -> Lines:
    """Elements of two dimensions, in the order in which they were given, by the `length` lines of one of them; those of
    a line by ascending keys."""
    own, others = elements.keys[dim], elements.keys[1 - dim]
    indptr = np.concatenate(([0], np.cumsum(counts_of(own, length))))
    _, *columns = sorted_columns((own, others, *elements.values), 2, current_storage())
    starts, indices, *values = map(sealed, (indptr, *columns))  # what is shown of them once holds for all calls
    return Lines(starts, indices, tuple(values))
