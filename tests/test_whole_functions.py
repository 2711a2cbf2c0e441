"""Whole functions as users write them: what the undecorated function gives, on any number of workers and on Ray."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from orion.arrays.sparse import SparseArray
from tests.trials import worker_counts
from tests.whole_functions import (
    bubble_sort,
    cases,
    collatz,
    components,
    conjugate_gradients,
    jacobi,
    kmeans,
    line_search,
    own_bound,
    power_iteration,
    scaled,
    within,
)

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")

NAMES = list(cases())


def decorated(function, arguments):
    """Over a sparse array in key order, which is the order in which the elements are given."""
    has_sparse = any(isinstance(argument, SparseArray) for argument in arguments)
    return orion.parallel_for(ordered=True)(function) if has_sparse else orion.parallel_for(function)


def check(name):
    """The decorated function changes its arrays and returns what the undecorated one does."""
    function, expected = cases()[name]
    _, arguments = cases()[name]
    ours = decorated(function, arguments)
    result, wanted = ours(*arguments), ours.serial(*expected)
    assert type(result) is type(wanted) or isinstance(wanted, np.generic)
    assert result == (None if wanted is None else pytest.approx(wanted, rel=1e-12))
    rounding = solver_rounding(result) if function is conjugate_gradients else [1e-12] * len(expected)
    for argument, other, atol in zip(arguments, expected, rounding, strict=True):
        if isinstance(argument, np.ndarray):
            np.testing.assert_allclose(argument, other, rtol=1e-10, atol=atol)


def solver_rounding(steps):
    """How far apart the arrays of conjugate gradients may be, argument by argument, with sums in another order.

    A sum of n terms is off by n times the machine epsilon, of terms that are as large as the right-hand side at
    first: the residual then shrinks to 1e-7 of it, its error does not. A step multiplies by numbers of which the
    quotient of the largest and the smallest is the condition of the matrix.
    """
    matrix, _, right, *_ = cases()["conjugate gradients"][1]
    values = np.linalg.eigvalsh(matrix)
    error = steps * len(right) * np.finfo(float).eps * (values[-1] / values[0]) * np.linalg.norm(right)
    return 0.0, error / values[0], error, error, error * values[-1], 0.0, 0


@pytest.mark.parametrize("name", NAMES)
def test_the_undecorated_function_gives_the_same(name):
    for workers in worker_counts(1, 2, 4):
        with orion.session("threads", workers, force_parallel=True):
            check(name)


@pytest.mark.parametrize("name", ["Jacobi", "k-means", "sieve", "a branch", "a bound that shrinks", "nested"])
def test_small_functions_run_as_written(name):
    with orion.session("threads", 2):
        check(name)


@pytest.mark.ray
def test_on_ray():
    with orion.session("ray", 2, force_parallel=True):
        names = "early stopping", "loss history", "PageRank", "Jacobi", "find", "the other branch", "nested"
        for name in (*names, "a while in a for"):
            check(name)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_number_of_workers_does_not_change_the_bits(workers):
    results = []
    for count in (1, workers * 2):
        function, arguments = cases()["power iteration"]
        with orion.session("threads", count, force_parallel=True):
            results.append((orion.parallel_for(function)(*arguments), arguments[1].tobytes()))
    assert results[0] == results[1]


def test_the_loops_inside_are_the_loops_of_the_plan():
    A = np.zeros((2000, 2000))
    plan = orion.parallel_for(jacobi).plan(A, A.copy(), 0.1)
    assert [loop.strategy for loop in plan.loops] == ["independent"] * 2
    plan.check()
    X, C = np.zeros((10_000, 100)), np.zeros((50, 100))
    counts = np.zeros(50, int)
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(kmeans).plan(X, C, np.zeros(10_000, int), C.copy(), counts, 9, 0.1)
    assert next(loop.strategy for loop in plan.loops) == "independent"
    plan.check()


def test_loops_are_not_left_to_one_worker_where_all_can_be_shared_out():
    """Not taken apart into the first loop and a `while` that runs once."""
    a = np.zeros(1_000_000)
    with orion.session("threads", 2):
        plan = orion.parallel_for(line_search).plan(a, a.copy(), 5)
    assert [loop.strategy for loop in plan.loops] == ["independent"] * 2
    assert plan.runs_on == 2
    plan.check()


def test_where_rounds_are_short_the_whole_is_run_by_one_worker():
    with orion.session("threads", 2):
        A, v = np.zeros((30, 30)), np.zeros(30)
        plan = orion.parallel_for(power_iteration).plan(A, v, v.copy(), 0.1)
        assert plan.runs_on == 1
        assert {reason.code for reason in plan.reasons} == {"ORN120"}
        large = np.zeros((5000, 5000))
        plan = orion.parallel_for(power_iteration).plan(large, np.zeros(5000), np.zeros(5000), 0.1)
        assert plan.runs_on == 2


def fill_until(a, x):
    for i in range(len(a)):
        if a[i] == x:
            return i
        a[i] = 0.0
    return -1


def test_a_loop_that_is_left_early_says_so():
    (loop,) = orion.parallel_for(fill_until).plan(np.zeros(10), 1.0).loops
    assert loop.strategy == "serial"
    assert loop.reasons[0].code == "ORN110"
    assert "`return` ends the loop early" in loop.reasons[0].message


def test_a_serial_loop_in_a_while_is_told_of():
    label = np.arange(5)
    with pytest.warns(orion.SerialLoopWarning, match="the loop over \\(e\\) is serial"):
        orion.parallel_for(components)(label, np.array([0, 1]), np.array([1, 2]))
    assert label.tolist() == [0, 0, 0, 3, 4]
    with pytest.raises(orion.NotParallelError):
        orion.parallel_for(require_parallel=True)(components)(label, np.array([0, 1]), np.array([1, 2]))


@pytest.mark.parametrize("workers", [1, 2])
def test_subscripts_are_checked_where_the_loop_is_run(workers):
    with orion.session("threads", workers, force_parallel=True):
        a = np.zeros(5)
        assert orion.parallel_for(within)(a, 8) == 1
        with pytest.raises(orion.OutOfBoundsError):
            orion.parallel_for(overrun)(a, 8, True)
        orion.parallel_for(overrun)(a, 8, False)


def overrun(a, n, really):
    if really:
        for i in range(n):
            a[i] = 1.0


def test_a_parameter_that_is_given_another_value_is_not_the_argument():
    a = np.zeros(10)
    orion.parallel_for(doubled)(a, 4)
    assert a.tolist() == [1.0] * 8 + [0.0] * 2
    assert orion.parallel_for(own_bound)(a, 3) == (6, 2)
    assert orion.parallel_for(collatz)(7) == 16


def doubled(a, n):
    n = n * 2
    for i in range(n):
        a[i] += 1


def test_what_is_returned_early_has_any_shape():
    assert orion.parallel_for(mixed)(0) is None
    assert orion.parallel_for(mixed)(1) == (1, 2)
    assert orion.parallel_for(mixed)(2) == 2.5


def mixed(n):
    if n == 0:
        return None
    if n == 1:
        return n, 2
    return 2.5


def test_the_plan_of_a_branch_has_the_loops_of_both_sides():
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(scaled).plan(np.zeros(9), np.zeros(9), 1)
    assert [loop.nest.span.line for loop in plan.loops] == [
        scaled.__code__.co_firstlineno + line for line in (4, 7, 12)
    ]


def test_rounds_of_serial_loops_are_run_by_one_worker_as_a_whole():
    a = np.array([3.0, 1.0, 2.0])
    with pytest.warns(orion.SerialLoopWarning, match="ORN1"):
        assert orion.parallel_for(bubble_sort)(a) == 1
    assert a.tolist() == [1.0, 2.0, 3.0]
