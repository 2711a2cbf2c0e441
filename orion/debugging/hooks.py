"""What the loops of a debugged function go through: their iterations, in the order of the tiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from orion.arrays.copied import in_order
from orion.arrays.sparse import SparseArray
from orion.dataclass import dataclass
from orion.debugging.orders import TileOrder

Point = tuple[tuple[int, ...], Any]
"""The coordinates of an iteration, and the value of its loop variable, or a tuple of the values of several."""


@dataclass(frozen=True, slots=True, eq=False)
class Hooks:
    """The functions that a debugged function calls at its loops, which have numbers: `orders` are those of the loops,
    `arrays` the sparse arrays of the call."""

    orders: Mapping[int, TileOrder]
    arrays: Mapping[str, Any]

    def numbered(self, loop: int, dim: int, space: range) -> Iterable[tuple[int, int]]:
        """Return the coordinate and the value of each trip of a range."""
        return enumerate(space) if self.orders[loop].are_trips[dim] else zip(space, space, strict=True)

    def iterations(self, loop: int, points: Iterable[Point]) -> Iterator[Any]:
        """Return the values of the loop variables of all iterations, tile after tile."""
        listed = list(points)
        values = [value for _, value in listed]
        found = self.orders[loop].permutation(_array([at for at, _ in listed])) if listed else None
        return iter(values if found is None else [values[k] for k in found.tolist()])

    def elements(self, loop: int, array: object) -> Iterator[Any]:
        """Return keys and values of the elements of a sparse array, tile after tile."""
        order = self.orders[loop]
        space = order.plan.nest.elements
        is_planned = space is not None and self.arrays.get(space.array) is array
        if not isinstance(array, SparseArray) or not is_planned:
            return iter(cast(Iterable[Any], array))
        layout = array.layout(order.schedule.bounds, "ascending" if order.plan.ordered else "shuffled")
        positions = np.arange(array.nnz) if layout.positions is None else layout.positions
        tiles = order.schedule.serial_tiles()
        parts = [positions[layout.offsets[tile] : layout.offsets[tile + 1]] for tile in tiles]
        return in_order(array, np.concatenate(parts).astype(np.int64))


def _array(points: Sequence[tuple[int, ...]]) -> Any:
    return np.array(points, np.int64).reshape(len(points), -1)
