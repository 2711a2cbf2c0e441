"""Where to cut an index range into blocks.

Bounds are int64 arrays of `blocks + 1` entries, from 0 to the number of indices: block b is
`bounds[b]:bounds[b + 1]`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orion.errors import ArgumentError


def even_bounds(n: int, blocks: int) -> NDArray[np.int64]:
    """Bounds of `blocks` blocks over `n` indices whose sizes differ by at most one.

    >>> even_bounds(10, 4)
    array([ 0,  2,  5,  7, 10])
    """
    _check_blocks(blocks)
    return np.array([block * n // blocks for block in range(blocks + 1)], dtype=np.int64)


def balanced_bounds(counts_per_index: ArrayLike, blocks: int) -> NDArray[np.int64]:
    """Bounds of `blocks` blocks with as equal a number of elements as whole indices allow.

    `counts_per_index[i]` is the number of elements with index i. The fullest block is as small as it can be
    (Pinar and Aykanat, "Fast optimal load balancing algorithms for 1D partitioning", 2004: bisection on its
    size). Among the bounds that achieve it, each block ends as near as possible to its share of what the
    blocks before it left over, but takes at least one index while there are any. Blocks may be empty: always
    where there are fewer indices than blocks. Without elements the indices are shared out evenly.

    >>> balanced_bounds([5, 1, 1, 1, 1, 1], 2)
    array([0, 1, 6])
    """
    _check_blocks(blocks)
    counts = np.asarray(counts_per_index, dtype=np.int64)
    n, total = counts.size, int(counts.sum())
    if total == 0:
        return even_bounds(n, blocks)
    prefix = np.concatenate([[0], np.cumsum(counts)])
    capacity = _smallest_capacity(prefix, blocks, int(counts.max()))
    earliest = _earliest_starts(prefix, blocks, capacity)
    bounds = [0]
    for block in range(1, blocks):
        done = int(prefix[bounds[-1]])
        share = done + (total - done) / (blocks - block + 1)
        cut = max(_nearest(prefix, share), bounds[-1] + 1, earliest[block])
        bounds.append(min(cut, _first(prefix, done + capacity + 1) - 1))
    return np.array([*bounds, n], dtype=np.int64)


def _smallest_capacity(prefix: NDArray[np.int64], blocks: int, largest: int) -> int:
    """The least number of elements c such that `blocks` blocks of at most c elements hold everything."""
    low = max(largest, -(-int(prefix[-1]) // blocks))
    high = low + largest
    while low < high:
        middle = (low + high) // 2
        if _earliest_starts(prefix, blocks, middle)[0] == 0:
            high = middle
        else:
            low = middle + 1
    return low


def _earliest_starts(prefix: NDArray[np.int64], blocks: int, capacity: int) -> list[int]:
    """For each block the first index from which it and the blocks after it, of at most `capacity`, reach the
    end.
    """
    starts = [0] * blocks + [len(prefix) - 1]
    for block in range(blocks - 1, -1, -1):
        starts[block] = _first(prefix, int(prefix[starts[block + 1]]) - capacity)
    return starts


def _nearest(prefix: NDArray[np.int64], share: float) -> int:
    """The index whose prefix sum is nearest to `share`, which lies above the first and not above the last."""
    cut = _first(prefix, share)
    return cut - 1 if share - prefix[cut - 1] <= prefix[cut] - share else cut


def _first(prefix: NDArray[np.int64], least: float) -> int:
    """The first index whose prefix sum is at least `least`; the length of `prefix` if there is none."""
    return int(np.searchsorted(prefix, least))


def _check_blocks(blocks: int) -> None:
    if blocks < 1:
        raise ArgumentError(f"an index range cannot be cut into {blocks} blocks")
