"""That neighbouring loops may be run as one: what `orion.rewrites.fuse` claims, by isl.

With L_k the loops and x[d] the first d coordinates of an iteration, d being those of the loop that they are run as:

    its body is that of the loops, one after the other, in its variables, and so are its iterations;
    x of L_k and y of L_l, k < l, are in conflict only if x[d] is not after y[d].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING

from orion.errors import PlanError
from orion.ir.assigned import assigned_names
from orion.ir.exposed import exposed_scalars
from orion.ir.nodes import Expr, For, Range, Stmt, names_in
from orion.ir.program import LoopNest
from orion.ir.renaming import renamed
from orion.ir.spans import without_spans
from orion.plan.plan import LoopPlan
from orion.sets.affine import Affine, affine_form, has_unit_step, parameter
from orion.verify.conflicts import uses_of
from orion.verify.events import Iterations
from orion.verify.text_of import bare

if TYPE_CHECKING:
    import islpy as isl


def prove_fused(
    loop: LoopPlan,
    members: Sequence[LoopPlan],
    fused: Iterations,
    own: Sequence[Iterations],
    context: isl.Context,
) -> None:
    """PlanError where a loop is not its members, or may not be run for them. `own` are their iterations."""
    depth = len(loop.nest.dims)
    bodies = tuple(part for member in members for part in _body(loop.nest, member.nest, depth))
    if bare(bodies) != bare(loop.nest.body):
        raise PlanError(f"{loop.nest.span}: the loop that neighbours are run as does not do what they do")
    _prove_scalars(loop, members)
    for member, one in zip(members, own, strict=True):
        same = _same_ranges(loop.nest, member.nest, depth)  # iterations without inner ones are in no domain
        if not same and one.is_exact and fused.is_exact and _by_ones(loop.nest, member.nest, depth):
            same = _outer(one, depth, context).is_equal(fused.domain(context))
        if not same:
            raise PlanError(f"{loop.nest.span}: the loop that neighbours are run as has other iterations than they")
    for (k, first), (number, second) in combinations(enumerate(own), 2):
        pairs = _broken(first, second, depth, context)
        if pairs is not None:
            lines = f"{members[k].nest.span.line} and {members[number].nest.span.line}"
            message = f"the loops in lines {lines} are not legal as one: {pairs.sample()}"
            raise PlanError(f"{loop.nest.span}: {message}")


def _prove_scalars(loop: LoopPlan, members: Sequence[LoopPlan]) -> None:
    """PlanError where one member needs what another leaves in a scalar: its last value, in whichever iteration."""
    for one, other in permutations(members, 2):
        dims = {*one.nest.dims, *other.nest.dims}
        needed = exposed_scalars(other.nest.body, {*other.nest.dims})
        passed = (assigned_names(one.nest.body) - dims) & {*needed}
        combined = {role.name for role in other.analysis.scalars.reductions}
        if passed - combined:
            raise PlanError(f"{loop.nest.span}: neighbours pass {', '.join(sorted(passed))} to one another")


def _same_ranges(nest: LoopNest, member: LoopNest, depth: int) -> bool:
    """Whether the outer loops of a member have the ranges of the loop that it is run in: by their text where that is
    not affine."""
    names = dict(zip(member.dims[:depth], nest.dims[:depth], strict=True))
    pairs = zip(nest.ranges[:depth], member.ranges[:depth], strict=True)
    return all(
        _form(getattr(mine, part)) == _form(renamed(getattr(its, part), dict(names)))
        for mine, its in pairs
        for part in ("start", "stop", "step")
    )


def _by_ones(nest: LoopNest, member: LoopNest, depth: int) -> bool:
    """Whether coordinates are values of variables, not numbers of trips: all steps are 1."""
    return all(map(has_unit_step, (*nest.ranges[:depth], *member.ranges[:depth])))


def _form(bound: Expr) -> object:
    form = affine_form(bound, {name: parameter(name) for name in names_in(bound)})
    return form.text if isinstance(form, Affine) else without_spans(bound)


def _outer(found: Iterations, depth: int, context: isl.Context) -> isl.Set:
    import islpy as isl

    domain = found.domain(context)
    return domain.project_out(isl.dim_type.set, depth, domain.dim(isl.dim_type.set) - depth)


def _body(nest: LoopNest, member: LoopNest, depth: int) -> tuple[Stmt, ...]:
    """What a member has inside of its outer loops, in the variables of the loop that it is run in."""
    loop: For = member.loops[0]
    names: dict[str, str] = {}
    for level in range(depth):
        inner = loop if level == 0 else loop.body[0]
        assert isinstance(inner, For)
        assert isinstance(inner.space, Range)
        loop, names[inner.space.var] = inner, nest.dims[level]
    swapped = {new: old for old, new in names.items() if new not in names}
    return tuple(renamed(statement, names | swapped) for statement in loop.body)


def _broken(first: Iterations, second: Iterations, depth: int, context: isl.Context) -> isl.Map | None:
    """The conflicts x → y with x[d] after y[d]; None where there are none."""
    import islpy as isl

    one, other = uses_of(first, context), uses_of(second, context)
    for array in one.keys() & other.keys():
        mine, its = one[array], other[array]
        for left, right in ((mine.written, its.touched), (mine.touched, its.written)):
            pairs = left.apply_range(right.reverse())
            for side in (isl.dim_type.in_, isl.dim_type.out):
                pairs = pairs.project_out(side, depth, pairs.dim(side) - depth)
            turned = pairs.intersect(isl.Map.lex_gt(pairs.get_space().domain()))
            if not turned.is_empty():
                return turned
    return None
