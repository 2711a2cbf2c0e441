"""Bounds that are no affine function of sizes, and values of names that each call gives: loops over them are counted
before they run, and shared out."""

from __future__ import annotations

import math

import numpy as np
import pytest

import orion
from orion.reasons import Hint
from tests.loop_text import defined

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "error::orion.UnprovedWarning")


def zipped(a, b, c, d, out):
    for i, (x, y, z, w) in enumerate(zip(a, b, c, d)):  # noqa: B905
        out[i] = x + y * z - w


def least_of_three(a, n, m, k, out):
    for i in range(min(n, m, k)):
        out[i] = a[i] + 1.0


def most_of_three(a, n, m, k, out):
    for i in range(max(n - 50, m - 50, k - 50), len(a)):
        out[i] = a[i] + 1.0


def frames(x, size, hop, out):
    count = (len(x) - size) // hop + 1
    for f in range(count):
        out[f] = x[f] * 2.0


def frames_in_the_bound(x, size, hop, out):
    for f in range((len(x) - size) // hop + 1):
        out[f] = x[f] * 2.0


def square(x, n, out):
    for i in range(n * n):
        out[i] = x[i] + 1.0


def from_a_product(x, lo, n, out):
    for i in range(lo * lo, n * lo):
        out[i] = x[i] + 1.0


def in_rounds(x, n, out):
    for _ in range(3):
        for i in range(n * n):
            out[i] += x[i]


def rest_of_a_product(x, n, out):
    for i in range(n):
        for j in range(i, n * n - i):
            out[i, j] = x[j] + i


def in_a_branch(x, n, m, out):
    if m > 0:
        for i in range(n // m):
            out[i] = x[i]


def by_names(x, n, k, out):
    rows = n // k
    half = rows * k // 2
    for i in range(half):
        out[i] = x[i] * 3.0


def rounded_up(x, batch, out):
    batches = int(np.ceil(len(x) / batch))
    for b in range(batches):
        out[b] = x[b] + b


def made(n, k):
    a = np.ones(n * k)
    for i in range(n * k):
        a[i] += i
    return a


def all_elements(A, out):
    for i in range(A.size):
        out[i] = 2.0 * i


X = np.arange(400.0)
GRID = np.zeros((20, 20))


def from_some_operations(x, k, out):
    for i in range(k >> 1, x.shape[0]):
        out[i] += x[i]
    for i in range(k if k > 2 else 3, int(x.shape[0] / k)):
        out[i] -= x[i]


def given_anew(x, n, out):
    for i in range(n):
        out[i] += x[i]
    n = x.shape[0]
    for i in range(n):
        out[i] += x[i]


PARALLEL = [
    (from_some_operations, (X, 5, X * 0)),
    (given_anew, (X, 30, X * 0)),
    (zipped, (X, X + 1, X[:300], X[:350], X * 0)),
    (least_of_three, (X, 300, 200, 100, X * 0)),
    (most_of_three, (X, 60, 70, 80, X * 0)),
    (frames, (X, 64, 2, X * 0)),
    (frames_in_the_bound, (X, 64, 2, X * 0)),
    (square, (X, 20, X * 0)),
    (from_a_product, (X, 5, 40, X * 0)),
    (in_rounds, (X, 20, X * 0)),
    (rest_of_a_product, (X, 20, np.zeros((20, 400)))),
    (by_names, (X, 301, 7, X * 0)),
    (made, (20, 10)),
    (all_elements, (GRID, X * 0)),
]
BY_NAME = [pytest.param(*row, id=row[0].__name__) for row in PARALLEL]


def copied(arguments):
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in arguments)


@pytest.mark.parametrize(("function", "arguments"), BY_NAME)
def test_is_shared_out(function, arguments):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*copied(arguments))
    assert all(loop.is_parallel for loop in plan.loops), str(plan)
    assert plan.runs_on == 2
    assert "ORN108" not in str(plan)
    plan.check()


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(
    ("function", "arguments"), [*BY_NAME, (rounded_up, (X, 7, X * 0)), (in_a_branch, (X, 200, 3, X * 0))]
)
def test_gives_what_python_gives(function, arguments, workers):
    mine, other = copied(arguments), copied(arguments)
    with orion.session(workers=workers, force_parallel=True):
        got = orion.parallel_for(function)(*mine)
    want = function(*other)
    for one, two in zip((got, *mine), (want, *other), strict=True):
        np.testing.assert_array_equal(one, two)


