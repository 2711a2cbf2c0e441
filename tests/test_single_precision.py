"""Numbers of single precision that share a name, or an expression, with Python's: no value is lost."""

from __future__ import annotations

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "ignore::RuntimeWarning")

g = np.random.default_rng(0).standard_normal(9).astype(np.float32)
z = (g + 1j * g[::-1]).astype(np.complex64)


def chosen(g, p):
    out = np.zeros(len(g))
    for i in range(len(g)):
        out[i] = g[i] if g[i] > 0 else -1e300
    return out


def or_an_argument(g, p):
    out = np.zeros(len(g))
    for i in range(len(g)):
        out[i] = g[i] if i % 2 else p
    return out


def extremes(g, p):
    out = np.zeros((2, len(g)))
    for i in range(len(g)):
        out[0, i] = max(g[i], 1e300)
        out[1, i] = min(g[i], p)
    return out


def integers(g, p):
    out = np.zeros(len(g), int)
    for i in range(len(g)):
        t = 20000001 + i
        if i == len(g):
            t = g[i - 5]
        out[i] = int(t)
    return out


def names(g, p):
    out = np.zeros(len(g))
    for i in range(len(g)):
        b = p
        for j in range(len(g)):
            if 2 < g[j] < b:
                b = g[j]
        out[i] = b
    return out


def least(g, p):
    best = p
    for i in range(len(g)):
        if g[i] < best:
            best = g[i]
    return float(best)


def read_in_the_loop(g, p):
    out = np.zeros(len(g))
    b = p
    for i in range(len(g)):
        if g[i] > 0.9:
            b = g[i]
        out[i] = b
    return out


def the_last_of_either(g, p):
    b = 0.0
    for i in range(len(g)):
        if i % 2:
            b = g[i]
        else:
            b = p
    return float(b)


def of_an_argument(g, p):
    for i in range(len(g)):
        if g[i] > 5:
            p = g[i]
    return float(p)


def complex_numbers(z, p):
    out = np.zeros(len(z), complex)
    for i in range(len(z)):
        out[i] = z[i] if i % 2 else complex(p, i)
    return out


FUNCTIONS = [
    chosen,
    or_an_argument,
    extremes,
    integers,
    names,
    least,
    read_in_the_loop,
    the_last_of_either,
    of_an_argument,
]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("p", [1e300, -1e300, 0.1])
@pytest.mark.parametrize("function", [*FUNCTIONS, complex_numbers], ids=lambda function: function.__name__)
def test_python_numbers_keep_their_value(function, p, workers):
    given = z if function is complex_numbers else g
    with orion.session(workers=workers, force_parallel=True):
        np.testing.assert_array_equal(orion.parallel_for(function)(given, p), function(given, p))


def sums(g, p):
    s = 0.0
    best = 1e30
    for i in range(len(g)):
        s += g[i]
        best = min(best, g[i])
    return s, best


def test_what_is_added_up_or_fits_stays_numpys():
    for one, other in zip(orion.parallel_for(sums)(g, 0.0), sums(g, 0.0), strict=True):
        assert type(one) is type(other) is np.float32
        np.testing.assert_allclose(one, other, rtol=1e-6)
