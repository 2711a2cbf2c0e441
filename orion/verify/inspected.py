"""A proof that the tiles of an inspected loop keep the order of all accesses that were listed.

Let a < b be iterations whose accesses to one element are in conflict, none that writes it between them. An ordered loop
keeps its meaning where each such pair keeps its order: where both are in one tile, a stands before b there; else the
tile of a is done before that of b begins. Of all other conflicting pairs the same follows, as this order is transitive.
An unordered one needs that of two such tiles either is done before the other begins.

*Done before* is by vector clocks (Mattern, *Virtual time and global states of distributed systems*, 1989): the clock of
a tile has, for each worker, how many of its tiles are done for sure when it begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orion.dependence.inspection import Inspection
from orion.errors import PlanError
from orion.schedule.schedule import Ints, Schedule


def clocks(schedule: Schedule) -> Ints:
    """The clock of each tile, (tiles, workers). PlanError where tiles wait for each other in a circle."""
    tiles, workers = schedule.tiles, schedule.workers
    turn = np.zeros(tiles, np.int64)
    for own in schedule.order:
        turn[own] = np.arange(own.size)
    found = np.zeros((tiles, workers), np.int64)
    at, last = [0] * workers, np.zeros((workers, workers), np.int64)
    is_done = np.zeros(tiles, np.bool_)
    first, waits = schedule.wait_offsets.tolist(), schedule.waits
    moved = True
    while moved:
        moved = False
        for worker, own in enumerate(schedule.order):
            while at[worker] < own.size:
                tile = int(own[at[worker]])
                needed = waits[first[tile] : first[tile + 1]]
                if not is_done[needed].all():
                    break
                clock = last[worker]
                for other in needed.tolist():
                    clock = np.maximum(clock, found[other])
                    clock[schedule.owner[other]] = max(clock[schedule.owner[other]], turn[other] + 1)
                found[tile] = clock
                found[tile, worker] = at[worker]
                last[worker] = found[tile]
                is_done[tile] = moved = True
                at[worker] += 1
    if not is_done.all():
        raise PlanError("tiles of the schedule wait for each other")
    return found


def is_before(first: Ints, second: Ints, schedule: Schedule, found: Ints) -> NDArray[np.bool_]:
    """Whether tiles are done before others begin."""
    turn = np.zeros(schedule.tiles, np.int64)
    for own in schedule.order:
        turn[own] = np.arange(own.size)
    before: NDArray[np.bool_] = found[second, schedule.owner[first]] > turn[first]
    return before


def prove_needs(schedule: Schedule, found: Inspection) -> None:
    """PlanError where a tile begins before those that it needs are done, or iterations are left out or run twice."""
    tile = np.repeat(np.arange(found.tiles), np.diff(found.need_offsets))
    if not is_before(found.needs, tile, schedule, clocks(schedule)).all():
        raise PlanError("a tile of an inspected loop begins before one that it needs is done")
    if found.offsets[0] != 0 or found.offsets[-1] != found.order.size or (np.diff(found.offsets) < 0).any():
        raise PlanError("the tiles of an inspected loop leave out iterations")
    first = int(found.order.min())
    if found.order.max() - first != found.order.size - 1:
        raise PlanError("the tiles of an inspected loop leave out iterations")
    seen = np.zeros(found.order.size, np.bool_)
    seen[found.order - found.order.min()] = True
    if not seen.all():
        raise PlanError("an iteration of an inspected loop is in several tiles")


def prove_accesses(schedule: Schedule, found: Inspection, *, ordered: bool) -> None:
    """PlanError where the tiles do not keep the order of two accesses that were listed."""
    ends, places = found.accesses
    element, is_write = places >> 1, (places & 1).astype(np.bool_)
    iteration = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
    at = np.empty(ends.size, np.int64)  # where each iteration stands in the tiles
    at[found.order - found.order.min()] = np.arange(found.order.size)
    rank = at[iteration] if not ordered else iteration
    ranked = np.lexsort((rank, element))
    element, is_write, iteration = element[ranked], is_write[ranked], iteration[ranked]
    tile = np.searchsorted(found.offsets, at[iteration], side="right") - 1
    known = clocks(schedule)
    for pairs in _pairs(element, iteration, is_write):
        first, second = pairs
        same = tile[first] == tile[second]
        fine = np.where(same, at[iteration[first]] < at[iteration[second]], False)
        fine[~same] = is_before(tile[first[~same]], tile[second[~same]], schedule, known)
        if not fine.all():
            one = int(np.flatnonzero(~fine)[0])
            raise PlanError(
                f"the tiles do not keep the order of iterations {iteration[first[one]]} and {iteration[second[one]]}, "
                f"counted from 0, which touch one element"
            )


def _pairs(element: Ints, iteration: Ints, is_write: NDArray[np.bool_]) -> list[tuple[Ints, Ints]]:
    """Pairs of accesses to one element: the last writing before each access, and the first after it, in other
    iterations."""
    count, numbers = element.size, np.arange(element.size)
    begins = np.maximum.accumulate(np.where(np.diff(element, prepend=-1) != 0, numbers, 0))
    last = np.maximum.accumulate(np.where(is_write, numbers, -1))
    before = np.concatenate(([-1], last[:-1])) if count else last
    later = np.where(is_write, numbers, count)[::-1]
    following = np.minimum.accumulate(later)[::-1]
    after = np.concatenate((following[1:], [count])) if count else following
    found = []
    is_first = before >= begins
    found.append((before[is_first], numbers[is_first]))
    ends = np.concatenate((element[1:] != element[:-1], [True])) if count else is_write
    end_of = np.minimum.accumulate(np.where(ends, numbers, count)[::-1])[::-1]
    is_last = (after < count) & (after <= end_of)
    found.append((numbers[is_last], after[is_last]))
    return [(a[iteration[a] != iteration[b]], b[iteration[a] != iteration[b]]) for a, b in found]
