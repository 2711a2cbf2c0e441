"""Schedule of a loop: the worker and the order of its tiles, and the waits between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass

Ints = NDArray[np.int64]
"""NumPy array of int64: tiles, block boundaries, or the iterations that `plan.serial_order()` returns."""


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Tiles of one loop: which worker runs each, in which order, and what each waits for. `plan.schedule(workers=4)`
    makes one.

    The grid:

    - `workers`: the number of workers.
    - `grid`: the number of blocks per dimension; 1 where a dimension is not cut. Tiles are numbered in C order of the
      grid.
    - `bounds`: per dimension d, int64 of shape (`grid[d]` + 1,). Block b has the coordinates from `bounds[d][b]` up to,
      but not including, `bounds[d][b + 1]`.

    A coordinate is a key of a sparse array, or the loop variable of a `range` of step 1. For any other step it counts
    iterations from 0: the variable is start + step * coordinate. A tile is a box; inner bounds that depend on outer
    variables cut it further.

    The order, all int64:

    - `owner`: the worker that runs each tile, of shape (tiles,).
    - `step`: the time step of each tile if all tiles took equally long, of shape (tiles,).
    - `heavy`: more than 0 for tiles with more work than others, of shape (tiles,). Within a step, heavier tiles run
      first.
    - `order`: per worker, its tiles in the order in which it runs them.
    - `waits`, `wait_offsets`: tile t waits for the tiles `waits[wait_offsets[t] : wait_offsets[t + 1]]`, all of other
      workers. The shapes are (waits,) and (tiles + 1,).
    - `lags`: 0 where a wait is for a tile of the same round, 1 for the previous round of the loop. The shape is
      (waits,).
    - `takes_tiles`: True for `schedule="dynamic"`. `owner` and `order` are then an assignment that workers may depart
      from, and `waits` also names a worker's own tiles.

    >>> import numpy as np, orion
    >>> @orion.parallel_for
    ... def smear(a):
    ...     for i in range(1, a.shape[0]):
    ...         for j in range(1, a.shape[1]):
    ...             a[i, j] = 0.5 * (a[i - 1, j] + a[i, j - 1])
    >>> with orion.session(workers=2, force_parallel=True):
    ...     schedule = smear.plan(np.ones((100, 100))).schedule()
    >>> schedule.workers, schedule.tiles == schedule.owner.size, schedule.bounds[0][[0, -1]].tolist()
    (2, True, [1, 100])
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
        """Number of tiles."""
        return int(self.owner.size)

    def serial_tiles(self) -> Ints:
        """Return the tiles in a serial order that keeps every wait: by step, then heavy ones first, then by number."""
        return ranked(self.step, self.heavy)


def ranked(step: Ints, heavy: Ints) -> Ints:
    """Return the tiles by step, within a step heavy ones first, then by number.

    >>> ranked(np.array([1, 0, 0, 0]), np.array([0, 0, 3, 0])).tolist()
    [2, 1, 3, 0]
    """
    return np.lexsort((np.arange(step.size), -heavy, step)).astype(np.int64)
