"""Numbers that a call leaves to their defaults are constants of what it runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import orion


def codes(x, bits=4, scale=0.5, flip=False, start=-1, big=1e300):
    out = np.zeros(len(x))
    for i in range(len(x)):
        for b in range(bits):
            out[i] += x[i] * scale * b + start
        if flip:
            out[i] = -out[i]
        if out[i] > big:
            out[i] = 0.0
    return out


CALLS = [
    ((), {}),
    ((2,), {}),
    ((), {"flip": True}),
    ((4, 0.5, False, -1, 1e300), {}),
    ((), {"start": -2, "bits": 7}),
    ((), {"bits": np.int64(3), "scale": np.float32(0.25)}),
]


@pytest.mark.parametrize("workers", [1, 2])
def test_calls_in_any_way_give_what_python_gives(workers):
    x = np.arange(50.0)
    decorated = orion.parallel_for(codes)
    with orion.session(workers=workers, force_parallel=True):
        for _ in range(2):
            for args, kwargs in CALLS:
                np.testing.assert_array_equal(decorated(x, *args, **kwargs), codes(x, *args, **kwargs))
                decorated.plan(x, *args, **kwargs).check()


def test_the_loop_is_one_of_four_trips():
    assert "for b in range(4)" in orion.parallel_for(codes).kernel_source(np.zeros(5))
    assert "for b in range(bits)" in orion.parallel_for(codes).kernel_source(np.zeros(5), 4)


def negative(x, k=-0.5, m=-3, e=-2):
    for i in range(len(x)):
        x[i] += k**2 + m**2 - k - m + abs(m) ** e + x[i] ** 2 * k % 3 + m // 2 + (m % 4)
    return x


def special(x, lowest=-math.inf, nothing=math.nan, largest=2**63 - 1, least=-(2**63)):
    best, count = lowest, 0
    for i in range(len(x)):
        if x[i] > best:
            best = x[i]
        if x[i] != nothing and i < largest and i > least:
            count += 1
    return best, count


def changed(x, k=3):
    for i in range(len(x)):
        x[i] += k
    k += 1
    return k, x


def loop_variable(x, i=7):
    s = i
    for i in range(len(x)):
        s += x[i]
    return s


def in_a_bound(x, start=2, step=3):
    for i in range(start, len(x), step):
        x[i] = i
    return x


def made(n=6, value=1.5):
    y = np.full(n, value)
    for i in range(n):
        y[i] += i
    return y


def helper(v, k=2):
    return v * k


def with_a_helper(x, k=5):
    for i in range(len(x)):
        x[i] = helper(x[i]) + helper(x[i], k)
    return x


def a_subscript(x, at=-1):
    for i in range(len(x) - 1):
        x[i] += x[at]
    return x[at], x


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize(
    "function",
    [negative, special, changed, loop_variable, in_a_bound, with_a_helper, a_subscript],
    ids=lambda function: function.__name__,
)
def test_is_what_python_gives(function):
    decorated = orion.parallel_for(function)
    for workers in (1, 2):
        with orion.session(workers=workers, force_parallel=True):
            found, want = decorated(np.arange(9.0)), function(np.arange(9.0))
            parts = zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]
            for one, other in parts:
                np.testing.assert_allclose(one, other, rtol=1e-14)


def test_a_function_without_arguments():
    np.testing.assert_array_equal(orion.parallel_for(made)(), made())
    np.testing.assert_array_equal(orion.parallel_for(made)(3), made(3))


def past_64_bits(x, k=2**70):
    for i in range(len(x)):
        x[i] += k % 7
    return x


def test_a_number_past_64_bits_is_refused_either_way():
    for args in ((), (2**70,)):
        decorated = orion.parallel_for(past_64_bits)
        with pytest.raises(orion.OrionError):
            decorated.plan(np.zeros(3), *args)


def lengths(x, width=8):
    y = np.zeros(len(x) // width)
    for i in range(len(y)):
        for j in range(width):
            y[i] += x[i * width + j]
    return y


def test_a_default_makes_subscripts_affine():
    x = np.arange(80.0)
    with orion.session(workers=2, force_parallel=True):
        decorated = orion.parallel_for(lengths)
        assert decorated.plan(x).is_parallel
        np.testing.assert_array_equal(decorated(x), lengths(x))
        np.testing.assert_array_equal(decorated(x, 5), lengths(x, 5))


def shifted(x, bits=12):
    for i in range(len(x)):
        for b in range(bits):
            x[i] ^= (x[i] << b) | (x[i] >> (2 * b + 1))
    return x


@pytest.mark.parametrize("args", [(), (12,), (40,), (70,)])
def test_shifts(args):
    """Counts of bits that are sure to be less than 64 are the machine's own shifts."""
    x = np.arange(20, dtype=np.int64)
    np.testing.assert_array_equal(orion.parallel_for(shifted)(x.copy(), *args), shifted(x.copy(), *args))
    text = orion.parallel_for(shifted).kernel_source(x, *args)
    assert ("shifted_left" in text) == (args == (70,))
