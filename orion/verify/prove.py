"""A proof that a schedule keeps every dependence of its loop, by isl.

For every pair of tiles (a, b) that the schedule leaves free to run at the same time (for an ordered loop: also
those that it runs the other way round), no iteration x of a and y of b may be in a dependence x → y. *Ordered* is
reachability over waits and each worker's own order; iterations of one tile run in the loop's order on one worker.
Whether a pair of boxes holds a dependence is decided in three steps, each exact where the one before it is not: by
the range of each component of y − x, by the set of differences, by the relation itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.dependence.access import Dependence
from orion.dependence.bounds import fix_parameters
from orion.errors import PlanError
from orion.plan.explain import describe_pair
from orion.plan.plan import LoopPlan
from orion.plan.whole import in_formulas
from orion.schedule.schedule import Ints, Schedule
from orion.sets.names import number_text

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Differences:
    """One dependence relation, with what is derived from it: the set of differences y − x over the loop dimensions,
    and for each dimension the least and greatest difference (infinite where there is none)."""

    dependence: Dependence
    relation: isl.Map
    deltas: isl.Set
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def prove_schedule(plan: LoopPlan, schedule: Schedule, values: Mapping[str, int]) -> int:
    """Prove that `schedule` keeps the dependences of `plan`'s loop; returns the number of tile pairs it looked at.

    `values` gives the parameters of the analysis (extents, integer arguments) by their isl names. Raises
    `PlanError` with the accesses and tiles of the first dependence that is not kept.
    """
    import islpy as isl

    after = reachable(schedule)
    _prove_complete(schedule, after)
    context = isl.Context()
    dims = len(schedule.grid)
    relations = {d.relation: d for d in plan.analysis.dependences}
    differences = [_differences(d, dims, values, context) for d in relations.values()]
    low, high = _boxes(schedule)
    free = _free_pairs(after, plan.ordered, low, high)
    known: dict[tuple[int, bytes], bool] = {}
    for first in range(schedule.tiles):
        seconds = _near(np.flatnonzero(free[first]), differences, (low, high), first)
        nearest, farthest = low[seconds] - high[first] + 1, high[seconds] - 1 - low[first]
        for pair, number in _within_reach(differences, nearest, farthest):
            one, second = differences[number], seconds[pair]
            key = number, np.stack([nearest[pair], farthest[pair]]).tobytes()  # most pairs lie like many others
            if key not in known:
                known[key] = _has_difference(one, nearest[pair], farthest[pair])
            if known[key] and _meet(one, (low[first], high[first]), (low[second], high[second])):
                raise PlanError(_message(plan, schedule, one.dependence, first, int(second)))
    return int(free.sum())


def _near(seconds: Ints, differences: Sequence[Differences], boxes: tuple[Ints, Ints], first: int) -> Ints:
    """Those of the tiles that are no farther from the first one than any dependence reaches."""
    low, high = boxes
    for dim in range(low.shape[1] if differences else 0):
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


def _differences(dependence: Dependence, dims: int, values: Mapping[str, int], context: isl.Context) -> Differences:
    import islpy as isl

    relation = fix_parameters(isl.Map(dependence.relation, context).wrap(), values).unwrap()
    deltas = relation.deltas()
    deltas = deltas.project_out(isl.dim_type.set, dims, deltas.dim(isl.dim_type.set) - dims)
    deltas = deltas.project_out(isl.dim_type.param, 0, deltas.dim(isl.dim_type.param))
    if deltas.is_empty():
        return Differences(dependence, relation, deltas, np.full(dims, np.inf), np.full(dims, -np.inf))
    low = np.array([_number(deltas.dim_min_val(d)) for d in range(dims)])
    high = np.array([_number(deltas.dim_max_val(d)) for d in range(dims)])
    return Differences(dependence, relation, deltas, low, high)


def _number(value: isl.Val) -> float:
    return float(value.to_python()) if value.is_int() else float("inf") if value.is_pos() else float("-inf")


def _boxes(schedule: Schedule) -> tuple[Ints, Ints]:
    """First and one past last coordinate of every tile, int64 (tiles, dims) each."""
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)
    low = np.stack([bounds[b] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    high = np.stack([bounds[b + 1] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    return low, high


def _free_pairs(after: NDArray[np.bool_], ordered: bool, low: Ints, high: Ints) -> NDArray[np.bool_]:
    """Which pairs of different tiles with iterations in them have an order that the schedule does not give as it must
    be; `after` is `reachable`."""
    fine = after if ordered else after | after.T
    filled = np.asarray((low < high).all(axis=1))
    free = np.asarray(~fine & filled[:, None] & filled[None, :])
    np.fill_diagonal(free, False)
    return free


def _has_difference(one: Differences, nearest: Ints, farthest: Ints) -> bool:
    """Whether some difference y − x lies in a box."""
    import islpy as isl

    box = isl.Set(_box_text(nearest, farthest, 0), one.relation.get_ctx())
    return not one.deltas.intersect(box).is_empty()


def _meet(one: Differences, first: tuple[Ints, Ints], second: tuple[Ints, Ints]) -> bool:
    """Whether some x in the first box and y in the second are in the relation."""
    import islpy as isl

    context = one.relation.get_ctx()
    extra = one.relation.dim(isl.dim_type.in_) - len(first[0])
    sources = isl.Set(_box_text(first[0], first[1] - 1, extra), context)
    sinks = isl.Set(_box_text(second[0], second[1] - 1, extra), context)
    return not one.relation.intersect_domain(sources).intersect_range(sinks).is_empty()


def _box_text(low: Ints, high: Ints, extra: int) -> str:
    names = [f"x{d}" for d in range(len(low))]
    box = ((name, number_text(int(a)), number_text(int(b))) for name, a, b in zip(names, low, high, strict=True))
    inside = " and ".join(f"{first} <= {name} <= {last}" for name, first, last in box)
    free = [f"e{k}" for k in range(extra)]
    return f"{{ [{', '.join(names + free)}] : {inside} }}"


def reachable(schedule: Schedule) -> NDArray[np.bool_]:
    """`reachable(s)[a, b]`: tile b starts only when tile a is done, in one round."""
    waiting = np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))
    now = schedule.lags == 0
    before = np.concatenate([*(order[:-1] for order in schedule.order), schedule.waits[now]])
    behind = np.concatenate([*(order[1:] for order in schedule.order), waiting[now]])
    after = np.zeros((schedule.tiles, schedule.tiles), np.bool_)
    after[before, behind] = True
    following: list[list[int]] = [[] for _ in range(schedule.tiles)]
    for first, second in zip(before.tolist(), behind.tolist(), strict=True):
        following[first].append(second)
    order = _in_turn(following)
    if len(order) < schedule.tiles:
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


def _prove_complete(schedule: Schedule, after: NDArray[np.bool_]) -> None:
    """Every tile is run exactly once, by its owner, and no tile waits for itself."""
    run = np.sort(np.concatenate(schedule.order)) if schedule.order else np.zeros(0)
    if not np.array_equal(run, np.arange(schedule.tiles)):
        raise PlanError("the schedule does not run every tile exactly once")
    if after.diagonal().any():
        raise PlanError("the schedule has tiles that wait for each other")


def _message(plan: LoopPlan, schedule: Schedule, dependence: Dependence, first: int, second: int) -> str:
    nest = in_formulas(plan).nest

    def name(tile: int) -> str:
        blocks = np.unravel_index(tile, schedule.grid)
        spans = zip(nest.dims, schedule.bounds, blocks, strict=True)
        return "(" + ", ".join(f"{dim} in {b[k]}..{b[k + 1] - 1}" for dim, b, k in spans) + ")"

    return (
        f"the schedule does not keep a dependence: {describe_pair(dependence, nest)}; "
        f"tile {name(second)} may start before tile {name(first)} is done"
    )
