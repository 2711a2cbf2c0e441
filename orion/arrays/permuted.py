"""Random permutations that are the same on any machine, and with any version of NumPy.

Each number from 0 on is given 64 random bits, which Philox makes of a seed, some words (for keys: a dimension) and the
number: the permutation is the order of these. NumPy may change how its generators shuffle, but not the bits that they
are made of (NEP 19).
"""

from __future__ import annotations

from operator import index

import numpy as np
from numpy.typing import NDArray

from orion.arrays.check import largest_extent
from orion.errors import ArgumentError, describe


def key_permutation(length: int, dim: int, seed: int) -> NDArray[np.int64]:
    """The places of the numbers below `length` after the keys of a dimension are shuffled.

    >>> key_permutation(6, 0, seed=2)
    array([1, 4, 3, 5, 0, 2])
    """
    order = np.argsort(random_bits(seed, (dim, 0, 0)).random_raw(length), kind="stable")
    places = np.empty(length, np.int64)
    places[order] = np.arange(length)
    return places


def random_bits(seed: int, words: tuple[int, int, int]) -> np.random.Philox:
    """Random bits, 64 at a time (`random_raw`), that no other seed or words have."""
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64).astype(np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, *words], dtype=np.uint64))


def checked_seed(seed: object) -> int:
    """A seed as an integer from 0 on. ArgumentError where it is none."""
    try:
        found = index(seed)  # type: ignore[arg-type]
    except TypeError:
        found = -1
    if found < 0:
        hint = "the same seed shuffles in the same way, on any machine"
        raise ArgumentError(describe(f"a seed is an integer from 0 on, not {seed!r}", hint=hint))
    return found


def check_length(length: int, dim: int, count: int) -> None:
    """ArgumentError where a permutation of all indices of a dimension would be far longer than the elements are."""
    if length > largest_extent(count):
        why = f"dimension {dim} has {length:,} indices for {count:,} elements, and each of them would get another place"
        hint = "number the keys that there are first: `np.unique(keys, return_inverse=True)[1]`"
        raise ArgumentError(describe("the keys are too far apart to be shuffled", why=why, hint=hint))
