"""A proof that neighbouring loops which are run as one still keep every dependence between them, by isl.

With a and b accesses of the k-th and the l-th of the loops to one array, k < l, at least one of them a write, iteration
x of the one must come before iteration y of the other wherever a(x) ∩ b(y) ≠ ∅. In the loop that stands for them, of d
dimensions, they come at θ(x) = (x_0, …, x_{d-1}, k) and θ(y) = (y_0, …, y_{d-1}, l). What is proved is θ(x) ≺ θ(y);
that the tiles keep what the fused loop carries is for `prove_schedule`.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from orion.dependence.relations import first_broken
from orion.errors import PlanError
from orion.plan.plan import LoopPlan
from orion.sets.names import number_text

if TYPE_CHECKING:
    import islpy as isl


def prove_together(plan: LoopPlan) -> None:
    """Prove that the order of a loop which stands for neighbours is legal; `PlanError` where it is not. Nothing is
    to be proved of any other."""
    import islpy as isl

    context = isl.Context()
    depth = len(plan.nest.dims)
    for (k, one), (number, other) in combinations(enumerate(plan.members), 2):
        first, second = _order(one, k, depth, context), _order(other, number, depth, context)
        broken = first_broken(_dependences(one, k, other, number, context), first.union(second))
        if not broken.is_empty():
            message = f"the loops in lines {one.nest.span.line} and {other.nest.span.line} are not legal as one"
            raise PlanError(f"{plan.nest.span}: {message}: {broken.sample()}")


def _order(member: LoopPlan, number: int, depth: int, context: isl.Context) -> isl.UnionMap:
    import islpy as isl

    names = [f"x{dim}" for dim in range(len(member.nest.dims))]
    text = f"{{ L{number}[{', '.join(names)}] -> [{', '.join((*names[:depth], number_text(number)))}] }}"
    return isl.UnionMap(text, context)


def _dependences(one: LoopPlan, k: int, other: LoopPlan, number: int, context: isl.Context) -> isl.UnionMap:
    """{L_k[x] → L_l[y] : a(x) ∩ b(y) ≠ ∅} over all pairs of accesses of two loops, one of them a write."""
    import islpy as isl

    found = isl.UnionMap("{ }", context)
    for a in one.analysis.accesses:
        for b in other.analysis.accesses:
            if a.array == b.array and (a.is_write or b.is_write):
                pairs = isl.Map(a.relation, context).apply_range(isl.Map(b.relation, context).reverse())
                pairs = pairs.set_tuple_name(isl.dim_type.in_, f"L{k}").set_tuple_name(isl.dim_type.out, f"L{number}")
                found = found.union(isl.UnionMap.from_map(pairs))
    return found
