"""Loops with reads that may see a copy made before, or may not: (name, function, arguments, arrays copied)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def next_one(A):
    for i in range(A.shape[0] - 1):
        A[i] = 1 / (1 + A[i]) + A[i + 1]


def next_ones_in_rows(A):
    for i in range(A.shape[0] - 1):
        for j in range(A.shape[1]):
            A[i, j] = A[i, j] * A[i + 1, (A.shape[1] - 1) - j]


def rows(A):
    for i in range(A.shape[0] - 1):
        w = A[i]
        w -= 0.5 * A[i + 1]


def backwards(A):
    for i in range(A.shape[0] - 2, 0, -1):
        A[i] = A[i] + 2 * A[i - 1]


def by_twos(A):
    for i in range(0, A.shape[0] - 3, 2):
        A[i] = A[i + 2] + A[i + 1] * A[i + 3]


def under_a_test(A, x):
    for i in range(A.shape[0] - 1):
        if A[i] > x:
            A[i] = A[i + 1] - x


def in_an_inner_loop(A, w):
    for i in range(A.shape[0] - 4):
        for k in range(4):
            A[i] += A[i + k + 1] * w[k]


def two_arrays(A, B):
    for i in range(A.shape[0] - 1):
        x = A[i + 1] + B[i]
        y = B[i + 1] * A[i]
        while x > 1.0:
            x *= 0.5
        A[i] = x
        B[i] = y - x


def swapped_with_the_mirror_image(A):
    for i in range(A.shape[0]):
        A[i] = A[i] + A[A.shape[0] - 1 - i]


def first_of_all(A):
    for i in range(1, A.shape[0]):
        A[i - 1] = A[i] + A[A.shape[0] - 1]


def many_rounds(A, n):
    for _t in range(n):
        for i in range(A.shape[0] - 1):
            x = A[i + 1]
            while x > 1.0:
                x *= 0.5
            A[i] = x + 1.0


def made_here(A):
    B = A * 2
    for i in range(A.shape[0] - 1):
        B[i] = 1 / (1 + B[i]) + B[i + 1]
    return B


def one_before(A):
    for i in range(1, A.shape[0]):
        A[i] = A[i] + A[i - 1]


def both_sides(A):
    for i in range(1, A.shape[0] - 1):
        A[i] = 0.3 * (A[i - 1] + A[i] + A[i + 1])


def written_first(A):
    for i in range(A.shape[0] - 1):
        A[i + 1] = 1.0 * i
        A[i] = A[i + 1] + A[i]


def own_value_after_a_write(A):
    for i in range(A.shape[0] - 1):
        A[i] = A[i + 1]
        A[i] = A[i] * A[i]


def everywhere(A, at):
    for i in range(A.shape[0]):
        A[i] = A[at[i]]


def wrapped(A, k):
    for i in range(A.shape[0]):
        A[i] = A[i - k]


def in_place(A):
    for i in range(A.shape[0] - 1):
        A[i + 1] *= 2.0
        A[i] = 1.0 * i


Row = tuple[str, Callable[..., Any], Callable[[np.random.Generator, int], tuple[Any, ...]], tuple[str, ...]]


def _one(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (rng.random(n),)


RENAMED: list[Row] = [
    ("the next element", next_one, _one, ("A",)),
    ("whole rows", rows, lambda rng, n: (rng.random((n, 5)),), ("A",)),
    ("backwards", backwards, _one, ("A",)),
    ("steps of two", by_twos, _one, ("A",)),
    ("steps of two, float32", by_twos, lambda rng, n: (rng.random(n).astype(np.float32),), ("A",)),
    ("steps of two, int16", by_twos, lambda rng, n: (rng.integers(0, 9, n).astype(np.int16),), ("A",)),
    ("steps of two, strided", by_twos, lambda rng, n: (rng.random((n, 3))[:, 1],), ("A",)),
    ("under a test", under_a_test, lambda rng, n: (rng.random(n), 0.5), ("A",)),
    ("two arrays", two_arrays, lambda rng, n: (rng.random(n) * 3, rng.random(n)), ("A", "B")),
    ("a last element that is not written", first_of_all, _one, ("A",)),
    ("an array that is made", made_here, _one, ("B",)),
]
"""Those of which copies make the loop parallel."""

KEPT: list[Row] = [
    ("an element written before", one_before, _one, ()),
    ("written before and after", both_sides, _one, ()),
    ("the mirror image", swapped_with_the_mirror_image, _one, ()),
    ("written in the same iteration", written_first, _one, ()),
    ("own value after a write", own_value_after_a_write, _one, ()),
    ("subscripts from an array", everywhere, lambda rng, n: (rng.random(n), rng.integers(0, max(n, 1), n)), ()),
    ("it may wrap", wrapped, lambda rng, n: (rng.random(n), 1), ()),
    ("updated in place", in_place, _one, ()),
    ("parallel in another way", next_ones_in_rows, lambda rng, n: (rng.random((n, 7)),), ()),
    ("tiles that wait", in_an_inner_loop, lambda rng, n: (rng.random(n), rng.random(4)), ()),
    ("tiles of rounds that wait", many_rounds, lambda rng, n: (rng.random(n) * 3, 3), ()),
]
"""Those that are parallel without copies, or are not with them."""
