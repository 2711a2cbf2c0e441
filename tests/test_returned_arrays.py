"""Functions that return arrays: those that are arguments, those that they make, and parts of both."""

import numpy as np
import pytest

import orion
from orion.errors import UnsupportedLoopError
from tests.trials import one_in


def argument(x):
    for i in range(len(x)):
        x[i] *= 2
    return x


def without_first(x):
    for i in range(len(x)):
        x[i] *= 2
    return x[1:]


def row(A, k):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] += i
    return A[k]


def corner(A, k):
    for i in range(A.shape[0]):
        A[i] += i
    return A[: k + 1, -k:], k, A[0, 0]


def kept(x, out):
    k = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            out[k] = x[i]
            k += 1
    return out[:k]


def made(x):
    out = np.empty(len(x))
    k = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            out[k] = x[i]
            k += 1
    return out[:k], k


def every_second(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = 2 * x[i]
    return y[::2]


def named(x):
    half = x[len(x) // 2 :]
    for i in range(len(x)):
        x[i] += 1
    return half


def one_or_other(x, y, first):
    for i in range(len(x)):
        x[i] += y[i]
    if first:
        return x
    return y


def flat(a, n, m):
    for i in range(n):
        for j in range(m):
            a[i * m + j] += i
    return a


def flat_part(a, n, m):
    for i in range(n):
        for j in range(m):
            a[i * m + j] += i
    return a[m:]


LOOPS = [
    (argument, lambda: (values(),)),
    (without_first, lambda: (values(),)),
    (row, lambda: (values().reshape(60, 5), 3)),
    (corner, lambda: (values().reshape(60, 5), 2)),
    (kept, lambda: (values(), np.zeros(300))),
    (made, lambda: (values(),)),
    (every_second, lambda: (values(),)),
    (named, lambda: (values(),)),
    (one_or_other, lambda: (values(), values(), True)),
    (one_or_other, lambda: (values(), values(), False)),
    (flat, lambda: (values(), 60, 5)),
    (flat_part, lambda: (values(), 60, 5)),
]


def values():
    return np.random.default_rng(1).random(300)


def assert_returns_what_python_does(function, make):
    expected, given = make(), make()
    wanted, found = function(*expected), orion.parallel_for(function)(*given)
    assert type(found) is type(wanted)
    for one, other in zip(*((part if isinstance(part, tuple) else (part,)) for part in (found, wanted)), strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.shape(one) == np.shape(other)
        for mine, theirs in zip(given, expected, strict=True):
            if isinstance(mine, np.ndarray) and isinstance(one, np.ndarray):
                assert (one is mine) == (other is theirs)
                assert np.shares_memory(one, mine) == np.shares_memory(other, theirs)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(("function", "make"), LOOPS)
def test_returns_what_python_does(function, make, workers):
    with orion.session(workers=workers, force_parallel=True):
        assert_returns_what_python_does(function, make)


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_returns_what_python_does_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for function, make in one_in(3, LOOPS):
            assert_returns_what_python_does(function, make)


def test_a_distributed_array_is_returned_as_it_is():
    array = orion.array(values())
    assert orion.parallel_for(argument)(array) is array
    np.testing.assert_array_equal(orion.parallel_for(without_first)(array), 4 * values()[1:])


def test_an_index_out_of_range_is_the_users():
    with pytest.raises(IndexError, match=r"test_returned_arrays.py:\d+"):
        orion.parallel_for(row)(values().reshape(60, 5), 60)


def test_a_part_by_an_array_is_not_analysed():
    def chosen(x, at):
        for i in range(len(x)):
            x[i] += 1
        return x[at[0] :]

    with pytest.raises(UnsupportedLoopError, match="this array cannot be returned"):
        orion.parallel_for(chosen).plan(values(), np.array([2]))
    x = values()
    with pytest.warns(orion.SerialLoopWarning, match="this array cannot be returned"):
        found = orion.parallel_for(chosen)(x, np.array([2]))
    assert np.shares_memory(found, x)
    np.testing.assert_array_equal(found, x[2:])


def first_of_many(x, k):
    path = np.zeros((100_000, 2))
    for i in range(len(x)):
        path[i] = x[i]
    return path[:k], path[k : k + 3, 0]


def two_that_overlap(x, k):
    path = np.zeros(100_000)
    for i in range(len(x)):
        path[i] = x[i]
    return path[:k], path[k - 1 : k + 1]


def most_of_it(x, k):
    path = np.zeros(len(x) + k)
    for i in range(len(x)):
        path[i] = x[i]
    return path[: len(x)]


def test_small_parts_of_arrays_that_the_function_made_keep_no_more_memory_than_they_have():
    x = values()
    for one, other in zip(orion.parallel_for(first_of_many)(x, 7), first_of_many(x, 7), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.base is None
    first, second = orion.parallel_for(two_that_overlap)(x, 7)
    assert np.shares_memory(first, second)
    assert orion.parallel_for(most_of_it)(x, 7).base is not None
