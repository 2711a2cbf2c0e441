"""Sparse elements in the order of the tiles that read them.

A grid cuts each dimension into blocks; a tile is one block of every dimension. A counting sort brings the
elements of each tile together, in memory order of the tiles. It works on chunks of the data that fit the
cache, with NumPy's radix sort (`argsort(kind="stable")` on 16-bit integers) inside a chunk, and several
chunks at once: NumPy lets go of the interpreter lock.

Inside a tile the order depends on the elements in the order the user gave them, the bounds and `Order`, on
nothing else:

- `"shuffled"`, for unordered loops: chunk by chunk, the elements of a chunk in a fixed pseudo-random order.
  In sorted data neighbours share a row, and each update would wait for the one before it.
- `"ascending"`, for ordered loops: by key, the first dimension being the most significant; elements with the
  same key in the order the user gave them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from orion.arrays.at_once import AtOnce, threads_for
from orion.arrays.sorting import CHUNK, Places, distributed, position_dtype, sort_into, sorted_columns
from orion.arrays.storage import Storage, current_storage
from orion.dataclass import dataclass
from orion.errors import ArgumentError, describe

Order = Literal["shuffled", "ascending"]
Bounds = tuple[NDArray[np.int64], ...]
Array = NDArray[Any]

TABLE_LIMIT = 1 << 22
"""Above this many indices the block of a key is searched for, not looked up in a table."""

SHUFFLE_SEED = 0x0410


@dataclass(frozen=True, eq=False)
class Elements:
    """Sparse elements in some order: one key array per dimension, one value array per value, all of one
    length.

    `positions[s]` is the place of element s in the order the user gave; None if this is that order.
    """

    keys: tuple[Array, ...]
    values: tuple[Array, ...]
    positions: Array | None

    def __len__(self) -> int:
        return len(self.keys[0])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        held = (*self.keys, *self.values) if self.positions is None else (*self.keys, *self.values, self.positions)
        return sum(array.nbytes for array in held)


@dataclass(frozen=True, eq=False)
class TileLayout(Elements):
    """Elements in tile order. `grid` is the number of blocks per dimension.

    Tiles are numbered in C order of the grid. `offsets` (int64, one entry more than there are tiles) says
    where they start: tile t is `offsets[t]:offsets[t + 1]` of every array.
    """

    grid: tuple[int, ...]
    order: Order
    offsets: NDArray[np.int64]


def checked_bounds(bounds: tuple[Array, ...], extents: tuple[int, ...]) -> Bounds:
    """Bounds as int64 arrays. `ArgumentError` unless they ascend from 0 and cover every key of each
    dimension.
    """
    if len(bounds) != len(extents):
        raise ArgumentError(f"bounds for {len(bounds)} dimensions, the array has {len(extents)}")
    result = tuple(np.array(b, dtype=np.int64) for b in bounds)
    for dim, (cuts, extent) in enumerate(zip(result, extents, strict=True)):
        if cuts.ndim != 1 or len(cuts) < 2 or cuts[0] != 0 or cuts[-1] < extent or np.any(np.diff(cuts) < 0):
            raise ArgumentError(
                describe(
                    f"bounds {cuts.tolist()} of dimension {dim}",
                    why=f"bounds ascend from 0 to the size of the dimension, here at least {extent}",
                )
            )
    return result


def tile_layout(elements: Elements, bounds: Bounds, order: Order) -> TileLayout:
    """Put `elements`, which are in user order, into tile order: new arrays. O(elements + tiles + indices)."""
    grid = tuple(len(cuts) - 1 for cuts in bounds)
    tiles, count, storage = prod(grid), len(elements), current_storage()
    kind = np.dtype(np.uint16 if tiles <= 1 << 16 else np.int64)
    lookups = [_block_lookup(cuts, prod(grid[dim + 1 :]), kind) for dim, cuts in enumerate(bounds)]

    def tile_of(chunk: slice) -> Array:
        tile = lookups[0](elements.keys[0][chunk])
        for keys, lookup in zip(elements.keys[1:], lookups[1:], strict=True):
            tile += lookup(keys[chunk])
        return tile

    positions = storage.empty(count, position_dtype(count))
    keys, values = ([storage.empty(count, one.dtype) for one in own] for own in (elements.keys, elements.values))
    sources, targets = (*elements.keys, *elements.values, Places()), (*keys, *values, positions)
    size = max(CHUNK, tiles << 8)  # 256 elements per tile and chunk on average: a step in Python moves enough of them
    mixing = _mixing(min(size, count), order)
    offsets = distributed(sources, targets, tile_of, tiles, storage, size, mixing)
    result = TileLayout(tuple(keys), tuple(values), positions, grid, order, offsets)
    if order == "ascending":
        unsorted = np.flatnonzero(np.diff(offsets) > 1)
        with AtOnce(threads_for(len(unsorted))) as threads:
            threads.map(lambda tile: _sort_tile(result, tile, storage), unsorted)
    return result


def user_order(elements: Elements) -> Elements:
    """The elements in the order the user gave: new arrays, unless they already are."""
    positions, storage = elements.positions, current_storage()
    if positions is None:
        return elements
    dims = len(elements.keys)
    if len(elements) > storage.at_once:
        found = sorted_columns((positions, *elements.keys, *elements.values), 1, storage)[1:]
        return Elements(found[:dims], found[dims:], None)

    def restored(array: Array) -> Array:
        result = storage.empty(len(array), array.dtype)
        result[positions] = array
        return result

    return Elements(tuple(map(restored, elements.keys)), tuple(map(restored, elements.values)), None)


def _block_lookup(cuts: NDArray[np.int64], stride: int, dtype: np.dtype) -> Callable[[Array], Array]:
    """A function from keys of a dimension to what they add to the number of their tile."""
    if cuts[-1] > TABLE_LIMIT:
        return lambda keys: ((np.searchsorted(cuts, keys, side="right") - 1) * stride).astype(dtype)
    table = np.repeat(np.arange(len(cuts) - 1) * stride, np.diff(cuts)).astype(dtype)
    return lambda keys: table.take(keys, mode="clip")


def _mixing(size: int, order: Order) -> NDArray[np.int64] | None:
    """The order in which the elements of a chunk are gone through."""
    if order == "ascending" or not size:
        return None
    generator = np.random.Generator(np.random.Philox(SHUFFLE_SEED))
    return generator.permutation(size)


def _sort_tile(layout: TileLayout, tile: int, storage: Storage) -> None:
    """Sort one tile by key."""
    inside = slice(int(layout.offsets[tile]), int(layout.offsets[tile + 1]))
    assert layout.positions is not None
    columns = tuple(column[inside] for column in (*layout.keys, *layout.values, layout.positions))
    sort_into(columns, columns, len(layout.keys), storage)
