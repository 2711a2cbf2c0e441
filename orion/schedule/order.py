"""The serial order of iterations that a schedule's result equals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orion.arrays.sparse import SparseArray
from orion.dependence.bounds import fix_parameters
from orion.plan.plan import Inspected, LoopPlan
from orion.schedule.schedule import Ints, Schedule


def element_order(array: SparseArray, schedule: Schedule, ordered: bool) -> Ints:
    """Positions of the elements (as given by the user), tile after tile in a serial order of the tiles; int64
    (elements,).
    """
    if ordered:
        return array.iteration_order
    layout = array.layout(schedule.bounds, "shuffled")
    positions = np.arange(array.nnz) if layout.positions is None else layout.positions
    parts = [positions[layout.offsets[tile] : layout.offsets[tile + 1]] for tile in schedule.serial_tiles()]
    return np.concatenate(parts).astype(np.int64)


def range_order(plan: LoopPlan, schedule: Schedule, values: Mapping[str, int]) -> Ints:
    """Coordinates of the iterations of a nest of ranges, int64 (iterations, dims).

    An ordered loop equals its written order. An unordered one goes tile by tile, in the written order inside a tile.
    """
    points = _iterations(plan, values)
    if plan.ordered or not points.size:
        return points
    if isinstance(plan.tiles, Inspected):  # tile by tile: those in conflict run in the order of their numbers
        listed = plan.tiles.inspection.order
        rank = np.empty(listed.size, np.int64)
        rank[listed - listed.min()] = np.arange(listed.size)
        return points[np.argsort(rank[points[:, 0] - listed.min()], kind="stable")]
    blocks = [np.searchsorted(b, points[:, d], side="right") - 1 for d, b in enumerate(schedule.bounds)]
    tiles = np.ravel_multi_index(tuple(blocks), schedule.grid)
    rank = np.empty(schedule.tiles, np.int64)
    rank[schedule.serial_tiles()] = np.arange(schedule.tiles)
    return points[np.argsort(rank[tiles], kind="stable")]


def _iterations(plan: LoopPlan, values: Mapping[str, int]) -> Ints:
    """All points of the iteration domain in lexicographic order."""
    import islpy as isl

    found: list[list[int]] = []
    dims = range(len(plan.nest.dims))

    def note(point: isl.Point) -> None:
        found.append([int(point.get_coordinate_val(isl.dim_type.set, d).to_python()) for d in dims])

    fix_parameters(isl.Set(plan.analysis.domain), values).foreach_point(note)
    points = np.array(found, np.int64).reshape(-1, len(dims))
    return points[np.lexsort(points.T[::-1])]
