"""Rows of a dense array that was shuffled, on a node that has some of them as they were: it puts these into the new
order by itself, from the numbers that the shuffle is made of, and is sent those alone that it did not have: before,
where the shuffle was expected, or then."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.exchange import Exchange
from orion.arrays.shuffled import move_rows
from orion.dataclass import dataclass
from orion.runtime.ray.regions import Mask
from orion.schedule.schedule import Ints


@dataclass(frozen=True, slots=True)
class Reordered:
    """The rows that a node has, as ranges, in the order that a shuffle gives them: those places of them that get a row
    which the node had. At the others, `lacking_rows`, is any row."""

    exchange: Exchange
    ranges: tuple[tuple[int, int], ...]

    @staticmethod
    def of(exchange: Exchange, had: Mask) -> Reordered:
        """For the rows that are true in `had`, bool (rows,)."""
        edges = np.flatnonzero(np.diff(had, prepend=False, append=False)).tolist()
        return Reordered(exchange, tuple(list(pairwise(edges))[::2]))

    def put(self, memory: NDArray[Any], data: NDArray[Any]) -> None:
        """Put the rows of the node's array in order; there is no `data`."""
        rows = np.concatenate([np.arange(low, high) for low, high in self.ranges])
        order, is_taken = self.exchange.order()[rows], np.zeros(len(memory), dtype=bool)
        had = is_taken.copy()
        had[rows] = True
        lacks = ~had[order]
        is_taken[order] = True
        order[lacks] = rows[~is_taken[rows]]  # which ones does not matter: they are written over
        if len(self.ranges) == 1:
            (low, high), moved = self.ranges[0], self.exchange.slots * self.exchange.ranks
            own = memory[low:high]
            move_rows(own, order - low, moved * (own.nbytes // len(own)))
        else:
            memory[rows] = memory[order]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an array, of which the first `columns` along the last axis are sent: what is behind is padding."""

    places: Ints
    columns: int

    def put(self, memory: NDArray[Any], data: NDArray[Any]) -> None:
        """Give these rows other contents."""
        if memory.ndim == 1:
            memory[self.places] = data
        else:
            memory[self.places, ..., : self.columns] = data

    def of(self, memory: NDArray[Any]) -> NDArray[Any]:
        """These rows of the array, copied."""
        return memory[self.places] if memory.ndim == 1 else memory[self.places, ..., : self.columns]


@dataclass(frozen=True, slots=True)
class SentAhead:
    """The rows of an array that a node was sent while the last loops ran, in messages from number `at` on each, for the
    shuffle that was expected as number `number`: they are put to their places. Others are no longer kept."""

    number: int
    at: tuple[int, ...]


def lacking_rows(order: Ints, had: Mask) -> Ints:
    """The places, of those at which a node has rows, that get one which it does not have."""
    return np.flatnonzero(had & ~had[order])
