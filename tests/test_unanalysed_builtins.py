"""Python's own functions that Numba lacks, in functions that run as they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion


def from_the_end(x, n):
    found = []
    for i in reversed(range(n)):
        if x[i] > 0.3:
            found.append(x[i])
    return found


def by_steps(x, n):
    found = []
    for i in reversed(range(1, n, 4)):
        for j in reversed(range(n - 1, 2, -3)):
            found.append(x[i] + j)
    return found


def elements(x, n):
    found = []
    for k, value in enumerate(reversed(x)):
        x[0] = 7.0
        found.append(value + k * n)
    return found


def named_so(x, n):
    def reversed(values):
        return values

    found = []
    for value in reversed(x):
        found.append(value)
    return found


@pytest.mark.parametrize("function", [from_the_end, by_steps, elements, named_so], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [9, 2, 1, 0])
def test_reversed_is_pythons(function, n):
    x = np.random.default_rng(1).random(max(n, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        mine, its = x.copy(), x.copy()
        assert orion.parallel_for(function)(mine, n) == function(its, n)
        np.testing.assert_array_equal(mine, its)


def test_what_has_no_such_form_is_refused():
    def of_a_list(x, n):
        found = [x[0], x[1]]
        for value in reversed(found):
            found.append(value)
        return found

    with pytest.raises(orion.UnsupportedLoopError, match="Numba cannot compile it"):
        orion.parallel_for(of_a_list)(np.ones(3), 3)
