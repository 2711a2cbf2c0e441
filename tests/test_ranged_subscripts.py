"""Subscripts that go along with a loop whose bounds only the data tell: looked at once, at both ends of the loop."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orion
from tests.loop_text import defined
from tests.trials import times

BODIES = {
    "forwards": "for c in range(lo, hi):\n    s += a[c]\n    b[c - 1] = s",
    "backwards": "for c in range(hi, lo, -1):\n    b[c] = a[c - lo] + b[c]",
    "in steps": "for c in range(lo, hi, 3):\n    b[c] += a[c + 1]",
    "back in steps": "for c in range(hi, lo, -2):\n    b[c] += a[c + 1]",
    "the other way round": "for c in range(lo, hi):\n    b[hi - c] = a[c]",
    "in a test": "for c in range(lo, hi):\n    if a[c - lo] > 4:\n        b[c] = a[c]",
    "a sum of names": "for c in range(lo, hi):\n    b[lo + c + 1 - hi] += a[c]",
    "two axes": "for c in range(lo, hi):\n    m[c - lo, c] += a[c]",
    "left early": "for c in range(lo, hi):\n    if a[c] > 8:\n        break\n    b[c] = 1",
    "an offset that changes": "k = 0\nfor c in range(lo, hi):\n    b[c + k] += a[c]\n    k = 1 - k",
    "a while inside": "for c in range(lo, hi):\n    t = c\n    while t > 0:\n        t -= 3\n        b[c] += t",
    "a variable that changes": "for c in range(lo, hi):\n    c += 1\n    b[c] += a[c]",
}


def of_body(body):
    text = body.replace("\n", "\n        ")
    return defined(
        "def f(ends, a, b, m, out):\n"
        "    for i in range(ends.shape[0]):\n"
        "        lo, hi, s = ends[i, 0], ends[i, 1], 0\n"
        f"        {text}\n"
        "        out[i] = s\n"
    )


def arguments(ends, n):
    ends = np.array(ends, np.int64).reshape(-1, 2)
    a = np.random.default_rng(n).integers(0, 10, n)
    return ends, a, np.zeros(n, np.int64), np.zeros((n, n), np.int64), np.zeros(len(ends), np.int64)


FUNCTIONS = {name: orion.parallel_for(of_body(body)) for name, body in BODIES.items()}
N = 12


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=times(60, 30), deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(-15, 15), st.integers(-15, 15)), min_size=1, max_size=4))
def test_is_what_python_gives(name, ends):
    """Where a subscript leaves its array in some trip, there is an error."""
    function = FUNCTIONS[name]
    mine, its = arguments(ends, N), arguments(ends, N)
    with orion.session(workers=1):
        wrong = None
        try:
            function.serial(*its)
        except IndexError as error:
            wrong = error
        if wrong is None:
            function(*mine)
        else:
            with pytest.raises(orion.OutOfBoundsError):
                function(*mine)
            return
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_array_equal(one, other)


def test_ends_past_64_bits_are_no_ends_inside():
    function = FUNCTIONS["a sum of names"]
    with orion.session(workers=1), pytest.raises(orion.OutOfBoundsError):
        function(*arguments([(2**62, 2**62 + 5)], N))


@pytest.mark.parametrize("name", ["forwards", "backwards", "two axes"])
def test_one_of_two_loops_looks_at_nothing(name):
    text = FUNCTIONS[name].kernel_source(*arguments([(0, 5)], N))
    before, _, after = text.partition("else:")
    assert re.search(r"is_inside\(.*c_at_first, .*c_at_last", before)
    assert "checked(" not in before.split("def tile")[1]
    assert "checked(" in after


# ---------------------------------------------------------------- remainders of what is near


def around(a, b, d):
    n = len(a)
    for i in range(n):
        b[i] = a[(i + 1) % n] + 10 * a[(i - 1) % n] + 100 * a[(i + d) % n] + 1000 * a[(2 * i) % n]
        b[i] += 10_000 * a[(3 * i + 1) % n] + 100_000 * a[(i - 3 * n) % n]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("d", [-41, -40, -1, 0, 3, 39, 41, 2**40])
def test_remainders(n, d, workers):
    a = np.random.default_rng(n).integers(0, 9, n)
    b, want = np.zeros(n, np.int64), np.zeros(n, np.int64)
    around(a, want, d)
    with orion.session(workers=workers, force_parallel=True):
        orion.parallel_for(around)(a, b, d)
    np.testing.assert_array_equal(b, want)


def test_a_near_one_is_no_division():
    a = np.zeros(40, np.int64)
    text = orion.parallel_for(around).kernel_source(a, a.copy(), 3)
    assert text.count("near_remainder(") >= 3


# ---------------------------------------------------------------- branches with functions


def density(x, y):
    for i in range(len(x)):
        t = 0.0
        for j in range(len(x)):
            z = x[i] - x[j]
            if abs(z) < 0.5:
                t += np.exp(-z * z)
            else:
                t -= z
        y[i] = t


def test_a_branch_that_calls_a_function_stays_one():
    x = np.random.default_rng(0).random(50)
    y, want = np.zeros(50), np.zeros(50)
    density(x, want)
    looped = orion.parallel_for(density)
    looped(x, y)
    np.testing.assert_allclose(y, want, rtol=1e-12)
    assert looped.kernel_source(x, y).count("branch()") == 1
