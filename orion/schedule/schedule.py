"""A schedule: which worker runs which tiles, in which order, and what each tile waits for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The tiles of one loop, for a number of workers.

    The iteration space is cut into a grid: dimension d has `grid[d]` blocks (1 where it is not cut), block b of it
    being the half-open range `bounds[d][b] … bounds[d][b + 1]` of loop coordinates. The coordinate of a dimension
    is the key of a sparse array, the value of the loop variable of a `range` with step 1, and the trip number (0,
    1, …; the variable is start + step * trip) of a `range` with any other step. Blocks are boxes: inner bounds that
    depend on outer variables cut them further. Tiles are numbered in C order of the grid.

    `owner[t]` is the worker that runs tile t and `step[t]` the time step at which it could run if all tiles took
    equally long; `heavy[t]` is more than 0 where it is known to take longer than others, and those of one step with
    more of it run first; `order[w]` are the tiles of worker w in the order in which it runs them. Before tile t starts,
    every tile `waits[wait_offsets[t] : wait_offsets[t + 1]]` must be done: in the same round of the loop where the
    entry of `lags` is 0, in the round before (where the loop runs repeatedly) where it is 1. Only tiles of other
    workers are named, but where `takes_tiles`: workers take tiles of each other then, and `owner` and `order` say to
    whom tiles are dealt, not who runs them.

    Shapes: `owner`, `step`, `heavy` (tiles,); `wait_offsets` (tiles + 1,); `waits`, `lags` (waits,).
    """

    workers: int
    grid: tuple[int, ...]
    bounds: tuple[Ints, ...]
    owner: Ints
    step: Ints
    heavy: Ints
    order: tuple[Ints, ...]
    wait_offsets: Ints
    waits: Ints
    lags: Ints
    takes_tiles: bool

    def __repr__(self) -> str:
        grid, workers = " × ".join(map(str, self.grid)), f"{self.workers} worker{'s' * (self.workers != 1)}"
        steps = int(self.step.max(initial=-1)) + 1
        return f"<Schedule: {grid} tiles, {workers}, {steps} step{'s' * (steps != 1)}, {self.waits.size} waits>"

    @property
    def tiles(self) -> int:
        """The number of tiles.

        >>> from orion.schedule.schedule import Schedule
        >>> Schedule.__slots__[0]
        'workers'
        """
        return int(self.owner.size)

    def serial_tiles(self) -> Ints:
        """The tiles in a serial order that keeps every wait: by step, the heavy ones first, then by number."""
        return ranked(self.step, self.heavy)


def ranked(step: Ints, heavy: Ints) -> Ints:
    """Tiles by step, the heavy ones of each first, then by number.

    >>> ranked(np.array([1, 0, 0, 0]), np.array([0, 0, 3, 0])).tolist()
    [2, 1, 3, 0]
    """
    return np.lexsort((np.arange(step.size), -heavy, step)).astype(np.int64)
