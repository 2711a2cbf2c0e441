"""Ranges with bounds that are far apart: Python's results, or an error that gives the bounds."""

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

LEAST, GREATEST, STEP = -(2**63), 2**63 - 1, 2**61


def summed(a, b, s, x):
    total = 0
    for i in range(a, b, s):
        total += i % 7
    return total


def marked(a, b, s, x):
    for i in range(a, b, s):
        x[i % 5] = 1


def inside(a, b, s, x):
    for k in range(x.shape[0]):
        found = 0
        for i in range(a, b, s):
            found += i % 7
        x[k] = found


def around(a, b, s, x):
    for i in range(a, b, s):
        for k in range(x.shape[0]):
            x[k] += i % 7


def in_both(a, b, s, x):
    total = 0
    for k in range(3):
        for i in range(a, b, s):
            total += (i % 7) * k
    return total


def computed(a, b, s, x):
    for k in range(x.shape[0]):
        low, high = max(a, a - 0 * k), max(b, b - 0 * k)  # known when the loop runs only
        found = 0
        for i in range(low, high, s):
            found += i % 7
        x[k] = found


def around_twice(a, b, s, x):
    for _ in range(2):
        for i in range(a, b, s):
            for k in range(x.shape[0] - 1):
                x[k] += i % 7
            for k in range(1, x.shape[0]):
                x[k] -= x[0] - i % 3


def in_a_while(a, b, s, x):
    k = 0
    while k < 2:
        for i in range(a, b, s):
            x[k] += i % 7
        k += 1


FUNCTIONS = [summed, marked, inside, around, in_both, computed, around_twice, in_a_while]
FITTING = [
    (0, GREATEST, STEP), (LEAST, -1, STEP), (-5, GREATEST - 5, 2**62), (GREATEST - 7, GREATEST, 3),
    (LEAST + 7, LEAST, -3), (GREATEST, 0, -STEP), (0, GREATEST, GREATEST), (5, 20, GREATEST), (20, 5, LEAST),
    (GREATEST, LEAST, 1), (GREATEST, LEAST, STEP), (LEAST, GREATEST, -STEP), (LEAST, GREATEST, -1),
    (-(2**62), 2**62 - 1, STEP), (3, 9, 2),
]  # fmt: skip
TOO_WIDE = [
    (LEAST, GREATEST, STEP), (LEAST, GREATEST, GREATEST), (LEAST, 0, STEP), (-1, GREATEST, STEP),
    (GREATEST, LEAST, -STEP), (GREATEST, LEAST, LEAST), (0, LEAST, -STEP), (-(2**62), 2**62, STEP),
    (2**62, -(2**62) - 1, -STEP), (np.int64(LEAST), np.int64(GREATEST), np.int64(STEP)), (LEAST, np.int64(5), STEP),
]  # fmt: skip


@pytest.fixture(params=[1, 2], ids=lambda count: f"{count} workers", scope="module")
def session(request):
    with orion.session(workers=request.param, force_parallel=True):
        yield


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_64_bits_hold_is_what_python_does(function, session):
    compiled = orion.parallel_for(function)
    for bounds in FITTING:
        found, wanted = np.zeros(5, np.int64), np.zeros(5, np.int64)
        assert compiled(*bounds, found) == function(*bounds, wanted), bounds
        np.testing.assert_array_equal(found, wanted, err_msg=str(bounds))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_they_do_not_is_refused_or_right(function, session):
    compiled = orion.parallel_for(function)
    for bounds in TOO_WIDE:
        found, wanted = np.zeros(5, np.int64), np.zeros(5, np.int64)
        a, b, s = (int(bound) for bound in bounds)
        message = f"range from {a} to {b} is too wide(.|\n)*for i in range(.|\n)*help: count its trips"
        try:
            result = compiled(*bounds, found)
        except OverflowError:
            with pytest.raises(OverflowError, match=message):
                compiled(*bounds, found)
            assert not found.any()
        else:
            assert result == function(a, b, s, wanted)
            np.testing.assert_array_equal(found, wanted, err_msg=str(bounds))


