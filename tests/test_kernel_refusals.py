"""Numbers that NumPy refuses or reads in a way of its own, and truth values joined with `and` and `or`."""

import itertools

import numpy as np
import pytest

import orion
from tests.serial_results import assert_as_serial


def counted_by_truth(x, count):
    for i in range(x.size):
        count[x[i] > 0] += 1


def half_added(A, x):
    for i in range(A.shape[0]):
        A[i] += 0.5 * x


@pytest.mark.parametrize(
    ("function", "arguments", "hint"),
    [
        (counted_by_truth, (np.ones(5), np.zeros(2)), r"int\("),
        (half_added, (np.ones((3, 4), int), np.ones(4)), "an assignment converts"),
    ],
)
def test_what_numpy_reads_otherwise_is_refused(function, arguments, hint):
    with pytest.raises(orion.UnsupportedLoopError, match=f"help: .*{hint}"):
        orion.parallel_for(function).plan(*arguments)


def a_thousand_more(x):
    for i in range(x.size):
        x[i] = x[i] + 1000


def made_infinite(x):
    for i in range(x.size):
        x[i] = np.inf


@pytest.mark.parametrize("function", [a_thousand_more, made_infinite])
def test_a_constant_that_does_not_fit_its_array_is_refused(function):
    with pytest.raises(orion.UnsupportedLoopError, match="does not fit uint8"):
        orion.parallel_for(function)(np.zeros(3, np.uint8))


def summed_wide(W, out):
    for i in range(W.shape[0]):
        out[i] = np.sum(W[i], dtype=np.float64) + W[i].sum(dtype=np.float64)


def test_a_sum_of_another_dtype():
    assert_as_serial(summed_wide, np.full((3, 3), 2**24 + 2, np.float32), np.zeros(3))


def converted(W, out):
    for i in range(W.shape[0]):
        a = W[i].astype(dtype=np.float64)
        out[i] = a.sum() + W[i].astype(np.int64).sum()


def converted_in_place(W, out):
    for i in range(W.shape[0]):
        a = W[i].astype(np.float64, copy=False)
        a += 1.0
        out[i] = W[i, 0]


def test_a_conversion_that_may_be_a_view_is_refused():
    assert_as_serial(converted, np.full((3, 3), 2.5, np.float32), np.zeros(3))
    with pytest.raises(orion.UnsupportedLoopError, match="astype"):
        orion.parallel_for(converted_in_place).plan(np.ones((3, 3)), np.zeros(3))


# ------------------------------------------------------------ truth values


def all_of(start, x):
    for i in range(x.size):
        start = start and x[i] > 1
    return start


def any_of(start, x):
    for i in range(x.size):
        start = start or x[i] > 1
    return start


@pytest.mark.parametrize("function", [all_of, any_of])
@pytest.mark.parametrize("start", [True, False, 0, 3])
def test_truth_values_are_joined_to_what_python_gives(function, start):
    for x in (np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0])):
        with orion.session(workers=2, force_parallel=True):
            assert orion.parallel_for(function)(start, x) == function(start, x)


def element_or_constant(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] and 7


def first_of_three(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i] or y[i] or 3


def added_where_both(x, y):
    c = 0.0
    for i in range(x.shape[0]):
        c += x[i] and y[i] and 2.0
    return c


def last_before_zero(x, y):
    c = 5
    for i in range(x.shape[0]):
        c = c and x[i]
    return c


def first_not_zero(x, y):
    c = 0
    for i in range(x.shape[0]):
        c = c or x[i]
    return c


def last_not_zero(x, y):
    c = 0
    for i in range(x.shape[0]):
        c = x[i] or c
    return c


def a_divisor_behind_it(x, y):
    for i in range(x.shape[0]):
        n = int(x[i])
        y[i] = n and 12 // n


def a_subscript_behind_it(x, y):
    for i in range(x.shape[0]):
        if x[i] and y[i]:
            y[i] = (i and x[i - 1]) or 9


def conditions_and_numbers(x, y):
    c = True
    for i in range(x.shape[0]):
        c = c and (x[i] > 0 or y[i])
    return c


NUMBERS = [
    element_or_constant, first_of_three, added_where_both, last_before_zero, first_not_zero, last_not_zero,
    a_divisor_behind_it, a_subscript_behind_it, conditions_and_numbers,
]  # fmt: skip


@pytest.mark.parametrize("function", NUMBERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["float64", "int64", "bool"])
@pytest.mark.parametrize("workers", [1, 2])
def test_numbers_are_joined_to_the_one_that_decides(function, kind, workers):
    """Names that are Python's numbers in some iterations and elements in others have one type: values are compared."""
    compiled = orion.parallel_for(function)
    with orion.session(workers=workers, force_parallel=True):
        for size, seed in itertools.product((0, 1, 7, 50), range(3)):
            random = np.random.default_rng(seed)
            x, y = (random.integers(0, 4 if seed else 2, size).astype(kind) for _ in range(2))
            expected = x.copy(), y.copy()
            compiled.plan(x, y)
            assert compiled(x, y) == function(*expected)
            assert (x.tolist(), y.tolist()) == tuple(part.tolist() for part in expected)
