"""Names of lists and tuples of numbers: loops over them are those over what is written there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion


def columns(A, b):
    cols = [0, 3, -1]
    for i in range(A.shape[0]):
        for c in cols:
            b[i] += A[i, c]


def stencil(A, b):
    offsets = [(1, 0), (0, 1), (-1, 0), [0, -1]]
    n = len(offsets)
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            s = 0.0
            for di, dj in offsets:
                s += A[i + di, j + dj] / n
            b[i] += s


def counted(A, b):
    weights = [0.25, 0.5, 0.25]
    first = 8
    steps = (2, 4)
    for i in range(1, A.shape[0] - 1):
        for k, w in enumerate(weights):
            b[i] += w * A[i + k - 1, 0] + steps[0] - steps[-1] + first


def zipped(A, b):
    weights = [0.5, 2.0, 1e3]
    places = [2, 1, 0]
    for i in range(A.shape[0]):
        for w, c in zip(weights, places, strict=False):
            b[i] += w * A[i, c]
        for c in reversed(places):
            b[i] -= A[i, c]


def given_twice(A, b):
    cols = [0, 1]
    for i in range(A.shape[0]):
        for c in cols:
            b[i] += A[i, c]
    cols = [2, 3]
    for i in range(A.shape[0]):
        for c in cols:
            b[i] += A[i, c]


def changed(A, b):
    cols = [0, 1]
    cols[0] = 3
    for i in range(A.shape[0]):
        for c in cols:
            b[i] += A[i, c]


def grown(A, b):
    cols = [0, 1]
    for i in range(A.shape[0]):
        if i == 2:
            cols.append(2)
        for c in cols:
            b[i] += A[i, c]


def with_a_len_of_its_own(A, b):
    def len(values):
        return 5

    cols = [0, 1]
    for i in range(A.shape[0]):
        b[i] += len(cols)


def floats(a, b):
    w = [0.1, 0.2]
    for i in range(a.shape[0]):
        for x in w:
            b[i] = b[i] + x * a[i]


LISTS = [columns, stencil, counted, zipped]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("function", LISTS, ids=lambda function: function.__name__)
def test_loops_over_lists_of_numbers(function, workers):
    A = np.random.default_rng(1).random((60, 5))
    mine, its = np.zeros(60), np.zeros(60)
    function(A, its)
    with orion.session(workers=workers, force_parallel=True):
        compiled = orion.parallel_for(function, require_parallel=True)
        compiled(A, mine)
        assert compiled.plan(A, mine).is_parallel
    np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("function", [given_twice, changed, grown, with_a_len_of_its_own], ids=lambda f: f.__name__)
def test_other_lists_stay_lists(function):
    A = np.random.default_rng(1).random((9, 5))
    mine, its = np.zeros(9), np.zeros(9)
    function(A, its)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        try:
            orion.parallel_for(function)(A, mine)
        except orion.UnsupportedLoopError:
            return
    np.testing.assert_array_equal(mine, its)


def test_their_numbers_are_pythons():
    """Products of float32 and a number that stands in the source stay float32."""
    a = np.random.default_rng(1).random(50).astype(np.float32)
    mine, its = np.zeros(50, np.float32), np.zeros(50, np.float32)
    floats(a, its)
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(floats)(a, mine)
    np.testing.assert_array_equal(mine, its)
