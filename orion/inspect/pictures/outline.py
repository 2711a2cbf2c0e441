"""The outline of an iteration space in the plane of two of its loop dimensions: a triangle is drawn as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from orion.dataclass import dataclass
from orion.dependence.bounds import fix_parameters
from orion.plan.plan import LoopPlan

if TYPE_CHECKING:
    import islpy as isl

MOST_ROWS = 48
"""Of as many rows the ends are found; between them, where there are more rows, the outline is straight."""

Range = tuple[int, int]
"""Half-open."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Plane:
    """The iterations of a loop, seen as rows and columns: two dimensions of a set with bounds in both."""

    iterations: isl.Set
    rows: int
    columns: int
    row_range: Range

    def meets(self, rows: Range, columns: Range) -> bool:
        """Whether a box has iterations."""
        return not within(within(self.iterations, self.rows, rows), self.columns, columns).is_empty()

    def corners(self) -> list[Point]:
        """The outline as a closed line through points (column, row): down the left side, and up the right."""
        first, end = self.row_range
        chosen = np.unique(np.linspace(first, end - 1, min(MOST_ROWS, end - first)).round().astype(np.int64))
        left: list[Point] = []
        right: list[Point] = []
        for row in chosen.tolist():
            columns = range_of(within(self.iterations, self.rows, (row, row + 1)), self.columns)
            if columns is None:
                continue
            below = (row, row + 1) if len(chosen) == end - first or row == end - 1 else (row,)
            left += [(columns[0], at) for at in below]
            right += [(columns[1], at) for at in below]
        return left + right[::-1]


def plane_of(
    loop: LoopPlan, rows: int, columns: int, others: Mapping[int, Range], values: Mapping[str, int]
) -> Plane | None:
    """The iterations of a loop in two of its dimensions; None where it has none, or not all bounds are known.

    `others` are the ranges of further dimensions that they are to be in, `values` those of the parameters.
    """
    import islpy as isl

    iterations = fix_parameters(isl.Set(loop.analysis.domain), values)
    for dim, between in others.items():
        iterations = within(iterations, dim, between)
    row_range = range_of(iterations, rows)
    if row_range is None or range_of(iterations, columns) is None:
        return None
    return Plane(iterations, rows, columns, row_range)


def within(iterations: isl.Set, dim: int, between: Range) -> isl.Set:
    """Those of some iterations whose coordinate in one dimension is in a range."""
    import islpy as isl

    above = iterations.lower_bound_val(isl.dim_type.set, dim, between[0])
    return above.upper_bound_val(isl.dim_type.set, dim, between[1] - 1)


def range_of(iterations: isl.Set, dim: int) -> Range | None:
    """From where to where iterations go in one dimension; None where there are none, or no bounds are known."""
    if iterations.is_empty():
        return None
    low, high = iterations.dim_min_val(dim), iterations.dim_max_val(dim)
    return (low.to_python(), high.to_python() + 1) if low.is_int() and high.is_int() else None
