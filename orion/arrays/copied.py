"""Copies of the arguments of a call, which share memory with each other where the arguments do.

A call on such copies is planned, refused and run as one on the arguments is: strides, alignment within a cache line and
overlaps are the same, and what is the same object stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.accumulator import Accumulator
from orion.arrays.aligned import LINE
from orion.arrays.base import bytes_text
from orion.arrays.buffer import Buffer
from orion.arrays.compressed import is_matrix
from orion.arrays.dense import DenseArray
from orion.arrays.replica import Replicated
from orion.arrays.sparse import SparseArray
from orion.dataclass import dataclass
from orion.errors import describe

OF_MATRICES = ("data", "indices", "indptr", "row", "col")
"""The attributes of SciPy's sparse matrices that are arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Changeable:
    """What a call may change of its arguments: all that shares memory with one of the `dense` arrays, None for all
    dense arrays, and the values of the `sparse` ones. Accumulators always may."""

    dense: Sequence[NDArray[Any]] | None
    sparse: Sequence[SparseArray] = ()

    def has(self, leaf: object) -> bool:
        """Whether a leaf of the arguments (`leaves`) may change."""
        match leaf:
            case SparseArray():
                return any(leaf is one for one in self.sparse)
            case DenseArray():
                return self.has(leaf.storage)
            case np.ndarray():
                return self.dense is None or any(np.may_share_memory(leaf, one) for one in self.dense)
            case _:
                return True


