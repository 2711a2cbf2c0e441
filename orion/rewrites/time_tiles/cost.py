"""Whether sweeps over arrays in tiles of rounds and space pay, and how many boxes they are cut into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, prod

from orion.analysis.one_loop import AnalysedLoop, InTimeTiles, TimeTiles
from orion.cost.extents import coordinate_ranges
from orion.cost.grid import SHARED_GRID, whole_multiple
from orion.cost.sizes import Sizes
from orion.sets.maps import Maps

FILLED = 1.0
"""Arrays that fill less than this part of the second-level cache of a core stay there from one round to the next
without any tiles."""

FEWEST_ROUNDS = 4
"""With fewer rounds there is little to save: tiles at the edges of the arrays have fewer rounds yet."""

FITTING = 16
"""So many values of the first coordinate of space must fit into the cache: else no tile does."""

MOST_BOXES = 4096


def pays(time_tiles: TimeTiles, sizes: Sizes, extents: Sequence[int | None]) -> bool:
    """Whether to run in tiles at these sizes; `extents` are those of the coordinates.

    It saves going through arrays that do not fit into a cache once per round. Not where the boxes that can be run at
    the same time would be too small, or all boxes too many.
    """
    shapes, cache = sizes.shapes, sizes.caches.second
    if any(array not in shapes for array, _, _ in time_tiles.rows):
        return False
    whole = sum(size * prod(shapes[array]) for array, size, _ in time_tiles.rows)
    row = sum(size * prod(shapes[array][axis] for axis in axes) for array, size, axes in time_tiles.rows)
    found = boxes(time_tiles, extents, 1)
    if found is None or extents[0] is None or extents[0] < FEWEST_ROUNDS:
        return False
    return whole > FILLED * cache and row * FITTING <= cache and prod(found) <= MOST_BOXES


def boxes(time_tiles: TimeTiles, extents: Sequence[int | None], workers: int) -> tuple[int, ...] | None:
    """The number of blocks of each coordinate, 1 from the third on; None where extents are not known.

    Of T rounds over n values each, with slope s, boxes of h = T / b_0 rounds and w = (n + s T) / b_1 values have
    (n + s h) / w of them for the same rounds. Those are to be as many as blocks of other loops, for as many workers;
    and s h ≤ n / 4, since boxes at the edges are not full.
    """
    rounds, reach = extents[:2]
    if rounds is None or reach is None:
        return None
    slope, abreast = time_tiles.slopes[0], whole_multiple(SHARED_GRID, workers)
    width = reach - slope * (rounds - 1)
    if width < 2 * abreast:
        return None
    high = max(min(SHARED_GRID, rounds), ceil(4 * slope * rounds / width))
    wide = ceil(abreast * reach / (width + slope * rounds / high))
    return min(high, rounds), min(wide, reach), *[1] * (len(extents) - 2)


def all_pay(loops: Iterable[AnalysedLoop], sizes: Sizes, maps: Maps) -> bool:
    """Whether the tiles of all sweeps over arrays pay."""
    values = sizes.known
    for loop in loops:
        if isinstance(loop.form, InTimeTiles):
            ranges = coordinate_ranges(loop.analysis.domain, len(loop.nest.dims), values, maps)
            if not pays(loop.form.time_tiles, sizes, [None if span is None else span[1] - span[0] for span in ranges]):
                return False
    return True
