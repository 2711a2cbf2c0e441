"""Statements over slices are run as the loops that they stand for, in the calls in which their bounds fit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError
from orion.passes.elementwise import cannot_fail
from tests.loop_text import from_body
from tests.trials import combined


def jacobi(A, B, steps):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def in_place(A, steps):
    for _ in range(steps):
        A[1:-1, 1:-1] = 0.25 * (A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])


def heat(A, steps):
    for _ in range(steps):
        lap = A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] - 4.0 * A[1:-1, 1:-1]
        A[1:-1, 1:-1] += 0.1 * lap
        A[:, 0] = A[:, 1]
        A[:, -1] = A[:, -2]
    return A.max()


def fdtd(A, B, C, steps):
    for t in range(steps):
        A[0, :] = t
        A[1:, :] = A[1:, :] - 0.5 * (C[1:, :] - C[:-1, :])
        B[:, 1:] = B[:, 1:] - 0.5 * (C[:, 1:] - C[:, :-1])
        C[:-1, :-1] = C[:-1, :-1] - 0.7 * (A[:-1, 1:] - A[:-1, :-1] + B[1:, :-1] - B[:-1, :-1])


def sweeps_inside(A, B, steps):
    for _ in range(steps):
        for _ in range(3):
            around = A[2:, 1:-1] + A[:-2, 1:-1]
            A[1:-1, 1:-1] = 0.25 * (around + B[1:-1, 1:-1])
        B[0] = -2.0 * A[1]
        B[-1] = -2.0 * A[-2] - 1.0


def once(A, B):
    B[1:, :] = A[:-1, :] * 2.0 + A[1:, :]
    B[0] = A[0]


def by_arguments(x, y, lo, hi, k):
    y[lo:hi] = 3.0 * x[lo + k : hi + k]
    y[:-k] += x[k:]


def triangular(A, n):
    for k in range(n - 1):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])


def rows_down(A, steps):
    for i in range(1, A.shape[0]):
        A[i, 1:] = 0.5 * A[i - 1, :-1] + A[i, 1:]


def clipped(A, steps):
    for _ in range(steps):
        A[:, 1:] = np.minimum(np.maximum(A[:, :-1] * 1.1, 0.1), 3.0)


def by_own_elements(A, steps):
    for k in range(1, 3):
        A[k % 2] *= A[0, 0] + A[k % 2, 1]
        A[1:, :] -= A[0, 0] * A[1:, :] * 0.01


def back_substitution(A, B):
    for i in reversed(range(min(A.shape[0], A.shape[1]))):
        for k in range(i + 1, min(A.shape[0], A.shape[1])):
            B[i] -= A[i, k] * B[k]
        B[i] /= A[i, i]


def shifted_rows(A, steps):
    for k in range(1, A.shape[0]):
        A[k, 1:] = A[k - 1, 1:] + A[k, :-1]
        A[:, 0] = A[:, k % A.shape[1]] * 0.5


def decayed(A, B, steps):
    for _ in range(steps):
        A[:, :] = 0.9 * A + 0.1 * np.outer(B[:, 0], B[-1])
        B[1:, 1:] -= np.outer(A[1:, 0] * 0.1, A[0, 1:] - 0.5)


def eliminated(A, steps):
    for k in range(min(A.shape[0], A.shape[1]) - 1):
        A[k + 1 :, k] /= A[k, k] + 3.0
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])


def with_a_greatest_element(A, B, steps):
    peak = 0.0
    for _ in range(steps):
        A[1:-1, :] -= 0.1 * (B[2:, :] - B[:-2, :])
        B[:, 1:-1] -= 0.1 * (A[:, 2:] - A[:, :-2])
        peak = max(peak, B.max())
    return peak


def by_its_own_rows(A, steps):
    A[:, :] = np.outer(A[:, 0], A[0])


def paths(A, steps):
    """Arrays that the function makes, one of them in each round, and a scalar that is the same in all of them."""
    value, spread = np.full(A.shape[1], np.log(100.0)), np.full(A.shape[1], 0.3)
    for t in range(A.shape[0]):
        root = np.sqrt(np.maximum(spread, 0.0) / steps)
        value += root * A[t] - 0.5 * root**2
        spread += 0.1 * (0.2 - spread) + root * (0.5 * A[t] + np.sqrt(1 - 0.5**steps))
    return np.exp(value).sum() + spread.max()


def scaled(A, B, steps):
    for t in range(steps):
        A[1:-1, :] = A[1:-1, :] * math.sqrt(steps / (t + 1)) + max(B[0, 0], t) * B[1:-1, :]
        B[:, 1:] -= A[:, :-1] / (np.abs(B).max() + math.exp(-t))
        A[:-1, :] += np.sqrt(t + 1.0) * B[1:, :]


def truth(A, B):
    B[1:-1, :] = (A[:-2, :] < A[1:-1, :]) * 1.0


@pytest.fixture(autouse=True)
def all_rows(monkeypatch):
    """Rows are shared out by columns whether that pays or not."""
    monkeypatch.setattr("orion.rewrites.slices.apply.ROW", 0)
    monkeypatch.setattr("orion.rewrites.slices.find.is_slow", lambda statement: True)


SHAPES = [(9, 7), (40, 33), (3, 3), (2, 2), (2, 5), (1, 4)]
LOOPS = [
    jacobi,
    in_place,
    heat,
    fdtd,
    sweeps_inside,
    once,
    rows_down,
    clipped,
    truth,
    by_own_elements,
    back_substitution,
    shifted_rows,
    decayed,
    eliminated,
    by_its_own_rows,
    with_a_greatest_element,
    paths,
    scaled,
]


def arguments(function, shape, dtype="float64"):
    rng = np.random.default_rng(shape[0])
    made = {name: (rng.random(shape) + 0.5).astype(dtype) for name in "ABC"} | {"steps": 4}
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return tuple(value.copy() if isinstance(value := made[name], np.ndarray) else value for name in names)


def outcome(function, args):
    """What a call returns or raises, and its arrays afterwards."""
    try:
        result = function(*args)
    except (ValueError, IndexError, ArgumentError, ZeroDivisionError) as error:
        return type(error).__mro__[-4:], None
    return result, args


def check(function, make, workers):
    want, expected = outcome(function, make())
    with orion.session(workers=workers, force_parallel=True):
        got, given = outcome(orion.parallel_for(fastmath=False)(function), make())
    if expected is None:
        assert given is None, "an error of NumPy's is one of the loop's"
        return
    np.testing.assert_array_equal(got, want)
    for one, two in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_gives_what_numpy_gives(function, workers):
    for shape, dtype in combined(SHAPES, ("float64", "float32")):
        check(function, lambda shape=shape, dtype=dtype: arguments(function, shape, dtype), workers)


@pytest.mark.parametrize(
    "function",
    [jacobi, in_place, heat, fdtd, sweeps_inside, once, clipped, decayed, paths, scaled],
    ids=lambda f: f.__name__,
)
def test_is_shared_out(function):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*arguments(function, (60, 50)))
    assert plan.is_parallel, str(plan)
    assert "slices" in {name for name, _ in plan.function.rewrites}, str(plan)
    plan.check()


@pytest.mark.parametrize("workers", [1, 3])
def test_bounds_that_are_arguments(workers):
    for lo, hi, k in [(0, 9, 1), (2, 7, 3), (-5, -2, 1), (3, 20, 2), (7, 3, 1), (0, 10, 0), (1, 4, -1), (0, 2, 12)]:

        def make(lo=lo, hi=hi, k=k):
            return np.arange(12.0), np.linspace(0.0, 1.0, 12), lo, hi, k

        check(by_arguments, make, workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_slices_that_depend_on_loops_around(workers):
    check(triangular, lambda: ((np.random.default_rng(0).random((30, 30)) + 30 * np.eye(30)), 30), workers)


def test_other_lengths_are_run_as_written():
    def add(x, y, z):
        for _ in range(2):
            x[1:] = x[1:] + x[:-1] * y[1:] * z

    for length in (9, 1, 5):
        check(add, lambda length=length: (np.ones(9), np.arange(9.0), np.arange(1.0, 1.0 + length)), 2)
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(add).plan(np.ones(900), np.ones(900), np.ones(899))
        assert any("z.shape[0]" in one for one in plan.conditions)
        other = orion.parallel_for(add).plan(np.ones(900), np.ones(900), np.ones(1))
    assert not other.conditions
    assert "ORN125" in str(other)


def test_the_plan_says_so():
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(in_place).plan(np.ones((500, 500)), 5)
    text = str(plan)
    assert plan.conditions
    assert "A.shape[0] >= 2" in " ".join(plan.conditions)
    line = "A[1:-1, 1:-1] = 0.25"
    assert line in text
    plan._repr_html_()
    assert plan.to_json()


def test_integers_that_wrap_around():
    def step(a, b):
        for _ in range(3):
            a[1:] = a[1:] + b[:-1]

    for dtype in ("int8", "uint8", "int64"):
        check(step, lambda dtype=dtype: (np.arange(100, 140).astype(dtype), np.full(40, 120, dtype)), 2)


def test_values_that_lose_something_are_left_to_numpy():
    def cut(a, x):
        for _ in range(3):
            a[1:] = x[:-1] * 1.5

    check(cut, lambda: (np.zeros(30, np.int64), np.arange(30.0)), 2)


def hidden_states(A, B):
    for i in range(1, A.shape[0]):
        A[i] = np.tanh(0.5 * A[i - 1] + B[i])


def sums_of_rows(A, B):
    for i in range(1, A.shape[0]):
        A[i] = 0.5 * A[i - 1] + B[i]


@pytest.mark.parametrize(
    ("function", "shape", "workers", "taken"),
    [
        (hidden_states, (50, 200), 2, True),
        (hidden_states, (50, 200), 1, False),
        (hidden_states, (500, 20), 2, False),
        (sums_of_rows, (50, 200), 2, False),
    ],
)
def test_rows_are_shared_out_by_columns_where_that_pays(function, shape, workers, taken, monkeypatch):
    monkeypatch.undo()
    looped = orion.parallel_for(function)
    mine, its = arguments(function, shape), arguments(function, shape)
    with orion.session(workers=workers):
        plan = looped.plan(*mine)
        looped(*mine)
    function(*its)
    assert ("slices" in {name for name, _ in plan.function.rewrites}) == taken, str(plan)
    np.testing.assert_allclose(mine[0], its[0], rtol=1e-14)
    assert ("there are at least 2 workers" in str(plan)) == (function is hidden_states and shape[1] > 64)


@pytest.mark.parametrize("workers", [1, 2])
def test_small_steps_run_as_loops_on_one_worker(workers):
    """Loops take a fraction of the time of statements over parts of matrices, also where nobody shares them."""
    with orion.session(workers=workers):
        plan = orion.parallel_for(jacobi).plan(np.ones((20, 20)), np.ones((20, 20)), 100)
    assert "slices" in {name for name, _ in plan.function.rewrites}
    assert plan.runs_on == 1
    check(jacobi, lambda: (*arguments(once, (20, 20)), 10), workers)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("np.sqrt(1 - n**2)", True), ("np.exp(-n * 3)", True), ("np.maximum(n, 0.0)", True), ("len(a) * n", False),
        ("math.sqrt(n)", False), ("1 / n", False), ("np.sqrt(1 / n)", False), ("n % 2", False), ("n**-1", False),
        ("2**n", False), ("np.power(2, n)", False), ("a[0]", False), ("int(n)", False), ("np.sqrt(a[0])", False),
    ],
)  # fmt: skip
def test_what_may_be_computed_before_a_loop_that_may_make_no_trip(text, safe):
    (statement,) = from_body(f"x = {text}", math=math).body
    assert cannot_fail(statement.value) is safe