def leaves(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arrays among the arguments, and the numbers of accumulators, with their names in the user's words.

    An array comes once, by the name of the parameter if it is one itself, and otherwise as a part of the argument that
    holds it.

    >>> import orion
    >>> w, momentum = np.zeros(3), np.zeros(3)
    >>> late = orion.buffer(w, apply=lambda v, u, m: (v + u + m, u), helpers=(momentum,))
    >>> [name for name, _ in leaves({"late": late, "w": w})]
    ['w', 'late.helpers[0]']
    """
    seen: set[int] = set()
    is_array = {name: isinstance(value, np.ndarray | DenseArray) for name, value in arguments.items()}
    for name in sorted(arguments, key=lambda name: not is_array[name]):
        for label, leaf in _leaves(name, arguments[name]):
            if id(leaf) not in seen or not isinstance(leaf, np.ndarray | DenseArray | SparseArray):
                yield label, leaf
            seen.add(id(leaf))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case np.ndarray() | DenseArray() | SparseArray():
            yield name, value
        case Buffer():
            yield f"{name}.array", value.array
            yield from ((f"{name}.helpers[{k}]", helper) for k, helper in enumerate(value.helpers))
        case Replicated():
            yield f"{name}.array", value.array
        case Accumulator():
            whole = value.value
            yield from _leaves_of_tuple(f"{name}.value", whole) if value.is_tuple else ((f"{name}.value", whole),)
        case tuple():
            yield from (leaf for label, part in _leaves_of_tuple(name, value) for leaf in _leaves(label, part))
        case _ if is_matrix(value):
            yield from ((f"{name}.{attribute}", array) for attribute, array in _arrays_of(value))


def _leaves_of_tuple(name: str, value: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    return ((f"{name}[{k}]", part) for k, part in enumerate(value))


def _arrays_of(matrix: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    for attribute in OF_MATRICES:
        array = getattr(matrix, attribute, None)
        if isinstance(array, np.ndarray):
            yield attribute, array


def copied(arguments: Mapping[str, Any], changeable: Changeable) -> dict[str, Any]:
    """Return the arguments with copies of all dense arrays that may change, and of accumulators; all else is the same
    object, sparse arrays among it: a plan is one for these."""
    arrays = [(name, leaf.storage if isinstance(leaf, DenseArray) else leaf) for name, leaf in leaves(arguments)]
    dense = [(name, one) for name, one in arrays if isinstance(one, np.ndarray) and changeable.has(one)]
    copies = _Copies({id(one): new for (_, one), new in zip(dense, copies_of(dense), strict=True)}, {})
    return {name: copies.of(value) for name, value in arguments.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """Copies of arguments: `memories` are those of dense arrays, and `found` those that were made, by the identity of
    what they are copies of."""

    memories: dict[int, NDArray[Any]]
    found: dict[int, Any]

    def of(self, value: Any) -> Any:
        """Return the copy of a value, the same one each time."""
        if id(value) not in self.found:
            self.found[id(value)] = self._made(value)
        return self.found[id(value)]

    def _made(self, value: Any) -> Any:
        match value:
            case np.ndarray():
                return self.memories.get(id(value), value)
            case DenseArray():
                return self._dense(value)
            case Buffer():
                helpers = tuple(map(self.of, value.helpers))
                options = value.snapshot, value.deterministic, value.send
                return Buffer(self.of(value.array), value.apply, value.max_delay, helpers, *options)
            case Replicated():
                return self._replicated(value)
            case Accumulator():
                accumulator = Accumulator(value.init, value.combine, value.numbers, value.is_commutative)
                accumulator.take(value.parts(value.value))
                return accumulator
            case tuple():
                parts = tuple(map(self.of, value))
                return type(value)(*parts) if hasattr(value, "_fields") else parts
            case _ if is_matrix(value):
                return self._matrix(value)
            case _:
                return value

    def _dense(self, value: DenseArray) -> DenseArray:
        memory = self.memories.get(id(value.storage))
        if memory is None:
            return value
        found = DenseArray(value.shape, value.dtype)
        found.replace_storage(memory)
        return found

    def _replicated(self, value: Replicated) -> Replicated:
        found = Replicated(self.of(value.array), value.policy)
        found.copies, found.velocities = value.copies.copy(), value.velocities.copy()
        found.posted, found.outer = value.posted.copy(), value.outer.copy()
        return found

    def _matrix(self, value: Any) -> Any:
        found = copy(value)
        for attribute, array in _arrays_of(value):
            if id(array) in self.memories:
                setattr(found, attribute, self.of(array))
        return found


def value_bytes(array: SparseArray) -> int:
    """Return how many bytes the values of a sparse array take."""
    return len(array) * sum(dtype.itemsize for dtype in array.value_dtypes)


@contextmanager
def room_for_copy(names: Sequence[str], size: int) -> Iterator[None]:
    """Make a copy of some arguments, of so many bytes. MemoryError, which says so, where there is no room for it."""
    try:
        yield
    except MemoryError:
        what = f"there is no memory for a copy of {', '.join(f'`{name}`' for name in names)}, {bytes_text(size)}"
        why = "f.verify and f.measure run a call on copies of what it writes"
        hint = "give smaller arrays of the same types, or free memory before"
        raise MemoryError(describe(what, why=why, hint=hint)) from None


def copies_of(named: Sequence[tuple[str, NDArray[Any]]]) -> list[NDArray[Any]]:
    """Return copies of arrays, which have names, with the same strides. Arrays that overlap have copies that overlap in
    the same elements. Arrays without elements are their own copies.

    >>> whole = np.arange(6)
    >>> left, right = copies_of([("a", whole[:4]), ("b", whole[2:])])
    >>> left[2] = 7
    >>> right, whole[2]
    (array([7, 3, 4, 5]), np.int64(2))
    """
    arrays = [array for _, array in named]
    found = {k: one for k, one in enumerate(arrays) if not one.size}
    found |= {k: one.copy(order="K") for k, one in enumerate(arrays) if one.dtype.hasobject}
    bounds = [(*np.lib.array_utils.byte_bounds(one), k) for k, one in enumerate(arrays) if k not in found]
    for low, high, group in _joined(bounds):
        with room_for_copy([named[k][0] for k in group], high - low):
            room = np.empty(high - low + LINE, np.uint8)
        room = room[(low - room.ctypes.data) % LINE :]
        for k in group:
            found[k] = _at(room, arrays[k], low)
    return [found[k] for k in range(len(arrays))]


def _joined(bounds: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the union of each group of overlapping byte ranges, and the numbers of its members."""
    first, end, group = 0, 0, list[int]()
    for low, high, number in sorted(bounds):
        if group and low >= end:
            yield first, end, group
            group = []
        if not group:
            first, end = low, high
        end = max(end, high)
        group.append(number)
    if group:
        yield first, end, group


def _at(room: NDArray[np.uint8], array: NDArray[Any], low: int) -> NDArray[Any]:
    """Return the copy of an array in a room whose first byte stands for address `low`."""
    start = array.__array_interface__["data"][0] - low
    found: NDArray[Any] = np.ndarray(array.shape, array.dtype, room, start, array.strides)
    found[...] = array
    found = found.view(type(array))
    found.flags.writeable = array.flags.writeable
    return found


class _Reordered(SparseArray):
    """A sparse array that Python goes through in an order of its own: positions of the elements as they were given."""

    order: NDArray[np.int64]

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        return self._iterated(self.as_given, self.order)


def reordered(array: SparseArray, order: NDArray[np.int64] | None) -> SparseArray:
    """Return an array of the same elements, whose values are stored apart from those of `array`, and which Python goes
    through in another order; None for the order of all sparse arrays.

    >>> import orion
    >>> array = orion.sparse(([0, 1, 2],), np.array([1.0, 2.0, 3.0]))
    >>> [key for key, _ in reordered(array, np.array([2, 0, 1]))]
    [(2,), (0,), (1,)]
    """
    given = array.as_given
    keys, values = given.keys, tuple(one.copy() for one in given.values)
    made = _Reordered if order is not None else SparseArray
    found = made(keys, values, array.extents, array.shape, array.values_are_tuple)
    if isinstance(found, _Reordered) and order is not None:
        found.order = order
    return found


def in_order(array: SparseArray, order: NDArray[np.int64]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield keys and values of the elements of an array, as Python goes through them, in the order of these positions.

    >>> import orion
    >>> array = orion.sparse(([0, 1, 2],), np.array([1.0, 2.0, 3.0]))
    >>> [key for key, _ in in_order(array, np.array([2, 0, 1]))]
    [(2,), (0,), (1,)]
    """
    return array._iterated(array.as_given, order)
