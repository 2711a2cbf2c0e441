"""A proof that a schedule keeps every dependence of its loop, by isl.

For every pair of tiles (a, b) that the schedule leaves free to run at the same time (for an ordered loop: also
those that it runs the other way round), no iteration x of a and y of b may be in conflict (`orion.verify.conflicts`),
x before y. *Ordered* is reachability over waits and each worker's own order, which says nothing where workers take
tiles of each other; iterations of one tile run in the loop's order on one worker. Where rounds of a serial loop
overlap, the same is proved of a tile in one round and another in the
next, x and y now being in different rounds. Whether a pair of boxes holds a conflict is decided in three steps, each
exact where the one before it is not: by the range of each component of y − x, by the set of differences, by the
relation itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.errors import PlanError
from orion.schedule.blocks import UNBOUNDED
from orion.schedule.schedule import Ints, Schedule
from orion.sets.names import number_of, number_text
from orion.verify.conflicts import Conflict

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Differences:
    """A conflict, with what is derived from it: the set of differences y − x over the loop dimensions, and for each
    dimension the least and greatest difference (infinite where there is none)."""

    conflict: Conflict
    deltas: isl.Set
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def relation(self) -> isl.Map:
        return self.conflict.relation


@dataclass(frozen=True, slots=True)
class Broken:
    """A pair of tiles whose order a schedule leaves open though iterations of them are in conflict: `pairs`."""

    conflict: Conflict
    first: int
    second: int
    pairs: isl.Map


def broken_in_round(conflicts: Iterable[Conflict], schedule: Schedule, ordered: bool) -> Iterator[Broken]:
    """The pairs of tiles of one round that break a schedule. PlanError where it does not run each tile once."""
    after = reachable(schedule)
    _prove_complete(schedule, after, ordered)
    fine = after if ordered else after | after.T
    np.fill_diagonal(fine, True)
    yield from _broken(conflicts, schedule, fine)


def broken_between_rounds(conflicts: Iterable[Conflict], schedule: Schedule) -> Iterator[Broken]:
    """The pairs of a tile and another in the next round that break a schedule whose rounds overlap.

    What holds of two rounds that follow one another holds of others: a tile of the later one runs before itself in the
    round after that, on the same worker, or because it waits for itself.
    """
    yield from _broken(conflicts, schedule, reachable_next(schedule))


def prove_whole(schedule: Schedule) -> None:
    """PlanError where the parts of a schedule are not of one size: blocks and grid, tiles and what there is for each of
    them, workers and their orders, waits and lags."""
    count, waits = schedule.tiles, schedule.waits.size
    owned = [schedule.owner[order] == worker for worker, order in enumerate(schedule.order)]
    sizes = (
        schedule.grid == tuple(len(edges) - 1 for edges in schedule.bounds),
        count == prod(schedule.grid) == schedule.step.size == schedule.heavy.size == schedule.wait_offsets.size - 1,
        len(schedule.order) == schedule.workers and all(map(np.all, owned)),
        schedule.wait_offsets[0] == 0 and schedule.wait_offsets[-1] == waits == schedule.lags.size,
        (np.diff(schedule.wait_offsets) >= 0).all() and np.isin(schedule.lags, (0, 1)).all(),
        not waits or (schedule.waits.min() >= 0 and schedule.waits.max() < count),
    )
    if not all(sizes):
        raise PlanError("the parts of the schedule are not of one size")


def prove_covered(iterations: isl.Set, schedule: Schedule) -> None:
    """PlanError where an iteration is in no tile, or in several: blocks follow one another from the first coordinate to
    the last in each dimension."""
    import islpy as isl

    if any((edges[1:] < edges[:-1]).any() for edges in schedule.bounds):
        raise PlanError("the blocks of the schedule overlap")
    names = [f"x{dim}" for dim in range(len(schedule.grid))]
    ends = [*zip(names, schedule.bounds, strict=True)]
    inside = [f"{number_text(int(b[0]))} <= {name}" for name, b in ends if b[0] != UNBOUNDED[0]]
    inside += [f"{name} < {number_text(int(b[-1]))}" for name, b in ends if b[-1] != UNBOUNDED[1]]
    box = isl.Set(f"{{ [{', '.join(names)}] : {' and '.join(inside) or 'true'} }}", iterations.get_ctx())
    if not iterations.is_subset(box):
        raise PlanError(f"the schedule leaves out iterations: {iterations.subtract(box).sample()}")


def _broken(conflicts: Iterable[Conflict], schedule: Schedule, fine: NDArray[np.bool_]) -> Iterator[Broken]:
    low, high = _boxes(schedule)
    differences = [_differences(one, len(schedule.grid)) for one in conflicts if not one.relation.is_empty()]
    if not differences:  # there may be thousands of tiles
        return
    filled = np.asarray((low < high).all(axis=1))
    free = np.asarray(~fine & filled[:, None] & filled[None, :])
    known: dict[tuple[int, bytes], bool] = {}
    for first in range(schedule.tiles):
        seconds = _near(np.flatnonzero(free[first]), differences, (low, high), first)
        nearest, farthest = low[seconds] - high[first] + 1, high[seconds] - 1 - low[first]
        for pair, number in _within_reach(differences, nearest, farthest):
            one, second = differences[number], seconds[pair]
            key = number, np.stack([nearest[pair], farthest[pair]]).tobytes()  # most pairs lie like many others
            if key not in known:
                known[key] = _has_difference(one, nearest[pair], farthest[pair])
            if known[key]:
                meeting = _meeting(one, (low[first], high[first]), (low[second], high[second]))
                if not meeting.is_empty():
                    yield Broken(one.conflict, first, int(second), meeting)


def _near(seconds: Ints, differences: Sequence[Differences], boxes: tuple[Ints, Ints], first: int) -> Ints:
    """Those of the tiles that are no farther from the first one than any dependence reaches."""
    low, high = boxes
    for dim in range(low.shape[1]):
        farthest_down = min(one.low[dim] for one in differences)
        farthest_up = max(one.high[dim] for one in differences)
        is_near = low[seconds, dim] - high[first, dim] + 1 <= farthest_up
        is_near &= high[seconds, dim] - 1 - low[first, dim] >= farthest_down
        seconds = seconds[is_near]
    return seconds


def _within_reach(differences: Sequence[Differences], nearest: Ints, farthest: Ints) -> Iterator[tuple[int, int]]:
    """The pairs of tiles that the range of no component of a dependence keeps apart, as positions, and its number."""
    apart = [(nearest > one.high).any(axis=1) | (farthest < one.low).any(axis=1) for one in differences]
    if apart:
        yield from ((int(pair), int(number)) for pair, number in np.argwhere(~np.stack(apart, axis=1)))


def _differences(conflict: Conflict, dims: int) -> Differences:

    deltas = conflict.relation.deltas()
    low = np.array([_number(deltas.dim_min_val(d)) for d in range(dims)])
    high = np.array([_number(deltas.dim_max_val(d)) for d in range(dims)])
    return Differences(conflict, deltas, low, high)


def _number(value: isl.Val) -> float:
    return float(number_of(value)) if value.is_int() else float("inf") if value.is_pos() else float("-inf")


def _boxes(schedule: Schedule) -> tuple[Ints, Ints]:
    """First and one past last coordinate of every tile, int64 (tiles, dims) each."""
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)
    low = np.stack([bounds[b] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    high = np.stack([bounds[b + 1] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    return low, high


def _has_difference(one: Differences, nearest: Ints, farthest: Ints) -> bool:
    """Whether some difference y − x lies in a box."""
    import islpy as isl

    box = isl.Set(_box_text(nearest, farthest), one.relation.get_ctx())
    return not one.deltas.intersect(box).is_empty()


def _meeting(one: Differences, first: tuple[Ints, Ints], second: tuple[Ints, Ints]) -> isl.Map:
    """The pairs of some x in the first box and y in the second that are in the relation."""
    import islpy as isl

    context = one.relation.get_ctx()
    sources = isl.Set(_box_text(first[0], first[1] - 1), context)
    sinks = isl.Set(_box_text(second[0], second[1] - 1), context)
    return one.relation.intersect_domain(sources).intersect_range(sinks)


def _box_text(low: Ints, high: Ints) -> str:
    names = [f"x{d}" for d in range(len(low))]
    box = ((name, number_text(int(a)), number_text(int(b))) for name, a, b in zip(names, low, high, strict=True))
    inside = " and ".join(f"{first} <= {name} <= {last}" for name, first, last in box)
    return f"{{ [{', '.join(names)}] : {inside} }}"


def reachable(schedule: Schedule) -> NDArray[np.bool_]:
    """`reachable(s)[a, b]`: tile b starts only when tile a is done, in one round."""
    waiting, now = _waiting(schedule), schedule.lags == 0
    orders = () if schedule.takes_tiles else schedule.order
    before = np.concatenate([*(order[:-1] for order in orders), schedule.waits[now]])
    behind = np.concatenate([*(order[1:] for order in orders), waiting[now]])
    return _reached(schedule.tiles, before, behind)


def reachable_next(schedule: Schedule) -> NDArray[np.bool_]:
    """`reachable_next(s)[a, b]`: tile b starts in a round only when tile a is done in the round before."""
    waiting, now, count = _waiting(schedule), schedule.lags == 0, schedule.tiles
    order = [] if schedule.takes_tiles else [*schedule.order]
    own = [np.concatenate([one, one + count]) for one in order]
    before = [*(one[:-1] for one in own), schedule.waits[now], schedule.waits[now] + count, schedule.waits[~now]]
    behind = [*(one[1:] for one in own), waiting[now], waiting[now] + count, waiting[~now] + count]
    return _reached(2 * count, np.concatenate(before), np.concatenate(behind))[:count, count:]


def _waiting(schedule: Schedule) -> Ints:
    return np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))


def _reached(count: int, before: Ints, behind: Ints) -> NDArray[np.bool_]:
    """What is reached from what over arrows from `before` to `behind`."""
    after = np.zeros((count, count), np.bool_)
    after[before, behind] = True
    following: list[list[int]] = [[] for _ in range(count)]
    for first, second in zip(before.tolist(), behind.tolist(), strict=True):
        following[first].append(second)
    order = _in_turn(following)
    if len(order) < count:
        return _closure(after)
    for tile in reversed(order):
        for further in following[tile]:
            after[tile] |= after[further]
    return after


def _in_turn(following: Sequence[Sequence[int]]) -> list[int]:
    """The tiles in an order in which each comes before those that follow it; without those that wait for each other."""
    due = [0] * len(following)
    for others in following:
        for other in others:
            due[other] += 1
    order = [tile for tile, count in enumerate(due) if not count]
    for tile in order:
        for other in following[tile]:
            due[other] -= 1
            if not due[other]:
                order.append(other)
    return order


def _closure(after: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What is reached in any number of steps, also in circles."""
    while True:
        further = after | ((after.astype(np.float32) @ after.astype(np.float32)) > 0)
        if np.array_equal(further, after):
            return after
        after = further


def _prove_complete(schedule: Schedule, after: NDArray[np.bool_], ordered: bool) -> None:
    """Every tile is run exactly once, and no tile waits for itself; one worker runs them in an order that they may have
    on several."""
    run = np.sort(np.concatenate(schedule.order)) if schedule.order else np.zeros(0)
    if not np.array_equal(run, np.arange(schedule.tiles)):
        raise PlanError("the schedule does not run every tile exactly once")
    place = np.argsort(schedule.serial_tiles())  # one worker goes by steps
    if ordered and after.any() and (place[:, None] >= place[None, :])[after].any():
        raise PlanError("the steps of the schedule are not in the order of its tiles")
    if after.diagonal().any():
        raise PlanError("the schedule has tiles that wait for each other")
