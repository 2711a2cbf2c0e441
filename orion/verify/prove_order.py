"""A proof that a loop run in another order still keeps every dependence of the loop as it is written, by isl.

With → the dependences between the instances of its statements and θ the new order, three things are proved:

1. x → y implies θ(x) ≺ θ(y), so the new order is legal.
2. For each part that is shared out, with p(x) the coordinates of x in it: x → y, for x and y of the part in one round
   of the loops around it, implies p(x) = p(y) or (p(x), p(y)) ∈ R. R are the dependences that `prove_schedule`
   holds the tiles of the part to, so no schedule is proved against fewer than there are.
3. The schedule of each part keeps R: `prove_schedule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orion.errors import PlanError
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.plan.whole import rounds_around
from orion.rewrites.reorder.apply import prove_order

if TYPE_CHECKING:
    import islpy as isl


def prove_new_order(plan: FunctionPlan, loop: LoopPlan) -> None:
    """Prove 1 and 2 for a loop of the source that is run in another order; `PlanError` where one does not hold.

    Nothing is to be proved of a loop that is run as it is written.
    """
    import islpy as isl

    if loop.origin is None:
        return
    dependences = isl.UnionMap(loop.origin.dependences)
    try:
        prove_order(dependences, isl.UnionMap(loop.origin.order))
    except PlanError as error:
        raise PlanError(f"{loop.nest.span}: {error}") from None
    for part in loop.parts:
        if part.places:
            _prove_all_there(part, dependences, rounds_around(plan, part.nest.number))


def _prove_all_there(part: LoopPlan, dependences: isl.UnionMap, rounds: Sequence[str]) -> None:
    import islpy as isl

    places = isl.UnionMap(part.places)
    moved = dependences.apply_domain(places).apply_range(places)
    if moved.is_empty():
        return
    relation = _in_one_round(isl.Map.from_union_map(moved), rounds)
    missing = relation.subtract(isl.Map.identity(relation.get_space()))
    for known in {dependence.relation for dependence in part.analysis.dependences}:
        missing = missing.subtract(isl.Map(known))
    if not missing.is_empty():
        message = f"the schedule is not held to a dependence of the loop: {missing.sample()}"
        raise PlanError(f"{part.nest.span}: {message}")


def _in_one_round(relation: isl.Map, rounds: Sequence[str]) -> isl.Map:
    """The pairs in one round of the loops around: their variables become parameters."""
    import islpy as isl

    for name in rounds:
        first = relation.dim(isl.dim_type.param)
        relation = relation.add_dims(isl.dim_type.param, 1).set_dim_name(isl.dim_type.param, first, name)
        for side in (isl.dim_type.in_, isl.dim_type.out):
            relation = relation.equate(isl.dim_type.param, first, side, 0).project_out(side, 0, 1)
    return relation
