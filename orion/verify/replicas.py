"""That no loop with copies of arrays has its workers wait for ever, or touches what only pulls may touch, as far as a
plan decides it.

Workers that pull together wait for each other after the same iterations of theirs. So no tile may wait for one of
another worker, which may be waiting for this one to pull; nobody may take tiles of others, as then it is not known
whose iterations they are; and no iteration may end the loop, as the worker's last pull would be left out. Copies and
the array are changed by pulls alone.
"""

from __future__ import annotations

from orion.arrays.policies import Elastic
from orion.errors import PlanError
from orion.ir.nodes import names_in
from orion.ir.program import LoopNest


def prove_replicas(nest: LoopNest, workers: int, *, waits: bool, takes: bool, ends_early: bool) -> None:
    """PlanError where a plan of a loop for so many workers does not keep what it has of replicas. `waits`: tiles may
    wait for those of others, `takes`: workers take tiles of others."""
    for one in nest.replicas:
        touched = {*names_in(*nest.body)} & {*one.changed, *one.own[1:]}
        if touched:
            raise PlanError(f"{nest.span}: {', '.join(sorted(touched))} is used beside copies of it")
        if workers > 1 and (takes or (waits and one.policy.waits)):
            raise PlanError(f"{nest.span}: workers may wait for ever for a pull of {one.name}")
        if workers > 1 and ends_early:
            raise PlanError(f"{nest.span}: the last pull of {one.name} may be left out")
        if isinstance(one.policy, Elastic) and one.policy.alpha > one.policy.bound(workers):
            raise PlanError(f"{nest.span}: pulls of {one.name} by {one.policy.alpha} are not stable")
    if len({one.policy.meets for one in nest.replicas}) > 1:
        raise PlanError(f"{nest.span}: replicas have policies that do not go together")
    if nest.replicas and nest.buffered:
        raise PlanError(f"{nest.span}: there are replicas and buffers")