def by_constants(x):
    for i in range(-(2**63), 2**63 - 1, 2**61):
        x[i % 5] = 1


def backwards_by_constants(x):
    for i in range(2**63 - 1, -2, -(2**61)):
        x[i % 5] += 1


def triangle(x, n):
    for k in range(-3, 2):
        for i in range(k, n, 2**61):
            x[i % 5] += 1


def read_from_arrays(x, starts, stops):
    for k in range(starts.size):
        for i in range(starts[k], stops[k], 2**61):
            x[k] += i % 7


def rows_of(x, starts):
    for k in range(starts.size - 1):
        for i in range(starts[k], starts[k + 1]):
            x[k] += i % 7


def test_constants_and_bounds_that_depend_on_other_loops(session):
    for function, more in ((by_constants, ()), (triangle, (GREATEST,)), (backwards_by_constants, ())):
        compiled = orion.parallel_for(function)
        with pytest.raises(OverflowError, match=r"range from -?[0-9]+ to -?[0-9]+ is too wide"):
            compiled(np.zeros(5, np.int64), *more)
    found, wanted = np.zeros(5, np.int64), np.zeros(5, np.int64)
    orion.parallel_for(triangle)(found, GREATEST - 3)
    triangle(wanted, GREATEST - 3)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_bounds_read_from_arrays(dtype, session):
    compiled = orion.parallel_for(read_from_arrays)
    limits = np.iinfo(dtype)
    starts = np.array([5, limits.max, 1, 0], dtype)
    stops = np.array([60, limits.min, limits.max // 2, 0], dtype)
    found, wanted = np.zeros(4, np.int64), np.zeros(4, np.int64)
    compiled(found, starts, stops)
    read_from_arrays(wanted, starts.astype(object), stops.astype(object))
    np.testing.assert_array_equal(found, wanted)
    if dtype != "int32":
        low, high = max(limits.min, -5), limits.max
        with pytest.raises(OverflowError, match=f"range from {low} to {high} is too wide"):
            compiled(found, np.array([low], dtype), np.array([high], dtype))


def test_plans_say_so_too():
    for f in (summed, marked):
        plan = orion.parallel_for(f).plan
        assert plan(0, GREATEST, STEP, np.zeros(5))
    with pytest.raises(OverflowError, match="too wide"):
        orion.parallel_for(by_constants).plan(np.zeros(5, np.int64))


def test_ranges_that_are_sure_to_fit_are_left_alone():
    def sure(A, starts, n, k):
        for i in range(A.shape[0]):
            for j in range(i, n):
                A[i, j] += 1
            low = starts[i] * 2
            for j in range(low, low + k):
                A[i, j] += 1
            for j in range(starts[i], starts[i + 1]):
                A[i, j] += 1

    text = orion.parallel_for(sure).kernel_source(np.zeros((4, 9)), np.zeros(5, np.int32), 9, 3)
    assert "held_stop" not in text
    text = orion.parallel_for(rows_of).kernel_source(np.zeros(9), np.zeros(9, np.int64))
    assert text.count("held_stop(") == 1


def test_powers_of_constants_are_numbers(session):
    def up_to(x):
        for i in range(2**4 - 1):
            x[i + 1] += 1 << 3
        for i in range(1 << 2):
            x[2**2 + i] = x[i] + 2 * 2**3 - -(2**2) + 1

    compiled = orion.parallel_for(up_to)
    found, wanted = np.arange(16), np.arange(16)
    plan = compiled.plan(found)
    assert [loop.strategy for loop in plan.loops] == ["independent", "independent"]
    plan.check()
    compiled(found)
    up_to(wanted)
    np.testing.assert_array_equal(found, wanted)


def test_a_power_that_is_too_large_is_refused():
    def large(x):
        for i in range(x.shape[0]):
            x[i] += 2**64

    with pytest.raises(orion.UnsupportedLoopError, match="18446744073709551616 is too large"):
        orion.parallel_for(large)(np.zeros(3))
