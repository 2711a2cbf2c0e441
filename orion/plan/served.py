"""Which arrays with buffers several nodes do not have whole: a node fetches the rows that its tiles announce, before
they need them (`orion.dependence.announcer`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orion.cost.extents import evaluated
from orion.cost.placement import array_bytes
from orion.cost.sizes import Sizes
from orion.dependence.announcer import Announcer
from orion.ir.types import Types
from orion.plan.plan import LoopPlan, Served
from orion.plan.relaxed import why_apart
from orion.sets.affine import has_unit_step

SERVED_BYTES = 1 << 20
"""Smaller arrays nodes have whole: a list of what tiles touch is not shorter than they are."""


@dataclass(frozen=True, slots=True)
class _Iterations:
    """Those of the outermost loop: the coordinate of the first, and their number."""

    first: int
    count: int


def with_served(plan: LoopPlan, announcers: Sequence[Announcer], types: Types, sizes: Sizes) -> LoopPlan:
    """The plan of a loop with those of its announcers that are of use: where its tiles are blocks of its first
    dimension, updates go from node to node, and arrays are large."""
    iterations = _iterations(plan, sizes) if announcers and plan.space == 0 else None
    if iterations is None or plan.runs_on == 1 or any(cut != 1 for cut in plan.cuts[1:]):
        return plan
    if why_apart(plan.nest.buffered, plan.relaxed, plan.counts_on):
        return plan
    numbers = {one.buffered.array: number for number, one in enumerate(plan.relaxed.arrays)}
    found = tuple(
        Served(numbers[one.array], one, iterations.first, iterations.count)
        for one in announcers
        if one.array in numbers and (array_bytes(one.array, types, sizes.shapes) or 0) >= SERVED_BYTES
    )
    return replace(plan, served=found)


def _iterations(plan: LoopPlan, sizes: Sizes) -> _Iterations | None:
    space = plan.nest.ranges[0]
    start, stop, step = (evaluated(bound, sizes.known) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return None
    return _Iterations(start if has_unit_step(space) else 0, len(range(start, stop, step)))
