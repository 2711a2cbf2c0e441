"""Which arrays several nodes do not have whole: they have what their tiles touch, as announcers list it
(`orion.dependence.announcer`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orion.cost.extents import evaluated
from orion.cost.placement import Placement, PlacementKind, array_bytes
from orion.cost.sizes import Sizes
from orion.dataclass import dataclass, replace
from orion.dependence.announcer import Announcer
from orion.ir.types import Types
from orion.plan.plan import Listed, LoopPlan, Served
from orion.plan.relaxed import why_apart
from orion.sets.affine import has_unit_step

SERVED_BYTES = 1 << 20
"""Smaller arrays nodes have whole: a list of what tiles touch is not shorter than they are."""


@dataclass(frozen=True, slots=True)
class _Iterations:
    """Those of one dimension: the coordinate of the first, and their number."""

    first: int
    count: int


def with_listed(plan: LoopPlan, announcers: Sequence[Announcer], types: Types, sizes: Sizes) -> LoopPlan:
    """The plan of a loop with those of its announcers that are of use: of large arrays, where it is shared out in
    blocks of iterations that they list."""
    least = max(1, SERVED_BYTES)  # of an array without elements there is nothing to be had
    large = [one for one in announcers if (array_bytes(one.array, types, sizes.shapes) or 0) >= least]
    if not large or plan.runs_on == 1:
        return plan
    served, read = tuple(_served(plan, large, sizes)), tuple(_read(plan, large, sizes))
    names = {one.array for one in served}
    placements = tuple(_in_part(one) if one.array in names else one for one in plan.placements)
    return replace(plan, served=served, read_in_part=read, placements=placements)


def _served(plan: LoopPlan, announcers: Sequence[Announcer], sizes: Sizes) -> Iterator[Served]:
    """Arrays with buffers, where tiles are blocks of one dimension, updates go from node to node, and rows are
    contiguous."""
    dim, relaxed = plan.space, plan.relaxed
    if not relaxed.has_clocks or any(cut != 1 for k, cut in enumerate(plan.cuts) if k != dim):
        return
    if plan.counts_on or why_apart(relaxed, plan.takes_tiles):
        return
    numbers = {one.buffered.array: number for number, one in enumerate(relaxed.arrays)}
    for one in announcers:
        is_of_rows = not one.is_read and one.keyed == tuple(range(len(one.keyed)))
        iterations = _iterations(plan, one.dim, sizes) if is_of_rows and one.dim == dim else None
        if iterations is not None and one.array in numbers:
            yield Served(one, iterations.first, iterations.count, numbers[one.array])


def _read(plan: LoopPlan, announcers: Sequence[Announcer], sizes: Sizes) -> Iterator[Listed]:
    """Arrays that are only read."""
    for one in announcers:
        iterations = _iterations(plan, one.dim, sizes) if one.is_read else None
        if iterations is not None:
            yield Listed(one, iterations.first, iterations.count)


def _in_part(placement: Placement) -> Placement:
    """Where an array lives of which nodes have what their tiles touch: how much that is, arrays say."""
    return replace(placement, kind=PlacementKind.SERVED, bytes_moved=None)


def _iterations(plan: LoopPlan, dim: int, sizes: Sizes) -> _Iterations | None:
    space = plan.nest.ranges[dim]
    start, stop, step = (evaluated(bound, sizes.known) for bound in (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return None
    return _Iterations(start if has_unit_step(space) else 0, len(range(start, stop, step)))
