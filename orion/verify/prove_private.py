"""A proof that the arrays of which a loop's tiles have their own, or copies, may be so.

Of private arrays the conditions of `orion.rewrites.privatize.find` are proved by isl, for the values of this call
alone, and that the last iteration is in the last tile, the one that has the array itself. Of arrays that are added to,
that the loop does nothing else with them, and that no two workers have the same copy. Of both, that no other
dependences have been left out than those on such arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from orion.dependence.bounds import fix_parameters
from orion.errors import PlanError
from orion.ir.types import Types
from orion.plan.plan import LoopPlan
from orion.rewrites.array_sums.find import sum_into
from orion.rewrites.privatize.find import last_iteration, private_arrays
from orion.schedule.schedule import Schedule

if TYPE_CHECKING:
    pass


def prove_private(plan: LoopPlan, schedule: Schedule, types: Types, values: Mapping[str, int]) -> None:
    """Raises `PlanError` where an array that the plan has as private is not, with these values of isl's parameters."""
    names = [array.name for array in plan.private_arrays]
    if not names:
        return
    wrong = set(names) - set(private_arrays(plan.nest, types, names, values))
    wrong |= {d.array for array in plan.private_arrays for d in array.dependences} - set(names)
    if wrong:
        raise PlanError(f"{plan.nest.span}: iterations cannot each have their own {', '.join(sorted(wrong))}")
    last = _last_iteration(plan, values)
    if last is None:
        raise PlanError(f"{plan.nest.span}: the last iteration is not the same in all rounds of the loops around it")
    if not _last_tile_has(last, schedule):
        raise PlanError(f"{plan.nest.span}: the last iteration is not in the last tile")


def prove_copies(plan: LoopPlan, schedule: Schedule, types: Types) -> None:
    """Raises `PlanError` where an array that the plan has copies of is used for more than its elements' sums, or where
    two workers have the same copy."""
    names = {one.name for one in plan.analysis.sums}
    wrong = {name for name in names if sum_into(name, plan.nest, types) is None}
    wrong |= {d.array for one in plan.analysis.sums for d in one.dependences} - names
    wrong |= names ^ {copies.array for copies in plan.copies}
    if wrong:
        raise PlanError(f"{plan.nest.span}: iterations cannot add to copies of {', '.join(sorted(wrong))}")
    if names and not (schedule.grid == plan.cuts and _have_their_own(plan, schedule)):
        raise PlanError(f"{plan.nest.span}: two workers add to the same copy")


def _have_their_own(plan: LoopPlan, schedule: Schedule) -> bool:
    """Whether all tiles of a block of the space dimension are one worker's."""
    assert plan.space is not None
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)[plan.space]
    pairs = set(zip(blocks.tolist(), schedule.owner.tolist(), strict=True))
    return len(pairs) <= schedule.grid[plan.space]


def _last_iteration(plan: LoopPlan, values: Mapping[str, int]) -> tuple[int, ...] | None:
    """The last iteration of all rounds; () where there are no iterations, None where it is not the same in all."""
    import islpy as isl

    iterations = fix_parameters(isl.Set(plan.analysis.domain), values)
    names = [str(iterations.get_dim_name(isl.dim_type.param, at)) for at in range(iterations.dim(isl.dim_type.param))]
    last = last_iteration(str(iterations), [name for name in names if name not in values])
    if last is None or last.is_empty():
        return None if last is None else ()
    point = last.sample_point()
    dims = range(len(plan.nest.dims))
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in dims)


def _last_tile_has(last: tuple[int, ...], schedule: Schedule) -> bool:
    spans = [(int(edges[-2]), int(edges[-1])) for edges in schedule.bounds]
    return not last or all(first <= at < end for at, (first, end) in zip(last, spans, strict=True))
