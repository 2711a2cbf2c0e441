"""Elements of a sparse array by their keys: a search in the keys of all in ascending order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.layout import Elements
from orion.arrays.sorting import is_ascending, with_positions
from orion.arrays.storage import current_storage
from orion.errors import ArgumentError, MissingKeyError, describe


class KeyedElements:
    """Elements, to be found by their keys. Those of `before` with the same arrays of keys need not be sorted anew."""

    def __init__(self, elements: Elements, before: KeyedElements | None = None) -> None:
        self._elements, keys = elements, elements.keys
        self._order: NDArray[Any] | None
        self._sorted: tuple[NDArray[Any], ...]
        if before is not None and before._elements.keys is keys:
            self._order, self._sorted = before._order, before._sorted
            return
        if is_ascending(keys):
            self._order, self._sorted = None, keys
        else:
            *columns, self._order = with_positions(keys, current_storage())
            self._sorted = tuple(columns)

    def are(self, elements: Elements) -> bool:
        """Whether it is about these elements."""
        return self._elements is elements

    @property
    def nbytes(self) -> int:
        """Bytes of what it holds beside the elements."""
        return 0 if self._order is None else sum(array.nbytes for array in (self._order, *self._sorted))

    def place(self, key: tuple[int, ...]) -> int:
        """Where the element with a key is. MissingKeyError where there is none, or more than one."""
        first, end = 0, len(self._elements)
        for axis, one in zip(self._sorted, key, strict=True):
            part = axis[first:end]
            if not 0 <= one <= np.iinfo(axis.dtype).max:
                first = end
                break
            number = axis.dtype.type(one)
            end = first + int(np.searchsorted(part, number, side="right"))
            first += int(np.searchsorted(part, number, side="left"))
        if first == end:
            hint = "a sparse array keeps the elements that it was made of"
            raise MissingKeyError(describe(f"there is no element with the key {key}", hint=hint))
        if end - first > 1:
            why = "nobody can say which of them is meant"
            raise MissingKeyError(describe(f"there are {end - first} elements with the key {key}", why=why))
        return first if self._order is None else int(self._order[first])

    def values(self, key: tuple[int, ...]) -> tuple[Any, ...]:
        """The values of the element with a key."""
        place = self.place(key)
        return tuple(array[place] for array in self._elements.values)

    def store(self, key: tuple[int, ...], values: Any) -> None:
        """Give the element with a key these values, converted to the dtypes of the arrays: all of them, or none."""
        place, arrays = self.place(key), self._elements.values
        if not isinstance(values, tuple) or len(values) != len(arrays):
            what = f"an element has {len(arrays)} values, and is not given as many"
            raise ArgumentError(describe(what, hint="store a tuple of as many"))
        converted = [np.empty(1, array.dtype) for array in arrays]
        for one, value in zip(converted, values, strict=True):
            one[0] = value
        for array, one in zip(arrays, converted, strict=True):
            array[place] = one[0]
