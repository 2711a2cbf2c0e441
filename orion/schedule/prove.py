"""A proof that a schedule keeps every dependence of its loop, by isl.

Iterations are mapped to tiles by the blocks of the schedule. For every dependence x → y isl computes the set of
tile pairs (tile of x, tile of y); the schedule is right when each pair is one tile (whose iterations run in the
loop's order, all on one worker), or the schedule runs one of the two after the other: the first before the second
for an ordered loop, in either order for an unordered one. *After* is reachability over waits and each worker's own
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.dependence.access import Dependence
from orion.dependence.bounds import fix_parameters
from orion.errors import PlanError
from orion.plan.explain import describe_pair
from orion.plan.plan import LoopPlan
from orion.schedule.schedule import Schedule

if TYPE_CHECKING:
    import islpy as isl


def prove_schedule(plan: LoopPlan, schedule: Schedule, values: Mapping[str, int]) -> int:
    """Prove that `schedule` keeps the dependences of `plan`'s loop; returns the number of tile pairs it looked at.

    `values` gives the parameters of the analysis (extents, integer arguments) by their isl names. Raises
    `PlanError` with the accesses and tiles of the first dependence that is not kept.
    """
    import islpy as isl

    context = isl.Context()
    after = reachable(schedule)
    count = 0
    relations = {d.relation: d for d in plan.dependences}
    for text, dependence in relations.items():
        for first, second in tile_pairs(isl.Map(text, context), schedule, len(plan.nest.dims), values):
            count += 1
            kept = first == second or after[first, second] or (not plan.ordered and after[second, first])
            if not kept:
                raise PlanError(_message(plan, schedule, dependence, first, second))
    _prove_complete(schedule)
    return count


def tile_pairs(
    relation: isl.Map, schedule: Schedule, dims: int, values: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    """The pairs (tile of x, tile of y) over all pairs x → y of `relation`."""
    import islpy as isl

    extra = relation.dim(isl.dim_type.in_) - dims
    to_tile = _tile_map(schedule, extra, relation.get_ctx())
    tiles = to_tile.reverse().apply_range(fix_parameters_of_map(relation, values)).apply_range(to_tile)
    tiles = tiles.project_out(isl.dim_type.param, 0, tiles.dim(isl.dim_type.param))
    found: list[tuple[int, ...]] = []
    tiles.wrap().foreach_point(lambda point: found.append(_coordinates(point)))
    for point in sorted(set(found)):
        first, second = point[: len(schedule.grid)], point[len(schedule.grid) :]
        yield int(np.ravel_multi_index(first, schedule.grid)), int(np.ravel_multi_index(second, schedule.grid))


def fix_parameters_of_map(relation: isl.Map, values: Mapping[str, int]) -> isl.Map:
    """`relation` with each parameter that has a value fixed to it."""
    fixed = fix_parameters(relation.wrap(), values)
    return fixed.unwrap()


def _tile_map(schedule: Schedule, extra: int, context: isl.Context) -> isl.Map:
    """{iteration → blocks}, by the bounds of the schedule; further dimensions of an iteration are free."""
    import islpy as isl

    dims = range(len(schedule.grid))
    inputs = [f"i{d}" for d in dims] + [f"e{k}" for k in range(extra)]
    outputs = [f"b{d}" for d in dims]
    whole = isl.Map(f"{{ [{', '.join(inputs)}] -> [{', '.join(outputs)}] }}", context)
    for d, bounds in zip(dims, schedule.bounds, strict=True):
        pieces = " or ".join(
            f"(b{d} = {block} and {low} <= i{d} < {high})"
            for block, (low, high) in enumerate(pairwise(bounds))
            if low < high
        )
        head = f"{{ [{', '.join(inputs)}] -> [{', '.join(outputs)}] : {pieces or 'false'} }}"
        whole = whole.intersect(isl.Map(head, context))
    return whole


def _coordinates(point: isl.Point) -> tuple[int, ...]:
    import islpy as isl

    count = point.get_space().dim(isl.dim_type.set)
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in range(count))


def reachable(schedule: Schedule) -> NDArray[np.bool_]:
    """`reachable(s)[a, b]`: tile b starts only when tile a is done, in one round."""
    after = np.zeros((schedule.tiles, schedule.tiles), np.bool_)
    for order in schedule.order:
        after[order[:-1], order[1:]] = True
    waiting = np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))
    now = schedule.lags == 0
    after[schedule.waits[now], waiting[now]] = True
    while True:
        further = after | ((after.astype(np.float32) @ after.astype(np.float32)) > 0)
        if np.array_equal(further, after):
            return after
        after = further


def _prove_complete(schedule: Schedule) -> None:
    """Every tile is run exactly once, by its owner, and no tile waits for itself."""
    run = np.sort(np.concatenate(schedule.order)) if schedule.order else np.zeros(0)
    if not np.array_equal(run, np.arange(schedule.tiles)):
        raise PlanError("the schedule does not run every tile exactly once")
    if reachable(schedule).diagonal().any():
        raise PlanError("the schedule has tiles that wait for each other")


def _message(plan: LoopPlan, schedule: Schedule, dependence: Dependence, first: int, second: int) -> str:
    def name(tile: int) -> str:
        blocks = np.unravel_index(tile, schedule.grid)
        spans = zip(plan.nest.dims, schedule.bounds, blocks, strict=True)
        return "(" + ", ".join(f"{dim} in {b[k]}..{b[k + 1] - 1}" for dim, b, k in spans) + ")"

    return (
        f"the schedule does not keep a dependence: {describe_pair(dependence, plan.nest)}; "
        f"tile {name(second)} may start before tile {name(first)} is done"
    )
