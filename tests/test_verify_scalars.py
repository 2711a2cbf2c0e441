"""Scalars that the checker does not know: what stays the same in all iterations is one value, and only what comes from
elements of arrays may be any."""

import warnings

import numpy as np
import pytest

import orion
from orion.errors import UnprovedWarning
from orion.verify.check import _Checker
from orion.verify.conflicts import in_one_round, uses_of


def changed_variable(P, m):
    for i in range(2):
        i += 0
        for j in range(1, m):
            P[i - 1, j - 1] = P[1, j - 1] - P[i, i]


def counted_on(P, m):
    k = 1
    for _i in range(3):
        k += 2
        for j in range(m):
            P[k, j] = P[k - 1, m] + P[k - 2, j]


def product_of_sizes(P, m):
    k = m * m
    for j in range(1, m):
        P[k % 2, j] = P[(k + 1) % 2, j - 1]


def by_data(P, at, m):
    k = at[0]
    for j in range(1, m):
        P[k + 1, j] = P[k, j - 1]


def by_a_name_of_data(P, at, m):
    k = at[0] + at[1]
    k -= 1
    for j in range(1, m):
        P[k, j] = P[k + 1, j - 1]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (changed_variable, (5,)),
        (counted_on, (6,)),
        (product_of_sizes, (5,)),
        (by_data, (np.array([2, 3]), 5)),
        (by_a_name_of_data, (np.array([2, 3]), 5)),
    ],
)
def test_a_scalar_that_is_the_same_in_all_iterations_is_one_value(function, arguments):
    P = np.arange(180.0).reshape(20, 9)
    looped = orion.parallel_for(function)
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        plan = looped.plan(P, *arguments)
        assert plan.loops[-1].is_parallel
        plan.check()
        expected = P.copy()
        function(expected, *arguments)
        looped(P, *arguments)
    np.testing.assert_array_equal(P, expected)


def read_of_data(P, at, m):
    k = at[0]
    for j in range(1, m):
        P[k, j] = P[at[1], j]


def read_of_a_size(P, x, m):
    k = int(x)
    for j in range(1, m):
        P[k, j] = P[0, j] + 1


@pytest.mark.parametrize(("function", "argument"), [(read_of_data, np.array([2, 3])), (read_of_a_size, 2.5)])
def test_what_is_read_is_not_taken_for_exact(function, argument):
    """Both are right, as iterations share a column alone; whatever the rows are."""
    P = np.arange(180.0).reshape(20, 9)
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        plan = orion.parallel_for(function).plan(P, argument, 5)
        assert plan.loops[-1].is_parallel
        plan.check()


def of_one_value(P, at, m):
    k = at[0]
    n = k
    n += 1
    for j in range(1, m):
        P[k, j] = P[n, j - 1] + P[k + 1, j]


def test_names_of_one_unknown_value_are_known_to_be_it():
    P = np.arange(180.0).reshape(20, 9)
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("error", UnprovedWarning)
        orion.parallel_for(of_one_value).plan(P, np.array([2, 3]), 5).check()


def meets_by_data(P, at, m):
    for j in range(1, m):
        P[0, j] = P[at[0], j - 1]


def meets_by_a_name_of_data(P, at, m):
    k = at[0] * 2
    for j in range(1, m):
        P[0, j] = P[k, j - 1]


def may_meet(P, x, m):
    k = int(x)
    for j in range(1, m):
        P[0, j] = P[k, j - 1]


@pytest.mark.parametrize(
    ("function", "argument", "is_exact"),
    [(meets_by_data, np.array([2]), True), (meets_by_a_name_of_data, np.array([2]), True), (may_meet, 2.5, False)],
)
def test_only_what_comes_from_data_meets_for_sure(function, argument, is_exact):
    """A schedule that lets accesses meet is refuted where they do for some data, and else not proved."""
    P = np.arange(180.0).reshape(20, 9)
    plan = orion.parallel_for(function).plan(P, argument, 5).function
    checker = _Checker(plan, {}, lambda *_: None, (), ())
    (conflict,) = in_one_round({"P": uses_of(checker.found[len(plan.loops) - 1], checker.context)["P"]}, True)
    assert not conflict.relation.is_empty()
    assert conflict.is_exact is is_exact
