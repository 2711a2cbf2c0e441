"""The schedule of a loop whose tiles an inspection has found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orion.dependence.inspection import Inspection
from orion.schedule.schedule import Ints, Schedule


def inspected_schedule(found: Inspection, bounds: Sequence[Ints], workers: int) -> Schedule:
    """The tiles of an inspection on so many workers: those of its own number as it has dealt them out, else in turn.

    A tile waits, of each other worker, for the last of the tiles that it needs, unless one before it on its own worker
    has waited for that one or a later one. What a worker runs it runs in the order of `turn`: so all that is needed is
    done (Park, Smelyanskiy, Sundaram, Dubey: *Sparsifying synchronization for high-performance shared-memory sparse
    triangular solver*, ISC 2014).
    """
    numbers = np.arange(found.tiles)
    owner = found.owner if workers == found.workers else numbers % workers
    turn = found.turn if workers == found.workers else numbers // workers
    order = tuple(_in_turn(owner, turn, worker) for worker in range(workers))
    offsets, waits = _waits(found, owner, turn, workers)
    grid = tuple(len(edges) - 1 for edges in bounds)
    step = _steps(found, order)
    lags = np.zeros(waits.size, np.int64)
    return Schedule(workers, grid, tuple(bounds), owner, step, order, offsets, waits, lags)


def _in_turn(owner: Ints, turn: Ints, worker: int) -> Ints:
    own = np.flatnonzero(owner == worker)
    return own[np.argsort(turn[own], kind="stable")].astype(np.int64)


def _waits(found: Inspection, owner: Ints, turn: Ints, workers: int) -> tuple[Ints, Ints]:
    """What each tile waits for: `wait_offsets` and `waits` of the schedule."""
    tiles = found.tiles
    tile = np.repeat(np.arange(tiles), np.diff(found.need_offsets))
    other, late = owner[found.needs], turn[found.needs]
    latest = np.full((tiles, workers), -1, np.int64)  # of each worker the turn of the last tile that is needed
    np.maximum.at(latest, (tile, other), late)
    latest[np.arange(tiles), owner] = -1
    before = np.full_like(latest, -1)
    for worker in range(workers):
        own = _in_turn(owner, turn, worker)
        reached = np.maximum.accumulate(latest[own], axis=0)
        before[own[1:]] = reached[:-1]
    waiting, other = np.nonzero(latest > before)
    at = np.full((workers, int(turn.max(initial=-1)) + 1), -1, np.int64)
    at[owner, turn] = np.arange(tiles)
    offsets = np.searchsorted(waiting, np.arange(tiles + 1)).astype(np.int64)
    return offsets, at[other, latest[waiting, other]]


def _steps(found: Inspection, order: Sequence[Ints]) -> Ints:
    """At which step each tile could run if all took equally long: after those that it needs, and not before one that
    its worker runs before it. By step, then by number, one worker can run them all."""
    step = np.full(found.tiles, -1, np.int64)
    first, needs = found.need_offsets.tolist(), found.needs
    at, last, ran = [0] * len(order), [0] * len(order), [-1] * len(order)
    moved = True
    while moved:
        moved = False
        for worker, own in enumerate(order):
            while at[worker] < own.size:
                tile = own[at[worker]]
                before = step[needs[first[tile] : first[tile + 1]]]
                if (before < 0).any():
                    break
                last[worker] = max(last[worker] + (tile < ran[worker]), int(before.max(initial=-1)) + 1)
                step[tile], ran[worker] = last[worker], int(tile)
                at[worker] += 1
                moved = True
    return step
