"""What the tiles of a loop touch of each array, in cells: footprints (`orion.schedule.footprints`) as masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orion.runtime.ray.regions import Cells, Mask
from orion.schedule.footprints import Footprint
from orion.schedule.schedule import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """What the tiles of a loop touch of one array: for each tile the cells from `first` to `end`, (tiles, axes), and of
    these the ones that it touches and may write, as masks of that size; None for a tile that touches nothing."""

    array: str
    window: tuple[tuple[slice, ...] | None, ...]
    touched: tuple[Mask | None, ...]
    written: tuple[Mask | None, ...]


def touches_of(prints: Sequence[Footprint], cells: Mapping[str, Cells]) -> list[Touch]:
    found = []
    for array in dict.fromkeys(one.array for one in prints):
        own = [one for one in prints if one.array == array]
        places = [(one.is_write, *cells[array].places(one.low, one.high)) for one in own]
        tiles = [_touch_of(tile, places) for tile in range(len(own[0].low))]
        found.append(Touch(array, *map(tuple, zip(*tiles, strict=True))))
    return found


def _touch_of(
    tile: int, places: Sequence[tuple[bool, Ints, Ints]]
) -> tuple[tuple[slice, ...] | None, Mask | None, Mask | None]:
    boxes = [
        (is_write, low, high)
        for is_write, first, end in places
        for low, high in zip(first[tile].tolist(), end[tile].tolist(), strict=True)
        if all(a < b for a, b in zip(low, high, strict=True))
    ]
    if not boxes:
        return None, None, None
    least = [min(axis) for axis in zip(*(low for _, low, _ in boxes), strict=True)]
    most = [max(axis) for axis in zip(*(high for _, _, high in boxes), strict=True)]
    touched, written = np.zeros((2, *(b - a for a, b in zip(least, most, strict=True))), np.bool_)
    for is_write, low, high in boxes:
        inside = tuple(slice(a - base, b - base) for a, b, base in zip(low, high, least, strict=True))
        touched[inside] = True
        if is_write:
            written[inside] = True
    return tuple(map(slice, least, most)), touched, written
