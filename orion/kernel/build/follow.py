"""What runs planned loops and what stands between them by instructions (`orion.kernel.instructions`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.build.compile import left_by
from orion.kernel.build.walker import follower, walk_address
from orion.kernel.calling import KernelSource
from orion.kernel.instructions import BLOCK, COLUMNS, CONTROL, RUNNING


class Table:
    """The table that the walker is given. Its arrays must not move, and live as long."""

    def __init__(self, loops: Sequence[tuple[Any, ...]]) -> None:
        """`loops` are its rows, with arrays in place of their addresses and lengths."""
        self.rows: NDArray[np.int64] = np.empty((len(loops), COLUMNS), np.int64)
        for row, (entry, takes, *arrays) in zip(self.rows, loops, strict=True):
            row[:BLOCK] = entry, walk_address(takes)
            row[BLOCK:] = [number for one in arrays for number in (one.__array_interface__["data"][0], one.size)]
        self.rows.flags.writeable = False
        self.kept = tuple(loops)

    def control(self, number: int) -> NDArray[np.int64]:
        """The control row of a loop."""
        found: NDArray[np.int64] = self.kept[number][CONTROL // 2 + 1]
        return found


class Follow:
    """Follows instructions that start the loops of these kernels. An error belongs to the loop that is running."""

    table = Table

    def __init__(self, sources: Sequence[KernelSource]) -> None:
        self._sources = sources
        self._follow = follower()

    def __call__(
        self, rows: NDArray[np.int64], registers: NDArray[np.int64], table: Table, state: NDArray[np.int64]
    ) -> None:
        try:
            self._follow(rows, registers, table.rows, state)
        except Exception as error:
            running = int(state[RUNNING])
            left_by(error, self._sources[running], table.control(running))
