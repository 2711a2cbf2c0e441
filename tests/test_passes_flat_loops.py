"""Loops over flattened arrays are nested loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion
from tests.loop_text import defined


def counts(A, h):
    for v in A.ravel():
        h[int(v)] += 1


def numbered(A, h):
    s, last = 0.0, -1
    for i, v in enumerate(A.flatten()):
        if v > 5:
            continue
        s += v * i
        last = i
    h[0] = last
    return s


def of_function(A, h):
    s = 0.0
    for v in np.ravel(A):
        s += v
        for j in range(3):
            h[j] += v
    return s


def in_rounds(A, h):
    s = 0.0
    for _ in range(3):
        for v in A.ravel():
            s = max(s, v)
        A[0] += s
    return s


def twice(A, h):
    s = 0.0
    for v in A.ravel():
        for w in np.ravel(A):
            s += v * w
    return s


def last_number(A, h):
    i = -1
    for i, v in enumerate(A.ravel()):  # noqa: B007
        h[int(v)] += 1
    return i


FUNCTIONS = [counts, numbered, of_function, in_rounds, twice, last_number]


def arrays():
    rng = np.random.default_rng(1)
    yield rng.integers(0, 9, (7, 5)) * 1.0
    yield np.asfortranarray(rng.integers(0, 9, (4, 6)) * 1.0)
    yield (rng.integers(0, 9, (9, 8)) * 1.0)[::2, ::-3]
    yield rng.integers(0, 9, (3, 4, 2)) * 1.0
    yield rng.integers(0, 9, 11) * 1.0
    yield np.zeros((2, 0))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_is_what_python_gives(function, workers):
    with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        for A in arrays():
            mine, its, h, g = A.copy(order="K"), A.copy(order="K"), np.zeros(99), np.zeros(99)
            compiled = orion.parallel_for(function)
            assert compiled(mine, h) == function(its, g)
            np.testing.assert_array_equal(mine, its)
            np.testing.assert_array_equal(h, g)


@pytest.mark.parametrize("function", [counts, numbered, twice, last_number], ids=lambda function: function.__name__)
def test_is_shared_out(function):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function, require_parallel=True).plan(np.ones((50, 40)), np.zeros(99))
        assert plan.is_parallel
        assert plan.check() is None


STAYS = {
    "the array is written": "for v in A.ravel():\n    A[0, 0] = v + 1",
    "a later element is written": "for v in A.ravel():\n    h[0] += v\n    A[-1, -1] += v",
    "a break": "for v in A.ravel():\n    if v > 3:\n        break\n    h[0] += v",
    "a return": "for v in A.ravel():\n    if v > 3:\n        return v\n    h[0] += v",
}


@pytest.mark.parametrize("name", STAYS)
def test_others_stay_as_they_are_and_are_right(name):
    body = STAYS[name].replace("\n", "\n    ")
    function = defined(f"def f(A, h):\n    {body}\n")
    A = np.random.default_rng(1).integers(0, 6, (5, 4)) * 1.0
    for mine, its in ((A.copy(), A.copy()), (A.copy("F"), A.copy("F")), (A.copy()[:, ::2], A.copy()[:, ::2])):
        h, g = np.zeros(9), np.zeros(9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert orion.parallel_for(function)(mine, h) == function(its, g)
        np.testing.assert_array_equal(mine, its)
        np.testing.assert_array_equal(h, g)
