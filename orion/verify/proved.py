"""The schedule that a loop runs by: nothing runs that is not proved for its sizes and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orion.dependence.bounds import fix_parameters
from orion.errors import PlanError
from orion.plan.plan import Inspected, LoopPlan
from orion.schedule.build import build_schedule
from orion.schedule.schedule import Ints, Schedule
from orion.verify.conflicts import Conflict
from orion.verify.inspected import prove_needs
from orion.verify.tiles import broken_in_round


def proved_schedule(plan: LoopPlan, bounds: Sequence[Ints], workers: int, values: Mapping[str, int]) -> Schedule:
    """The tiles of a loop in these blocks for so many workers, proved to keep every dependence that was found. `values`
    are those of isl's parameters. PlanError where one is not kept."""
    schedule = build_schedule(plan, bounds, workers)
    if isinstance(plan.tiles, Inspected):  # what it found is what it was made of: `check` looks at the accesses
        prove_needs(schedule, plan.tiles.inspection)
        return schedule
    for broken in broken_in_round(found_conflicts(plan, values), schedule, plan.ordered):
        raise PlanError(f"{plan.nest.span}: the schedule does not keep a dependence over {broken.conflict.array}")
    return schedule


def found_conflicts(plan: LoopPlan, values: Mapping[str, int]) -> Iterator[Conflict]:
    """The dependences that planning found, for values of isl's parameters, over the coordinates of tiles."""
    import islpy as isl

    dims = len(plan.nest.dims)
    for relation, dependence in {one.relation: one for one in plan.analysis.dependences}.items():
        pairs = fix_parameters(isl.Map(relation).wrap(), values).unwrap()
        for side in (isl.dim_type.in_, isl.dim_type.out):
            pairs = pairs.project_out(side, dims, pairs.dim(side) - dims)
        pairs = pairs.project_out(isl.dim_type.param, 0, pairs.dim(isl.dim_type.param))
        yield Conflict(dependence.array, pairs, dependence.exact)
