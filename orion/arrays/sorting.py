"""Columns of elements in the order of their keys, or by the buckets that they belong to.

What is larger than may be in memory is sorted from its most significant digits on: the elements are brought into
buckets, each into its part of new columns, by one pass that counts and one that moves; a bucket that is small is sorted
in memory, another one in the same way. All is stable, so that the result is that of a sort in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.at_once import AtOnce, threads_for
from orion.arrays.storage import BLOCK, Array, Storage, written_anywhere

Columns = tuple[Array, ...]

CHUNK = 1 << 17
"""Elements moved at a time; what is worked on stays in the cache."""

DIGIT = 8
"""Bits of a key by which elements are brought into buckets."""


def sorted_columns(columns: Columns, keys: int, storage: Storage) -> Columns:
    """New columns with the elements in ascending order of the first `keys` columns, integers, of which the first is the
    most significant; elements with equal ones as they are."""
    found = tuple(storage.empty(len(column), column.dtype) for column in columns)
    sort_into(columns, found, keys, storage)
    return found


def sort_into(sources: Columns, targets: Columns, keys: int, storage: Storage) -> None:
    """The same into columns that there are: others, or the very same ones."""
    count, is_same = len(targets[0]), sources[0] is targets[0]
    if not keys:
        for source, target in zip(sources, targets, strict=True):
            if not is_same:
                target[...] = source
        return
    if count <= storage.at_once:
        order = ascending_order(sources[:keys])
        for source, target in zip(sources, targets, strict=True):
            target[...] = source.take(order)
        return
    least, most = int(sources[0].min()), int(sources[0].max())
    if least == most:  # what follows decides
        sort_into((*sources[1:], sources[0]), (*targets[1:], targets[0]), keys - 1, storage)
        return
    moved = tuple(storage.empty(count, one.dtype) for one in targets) if is_same else targets
    for bucket in _in_buckets(sources, moved, least, most, storage):
        inside = tuple(column[bucket] for column in moved)
        sort_into(inside, tuple(column[bucket] for column in targets) if is_same else inside, keys, storage)


def _in_buckets(sources: Columns, targets: Columns, least: int, most: int, storage: Storage) -> Iterator[slice]:
    """Move elements so that those are together whose first keys, all from `least` to `most`, begin alike, and give the
    places of these."""
    shift = max(0, (most - least).bit_length() - DIGIT)
    keys = sources[0]

    def bucket(chunk: slice) -> Array:
        digits: Array = (keys[chunk] - keys.dtype.type(least)) >> shift
        return digits.astype(np.uint16)

    offsets = distributed(sources, targets, bucket, ((most - least) >> shift) + 1, storage, CHUNK).tolist()
    for start, end in pairwise(offsets):
        if start < end:
            yield slice(start, end)


def distributed(
    sources: tuple[Any, ...],
    targets: Columns,
    bucket: Callable[[slice], Array],
    buckets: int,
    storage: Storage,
    size: int,
    mixing: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Move elements from sources to targets so that those of a bucket are together, and return where the buckets begin,
    with the end of the last one. `bucket` gives the numbers of some elements. It is done in chunks of `size` elements;
    those of a chunk that are in one bucket are in the order of `mixing`, or as they were."""
    count = len(targets[0])
    chunks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    numbers: Array = storage.empty(count, np.dtype(np.uint16 if buckets <= 1 << 16 else np.int64))

    def tally(chunk: slice) -> NDArray[np.int64]:
        numbers[chunk] = bucket(chunk)
        return np.bincount(numbers[chunk], minlength=buckets)

    def place(chunk: slice, starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        picked = _by_bucket(numbers[chunk], mixing)
        pieces = list(_pieces(starts, counts))
        for source, target in zip(sources, targets, strict=True):
            moved = source[chunk].take(picked)
            for taken, put in pieces:
                target[put] = moved[taken]

    with AtOnce(threads_for(len(chunks))) as threads, written_anywhere(targets):
        counts = np.array([np.zeros(buckets, dtype=np.int64), *threads.map(tally, chunks)])
        offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
        starts = offsets[:-1] + np.cumsum(counts, axis=0)[:-1]
        threads.map(place, chunks, starts, counts[1:])
    return offsets


def _by_bucket(numbers: Array, mixing: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The places of some elements by their buckets, those of one in the order of `mixing`, of which a shorter chunk
    leaves out what it lacks."""
    if mixing is None:
        return np.argsort(numbers, kind="stable")
    mixed = mixing if len(mixing) == len(numbers) else mixing[mixing < len(numbers)]
    return mixed.take(np.argsort(numbers.take(mixed), kind="stable"))


def _pieces(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    done = 0
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        if count:
            yield slice(done, done + count), slice(start, start + count)
        done += count


class Places:
    """The places 0, 1, … of elements as a column to be moved."""

    def __getitem__(self, chunk: slice) -> NDArray[np.int64]:
        return np.arange(chunk.start, chunk.stop)


def position_dtype(count: int) -> np.dtype:
    """What holds the positions of so many elements."""
    return np.dtype(np.uint32 if count <= 1 << 32 else np.int64)


def with_positions(keys: Columns, storage: Storage) -> Columns:
    """The keys of elements in ascending order, and the positions that these had."""
    count = len(keys[0])
    positions = storage.empty(count, position_dtype(count))
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        positions[start:end] = np.arange(start, end)
    return sorted_columns((*keys, positions), len(keys), storage)


def is_ascending(keys: Columns) -> bool:
    """Whether elements are in ascending order of their keys, the first dimension being the most significant."""
    starts = range(0, len(keys[0]), BLOCK)
    return all(_is_ascending(tuple(axis[start : start + BLOCK + 1] for axis in keys)) for start in starts)


def _is_ascending(keys: Columns) -> bool:
    in_order: Array = np.ones(len(keys[0]) - 1, dtype=bool)
    for axis in reversed(keys):
        in_order &= axis[:-1] == axis[1:]
        in_order |= axis[:-1] < axis[1:]
    return bool(in_order.all())


def has_no_equal(keys: Columns) -> bool:
    """Whether no two elements have the same keys, by which they are sorted."""
    for start in range(0, len(keys[0]), BLOCK):
        part = [axis[start : start + BLOCK + 1] for axis in keys]
        if np.logical_and.reduce([axis[:-1] == axis[1:] for axis in part]).any():
            return False
    return True


def counts_of(keys: Array, length: int) -> NDArray[np.int64]:
    """How many elements there are of each key below `length`."""
    found = np.zeros(length, np.int64)
    for start in range(0, len(keys), max(BLOCK, length)):
        found += np.bincount(keys[start : start + max(BLOCK, length)], minlength=length)
    return found


def ascending_order(keys: Columns) -> NDArray[np.int64]:
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
