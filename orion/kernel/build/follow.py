"""Serial loops around planned ones, followed by the walker (`orion.kernel.instructions`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.build.compile import left_by
from orion.kernel.build.walker import follower
from orion.kernel.calling import KernelSource
from orion.kernel.instructions import BLOCK, COLUMNS, CONTROL, RUNNING


class Follow:
    """Follows instructions that start the loops of these kernels. An error belongs to the loop that is running."""

    def __init__(self, sources: Sequence[KernelSource]) -> None:
        self._sources = sources
        self._follow = follower()

    def __call__(
        self,
        rows: NDArray[np.int64],
        registers: NDArray[np.int64],
        loops: Sequence[tuple[Any, ...]],
        state: NDArray[np.int64],
    ) -> None:
        """`loops` are the rows of the table, with arrays in place of their addresses and lengths. The arrays must
        outlive the call."""
        try:
            self._follow(rows, registers, table_of(loops), state)
        except Exception as error:
            running = int(state[RUNNING])
            left_by(error, self._sources[running], loops[running][CONTROL // 2 + 1])


def table_of(loops: Sequence[tuple[Any, ...]]) -> NDArray[np.int64]:
    """The table that the walker is given."""
    found = np.empty((len(loops), COLUMNS), np.int64)
    for row, (entry, takes, *arrays) in zip(found, loops, strict=True):
        places = [number for one in arrays for number in (one.__array_interface__["data"][0], one.size)]
        row[:BLOCK] = entry, takes
        row[BLOCK:] = places
    return found
