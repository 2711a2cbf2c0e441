"""Block bounds of loop dimensions: balanced by elements for sparse arrays, even for ranges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from orion.arrays.partition import even_bounds
from orion.arrays.sparse import SparseArray
from orion.errors import of_user, too_wide
from orion.plan.plan import LoopPlan
from orion.plan.wide import fits_a_range
from orion.schedule.schedule import Ints

UNBOUNDED = (-(2**62), 2**62)
"""The one block of a dimension whose range is not known before the loop runs."""


def block_bounds(
    plan: LoopPlan, ranges: Sequence[tuple[int, int] | None], elements: SparseArray | None
) -> tuple[Ints, ...]:
    """The block boundaries of each loop dimension, `plan.cuts[d] + 1` of them for dimension d.

    `ranges` are the half-open ranges of the coordinates (`coordinate_ranges`). Of a loop over a sparse array,
    `elements`, the blocks hold about as many elements each.
    """
    found = []
    for dim, (blocks, span) in enumerate(zip(plan.cuts, ranges, strict=True)):
        if elements is not None:
            found.append(elements.balanced_bounds(dim, blocks))
        elif span is None:
            found.append(np.array(UNBOUNDED, np.int64))
        elif not fits_a_range(*span):
            raise of_user(OverflowError(too_wide(*span, plan.nest.loops[dim].span, plan.nest.function.source)))
        else:
            found.append(even_bounds(span[1] - span[0], blocks) + span[0])
    return tuple(np.asarray(bounds, np.int64) for bounds in found)