STARTS = [
    "int(k)", "abs(k)", "k >> 1", "k & 3", "k | 3", "k ^ 1", "1 << 3", "2**k", "round(k)", "np.int64(k)", "int(k / 2)",
    "k if k > 2 else 3", "math.floor(k / 2)", "math.ceil(0.5 * k)", "np.minimum(k, 6)", "np.maximum(k - 9, 0)",
]  # fmt: skip


@pytest.mark.parametrize("start", STARTS)
def test_a_start_that_is_computed_from_arguments_is_known_when_a_call_begins(start):
    source = f"def f(a, k):\n    for i in range({start}, a.shape[0]):\n        a[i] += 1.0"
    function = orion.parallel_for(defined(source, math=math))
    plan = function.plan(np.zeros(50), 3)
    assert plan.is_parallel
    assert plan.loops[0].iterations == 50 - eval(start, {"np": np, "math": math, "k": 3})
    assert "i_start" not in str(plan)
    if isinstance(first := eval(start, {"np": np, "math": math, "k": -3}), int) and first < 0:
        assert not function.plan(np.zeros(50), -3).is_parallel  # negative values count from the end


UNKNOWN_STARTS = ["math.floor(x)", "int(x)", "idx[0]", "idx.max()"]


@pytest.mark.parametrize("start", UNKNOWN_STARTS)
def test_a_start_that_nobody_knows_is_the_reason_and_no_example_is_made_up(start):
    source = f"def f(a, x, idx):\n    for i in range({start}, a.shape[0]):\n        a[i] += 1.0"
    plan = orion.parallel_for(defined(source, math=math)).plan(np.zeros(50), 3.5, np.array([3, 4]))
    (reason,) = plan.loops[0].reasons
    assert (reason.code, reason.hint) == ("ORN108", Hint.RANGE)
    assert f"begins at `{start}`, which is not known before it runs: negative values of `i`" in reason.message
    assert "such as" not in str(plan)


@pytest.mark.parametrize("sizes", [(20, 0), (3, 20), (-20, 20), (0, 1)])
def test_other_sizes_are_other_bounds(sizes):
    """One compiled loop, called with sizes one after the other: each call has its own bounds."""
    looped = orion.parallel_for(frames)
    with orion.session(workers=2, force_parallel=True):
        for size in (64, 1, 380, 64):
            mine, other = X * 0, X * 0
            looped(X, size, 3, mine)
            frames(X, size, 3, other)
            np.testing.assert_array_equal(mine, other)
        n, k = sizes
        np.testing.assert_array_equal(orion.parallel_for(made)(abs(n), k), made(abs(n), k))


def test_what_may_fail_is_computed_where_it_was():
    out = X * 0
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(in_a_branch)(X, 20, 0, out)  # the quotient by 0 is not reached
        with pytest.raises(ZeroDivisionError):
            orion.parallel_for(frames_in_the_bound)(X, 64, 0, out)
        with pytest.raises(ZeroDivisionError):
            orion.parallel_for(frames)(X, 64, 0, out)
    np.testing.assert_array_equal(out, X * 0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_numbers_of_fewer_bits(dtype):
    """What NumPy computes in 8 bits may not fit them: such a bound is not known before."""
    for n in (3, 11, 12, 16):
        mine, other = X * 0, X * 0
        with orion.session(workers=2, force_parallel=True), np.errstate(over="ignore"):
            orion.parallel_for(square)(X, dtype(n), mine)
            square(X, dtype(n), other)
        np.testing.assert_array_equal(mine, other)
