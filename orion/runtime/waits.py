"""Waiting for the tiles of a loop, where that does what meeting all workers would do.

Every worker runs the loops of a program in the same order. So where each of them has tiles in a loop, all that was to
be done up to the end of that loop is done when its tiles are:

    every worker has a tile in L, and all tiles of L are done  =>  every loop up to L is done on every worker

The next loop's walk, or whoever needs the results of L, waits for just these flags. A meeting would be one call of
compiled code more for each worker, around which workers queue for the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orion.runtime.arguments import read_only
from orion.runtime.prepared import PreparedLoop
from orion.schedule.schedule import Ints

Waits = tuple[Ints, Ints, Ints]
"""wait_offsets, waits and lags, as in `Schedule`."""


def waits_for_all(loop: PreparedLoop, own: Ints) -> tuple[Ints, Waits]:
    """The spare tile, which comes after those of a loop, and what it waits for: all tiles but a worker's `own`."""
    tiles = loop.schedule.tiles
    others = _others(loop, own)
    offsets = np.zeros(tiles + 2, np.int64)
    offsets[-1] = others.size
    return read_only(np.array([tiles], np.int64)), _waits(offsets, others, 0)


def waits_between(
    loops: Sequence[PreparedLoop], pair: tuple[int, int], own: Ints, first: int, lag: int
) -> Waits | None:
    """What tiles of the second loop of a pair wait for where a worker runs it after the first one: its `first` tile for
    all of the other loop but its `own`; None where flags do not say it. All workers have tiles in both.

    The second loop will have finished `lag` rounds more than the first one has. Flags of the first loop are found among
    those of the second one, behind its own (see `RunMemory`).
    """
    earlier, later = loops[pair[0]], loops[pair[1]]
    if pair[0] >= pair[1] or later.schedule.waits.size or later.plan.copies:
        return None
    behind = sum(loop.schedule.tiles + 1 for loop in loops[pair[0] + 1 : pair[1] + 1])
    others = _others(earlier, own)
    offsets = np.zeros(later.schedule.tiles + 1, np.int64)
    offsets[first + 1 :] = others.size
    return _waits(offsets, behind + others, lag)


def with_lag(waits: Waits, lag: int) -> Waits:
    """The same waits with another lag, in the same memory: a loop that is run more often than the one before has a new
    one in each round."""
    lags = waits[2].base
    assert lags is not None
    lags.fill(lag)
    return waits


def _others(loop: PreparedLoop, own: Ints) -> Ints:
    return np.setdiff1d(np.arange(loop.schedule.tiles), own)


def _waits(offsets: Ints, waits: Ints, lag: int) -> Waits:
    return read_only(offsets), read_only(waits), read_only(np.full(waits.size, lag, np.int64))
