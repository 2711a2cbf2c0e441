"""What arrays hold, where that is asked for (`orion.cost.sizes.Asked`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray
from orion.arrays.foreign import identity_of
from orion.dataclass import dataclass
from orion.ir.assumed import Held

SAMPLED = 64
"""How many elements of an array, evenly spread, are compared with what they were."""

KEPT = 16
"""How many arrays one function keeps in mind; the least recently used goes first."""

PATIENCE = 4
"""After so many calls one after the other with new contents, each of which is planned for, nobody looks any more."""


@dataclass(slots=True)
class _Seen:
    """An array that was looked at, a copy of what it held, and some elements of that."""

    array: ref[Any]
    copy: NDArray[Any]
    some: NDArray[Any]
    version: int


class SeenContents:
    """What the arrays that one function is given held when they were looked at last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, _Seen] = OrderedDict()
        self._changes: dict[str, int] = {}
        self._versions = count()

    def of(self, names: Iterable[str], arguments: Mapping[str, Any]) -> Iterator[tuple[str, Held]]:
        """What arguments hold, those of these names that are arrays. Nothing is said of one that has held something
        else in each of the last calls."""
        for name in names:
            owner = arguments.get(name)
            if isinstance(owner, np.ndarray | DenseArray) and self._changes.get(name, 0) < PATIENCE:
                known = self._at(name, owner)
                yield name, Held(known.version, ref(known.copy))

    def _at(self, name: str, owner: Any) -> _Seen:
        array, identity = owner.storage if isinstance(owner, DenseArray) else owner, identity_of(owner)
        key = id(identity)
        known = self._seen.get(key)
        some = _some(array)
        if known is not None and known.array() is identity and np.array_equal(known.some, some):
            self._changes[name] = 0
        else:
            self._changes[name] = self._changes.get(name, 0) + 1
            of_owner = ref(identity, lambda _: self._seen.pop(key, None))
            known = self._seen[key] = _Seen(of_owner, array.copy(), some.copy(), next(self._versions))
        with suppress(KeyError):  # another thread may have needed the room
            self._seen.move_to_end(key)
            while len(self._seen) > KEPT:
                self._seen.popitem(last=False)
        return known


def _some(array: NDArray[Any]) -> NDArray[Any]:
    """Some elements of an array, evenly spread along its first axis."""
    return array[(slice(None, None, max(1, len(array) // SAMPLED)), *(slice(1) for _ in array.shape[1:]))]
