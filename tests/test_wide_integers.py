"""Integers of 64 bits near 2**63 in subscripts, bounds and tests: calls in which they may leave 64 bits are refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orion
from tests.loop_text import defined

LARGEST = 2**63 - 1


@orion.parallel_for
def in_a_test(a, n):
    for i in range(1, 40):
        if i + n < 0:
            a[i] = a[i - 1] + 1


@orion.parallel_for
def there_and_back(a, n):
    for i in range(1, 40):
        a[i + n - 9223372036854775807] = a[i - 1] + 1


@orion.parallel_for
def counted(a, n):
    for i in range(1, 40 + (n - 9223372036854775800)):
        a[i] = a[i - 1] + 1


@orion.parallel_for
def named(a, n):
    d = 1 + n
    for i in range(1, d - 9223372036854775770):
        a[i] = a[i - 1] + 1


@orion.parallel_for
def named_and_tested(a, n):
    d = n * 2
    for i in range(1, 40):
        if d < 5:
            a[i] = a[i - 1] + 1


@orion.parallel_for
def in_two_loops(a, n):
    for i in range(n - 5, n):
        for j in range(4):
            if i + j < 0:
                a[j] += 1


@orion.parallel_for
def from_elements(a, n):
    for i in range(int(a[50]), int(a[50]) + 5):
        if i + n < 0:
            a[0] += 1


FUNCTIONS = [in_a_test, there_and_back, counted, named, named_and_tested, in_two_loops, from_elements]
NEAR = [LARGEST, LARGEST - 3, -LARGEST - 1, -LARGEST + 2, 2**62, -(2**62)]
VALUES = [5, -5, np.int64(5), 2**40, *NEAR, *map(np.int64, NEAR)]


def ends(run, a, n):
    """What a call ends in: the array, or the kind of error."""
    try:
        run(a, n)
    except IndexError:
        return IndexError
    except OverflowError:
        return OverflowError
    return a.tolist()


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("workers", [1, 2])
def test_near_2_to_63_a_call_is_right_or_refused(f, workers):
    refused = 0
    for n in VALUES:
        with np.errstate(all="ignore"):
            wanted = ends(f.serial, np.zeros(60), n)
        with orion.session("threads", workers=workers, force_parallel=True):
            found = ends(f, np.zeros(60), n)
        is_refused = found is OverflowError
        assert is_refused or found == wanted, repr(n)
        assert not is_refused or abs(int(n)) > 2**50 or (f is there_and_back and n < 0), repr(n)
        refused += is_refused
    assert 0 < refused < len(VALUES)


def test_the_error_says_which_operation():
    with pytest.raises(OverflowError, match=r"(?s)`i \+ n` may not fit 64 bits.*if i \+ n < 0.*why:.*help:"):
        in_a_test(np.zeros(60), np.int64(LARGEST))


@orion.parallel_for
def hashed(a):
    for i in range(a.shape[0]):
        a[(i * 6148914691236517205) % 7] += 1


def test_constants_alone_leave_64_bits_at_sizes_at_which_they_do():
    short, wanted = np.zeros(2), np.zeros(2)
    with pytest.raises(orion.OutOfBoundsError):
        hashed.plan(short)
    with pytest.raises(OverflowError, match="6148914691236517205"):
        hashed(np.zeros(60))
    with pytest.raises(IndexError):  # 6148914691236517205 % 7 is 3
        hashed.serial(wanted)
    with pytest.raises(IndexError):
        hashed(short)


@orion.parallel_for
def mixed_elements(out, x, seed):
    for i in range(x.shape[0]):
        h = x[i] * 6364136223846793005
        h = h ^ (h >> 33)
        out[(h + seed) % 16] += 1


def test_hashes_of_elements_wrap_around_as_those_of_numpy():
    x = np.arange(50)
    for seed in (3, np.int64(2**62)):
        found, wanted = np.zeros(16), np.zeros(16)
        with np.errstate(all="ignore"):
            mixed_elements.serial(wanted, x, seed)
        mixed_elements(found, x, seed)
        assert found.tolist() == wanted.tolist()


@orion.parallel_for
def with_a_seed(a, seed):
    for i in range(a.shape[0]):
        a[i] = i * seed


@orion.parallel_for
def downwards(a, n):
    for i in range(5):
        for j in range(n, 2, -1):
            a[i] += a[2 * j - 3]


@orion.parallel_for
def upwards(a, n):
    for i in range(5):
        for j in range(n, 9):
            a[i] += a[3 * j - 3]


@pytest.mark.parametrize(("f", "n"), [(downwards, -LARGEST), (upwards, LARGEST), (upwards, np.int64(LARGEST))])
def test_loops_without_iterations_are_not_looked_at(f, n):
    found = np.zeros(30)
    f(found, n)
    assert not found.any()
    few = np.arange(30.0)
    wanted = few.copy()
    f(few, 4)
    f.serial(wanted, 4)
    assert few.tolist() == wanted.tolist()


@orion.parallel_for
def of_unknown(x, starts, n):
    for r in range(starts.shape[0] - 1):
        for j in range(starts[r], starts[r + 1]):
            x[64 * (4 * (8 * (j + 2 * j) - 23 * j) - 3 * j) - 63 * j] += n
        k = starts[r] + 3
        for j in range(k):
            x[1000 * (j + 2 * j) - 2999 * j] += n


def test_operations_on_what_is_not_known_are_not_refused():
    found, wanted, starts = np.zeros(30), np.zeros(30), np.array([0, 4, 9])
    for n in (3, np.uint64(3)):
        of_unknown(found, starts, n)
        of_unknown.serial(wanted, starts, n)
    assert found.tolist() == wanted.tolist()


def test_values_are_not_looked_at():
    a = np.zeros(9, np.int64)
    with_a_seed(a, np.int64(2**62))
    with np.errstate(all="ignore"):
        assert a.tolist() == (np.arange(9) * np.int64(2**62)).tolist()


# ---------------------------------------------------------------- loops in another order compute other sums


FAR = 2**63 - 1


def far_start(a, b, n, c):
    for i in range(c + (1 - 9223372036854775807), n // 2):
        for j in range(n // 2):
            a[j] = 0.5 * b[c + (j - 9223372036854775807)] - 0.25 * b[j] + i
        for j in range(c + (n // 2 - 9223372036854775807)):
            b[j] = 0.5 * a[j + 1]


def far_rows(a, b, n, c):
    for i in range(n):
        for j in range(1, n):
            a[j] = a[j - 1] + b[i + (c - 9223372036854775807)]
        for j in range(c - 9223372036854775804 - 3, n):
            b[j] = 0.5 * a[j]


@pytest.mark.parametrize("function", [far_start, far_rows], ids=lambda f: f.__name__)
@pytest.mark.parametrize("workers", [1, 2])
def test_loops_whose_other_orders_may_leave_64_bits_are_run_as_written(function, workers):
    compiled = orion.parallel_for(function)
    wanted, found = (((np.arange(9.0), np.arange(9.0) ** 2, 8, np.int64(FAR))) for _ in range(2))
    function(*wanted)
    with orion.session(workers=workers, force_parallel=True):
        compiled(*found)
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


def elements_to_bound(b, count, c):
    for k in range(3):
        for _ in range(2 * c + count[k]):
            b[k] += 1


def elements_to_subscript(b, count, c):
    for k in range(3):
        b[count[k] - c - c] += 1


def elements_to_test(b, count, c):
    for k in range(3):
        if c + count[k] > 0:
            b[k] += 1


@pytest.mark.parametrize("function", [elements_to_bound, elements_to_subscript, elements_to_test])
def test_sums_with_elements_of_arrays_are_looked_at_too(function):
    compiled, b, count = orion.parallel_for(function), np.zeros(9), np.array([0, 1, 2])
    compiled(b, count, -1 if function is not elements_to_subscript else 0)
    with pytest.raises(OverflowError, match="may not fit 64 bits"):
        compiled(b, count, FAR)


def down_from_a_narrow_one(a, n, c8):
    d8 = c8 * 2
    g = 0
    for i in range(n + d8, 0, -1):
        a[g] = 0.5 * i
        g = g + 1


@pytest.mark.parametrize("number", [np.uint8(127), np.int8(100), np.uint16(40_000), np.int64(127), 127])
def test_narrow_integers_that_wrap_around_are_as_far_from_2_to_63_as_ever(number):
    found, expected = np.zeros(20_000), np.zeros(20_000)
    with np.errstate(over="ignore"):
        orion.parallel_for(down_from_a_narrow_one)(found, 2, number)
        down_from_a_narrow_one(expected, 2, number)
    assert np.array_equal(found, expected)


OPERATIONS = (
    "abs(6 * k) // 2**62", "abs(-k - k - k) % 7", "(k * 4) // -6 + 3", "6 * k % -7 + 8", "2 ** (k // 2**62 * 70) % 7",
    "(k << 3) % 7", "(k * 6) & 7", "~(k * 6) % 5", "max(6 * k, 3) % 9", "min(k * 8, 6)", "int(k * 6 / 3) % 7",
    "(k ^ (k * 5)) % 6", "3 if k * 6 > 0 else 5", "4 - (k * 4 < 0)", "(k * 4) >> 62", "round(k * 6) % 7",
    "int(abs(k * 6)) % 5", "np.abs(k * 6) % 5", "-(-6 * (2 + k) // -6) * -1 // 2**61",
)  # fmt: skip
PLACES = {
    "a bound": "for i in range({e}):\n    a[i] += 1",
    "a subscript": "for i in range(4):\n    a[({e}) + i] += 1",
    "a test": "for i in range(6):\n    if ({e}) > i:\n        a[i] += 1",
    "a name of a bound": "m = {e}\nfor i in range(m):\n    a[i] += 1",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_done_with_a_number_that_has_left_64_bits_does_not_matter(operation, place):
    body = PLACES[place].format(e=operation).replace("\n", "\n    ")
    function = defined(f"def f(a, k):\n    {body}\n")
    for k in (2**62, 3):
        want, got = np.zeros(40), np.zeros(40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kinds = {run: ends(run, a, k) for run, a in ((function, want), (orion.parallel_for(function), got))}
        wanted, found = kinds.values()
        assert found == wanted or (found is OverflowError and k > 3)
