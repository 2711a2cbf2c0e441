"""Helpers behind decorators: what is compiled is what a call of the helper does, or the loop is refused."""

import functools

import numba
import numpy as np
import pytest

import orion


@numba.njit
def base(x):
    return x + 1.0


@functools.wraps(base)
def wrapped(x):
    return base(x) * 10.0


class Called:
    """An object that holds a function, and does something else."""

    def __init__(self, function):
        self.py_func = function

    def __call__(self, x):
        return x * 1000.0


other = Called(base.py_func)


@numba.njit(locals={"y": numba.float32})
def rounded(x):
    y = x / 3.0
    return y  # noqa: RET504 - the name has a type


def through_wrapper(a, b):
    for i in range(a.shape[0]):
        b[i] = wrapped(a[i])


def through_object(a, b):
    for i in range(a.shape[0]):
        b[i] = other(a[i])


def with_types(a, b):
    for i in range(a.shape[0]):
        b[i] = rounded(a[i])


def through_numba(a, b):
    for i in range(a.shape[0]):
        b[i] = base(a[i])


@pytest.mark.parametrize("function", [through_wrapper, through_object, with_types, through_numba])
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_helper_does_what_it_does_in_python(function):
    a, b, expected = np.arange(1.0, 5.0), np.zeros(4), np.zeros(4)
    function(a, expected)
    try:
        orion.parallel_for(function)(a, b)
    except orion.UnsupportedLoopError:
        assert function is not through_numba
    else:
        np.testing.assert_array_equal(b, expected)
