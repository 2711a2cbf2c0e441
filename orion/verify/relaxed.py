"""That no update of a buffer is lost or too late, as far as a plan decides it.

With F the iterations after which a worker applies its updates, and D those that they may be late: a worker that begins
its iterations c … c + F - 1 waits for the others' updates up to their iteration c + F - D. Some worker has done no more
than all others, so that somebody can go on, where F ≤ D; and what is read in iteration k < c + F lacks none from before
k - D. Between two flushes a worker finds its updates among all elements, or in a list of the parts that its statements
name: each of them must name a part then.
"""

from __future__ import annotations

from orion.errors import PlanError
from orion.ir.nodes import Assign, Slice, Subscript, Tuple, Update, Var, every
from orion.ir.program import LoopNest
from orion.plan.relaxed import How, Relaxed, RelaxedArray


def prove_relaxed(nest: LoopNest, relaxed: Relaxed, *, waits: bool) -> None:
    """PlanError where the plan of a loop does not keep its updates; `waits`: tiles may wait for those of others."""
    planned = {one.buffered for one in relaxed.arrays}
    for one in nest.buffered:
        if one not in planned:
            raise PlanError(f"{nest.span}: updates of {one.array} would never be applied")
        if not 1 <= relaxed.every <= relaxed.max_delay <= one.max_delay:
            raise PlanError(f"{nest.span}: updates of {one.array} may be later than {one.max_delay} iterations")
        if one.deterministic and (not relaxed.deterministic or waits):
            raise PlanError(f"{nest.span}: updates of {one.array} are not applied in a fixed order")
    _prove_exact(nest)
    for array in relaxed.arrays:
        _prove_found(nest, array)


def _prove_exact(nest: LoopNest) -> None:
    """Arrays with buffers, and their helpers, are written by nothing but what applies updates."""
    own = {one.name for one in nest.buffered}
    arrays = {name for one in nest.buffered for name in one.names} - own
    for node in every((Assign, Update), *nest.body):
        targets = node.target.items if isinstance(node.target, Tuple) else (node.target,)
        names = {one.base.name for one in targets if isinstance(one, Subscript)}
        names |= {one.name for one in targets if isinstance(one, Var)}
        if names & arrays:
            raise PlanError(f"{node.span}: {', '.join(sorted(names & arrays))} has a buffer, and is written")
        is_sum = isinstance(node, Update) and node.op in ("+", "-") and isinstance(node.target, Subscript)
        if names & own and not is_sum:
            raise PlanError(f"{node.span}: {', '.join(sorted(names & own))} is written by no sum")


def _prove_found(nest: LoopNest, array: RelaxedArray) -> None:
    """A worker finds each of its updates of an array."""
    for node in every(Update, *nest.body):
        target = node.target
        if not isinstance(target, Subscript) or target.base.name != array.buffered.name:
            continue
        if array.how is How.AT_ONCE:
            is_right = array.buffered.apply is None and not array.buffered.deterministic
            if not is_right or any(isinstance(part, Slice) for part in target.index):
                raise PlanError(f"{node.span}: an update of {array.buffered.array} cannot be applied at once")
            continue
        points = next((k for k, part in enumerate(target.index) if isinstance(part, Slice)), len(target.index))
        is_found = array.how is How.DENSE or (array.how is How.LISTED and array.leading)
        if not is_found or array.leading > points:
            raise PlanError(f"{node.span}: an update of {array.buffered.array} would not be found")
