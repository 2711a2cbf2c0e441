"""What a function returns: scalars as they are, and arrays, or parts of them, of the caller's or made by the function.

The statements between loops run on every worker, of which some have no array at all. An array is an `Extent` there, and
what is returned of it says which array it is, and which part (`Part`); whoever has made the call knows the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.accumulator import Returned
from orion.arrays.dense import DenseArray
from orion.arrays.parts import are_small
from orion.arrays.sparse import SparseArray
from orion.dataclass import dataclass, replace
from orion.frontend.scope import plain_number
from orion.ir.function import Function
from orion.runtime.local_arrays import LocalArray

Index = int | slice | tuple[int | slice, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """`name[index]` of an array that is returned, or the part of it at `further` subscripts; a copy of that."""

    name: str
    index: Index
    further: tuple[Index, ...] = ()
    is_copy: bool = False

    def __getitem__(self, index: Index) -> Part:
        return replace(self, further=(*self.further, index))

    def copy(self) -> Part:
        return replace(self, is_copy=True)

    def of(self, array: Any) -> Any:
        """The part itself.

        >>> Part("A", slice(3))[::-1].of("abcd")
        'cba'
        """
        for index in (self.index, *self.further):
            array = array[index]
        return array.copy() if self.is_copy else array


@dataclass(frozen=True, slots=True)
class Extent:
    """What the statements between loops may ask about an array; they may return it, or a part of it."""

    shape: tuple[int, ...]
    length: int
    name: str

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Index) -> Part:
        """The part, in name; IndexError where the array has none at such an index.

        >>> Extent((3, 2), 3, "A")[1:, 0]
        Part(name='A', index=(slice(1, None, None), 0), further=(), is_copy=False)
        >>> Extent((3, 2), 3, "A")[3]
        Traceback (most recent call last):
        IndexError: index 3 is out of bounds for axis 0 with size 3
        """
        np.broadcast_to(False, self.shape)[index]  # an array of this shape that takes a byte
        return Part(self.name, index)


def stand_in(value: object, name: str) -> object:
    """An argument as the statements between loops have it: an array as its extent, a scalar as a plain number."""
    if isinstance(value, SparseArray | DenseArray | LocalArray | np.ndarray):
        return Extent(value.shape, len(value) if value.shape else 0, name)
    return plain_number(value)


def resolved(returned: Any, arguments: Mapping[str, Any], function: Function) -> Any:
    """Return what a function returned, with the arrays of the call in place of their stand-ins; they are lists where
    the source has lists. Small parts of arrays that the function made are copies."""
    parts: dict[str, list[NDArray[Any]]] = {}
    for one in _parts(returned):
        if isinstance(array := arguments[one.name], LocalArray):
            part = one.of(array.storage) if isinstance(one, Part) else array.storage
            parts.setdefault(one.name, []).append(part)
    small = {name for name, found in parts.items() if are_small(found, arguments[name].storage.nbytes)}

    return _resolved(returned, arguments, function, small)


def _resolved(value: Any, arguments: Mapping[str, Any], function: Function, small: Set[str]) -> Any:
    """The same; `small` are the arrays of which parts are copied."""
    match value:
        case tuple():
            return tuple(_resolved(part, arguments, function, small) for part in value)
        case Returned(inner):
            return replace(value, value=_resolved(inner, arguments, function, small))
        case Extent(name=name):
            return _as_in_source(_whole(arguments[name]), name, function)
        case Part(name):
            part = value.of(_whole(arguments[name]))
            return _as_in_source(part.copy() if name in small else part, name, function)
        case _:
            return value


def _parts(returned: Any) -> Iterator[Part | Extent]:
    """The arrays and parts of arrays among what a function returned."""
    match returned:
        case tuple():
            for one in returned:
                yield from _parts(one)
        case Returned(value):
            yield from _parts(value)
        case Part() | Extent():
            yield returned


def _as_in_source(array: Any, name: str, function: Function) -> Any:
    """An array, or a list of its items where the source has a list."""
    if name not in function.lists:
        return array
    return array.tolist() if name in function.plain_lists else list(array)


def _whole(array: Any) -> Any:
    return array.storage if isinstance(array, LocalArray) else array
