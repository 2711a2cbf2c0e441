"""The elements of a sparse array by the keys of one dimension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.check import INT64, Arrays
from orion.arrays.sorting import sorted_columns
from orion.arrays.sparse import SparseArray, adopt
from orion.arrays.storage import BLOCK, Pieces, Storage, current_storage
from orion.arrays.transformed import check_dimension
from orion.errors import ArgumentError, MissingKeyError, describe


class Groups(Mapping[int, SparseArray]):
    """The elements of a sparse array by their keys of one dimension (`SparseArray.group_by`).

    A mapping, from each key that an element has to the array of these elements. It goes through the keys in ascending
    order; `len` is their number. The elements are sorted when it is first used, and held a second time from then on.
    """

    def __init__(self, array: SparseArray, dim: int, version: int) -> None:
        self._array, self._dim, self._version = array, dim, version

    @property
    def dim(self) -> int:
        """The dimension whose keys these are."""
        return self._dim

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Arrays, Arrays]:
        """The keys that there are, where the elements of each begin and end, and all keys and values in that order."""
        array = self._array
        if array.version != self._version:
            what = "the values of an array, or their order, have been changed since `group_by` was called"
            raise ArgumentError(describe(what, hint="call `group_by` again"))
        coords, values = array.coords, array.values
        check_dimension(self._dim, len(coords))
        storage, dims = current_storage(), len(coords)
        others = [axis for dim, axis in enumerate(coords) if dim != self._dim]
        columns = values if isinstance(values, tuple) else (values,)
        own, *moved = sorted_columns((coords[self._dim], *others, *columns), 1, storage)
        keys = (*moved[: self._dim], own, *moved[self._dim : dims - 1])
        return *_starts(own, storage), keys, tuple(moved[dims - 1 :])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of elements of each key, in ascending order of the keys.

        >>> from orion.arrays.sparse import sparse
        >>> sparse(([2, 0, 2], [0, 3, 1]), np.ones(3)).group_by(0).sizes
        array([1, 2])
        """
        return np.diff(self._sorted[1])

    def __len__(self) -> int:
        return len(self._sorted[0])

    def __iter__(self) -> Iterator[int]:
        yield from self._sorted[0].tolist()

    def __contains__(self, key: object) -> bool:
        return self._place(key) is not None

    def __getitem__(self, key: int) -> SparseArray:
        place = self._place(key)
        if place is None:
            what = f"no element has the key {key!r} in dimension {self._dim}"
            raise MissingKeyError(describe(what, hint="iterate over the groups for the keys that there are"))
        _, starts, keys, values = self._sorted
        inside, array = slice(int(starts[place]), int(starts[place + 1])), self._array
        columns = tuple(column[inside] for column in values)
        return adopt(tuple(axis[inside] for axis in keys), columns, array.shape, array.values_are_tuple)

    def _place(self, key: object) -> int | None:
        """Which of the groups has a key, None where none has."""
        keys = self._sorted[0]
        if not isinstance(key, int | np.integer) or not 0 <= key <= np.iinfo(np.int64).max:
            return None
        place = int(np.searchsorted(keys, int(key)))
        return place if place < len(keys) and keys[place] == key else None

    def __repr__(self) -> str:
        return f"Groups of dimension {self._dim} of {self._array!r}"


def _starts(keys: NDArray[Any], storage: Storage) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different ones of ascending keys, and where each begins, with the end of the last one."""
    found, first = Pieces(storage), Pieces(storage)
    for start in range(0, len(keys), BLOCK):
        part = keys[start : start + BLOCK]
        is_first = np.ones(len(part), bool)
        is_first[1:] = part[1:] != part[:-1]
        is_first[0] = not start or part[0] != keys[start - 1]
        places = np.flatnonzero(is_first)
        found.add(part[places].astype(np.int64))
        first.add(places + start)
    first.add(np.array([len(keys)]))
    return found.whole(INT64), first.whole(INT64)
