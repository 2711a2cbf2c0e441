"""What is refused of loops with replicas (`orion.replicate`) once it is known how they run: pulls that are not stable
for their workers, and uses of arrays that mean nothing."""

from __future__ import annotations

from dataclasses import replace

from orion.arrays.policies import Elastic
from orion.arrays.stability import greatest_alpha, is_stable
from orion.errors import ArgumentError, UnsupportedLoopError, describe
from orion.ir.nodes import Var, every, names_in
from orion.ir.program import LoopNest, Scalars, blocks_of
from orion.ir.refuse import unsupported
from orion.ir.replicas import Replica
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.source import Span


def check_replicas(plan: FunctionPlan) -> None:
    """ArgumentError for a policy that does not fit its loop or the workers that it runs on, UnsupportedLoopError for a
    loop that reads an array of which it has copies, or has copies and updates none."""
    if not plan.program.function.replicas:
        return
    _check_outside(plan)
    for loop in plan.loops:
        for one in loop.nest.replicas:
            _check_uses(loop, one)
            _check_alpha(loop, one)
        if loop.nest.replicas:
            _check_together(loop.nest)


def _check_uses(loop: LoopPlan, one: Replica) -> None:
    nest = loop.nest
    if one.array in names_in(*nest.body):
        what = f"`{one.array}` is used in a loop with `{one.name}`, which has copies of it"
        raise _refused(nest, _place(nest, one.array), what, f"use `{one.name}`, the copy of the worker")
    if not any(access.array == one.array and access.is_write for access in loop.analysis.accesses):
        what = f"a loop reads `{one.name}`, of which each worker has a copy, and does not update it"
        raise _refused(nest, _place(nest, one.name), what, "read the array itself: it is what is evaluated")


def _check_alpha(loop: LoopPlan, one: Replica) -> None:
    workers, policy = loop.runs_on, one.policy
    if not isinstance(policy, Elastic):
        return
    alpha, bound = policy.alpha_of(workers), policy.bound(workers)
    what = f"alpha={alpha:g} of `{one.name}` is not stable on {workers} workers"
    if alpha > bound:
        with_overlap = " and overlap=True" if policy.overlaps else ""
        why = f"with mode={policy.name!r}{with_overlap} it is to be at most 2 / ({workers} + {1 + policy.overlaps}) = "
        why += f"{bound:.4g}: pulls of all workers add up"
        hint = f"give a smaller one, or leave it out for {replace(policy, alpha=0.0).alpha_of(workers):.4g}"
        raise ArgumentError(describe(what, why=why, hint=hint))
    if policy.curvature and not is_stable(policy, alpha, workers):
        greatest = greatest_alpha(policy, workers)
        why = (
            f"with momentum {policy.momentum:g}, curvature {policy.curvature:g} and sync_every={policy.sync_every} it "
            f"is to be at most {greatest:.4g}: pulls add to what steps overshoot by"
        )
        hint = "give a smaller one, another `sync_every`, or smaller steps, whose curvature is smaller"
        raise ArgumentError(describe(what, why=why, hint=hint))


def _check_together(nest: LoopNest) -> None:
    first = nest.replicas[0]
    if nest.buffered:
        what = f"a loop updates `{first.name}`, of which each worker has a copy, and has the buffer"
        hint = "write two loops, or give both arrays buffers or replicas"
        raise _refused(nest, first.span, f"{what} `{nest.buffered[0].source}`", hint)
    for other in nest.replicas[1:]:
        if other.policy.meets != first.policy.meets:
            what = f"`{first.name}` and `{other.name}` have policies that do not go together in one loop"
            why = f"they are {first.policy!r} and {other.policy!r}"
            raise ArgumentError(describe(what, why=why, hint="give them the same `mode`, `sync_every` and `overlap`"))


def _check_outside(plan: FunctionPlan) -> None:
    """Refuse what is done with copies between loops."""
    waiting = [*plan.program.steps]
    while waiting:
        step = waiting.pop()
        waiting += [one for block in blocks_of(step) for one in block]
        for one in plan.program.function.replicas if isinstance(step, Scalars) else ():
            if isinstance(step, Scalars) and one.name in names_in(*step.body):
                places = [node.span for node in every(Var, *step.body) if node.name == one.name]
                what = f"`{one.name}` is used between loops, and each worker has a copy of it"
                source = plan.program.function.source
                raise unsupported(what, places[0], source, hint="read the array itself", is_for_numba=False)


def _place(nest: LoopNest, name: str) -> Span:
    return next((node.span for node in every(Var, *nest.body) if node.name == name), nest.span)


def _refused(nest: LoopNest, span: Span, what: str, hint: str) -> UnsupportedLoopError:
    return unsupported(what, span, nest.function.source, hint=hint, is_for_numba=False)
