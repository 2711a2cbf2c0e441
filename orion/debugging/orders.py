"""The order in which `f.debug` runs the iterations of a planned loop: tile after tile, as `plan.schedule` has them.

A loop that runs in another order than it is written in (a skewed wavefront, say) has its tiles in new coordinates: an
affine map gives these for each iteration, so that whole iterations of the source run in the new order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orion.dataclass import dataclass
from orion.dependence.model import trip_name
from orion.errors import PlanError
from orion.ir.constants import constant_value
from orion.ir.nodes import Range
from orion.plan.plan import Inspected, LoopPlan, Merged, Reordered
from orion.plan.source_plans import has_values, main_part
from orion.planned import Plan
from orion.schedule.schedule import Ints, Schedule
from orion.sets.names import isl_name, number_of


@dataclass(frozen=True, slots=True, eq=False)
class TileOrder:
    """The tile order of one loop of the source.

    `are_trips` says of each dimension whether its coordinate is the number of a trip, rather than the value of the
    loop variable. `matrix`, int64 (coordinates, dimensions + 1), gives the coordinates of the tiles, the constant last;
    `around` of them are those of serial loops around the tiles.
    """

    plan: LoopPlan
    schedule: Schedule
    are_trips: tuple[bool, ...]
    matrix: Ints
    around: int

    @property
    def is_written(self) -> bool:
        """Whether tiles one after the other are the iterations in their written order, whatever these are."""
        tiles, grid = self.schedule.serial_tiles(), self.schedule.grid
        is_plain = not isinstance(self.plan.tiles, Inspected) and not isinstance(self.plan.form, Merged)
        return is_plain and max(grid[1:], default=1) == 1 and bool(np.all(np.diff(tiles) > 0))

    def permutation(self, points: Ints) -> Ints | None:
        """Return the order of iterations with these coordinates, int64 (iterations, dimensions); None where one is in
        no tile."""
        if isinstance(self.plan.tiles, Inspected):
            return self._inspected(self.plan.tiles.inspection.order, points[:, 0])
        places = points @ self.matrix[:, :-1].T + self.matrix[:, -1]
        own, blocks = places[:, self.around :], []
        for edges, at in zip(self.schedule.bounds, own.T, strict=True):
            if at.size and (at.min() < edges[0] or at.max() >= edges[-1]):
                return None
            blocks.append(np.searchsorted(edges, at, side="right") - 1)
        rank = np.empty(self.schedule.tiles, np.int64)
        rank[self.schedule.serial_tiles()] = np.arange(self.schedule.tiles)
        tiles = rank[np.ravel_multi_index(tuple(blocks), self.schedule.grid)]
        keys = [*places.T[: self.around], tiles, *own.T]
        return np.lexsort(keys[::-1]).astype(np.int64)

    def _inspected(self, listed: Ints, at: Ints) -> Ints | None:
        if at.size != listed.size or not np.array_equal(np.sort(at), np.sort(listed)):
            return None
        ascending = np.argsort(listed, kind="stable")
        rank = ascending[np.searchsorted(listed[ascending], at)]
        return np.argsort(rank, kind="stable").astype(np.int64)


def tile_order(plan: Plan, loop: LoopPlan, values: Mapping[str, int]) -> TileOrder | None:
    """Return the tile order of a loop of the source; None where no order of whole iterations is that of its tiles, as
    where statements of an iteration run in several loops. `values` are those of the sizes and integers of the call."""
    part = main_part(loop)
    try:
        schedule = plan.schedule_of(loop, part.runs_on)
    except PlanError:
        return None
    dims = len(loop.nest.dims)
    are_trips = tuple(constant_value(one.step) != 1 for one in loop.nest.ranges)
    if not isinstance(loop.form, Merged):
        matrix = np.eye(dims, dims + 1, dtype=np.int64)
        return TileOrder(loop, schedule, are_trips, matrix, 0)
    made = _matrix(part, loop.nest.ranges, values) if len(loop.parts) == 1 else None
    if made is None:
        return None
    return TileOrder(loop, schedule, are_trips, made, len(made) - len(part.nest.dims))


def _matrix(part: LoopPlan, ranges: tuple[Range, ...], values: Mapping[str, int]) -> Ints | None:
    """The coordinates of a part's tiles as affine functions of the loop's; None where they are no such functions, or
    not the same ones for all statements."""
    import islpy as isl

    if not isinstance(part.form, Reordered) or part.form.is_time_tiled or not has_values(part):
        return None
    maps: list[isl.Map] = []
    isl.UnionMap(part.form.places).foreach_map(maps.append)
    pieces: list[isl.MultiAff] = []
    isl.PwMultiAff.from_map(maps[0]).foreach_piece(lambda _, piece: pieces.append(piece))
    names = [isl_name(one.var) if constant_value(one.step) == 1 else trip_name(one) for one in ranges]
    inputs = [maps[0].get_dim_name(isl.dim_type.in_, k) for k in range(maps[0].dim(isl.dim_type.in_))]
    if len(pieces) != 1 or inputs[: len(names)] != names:
        return None
    rows = [_row(pieces[0].get_at(k), len(names), values) for k in range(pieces[0].dim(isl.dim_type.out))]
    return None if any(row is None for row in rows) else np.array(rows, np.int64)


def _row(function: object, dims: int, values: Mapping[str, int]) -> list[int] | None:
    """The factors of an affine function of the first `dims` inputs, and its constant; None where it has others."""
    import islpy as isl

    assert isinstance(function, isl.Aff)
    if function.dim(isl.dim_type.div):
        return None
    factors = [
        number_of(function.get_coefficient_val(isl.dim_type.in_, k)) for k in range(function.dim(isl.dim_type.in_))
    ]
    constant = number_of(function.get_constant_val())
    for k in range(function.dim(isl.dim_type.param)):
        factor = number_of(function.get_coefficient_val(isl.dim_type.param, k))
        name = function.get_dim_name(isl.dim_type.param, k)
        if factor and name not in values:
            return None
        constant += factor * values.get(name, 0) if factor else 0
    return None if any(factors[dims:]) else [*factors[:dims], constant]
