"""Partition bounds: even over indices, balanced over elements."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orion.arrays import balanced_bounds, even_bounds
from orion.errors import ArgumentError


def fullest(counts, bounds):
    return max(sum(counts[a:b]) for a, b in pairwise(bounds))


@pytest.mark.parametrize(
    ("n", "blocks", "expected"),
    [(10, 1, [0, 10]), (10, 4, [0, 2, 5, 7, 10]), (3, 3, [0, 1, 2, 3]), (2, 4, [0, 0, 1, 1, 2]), (0, 2, [0, 0, 0])],
)
def test_even_bounds(n, blocks, expected):
    assert even_bounds(n, blocks).tolist() == expected


@pytest.mark.parametrize(
    ("counts", "blocks", "expected"),
    [
        ([1] * 10, 5, [0, 2, 4, 6, 8, 10]),
        ([10, 1, 1, 1, 1], 2, [0, 1, 5]),
        ([1, 1, 1, 1, 10], 2, [0, 4, 5]),
        ([1, 1, 100, 1, 1], 3, [0, 2, 3, 5]),
        ([5, 0, 0, 0, 5], 2, [0, 1, 5]),
        ([3, 3], 4, [0, 1, 2, 2, 2]),
        ([7], 3, [0, 1, 1, 1]),
        ([0, 0, 0, 0], 2, [0, 2, 4]),
        ([], 3, [0, 0, 0, 0]),
        ([2, 2, 2], 1, [0, 3]),
    ],
)
def test_balanced_bounds(counts, blocks, expected):
    bounds = balanced_bounds(counts, blocks)
    assert bounds.dtype == np.int64
    assert bounds.tolist() == expected


@given(st.lists(st.integers(0, 30), max_size=9), st.integers(1, 5))
def test_the_fullest_block_is_as_small_as_it_can_be(counts, blocks):
    bounds = balanced_bounds(counts, blocks).tolist()
    assert bounds[0] == 0
    assert bounds[-1] == len(counts)
    assert bounds == sorted(bounds)
    assert len(bounds) == blocks + 1
    ways = combinations([*range(len(counts) + 1)] * (blocks - 1), blocks - 1)
    best = min(fullest(counts, [0, *sorted(cuts), len(counts)]) for cuts in set(ways))
    assert fullest(counts, bounds) == best


def test_skewed_rows_are_balanced():
    counts = (1e6 / np.arange(1, 5001) ** 0.8).astype(int)
    bounds = balanced_bounds(counts, 8)
    sizes = np.add.reduceat(counts, bounds[:-1])
    assert sizes.max() <= 1.02 * sizes.mean()
    assert even_bounds(5000, 8).tolist() != bounds.tolist()


@pytest.mark.parametrize("make", [lambda: even_bounds(3, 0), lambda: balanced_bounds([1, 2], 0)])
def test_no_blocks(make):
    with pytest.raises(ArgumentError, match="cannot be cut into 0 blocks"):
        make()
