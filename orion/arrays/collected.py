"""What a function of the user's returns, one element at a time, as columns: arrays of the dtypes of the results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.check import Arrays
from orion.arrays.dtypes import SUPPORTED
from orion.arrays.storage import Pieces, Storage

OF_PYTHON = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
"""Python's types of numbers, and what they are in arrays."""

LARGEST_KEY = int(np.iinfo(np.int64).max) - 1


class WrongResultError(Exception):
    """The result at `place` is none that an array holds; the text says why. `of_type`: it is of the wrong type, rather
    than a number that no key can be."""

    def __init__(self, place: int, text: str, of_type: bool = True) -> None:
        super().__init__(text)
        self.place, self.of_type = place, of_type


class Column:
    """Numbers that come in parts, as one array. Its dtype is that of NumPy's numbers among them, promoted by NumPy's
    rules, to which Python's adapt; of Python's alone it is bool, int64, float64 or complex128.

    >>> from orion.arrays.storage import IN_MEMORY
    >>> column = Column(IN_MEMORY)
    >>> column.add([np.float32(1.5), 2]), column.add([3.25])
    (dtype('float32'), dtype('float64'))
    >>> column.whole()
    array([1.5 , 2.  , 3.25], dtype=float32)
    """

    def __init__(self, storage: Storage) -> None:
        self._parts = Pieces(storage)
        self._types: set[type] = set()

    def add(self, results: Sequence[Any]) -> np.dtype:
        """Add a part, and say which dtype it has by itself. WrongResultError where one is no number, or an integer of
        more than 64 bits."""
        types = set(map(type, results))
        for one in types:
            if one not in OF_PYTHON and not (issubclass(one, np.generic) and np.dtype(one) in SUPPORTED):
                place = next(at for at, result in enumerate(results) if type(result) is one)
                raise WrongResultError(place, f"{shown(results[place])} is {kind_text(one)}, not a number")
        part = _converted(results, _promoted(types))
        self._parts.add(part)
        self._types |= types
        return part.dtype

    @property
    def dtype(self) -> np.dtype:
        """What all that has been added has in common."""
        return _promoted(self._types)

    def whole(self) -> NDArray[Any]:
        """All that has been added; the parts are let go of. WrongResultError where one does not fit what they have in
        common."""
        dtype, start = self.dtype, 0
        if dtype.kind in "iu" and self._parts.dtypes != {dtype}:
            for part in self._parts:
                wrong = part.astype(dtype) != part
                if wrong.any():
                    place = int(np.argmax(wrong))
                    raise WrongResultError(
                        start + place, f"{part[place]} does not fit {dtype}, which other results are"
                    )
                start += len(part)
        return self._parts.whole(dtype)


def _promoted(types: Collection[type]) -> np.dtype:
    weak = [one for one in types if one in OF_PYTHON and one is not bool]
    strong = [np.dtype(one) for one in types if one not in weak]
    if not strong:
        return np.result_type(*(OF_PYTHON[one] for one in weak))
    return np.result_type(*strong, *(one(0) for one in weak))


def _converted(results: Sequence[Any], dtype: np.dtype) -> NDArray[Any]:
    try:
        return np.array(results, dtype=dtype)
    except OverflowError:
        info = np.iinfo(dtype)
        place = next(at for at, one in enumerate(results) if not info.min <= one <= info.max)
        raise WrongResultError(place, f"{shown(results[place])} does not fit {dtype}") from None


def key_columns(results: Sequence[tuple[Any, ...]], dims: int) -> Arrays:
    """Keys as one array of int64 per dimension. WrongResultError where one is no tuple of `dims` integers from 0 on.

    >>> key_columns([(0, 5), (np.int8(3), 2**40)], 2)
    (array([0, 3]), array([            5, 1099511627776]))
    """
    for place, key in enumerate(results):
        if len(key) != dims:
            raise WrongResultError(place, f"the key {shown(key)} has {len(key)} numbers, others have {dims}")
    return tuple(_keys(column) for column in zip(*results, strict=True))


def _keys(column: Sequence[Any]) -> NDArray[np.int64]:
    for one in set(map(type, column)):
        if one is not int and not issubclass(one, np.integer):
            place = next(at for at, key in enumerate(column) if type(key) is one)
            raise WrongResultError(place, f"the key {shown(column[place])} is {kind_text(one)}, not an integer")
    least, largest = min(column), max(column)
    if least < 0:
        raise WrongResultError(column.index(least), f"{least} is a negative key: keys count from 0", of_type=False)
    if largest > LARGEST_KEY:
        raise WrongResultError(column.index(largest), f"{largest} is too large for a key", of_type=False)
    return np.array(column, dtype=np.int64)


def kind_text(kind: type) -> str:
    """What a result of a type is called."""
    return f"{'an' if kind.__name__[0] in 'aeiou' else 'a'} {kind.__name__}"


def shown(value: object) -> str:
    """A value as messages show it: numbers of NumPy's as their digits, nothing longer than a line.

    >>> shown((np.float32(0.5), 3)), shown("x" * 100)
    ('(0.5, 3)', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…")
    """
    if type(value) is tuple:
        inner = ", ".join(map(shown, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 40 else f"{text[:38]}…"
