"""Tests of which a part is affine: what they guard is not reached where that part does not hold."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from tests.loop_text import defined

TAKEN = {
    "a part of a conjunction": "if i > 1 and a[i] > 0.5 and j > 1:\n    t += d[i - 2, j - 2]\nd[i, j] = t",
    "the rest of a conjunction": "if i > 1 and j > 1 and d[i - 2, j - 2] > 0.5:\n    t += 1.0\nd[i, j] = t",
    "neither side of an or": (
        "if i < 2 or j < 2 or a[i] > 0.5:\n    t += 1.0\nelse:\n    t += d[i - 2, j - 2]\nd[i, j] = t"
    ),
    "a negation": "if not (i < 2 or j < 2 or a[i] > 0.5):\n    t += d[i - 2, j - 2]\nd[i, j] = t",
    "a choice": "d[i, j] = t + (d[i - 2, j - 2] if i > 1 and j > 1 and a[j] > 0.5 else 1.0)",
    "what an or goes on with": "if i < 2 or j < 2 or d[i - 2, j - 2] > 0.5:\n    t += 1.0\nd[i, j] = t",
}
"""In all of them `d[i - 2, j - 2]` would be an element of the last row, or column, where i or j is less than 2."""

NOT_GUARDED = {
    "one side of an or": "if (i > 1 and j > 1) or a[i] > 0.5:\n    t += d[i - 2, j - 2]\nd[i, j] = t",
    "the other side": "if i > 1 and j > 1 and a[i] > 0.5:\n    t += 1.0\nelse:\n    t += d[i - 2, j - 2]\nd[i, j] = t",
    "a test that changes": (
        "k = i\nif a[i] > 0.5:\n    k = 5\nif k > 1 and a[j] > 0.2:\n    t += d[i - 2, j - 2]\nd[i, j] = t"
    ),
}


def of_body(body):
    text = body.replace("\n", "\n            ")
    loops = "for i in range(1, d.shape[0]):\n        for j in range(1, d.shape[1]):"
    return defined(f"def f(a, d):\n    {loops}\n            t = d[i - 1, j] * 0.5 + a[j]\n            {text}\n", np=np)


def given():
    rng = np.random.default_rng(1)
    return rng.random(60), rng.random((50, 60))


def compare(function, workers):
    with orion.session(workers=workers, force_parallel=True):
        decorated = orion.parallel_for(function)
        plan = decorated.plan(*given())
        plan.check()
        mine, its = given(), given()
        decorated(*mine)
        function(*its)
        np.testing.assert_array_equal(mine[1], its[1])
    return plan


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", TAKEN)
def test_is_no_obstacle(name, workers):
    assert compare(of_body(TAKEN[name]), workers).is_parallel


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", NOT_GUARDED)
def test_is_one_where_the_test_says_nothing(name, workers):
    assert not compare(of_body(NOT_GUARDED[name]), workers).is_parallel
