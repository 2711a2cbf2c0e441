"""Small programs in which it is easy to lose what Python means: the same result on any number of workers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import orion
from tests.trials import worker_counts

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

POWER = -1
LARGE = 2**60 + 1


def both_variables_after(x, n):
    i, j = -7, -8
    for i in range(n):
        for j in range(i):
            x[j] = x[j] * 2 + i
    return i, j


def both_variables_of_a_box(x, n, m):
    i = j = -1
    for i in range(n):
        for j in range(m):
            x[i + j] += 1
    return 100 * i + j


def inner_variable_after(x, wanted):
    for i in range(6):
        for j in range(10):
            if x[10 * i + j] == wanted:
                break
        else:
            continue
        break
    return i, j


def inner_variable_is_the_outer_one(x, n):
    for i in range(n):
        for i in range(3):
            x[i] += 1
        x[i + 5] += i


def bounds_of_its_own_name(x, i):
    for i in range(i):  # noqa: B020
        x[i] += 1
    for i in range(i, i + 5):  # noqa: B020
        x[i] += i
    return i


def step_is_an_argument(x, start, stop, step):
    total = 0.0
    for i in range(start, stop, step):
        x[i] = x[i] * 2 + i
    for i in range(2):
        for j in range(start, stop, step):
            total += x[j] * i
    return total


def negative_power(x):
    for i in range(x.shape[0]):
        x[i] = x[i] ** -1 + (i + 1) ** POWER


def negative_power_of_python_floats(x):
    for i in range(x.shape[0]):
        t = 1.0 * (i - 2)
        x[i] = t**-1


def signed_and_unsigned(w, u):
    for i in range(w.shape[0]):
        w[i] += u[i] % 7
        w[i] += u[i] // 3


def integers_of_all_bits(k):
    for i in range(k.shape[0]):
        k[i] = math.gcd(k[i], 3 * LARGE) + math.floor(i + LARGE) - math.trunc(LARGE - i)


def clipped(x, y):
    for i in range(x.shape[0]):
        y[i] = np.clip(x[i], 0.25, 2) + math.fmod(-x[i], 0.2) + np.clip(i, 1, 2)


def name_of_an_extent(x, x__0):
    for i in range(x__0):
        x[i] = x[i + x__0] + 1
    for i__trip in range(0, x__0, 2):
        x[i__trip] += i__trip


def sum_of_negative_zeros(x, s):
    for i in range(x.shape[0]):
        s += x[i]
    return s


def chains_of_assignments(x, y):
    j = 2
    for i in range(9):
        x[i] = y[i] = 0
        y[i] = x[i + 1] = x[i] + i
        a = x[i] = y[i] + 1
        y[i + 1] = b = a * 2 + x[i]
        j = x[j] = (i + j) % 10
        x[j] = j = (3 * j + int(b)) % 10
    return j


def numbers(count=60):
    return np.arange(float(count))


CASES = {
    "both variables": (both_variables_after, [lambda: (numbers(), 6), lambda: (numbers(), 0)]),
    "of a box": (
        both_variables_of_a_box, [lambda: (numbers(), 6, 9), lambda: (numbers(), 3, 0), lambda: (numbers(), 0, 3)]
    ),
    "inner variable": (inner_variable_after, [lambda: (numbers(), 34.0), lambda: (numbers(), -1.0)]),
    "one variable": (inner_variable_is_the_outer_one, [lambda: (numbers(), 5)]),
    "own name": (bounds_of_its_own_name, [lambda: (numbers(), 3), lambda: (numbers(), 0)]),
    "step": (
        step_is_an_argument,
        [
            lambda: (numbers(20), 19, -1, -1),
            lambda: (numbers(20), -1, -20, -1),
            lambda: (numbers(20), 0, 20, 7),
            lambda: (numbers(20), 0, 20, 0),
            lambda: (numbers(20), 0, 23, 7),
        ],
    ),
    "power": (negative_power, [lambda: (numbers(5),), lambda: (np.float32(numbers(5)),)]),
    "power of floats": (negative_power_of_python_floats, [lambda: (numbers(2),), lambda: (numbers(5),)]),
    "chains": (chains_of_assignments, [lambda: (numbers(10), numbers(10))]),
    "all bits": (integers_of_all_bits, [lambda: (np.array([LARGE, 2 * LARGE, 3 * LARGE]),)]),
    "clipped": (clipped, [lambda: (np.array([0.1, 0.5, 3.0, 1.25, 7.0]), numbers(5))]),
    "name of an extent": (name_of_an_extent, [lambda: (numbers(20), 5), lambda: (numbers(20), 8)]),
    "signed and unsigned": (
        signed_and_unsigned, [lambda: (np.arange(5), np.arange(5, dtype=np.uint64) + np.uint64(2**63))]
    ),
    "negative zeros": (
        sum_of_negative_zeros,
        [lambda: (np.full(5, -0.0), -0.0), lambda: (np.full(5, -0.0), 0.0), lambda: (numbers(0), -0.0)],
    ),
}  # fmt: skip


def outcome(function, arguments):
    """What a call gives, or the kind of error; numbers as text, which tells 0.0 from -0.0."""
    with np.errstate(all="ignore"):
        try:
            result = function(*arguments)
        except Exception as error:
            return type(error)
    return [str(value) for value in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_python(name):
    function, calls = CASES[name]
    ours = orion.parallel_for(function)
    for workers in worker_counts(1, 2, 4):
        with orion.session("threads", workers, force_parallel=workers > 1):
            for make in calls:
                check(function, ours, make(), make())


def check(function, ours, given, expected):
    wanted, found = outcome(function, expected), outcome(ours, given)
    if isinstance(wanted, type):
        assert issubclass(found, wanted)
        return
    assert found == wanted
    for one, other in zip(given, expected, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- what is outside of the function

RATE = 2.0


def scaled(value):
    return value * RATE


@orion.parallel_for
def with_globals(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * RATE + scaled(1.0)


def values_of(function):
    x = np.ones(4)
    function(x)
    return x.tolist()


def test_globals_and_helpers_are_those_of_the_call(monkeypatch):
    assert values_of(with_globals) == [4.0] * 4
    monkeypatch.setitem(globals(), "RATE", 10.0)
    assert values_of(with_globals) == [20.0] * 4 == values_of(with_globals.serial)

    def other(value):
        return value + 7.0

    monkeypatch.setitem(globals(), "scaled", other)
    assert values_of(with_globals) == [18.0] * 4 == values_of(with_globals.serial)


def test_closures_are_those_of_the_call():
    step = 1.0

    @orion.parallel_for
    def shifted(x):
        for i in range(x.shape[0]):
            x[i] += step

    assert values_of(shifted) == [2.0] * 4
    step = 5.0
    assert values_of(shifted) == [6.0] * 4


def test_nothing_is_planned_anew_where_nothing_changed(monkeypatch):
    values_of(with_globals)
    x = np.ones(4)
    before = with_globals.plan(x).function.program
    monkeypatch.setitem(globals(), "RATE", float("2.0"))
    assert with_globals.plan(x).function.program is before


def test_a_decorated_function_may_call_another():
    @orion.parallel_for
    def twice(x):
        for _ in range(2):
            with_globals(x)

    assert values_of(twice) == [10.0] * 4
