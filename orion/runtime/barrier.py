"""The barrier among the workers of a run: a loop without iterations.

Worker w has two tiles, w (it has arrived) and workers + w (it leaves), and the second waits for the first one
of every other worker. So a barrier is a walk like any other, of tiles that do nothing (`meeting_walk`): it lets go of
the interpreter lock, waits by flags in shared memory, and can be aborted. Rounds count up, so that one set of flags is
enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from orion.dataclass import dataclass
from orion.runtime.arguments import read_only
from orion.schedule.schedule import Ints


@dataclass(frozen=True, eq=False)
class Barrier:
    """The waits of a barrier among `workers` workers, in the form that a walk takes them."""

    wait_offsets: Ints
    waits: Ints
    lags: Ints
    order: tuple[Ints, ...]

    def walked_by(self, worker: int) -> tuple[Ints, Ints, Ints, Ints]:
        """The tiles of a worker, and what tiles wait for."""
        return self.order[worker], self.wait_offsets, self.waits, self.lags


@cache
def make_barrier(workers: int) -> Barrier:
    """The barrier of a number of workers.

    >>> make_barrier(2).waits.tolist(), make_barrier(2).order[0].tolist()
    ([1, 0], [0, 2])
    """
    others = [[w for w in range(workers) if w != own] for own in range(workers)]
    waits = read_only(np.array([w for group in others for w in group], np.int64))
    offsets = np.concatenate([np.zeros(workers + 1, np.int64), np.arange(1, workers + 1) * (workers - 1)])
    order = tuple(read_only(np.array([own, workers + own], np.int64)) for own in range(workers))
    return Barrier(read_only(offsets), waits, read_only(np.zeros(waits.size, np.int64)), order)


def set_flag(meet: Callable[..., None], done: Ints, tile: int, round: int, control: Ints) -> None:
    """Set the flag of a tile as its own walk would: a barrier's walk over it that waits for nothing."""
    none = read_only(np.zeros(tile + 2, np.int64))
    meet(read_only(np.array([tile], np.int64)), round, none, none, none, done, control)
