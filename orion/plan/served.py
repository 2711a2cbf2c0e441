"""Which arrays with buffers several nodes do not have whole: a node fetches the rows that its tiles announce, before
they need them (`orion.dependence.announcer`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orion.cost.extents import evaluated
from orion.cost.placement import Placement, PlacementKind, array_bytes
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
    """Those of the dimension that is cut: the coordinate of the first, and their number."""

    first: int
    count: int


def with_served(plan: LoopPlan, announcers: Sequence[Announcer], types: Types, sizes: Sizes) -> LoopPlan:
    """The plan of a loop with those of its announcers that are of use: where its tiles are blocks of one
    dimension, updates go from node to node, and arrays are large."""
    dim = plan.space
    if dim is None or plan.runs_on == 1 or not plan.relaxed.has_clocks:
        return plan
    iterations = _iterations(plan, dim, sizes) if any(one.dim == dim for one in announcers) else None
    if iterations is None or any(cut != 1 for k, cut in enumerate(plan.cuts) if k != dim):
        return plan
    if why_apart(plan.nest.buffered, plan.relaxed, plan.counts_on):
        return plan
    numbers = {one.buffered.array: number for number, one in enumerate(plan.relaxed.arrays)}
    found = tuple(
        Served(numbers[one.array], one, iterations.first, iterations.count)
        for one in announcers
        if one.dim == dim
        and one.array in numbers
        and (array_bytes(one.array, types, sizes.shapes) or 0) >= SERVED_BYTES
    )
    names = {one.array for one in found}
    placements = tuple(_served(one) if one.array in names else one for one in plan.placements)
    return replace(plan, served=found, placements=placements)


def _served(placement: Placement) -> Placement:
    """Where an array lives of which nodes have what their tiles touch: how much that is, arrays say."""
    return replace(placement, kind=PlacementKind.SERVED, bytes_moved=None)


def _iterations(plan: LoopPlan, dim: int, sizes: Sizes) -> _Iterations | None:
    space = plan.nest.ranges[dim]
    start, stop, step = (evaluated(bound, sizes.known) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return None
    return _Iterations(start if has_unit_step(space) else 0, len(range(start, stop, step)))
