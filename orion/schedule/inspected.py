"""The schedule of a loop whose tiles an inspection has found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orion.dependence.inspection import Inspection
from orion.schedule.schedule import Ints, Schedule


def inspected_schedule(found: Inspection, bounds: Sequence[Ints], workers: int) -> Schedule:
    """The tiles of an inspection on so many workers: those of its own number as it has dealt them out, else in turn.

    A tile waits for all that it needs, also for those of its own worker: workers take tiles of each other where they
    would have to wait long (`orion.kernel.support.taking`).
    """
    numbers = np.arange(found.tiles)
    owner = found.owner if workers == found.workers else numbers % workers
    turn = found.turn if workers == found.workers else numbers // workers
    order = tuple(_in_turn(owner, turn, worker) for worker in range(workers))
    grid = tuple(len(edges) - 1 for edges in bounds)
    step = _steps(found, order)
    waits = found.need_offsets, found.needs, np.zeros(found.needs.size, np.int64)
    return Schedule(workers, grid, tuple(bounds), owner, step, np.zeros_like(step), order, *waits, True)


def _in_turn(owner: Ints, turn: Ints, worker: int) -> Ints:
    own = np.flatnonzero(owner == worker)
    return own[np.argsort(turn[own], kind="stable")].astype(np.int64)


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
