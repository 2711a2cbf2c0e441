"""The sparse arrays with maps of their keys as keys that calls of one function need, kept until the maps change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from orion.arrays.rekeyed import rekeyed
from orion.arrays.sparse import SparseArray
from orion.ir.function import Rekeyed
from orion.runtime.shown import Properties

KEPT = 4
"""How many arrays one function keeps; the least recently used goes first."""


class Rekeyings:
    """What was made for one function."""

    def __init__(self) -> None:
        self._properties = Properties()
        self._made: OrderedDict[tuple[object, ...], tuple[ref[SparseArray], SparseArray | None]] = OrderedDict()

    def of(self, wanted: Sequence[Rekeyed], arguments: Mapping[str, Any]) -> dict[str, SparseArray] | None:
        """The arrays that a call is given beside its arguments, by their names; None where one cannot be made."""
        found = {one.name: self._one(one, arguments) for one in wanted}
        made = {name: array for name, array in found.items() if array is not None}
        return made if len(made) == len(found) else None

    def _one(self, wanted: Rekeyed, arguments: Mapping[str, Any]) -> SparseArray | None:
        array, maps = arguments[wanted.array], {name: arguments[name] for name in wanted.maps}
        if not isinstance(array, SparseArray) or array.ndim != wanted.dims:
            return None
        if any(type(one) is not np.ndarray for one in maps.values()):
            return None
        key = wanted, id(array), array.version, *(self._properties.version(one) for one in maps.values())
        known = self._made.get(key)
        if known is None or known[0]() is not array:
            known = self._made[key] = ref(array), rekeyed(array, wanted.terms, wanted.kept, maps)
        self._made.move_to_end(key)
        while len(self._made) > KEPT:
            self._made.popitem(last=False)
        return known[1]
