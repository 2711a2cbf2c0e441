"""What passes over arrays of integers show of them, kept until the arrays change.

An array that may be written to is compared with a copy of what it was when it was looked at, bit by bit, which takes
one pass at the speed of memory and notices any change. One that nobody can write to, of `orion.freeze(array)`, is
looked at once. Most arrays that have not a property (a histogram's bins) show that by their first elements: of these
no copy is made, and no more is looked at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.foreign import identity_of
from orion.arrays.frozen import is_frozen
from orion.cost.sizes import NOTHING_SHOWN, Asked, Shown
from orion.dataclass import dataclass, field
from orion.ir.assumed import Covers, Has, Property
from orion.runtime.contents import SeenContents
from orion.schedule.distinct import distinct

FIRST = 512
"""How much of the first axis of an array is looked at before the whole of it."""

KEPT = 16
"""How many arrays one function keeps in mind; the least recently used goes first."""


@dataclass(slots=True)
class _Looked:
    """An array that was looked at, with what was found. `copy` is what it was then, None where nobody may change it;
    `version` is a number that no other has."""

    array: ref[Any]
    copy: NDArray[Any] | None
    found: dict[Property, bool] = field(default_factory=dict)
    version: int = field(default_factory=count().__next__)

    def is_of(self, array: NDArray[Any], owner: Any) -> bool:
        """Whether the array is the same, and has not changed."""
        return self.array() is owner and (is_frozen(array) if self.copy is None else is_same(self.copy, array))


def is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays have the same bits: also of NaN and of zeros with a sign.

    >>> is_same(np.array([0.0, np.nan]), np.array([0.0, np.nan])), is_same(np.array([0.0]), np.array([-0.0]))
    (True, False)
    """
    kind = f"u{one.itemsize}"
    if one.dtype != other.dtype or one.itemsize > 8:
        return one.dtype == other.dtype and np.array_equal(one, other)
    return np.array_equal(one.view(kind), other.view(kind))


def memory_of(owner: Any, first: int | None = None) -> NDArray[Any]:
    """The elements of an array, or the `first` along its first axis."""
    array: NDArray[Any] = owner.storage if isinstance(owner, DenseArray) else owner
    return array if first is None else array[:first]


class Properties:
    """What is known of the arrays that one function is given, of so many of them."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._looked: OrderedDict[int, _Looked] = OrderedDict()
        self._contents = SeenContents()

    def of(self, asked: Asked, arguments: Mapping[str, Any]) -> Shown:
        """What arrays show now of what is asked."""
        held = self._contents.of(asked.contents, arguments) if asked.contents else ()
        return self._properties(asked, arguments) | {(name, one, True) for name, one in held}

    def _properties(self, asked: Asked, arguments: Mapping[str, Any]) -> Shown:
        """Which of some properties arrays have now. Where ends or first elements show that one of them does not hold,
        of those that are of use with it alone no more is looked for."""
        if not asked.properties:
            return NOTHING_SHOWN
        quick = {
            one: _may_have(one, arguments) for together in asked.properties for one in together if one[0] in arguments
        }
        refuted = {(*one, False) for one, may_hold in quick.items() if not may_hold}
        useful = {one for one in asked.properties if all(quick.get(wanted, False) for wanted in one)}
        looked = {name: self._at(arguments[name]) for name in {name for one in useful for name, _ in one}}
        found = {(name, one, self._has(looked[name], one)) for together in useful for name, one in together}
        return frozenset(refuted | found)

    def is_frozen(self, owner: Any) -> bool:
        """Whether nobody may change an array."""
        return is_frozen(memory_of(owner))

    def version(self, owner: Any) -> int:
        """A number that an array has for as long as nobody changes it, and no other array has."""
        known, _ = self._at(owner)
        return known.version

    def snapshot(self, owner: Any) -> Any:
        """The contents of an array as they are in its present version, whoever writes to it meanwhile."""
        known, array = self._at(owner)
        return owner if known.copy is None or owner is not array else known.copy

    def _at(self, owner: Any) -> tuple[_Looked, NDArray[Any]]:
        array, identity = memory_of(owner), identity_of(owner)
        key = id(identity)
        known = self._looked.get(key)
        if known is None or not known.is_of(array, identity):
            of_owner = ref(identity, lambda _: self._looked.pop(key, None))
            known = self._looked[key] = _Looked(of_owner, None if is_frozen(array) else array.copy())
        with suppress(KeyError):  # another thread may have needed the room
            self._looked.move_to_end(key)
            while len(self._looked) > self._kept:
                self._looked.popitem(last=False)
        return known, array

    def _has(self, looked: tuple[_Looked, NDArray[Any]], wanted: Has) -> bool:
        """Whether an array has a property that it may have."""
        known, array = looked
        if isinstance(wanted, Covers):
            return True
        if wanted not in known.found:
            known.found[wanted] = has_property(array if known.copy is None else known.copy, wanted)
        return known.found[wanted]


def _may_have(wanted: tuple[str, Has], arguments: Mapping[str, Any]) -> bool:
    """Whether an array has a property, as far as its ends and its first elements show."""
    name, one = wanted
    if isinstance(one, Covers):
        return covers(arguments[name], arguments[one.of], one)
    return has_property(memory_of(arguments[name], FIRST), one)


def has_property(array: NDArray[Any], wanted: Property) -> bool:
    """Whether an array of integers has a property.

    >>> at = np.array([0, 2, 2])
    >>> [one.name for one in Property if has_property(at, one)]
    ['NOT_NEGATIVE', 'SORTED']
    """
    match wanted:
        case Property.NOT_NEGATIVE:
            return not array.size or bool(array.min() >= 0)
        case Property.SORTED:
            return array.ndim == 1 and bool((array[1:] >= array[:-1]).all())
        case Property.DISTINCT:
            return _is_distinct(array.ravel())


def covers(starts: Any, other: Any, wanted: Covers) -> bool:
    """Whether an array begins with 0 and ends with the extent of another one. It is looked at anew in each call.

    >>> starts = np.array([0, 2, 5])
    >>> covers(starts, np.zeros((3, 5)), Covers("a", 1)), covers(starts, np.zeros(3), Covers("a", 0))
    (True, False)
    """
    array = memory_of(starts)
    return array.ndim == 1 and array.size > 0 and bool(array[0] == 0 and array[-1] == other.shape[wanted.axis])


def _is_distinct(values: NDArray[Any]) -> bool:
    """By a mark for each number where they lie close together, by sorting where they do not."""
    if values.size < 2:
        return True
    low, high = int(values.min()), int(values.max())
    width = high - low + 1
    if width < values.size:
        return False
    if width > 8 * values.size:
        return distinct(values).size == values.size
    seen = np.zeros(width, np.bool_)
    seen[values - values.dtype.type(low)] = True  # what the difference of narrow integers wraps to is no other's
    return int(np.count_nonzero(seen)) == values.size
