"""Block bounds of loop dimensions: balanced by elements for sparse arrays, by work where it differs along a range, as
in triangles, and even for other ranges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orion.arrays.partition import balanced_bounds, even_bounds
from orion.arrays.sparse import SparseArray
from orion.cost.sizes import Sizes
from orion.cost.uneven import work_along
from orion.errors import of_user, too_wide
from orion.plan.plan import Inspected, LoopPlan, Reordered, Weighed
from orion.plan.wide import fits_a_range
from orion.schedule.schedule import Ints

UNBOUNDED = (-(2**62), 2**62)
"""The one block of a dimension whose range is not known before the loop runs."""


PARTS = 1 << 16
"""In how many parts, none of which is cut, a range is looked at to cut it by work."""

SCALE = 1 << 20
"""The work of the most costly part, as a whole number: that of all of them together has less than 64 bits."""

EVEN_ENOUGH = 1.05
"""Blocks of the same length stay where none of them has more than so many times the work of the average."""


def block_bounds(
    plan: LoopPlan, ranges: Sequence[tuple[int, int] | None], elements: SparseArray | None, sizes: Sizes
) -> tuple[Ints, ...]:
    """The block boundaries of each loop dimension, `plan.cuts[d] + 1` of them for dimension d.

    `ranges` are the half-open ranges of the coordinates (`coordinate_ranges`). Of a loop over a sparse array,
    `elements`, the blocks hold about as many elements each. Those of the space dimension of any other loop have about
    as much work each, where the contents of arrays show it (`Weighed`) as the plan has them.
    """
    found, space = [], plan.space
    is_time_tiled = isinstance(plan.form, Reordered) and plan.form.is_time_tiled
    for dim, (blocks, span) in enumerate(zip(plan.cuts, ranges, strict=True)):
        if dim == 0 and isinstance(plan.tiles, Inspected):
            found.append(plan.tiles.inspection.bounds)
        elif dim == space and isinstance(plan.tiles, Weighed):
            found.append(plan.tiles.bounds)
        elif elements is not None:
            found.append(elements.balanced_bounds(dim, blocks))
        elif span is None:
            found.append(np.array(UNBOUNDED, np.int64))
        elif not fits_a_range(*span):
            raise of_user(OverflowError(too_wide(*span, plan.nest.loops[dim].span, plan.nest.function.source)))
        elif dim == space and 1 < blocks < span[1] - span[0] and not is_time_tiled:
            found.append(bounds_by_work(plan, dim, span, blocks, sizes) + span[0])
        else:
            found.append(even_bounds(span[1] - span[0], blocks) + span[0])
    return tuple(np.asarray(bounds, np.int64) for bounds in found)


def bounds_by_work(plan: LoopPlan, space: int, span: tuple[int, int], blocks: int, sizes: Sizes) -> Ints:
    """The bounds of blocks of the space dimension that have about as much work each, counted from the first index of
    `span`. The tiles of a serial loop's rounds have lengths that go with their times: they stay even."""
    values = sizes.known
    works = () if isinstance(plan.form, Reordered) else plan.works
    work = work_along(plan.analysis.domain, works, space, span, sizes, values)
    count = span[1] - span[0]
    if work is None:
        return even_bounds(count, blocks)
    length = -(-count // PARTS)
    middles = np.arange(length / 2, count, length)
    each = np.interp(middles, np.linspace(0, count - 1, work.size), work / work.max())
    even = np.add.reduceat(each, even_bounds(each.size, blocks)[:-1])
    if even.max() <= EVEN_ENOUGH * even.mean():
        return even_bounds(count, blocks)
    cuts = np.minimum(balanced_bounds(np.rint(each * SCALE), blocks) * length, count)
    return cuts if (np.diff(cuts) > 0).all() else even_bounds(count, blocks)
