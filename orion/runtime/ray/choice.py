"""Which rows of an array a node tells the others of first, and how fast (`orion.pacing`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.sending import Sending
from orion.schedule.schedule import Ints

MOST_BATCHES = 64
"""How many messages at most are chosen by one look at all rows."""


class Choice:
    """Chooses among the rows of an array that have changed; `weights` are how important what is to be told of each is,
    0 for nothing. `least` is what values are taken for at least (`orion.kernel.support.carried`). `batches`: so many
    messages are chosen by one look."""

    def __init__(self, sending: Sending, rows: int, least: float) -> None:
        self._sending, self.least = sending, least
        self.weights: NDArray[np.float64] = np.zeros(rows)
        self.batches = 1
        self._since = np.zeros(rows, np.int64)
        self._looks, self._next = 0, 0
        self._random = np.random.default_rng(rows)

    def changed(self) -> Ints:
        """The rows that have changed, in the order of the array."""
        return np.flatnonzero(self.weights)

    def first(self, count: int) -> Ints:
        """Up to so many of them, those that come first in front."""
        rows = self.changed()
        keys: NDArray[Any]
        match self._sending.order:
            case "magnitude":
                keys = -self.weights[rows]
            case "fifo":
                keys = self._waiting(rows)
            case "round_robin":
                keys = (rows - self._next) % len(self.weights)
            case _:
                return self._random.permutation(rows)[:count]
        if len(rows) > count:
            chosen = np.argpartition(keys, count)[:count]
            rows, keys = rows[chosen], keys[chosen]
        return rows[np.argsort(keys, kind="stable")]

    def told(self, rows: Ints) -> None:
        """What there was to be told of some rows has been."""
        self.weights[rows] = 0.0
        self._since[rows] = 0
        if len(rows):
            self._next = int(rows[-1]) + 1

    def _waiting(self, rows: Ints) -> Ints:
        """Since which look rows have changed."""
        self._looks += 1
        new = rows[self._since[rows] == 0]
        self._since[new] = self._looks
        return self._since[rows]

    def note_look(self, looked: int, took: int, share: float) -> None:
        """A look took so long, and then sending what it found until `took`: the next look is for more where that was
        too large a share."""
        if looked > share * took:
            self.batches = min(MOST_BATCHES, 2 * self.batches)
        elif looked < share * took / 4:
            self.batches = max(1, self.batches // 2)
