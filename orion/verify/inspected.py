"""A proof that the tiles of an inspected loop keep the order of all accesses that were listed.

Let a < b be iterations whose accesses to one element are in conflict, none that writes it between them. An ordered loop
keeps its meaning where each such pair keeps its order: where both are in one tile, a stands before b there; else the
tile of b waits for that of a. Of all other conflicting pairs the same follows, as this order is transitive. An
unordered one needs that of two such tiles the one with the greater number waits for the other. Which worker runs a tile
plays no part: they take each other's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orion.dependence.inspection import Inspection
from orion.errors import PlanError
from orion.schedule.schedule import Ints, Schedule


def waits_for(first: Ints, second: Ints, schedule: Schedule) -> NDArray[np.bool_]:
    """Whether the second tiles of pairs wait for the first ones."""
    tile = np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))
    found: NDArray[np.bool_] = np.isin(second * schedule.tiles + first, tile * schedule.tiles + schedule.waits)
    return found


def prove_needs(schedule: Schedule, found: Inspection) -> None:
    """PlanError where a tile begins before those that it needs are done, tiles wait for each other, or iterations are
    left out or run twice."""
    tile = np.repeat(np.arange(found.tiles), np.diff(found.need_offsets))
    if not waits_for(found.needs, tile, schedule).all():
        raise PlanError("a tile of an inspected loop begins before one that it needs is done")
    if (schedule.waits >= np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))).any():
        raise PlanError("tiles of an inspected loop wait for such as may come after them")
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
    for pairs in _pairs(element, iteration, is_write):
        first, second = pairs
        same = tile[first] == tile[second]
        fine = np.where(same, at[iteration[first]] < at[iteration[second]], False)
        fine[~same] = waits_for(tile[first[~same]], tile[second[~same]], schedule)
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
