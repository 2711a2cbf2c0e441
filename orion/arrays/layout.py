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

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from orion.arrays.at_once import AtOnce
from orion.errors import ArgumentError, describe

Order = Literal["shuffled", "ascending"]
Bounds = tuple[NDArray[np.int64], ...]
Array = NDArray[Any]

CHUNK = 1 << 17
"""Elements sorted at a time. With few tiles, what is worked on stays in the cache; see `_chunk_size`."""

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
    tiles = prod(grid)
    chunks = _chunks(len(elements), tiles)
    tile_of: Array = np.empty(len(elements), dtype=np.uint16 if tiles <= 1 << 16 else np.int64)
    lookups = [_block_lookup(cuts, prod(grid[dim + 1 :]), tile_of.dtype) for dim, cuts in enumerate(bounds)]

    def count(chunk: slice) -> NDArray[np.int64]:
        tile: Array = tile_of[chunk]
        tile[:] = lookups[0](elements.keys[0][chunk])
        for keys, lookup in zip(elements.keys[1:], lookups[1:], strict=True):
            tile += lookup(keys[chunk])
        return np.bincount(tile, minlength=tiles)

    with AtOnce(_threads(len(chunks))) as threads:
        counts = np.array([np.zeros(tiles, dtype=np.int64), *threads.map(count, chunks)])
        offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
        starts = offsets[:-1] + np.cumsum(counts, axis=0)[:-1]
        result = _empty_layout(elements, grid, order, offsets)
        mixing = _mixing(chunks, order)
        threads.map(lambda c, s, n: _place(elements, tile_of, c, mixing, s, n, result), chunks, starts, counts[1:])
        if order == "ascending":
            threads.map(lambda tile: _sort_tile(result, tile), np.flatnonzero(np.diff(offsets) > 1))
    return result


def position_dtype(count: int) -> np.dtype:
    """What holds the positions of so many elements."""
    return np.dtype(np.uint32 if count <= 1 << 32 else np.int64)


def user_order(elements: Elements) -> Elements:
    """The elements in the order the user gave: new arrays, unless they already are."""
    positions = elements.positions
    if positions is None:
        return elements

    def restored(array: Array) -> Array:
        result = np.empty_like(array)
        result[positions] = array
        return result

    return Elements(tuple(map(restored, elements.keys)), tuple(map(restored, elements.values)), None)


def _chunk_size(tiles: int) -> int:
    """At least 256 elements per tile and chunk on average, so that a step in Python moves enough of them."""
    return max(CHUNK, tiles << 8)


def _chunks(count: int, tiles: int) -> list[slice]:
    size = _chunk_size(tiles)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _threads(chunks: int) -> int:
    return max(1, min(chunks, os.cpu_count() or 1))


def _block_lookup(cuts: NDArray[np.int64], stride: int, dtype: np.dtype) -> Callable[[Array], Array]:
    """A function from keys of a dimension to what they add to the number of their tile."""
    if cuts[-1] > TABLE_LIMIT:
        return lambda keys: ((np.searchsorted(cuts, keys, side="right") - 1) * stride).astype(dtype)
    table = np.repeat(np.arange(len(cuts) - 1) * stride, np.diff(cuts)).astype(dtype)
    return lambda keys: table.take(keys, mode="clip")


def _empty_layout(elements: Elements, grid: tuple[int, ...], order: Order, offsets: NDArray[np.int64]) -> TileLayout:
    return TileLayout(
        keys=tuple(map(np.empty_like, elements.keys)),
        values=tuple(map(np.empty_like, elements.values)),
        positions=np.empty(len(elements), dtype=position_dtype(len(elements))),
        grid=grid,
        order=order,
        offsets=offsets,
    )


def _mixing(chunks: list[slice], order: Order) -> NDArray[np.int64] | None:
    """The order in which the elements of a chunk are gone through; a shorter last chunk leaves out what it
    lacks.
    """
    if order == "ascending" or not chunks:
        return None
    generator = np.random.Generator(np.random.Philox(SHUFFLE_SEED))
    return generator.permutation(chunks[0].stop)


def _place(
    elements: Elements,
    tile_of: Array,
    chunk: slice,
    mixing: NDArray[np.int64] | None,
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    result: TileLayout,
) -> None:
    """Move the elements of a chunk to their tiles: to `starts` of each, and `counts` of them."""
    tile = tile_of[chunk]
    if mixing is None:
        picked = np.argsort(tile, kind="stable")
    else:
        mixed = mixing if len(mixing) == len(tile) else mixing[mixing < len(tile)]
        picked = mixed.take(np.argsort(tile.take(mixed), kind="stable"))
    pieces = list(_pieces(starts, counts))
    for source, target in zip((*elements.keys, *elements.values), (*result.keys, *result.values), strict=True):
        _scatter(source[chunk].take(picked), target, pieces)
    assert result.positions is not None
    picked += chunk.start
    _scatter(picked, result.positions, pieces)


def _pieces(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    done = 0
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        if count:
            yield slice(done, done + count), slice(start, start + count)
        done += count


def _scatter(source: Array, target: Array, pieces: list[tuple[slice, slice]]) -> None:
    for taken, put in pieces:
        target[put] = source[taken]


def _sort_tile(layout: TileLayout, tile: int) -> None:
    """Sort one tile by key, last dimension first: stable radix passes, 16 bits at a time."""
    inside = slice(int(layout.offsets[tile]), int(layout.offsets[tile + 1]))
    order = ascending_order(tuple(keys[inside] for keys in layout.keys))
    assert layout.positions is not None
    for array in (*layout.keys, *layout.values, layout.positions):
        array[inside] = array[inside].take(order)


def is_ascending(keys: tuple[Array, ...]) -> bool:
    """Whether elements are in ascending order of their keys, the first dimension being the most significant."""
    in_order: Array = np.ones(max(0, len(keys[0]) - 1), dtype=bool)
    for axis in reversed(keys):
        in_order &= axis[:-1] == axis[1:]
        in_order |= axis[:-1] < axis[1:]
    return bool(in_order.all())


def ascending_order(keys: tuple[Array, ...]) -> NDArray[np.int64]:
    """The positions of elements in ascending order of their keys, those with equal keys as they are."""
    order = np.arange(len(keys[0]))
    for axis in reversed(keys) if len(order) else ():
        order = _stable_order(axis, order)
    return order


def _stable_order(keys: Array, order: NDArray[np.int64]) -> NDArray[np.int64]:
    digits = keys - keys.min()
    remaining = int(digits.max())
    while remaining:
        low = (digits & 0xFFFF).astype(np.uint16).take(order)
        order = order.take(np.argsort(low, kind="stable"))
        digits >>= 16
        remaining >>= 16
    return order
