"""Places of extremes that are compared by looking them up, `if a[i] > a[best]: best = i`: combined from parts of the
iterations, with Python's result for ties and NaN."""

from __future__ import annotations

import numpy as np
import pytest

import orion

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "error::orion.UnprovedWarning")


def greatest(a):
    best = 0
    for i in range(1, len(a)):
        if a[i] > a[best]:
            best = i
    return best


def least_of_the_last(a):
    at = 0
    for i in range(len(a)):
        if a[at] >= a[i]:
            at = i
    return at


def nearest(X, p):
    near = 0
    for i in range(len(X)):
        if (X[i, 0] - p[0]) ** 2 + (X[i, 1] - p[1]) ** 2 < (X[near, 0] - p[0]) ** 2 + (X[near, 1] - p[1]) ** 2:
            near = i
    return near


def in_a_matrix(A):
    r, c = 0, 0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] > A[r, c]:
                r, c = i, j
    return r, c


def with_a_sum(a):
    best, total = 0, 0.0
    for i in range(len(a)):
        total += a[i]
        if a[i] > a[best]:
            best = i
    return best, round(total, 6)


def of_what_it_writes(a, out):
    best = 0
    for i in range(len(a)):
        out[i] = a[i] * a[i]
        if out[i] > out[best]:
            best = i
    return best


def two_of_them(a):
    low, high = 0, 0
    for i in range(1, len(a)):
        if a[i] < a[low]:
            low = i
        if a[i] > a[high]:
            high = i
    return low, high


PARALLEL = [greatest, least_of_the_last, nearest, in_a_matrix, with_a_sum, of_what_it_writes, two_of_them]


def starts_elsewhere(a, out):
    best = 3
    for i in range(len(a)):
        out[i] = a[i] * a[i]
        if out[i] > out[best]:
            best = i
    return best


def another_writes_it(a, out):
    best = 0
    for i in range(len(a)):
        out[i // 2] = a[i] * a[i]
        if out[i // 2] > out[best // 2]:
            best = i
    return best


def changes_what_it_looks_at(a):
    best = 0
    for i in range(len(a)):
        if a[i] > a[best]:
            best = i
        a[0] = a[i] * 0.5
    return best


def uses_the_place(a, out):
    best = 0
    for i in range(1, len(a)):
        if a[i] > a[best]:
            best = i
        out[i] = best
    return best


def ends_early(a):
    best = 0
    for i in range(1, len(a)):
        if a[i] > 4.0:
            break
        if a[i] > a[best]:
            best = i
    return best


def only_some(a):
    best = 0
    for i in range(1, len(a)):
        if i % 3 == 0:  # noqa: SIM102
            if a[i] > a[best]:
                best = i
    return best


def by_another_name(a, b):
    best = 0
    for i in range(1, len(a)):
        b[i] = a[i] - a[i - 1]
        if b[i] > b[best]:
            best = i
    return best


SERIAL = [starts_elsewhere, another_writes_it, changes_what_it_looks_at, uses_the_place, ends_early, by_another_name]


def values(count, dtype):
    rng = np.random.default_rng(count)
    found = rng.integers(-3, 4, count).astype(dtype)
    if count > 4 and np.dtype(dtype).kind == "f":
        found[count // 2] = np.nan
    return found


def arguments(function, count, dtype):
    a = values(count, dtype)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    made = {
        "a": a, "out": a * 0, "b": a * 0, "X": np.stack([a, a[::-1]], axis=1), "p": np.array([1, 2], dtype),
        "A": np.stack([a, a[::-1], a], axis=1),
    }  # fmt: skip
    return tuple(made[name].copy() for name in names)


@pytest.mark.parametrize("function", PARALLEL, ids=lambda f: f.__name__)
def test_is_shared_out(function):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*arguments(function, 999, "float64"))
    assert any(loop.is_parallel and loop.runs_on == 2 for loop in plan.loops), str(plan)
    assert not [reason for reason in plan.reasons if reason.code == "ORN104"]
    plan.check()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("function", [*PARALLEL, *SERIAL, only_some], ids=lambda f: f.__name__)
def test_gives_what_python_gives(function, workers):
    looped = orion.parallel_for(function)
    for dtype in ("float64", "int32"):
        for count in (1, 2, 5, 63, 200):
            if count <= 3 and function is starts_elsewhere:
                continue
            mine, other = arguments(function, count, dtype), arguments(function, count, dtype)
            with orion.session(workers=workers, force_parallel=True):
                got = looped(*mine)
            want = function(*other)
            np.testing.assert_array_equal(got, want)
            for one, two in zip(mine, other, strict=True):
                np.testing.assert_array_equal(one, two)


def test_of_nothing_nothing_is_looked_up():
    with orion.session(workers=2, force_parallel=True):
        assert orion.parallel_for(greatest)(np.zeros(0)) == 0
        assert orion.parallel_for(of_what_it_writes)(np.zeros(0), np.zeros(0)) == 0


def test_a_place_outside_is_an_error():
    def from_outside(a):
        best = 50
        for i in range(len(a)):
            if a[i] > a[best]:
                best = i
        return best

    with orion.session(workers=2, force_parallel=True), pytest.raises(IndexError, match=r"a\[best\]"):
        orion.parallel_for(from_outside)(np.zeros(9))
