"""How the elements of a sparse array change places (`SparseArray.shuffle`)."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from orion.arrays.exchange import Exchange, Ints
from orion.arrays.layout import Elements, user_order
from orion.arrays.shuffled import Shuffled
from orion.arrays.storage import BLOCK, Array, Storage, current_storage
from orion.aside import aside


class ShuffledElements(Shuffled):
    """Sparse arrays, as far as their elements have an order that can be another one in each epoch."""

    _elements: Elements
    version: int

    @property
    def _element_bytes(self) -> int:
        return sum(column.itemsize for column in (*self._elements.keys, *self._elements.values))

    def _reorder(self, exchange: Exchange) -> None:
        """In memory of its own, as what was shown of the elements before stays. All that is kept of the old order is
        let go of, in one step."""
        elements = aside(lambda: reordered(self._elements, exchange.order(), current_storage()))
        state: dict[str, Any] = {
            "_elements": elements,
            "_layout_key": None,
            "_layouts": WeakValueDictionary(),
            "_lines": {},
            "_keyed": None,
            "_has_own_values": False,
            "_last_shuffle": exchange,
            "version": self.version + 1,
        }
        vars(self).pop("_ascending", None)  # is found again where it is asked for
        vars(self).update(state)


def reordered(elements: Elements, order: Ints, storage: Storage) -> Elements:
    """Elements in another order: that which is at place `order[i]` as they were given comes to place i."""
    given = user_order(elements)
    return Elements(
        tuple(_taken(column, order, storage) for column in given.keys),
        tuple(_taken(column, order, storage) for column in given.values),
        None,
    )


def _taken(column: Array, order: Ints, storage: Storage) -> Array:
    found = storage.empty(len(order), column.dtype)
    for start in range(0, len(order), BLOCK):
        np.take(column, order[start : start + BLOCK], out=found[start : start + BLOCK], mode="clip")
    return found
