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
from orion.arrays.storage import BLOCK
from orion.errors import ArgumentError, describe


def key_permutation(length: int, dim: int, seed: int) -> NDArray[np.int64]:
    """The places of the numbers below `length` after the keys of a dimension are shuffled.

    >>> key_permutation(6, 0, seed=2)
    array([1, 4, 3, 5, 0, 2])
    """
    order = ascending(random_bits(seed, (dim, 0, 0)).random_raw(length))
    places = np.empty(length, np.int64)
    places[order] = np.arange(length)
    return places


def random_bits(seed: int, words: tuple[int, int, int]) -> np.random.Philox:
    """Random bits, 64 at a time (`random_raw`), that no other seed or words have."""
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64).astype(np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, *words], dtype=np.uint64))


def ascending(bits: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order of numbers along the last axis, equal ones as they stand: `np.argsort(bits, axis=-1, kind="stable")`.

    They are sorted with their places in place of their last bits, which takes vector instructions where there are any;
    the few whose other bits are the same are sorted again by all of them.

    >>> ascending(np.array([7, 2**63, 3, 7], dtype=np.uint64))
    array([2, 0, 3, 1])
    """
    count = bits.shape[-1]
    places = np.uint64((1 << max(0, count - 1).bit_length()) - 1)
    keys = bits & ~places
    keys |= np.arange(count, dtype=np.uint64)
    keys.sort(axis=-1)
    alike = np.zeros(bits.shape, dtype=bool)
    for start in range(0, count - 1, BLOCK):
        part = keys[..., start : start + BLOCK + 1]
        same = (part[..., 1:] ^ part[..., :-1]) <= places
        alike[..., start + 1 : start + BLOCK + 1] |= same
        alike[..., start : start + same.shape[-1]] |= same
    keys &= places
    order = keys.view(np.int64)
    *lines, _ = found = np.nonzero(alike)
    if len(found[0]):
        own = order[found]
        order[found] = own[np.lexsort((own, bits[(*lines, own)], *lines[::-1]))]
    return order


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
