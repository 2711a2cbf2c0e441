"""Numbers that tell whether the contents of an array have changed, at the speed of memory.

The fingerprint of words w_0, w_1, … is the sum of k_i·w_i mod 2⁶⁴ over rows of `WORDS` words, then the same of these
sums, until one row is left (multilinear hashing: Carter, Wegman, *Universal classes of hash functions*, J. Comput.
Syst. Sci. 18(2), 1979). The keys k_i are odd, and drawn anew in each process. A product with an odd number mod 2⁶⁴ is 0
for 0 alone: so where one word has changed the fingerprint is another one for sure, and where several have, it is the
same with a probability of about 2⁻⁵⁰ at most."""

from __future__ import annotations

import os
from functools import cache
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS = 512
"""The words of a row: as many keys stay in the first-level cache."""

LARGE = 1 << 20
"""Arrays of more words are read by several threads."""

Words = NDArray[np.uint64]


def fingerprint(array: NDArray[Any]) -> int:
    """A number of 64 bits for the contents of an array, and for nothing else: not for its shape or dtype.

    >>> array = np.arange(1000)
    >>> before = fingerprint(array)
    >>> array[700] += 1
    >>> fingerprint(array) == before
    False
    >>> array[700] -= 1
    >>> fingerprint(array) == before
    True
    """
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    words = data[: data.size // 8 * 8].view(np.uint64)
    level, rest = 0, int.from_bytes(data[words.size * 8 :].tobytes(), "little")
    sums = _sums(words, level)
    while sums.size > 1:
        level += 1
        sums = _sums(sums, level)
    found = int(sums[0]) if sums.size else 0
    return (found + rest * int(_keys(level + 1)[0])) % (1 << 64)


def _sums(words: Words, level: int) -> Words:
    """The sum of each row of words times the keys of a level."""
    keys, whole = _keys(level), words.size // WORDS
    found = np.empty(-(-words.size // WORDS), np.uint64)
    rows, last = words[: whole * WORDS].reshape(whole, WORDS), words[whole * WORDS :]
    if last.size:
        found[-1] = np.dot(last, keys[: last.size])
    threads = min(os.cpu_count() or 1, 4, words.size // LARGE)
    if threads < 2:
        np.einsum("ij,j->i", rows, keys, out=found[:whole])
        return found
    ends = [whole * k // threads for k in range(threads + 1)]

    def part(k: int) -> None:
        np.einsum("ij,j->i", rows[ends[k] : ends[k + 1]], keys, out=found[ends[k] : ends[k + 1]])

    others = [Thread(target=part, args=(k,), daemon=True) for k in range(1, threads)]
    for one in others:
        one.start()
    part(0)
    for one in others:
        one.join()
    return found


@cache
def _keys(level: int) -> Words:
    """The keys of a level: odd numbers, drawn once in each process."""
    drawn = np.frombuffer(os.urandom(8 * WORDS), np.uint64)
    return drawn | np.uint64(1)
