"""Dependences that there are at some sizes only, or under a condition only: which `for` carries one."""

import islpy as isl
import numpy as np
import pytest

import orion
from tests.oracles.nests import ArraySpec, Nest
from tests.oracles.tally import Tally
from tests.oracles.verdict_check import check_verdicts, verdicts_for_any

ARRAYS = {
    "a": ArraySpec("float64", "value", (20,), (40,)),
    "x": ArraySpec("float64", "sign", (20,), (40,)),
    "A": ArraySpec("float64", "value", (20, 20), (40, 40)),
}


def nest_of(body: str) -> Nest:
    lines = body.replace("; ", "\n        ")
    source = f"def nest(a, x, A, n, m):\n    t = 0.0\n    for i in range(n):\n        {lines}\n    return t\n"
    return Nest(source, ARRAYS, {"n": (8, 12), "m": (5, 9)}, 0)


def outer_verdict(nest: Nest):
    verdicts = verdicts_for_any(orion.parallel_for(nest.function()), nest.arguments())
    check_verdicts(verdicts, nest, Tally(), thorough=True)
    return verdicts[0]


SIZES = [
    # a negative subscript meets another one where the array is small: is it as small as that?
    ("A[i - 2, 0] = x[i]", False),  # with n - 2 rows, A[-2] is A[n - 4]
    ("A[i - 2, 0] = A[i + 5, 1]", True),  # there are n + 5 rows
    ("A[i - 2, 0] = A[i - 3, 1]", False),
    ("A[i - 2, 0] = A[2*i - 8, 1]", True),  # n - 2 rows are 2 n - 9 for n <= 7 only, and there are 8
    ("A[i - 2, 0] = A[n, 1]", True),
    ("A[i - 2, 0] = A[m, 1]", False),
    ("A[-i - 1, 0] = A[i, 1]", True),
    ("if i < 3:\n            A[i + 9, 1] = x[i]\n        A[i - 2, 0] = x[i]", False),  # n may be 20
    ("if n < 9:\n            A[i - 2, 0] = A[i + 5, 1]", True),
    # what may not happen says nothing of the sizes
    ("if x[i] > 0.0:\n            A[i - 2, 0] = A[i + 5, 1]", False),
    ("A[i - 2, 0] = A[i + 5, 1] if x[i] > 0.0 else 1.0", False),
    ("A[i - 2, 0] = A[int(x[i]) + 5, 1]", False),
    ("A[i - 2, 0] = 1.0\n        for k in range(int(x[i])):\n            A[i + 5, 1] = 2.0", False),
]

CONDITIONS = [
    # the one or the other expression
    ("a[i] = a[i + 1] if i >= n else x[i]", True),
    ("a[i] = x[i] if i < n else a[i + 1]", True),
    ("a[i] = a[0] if i == 0 else x[i]", True),
    ("a[i] = a[0] if i < 2 else x[i]", False),
    ("a[i] = a[i - 1] if i > n - 2 and i >= n else x[i]", True),
    ("a[i] = a[i + 1] if x[i] >= n else x[i]", False),
    ("a[i] = (a[n] if i < n else a[i + 1]) if i >= m else a[n + 1]", True),
    ("a[i] = (a[i + 1] if i < n else a[n]) if i >= m else a[n + 1]", False),
    # scalars that trips use in a condition only
    ("if i == 3:\n            a[i] = t\n            t = x[i]", True),
    ("if i <= 3:\n            a[i] = t\n            t = x[i]", False),
    ("if i < n:\n            a[i] = x[i]\n        else:\n            a[i] = t\n            t = x[i]", True),
    ("if i > m:\n            a[i] = x[i]\n        else:\n            a[i] = t\n            t = x[i]", False),
    ("if i == 3:\n            a[i] = t\n            t = x[i]\n        a[i] = t", False),
    ("if x[i] == 3.0:\n            a[i] = t\n            t = x[i]", False),
    ("m = i\n        if i == m:\n            a[i] = t\n            t = x[i]", False),
]


@pytest.mark.parametrize(("body", "is_parallel"), SIZES, ids=[row[0] for row in SIZES])
def test_sizes_that_the_arrays_do_not_allow_make_no_dependence(body: str, is_parallel: bool):
    assert outer_verdict(nest_of(body)).is_parallel == is_parallel


@pytest.mark.parametrize(("body", "is_parallel"), CONDITIONS, ids=[row[0] for row in CONDITIONS])
def test_what_is_done_under_a_condition_depends_under_it_only(body: str, is_parallel: bool):
    assert outer_verdict(nest_of(body)).is_parallel == is_parallel


INNER = [
    # the loop over i is not affine (a `while` in it); that over j is, and i is in its range
    ("range(2, n)", "a[j - i] = a[j]", False),
    ("range(n)", "A[-j - 1, j] = A[0, n + 5]", True),  # a[-j - 1] counts from the end for all j >= i >= 0
    ("range(-n, n)", "A[-j - 1, j] = A[0, n + 5]", False),
    ("range(n - 1, -1, -1)", "A[-j - 1, j] = A[0, n + 5]", True),
    ("range(n - 1, -9, -1)", "A[-j - 1, j] = A[0, n + 5]", False),
    ("range(0, n)", "a[j + 1] = a[j] if i < 0 else x[j]", True),
    ("range(0, n)", "a[j + 1] = a[j] if i < 1 else x[j]", False),
]


@pytest.mark.parametrize(("around", "body", "is_parallel"), INNER, ids=[f"{a} {b}" for a, b, _ in INNER])
def test_the_range_of_a_loop_around_is_known(around: str, body: str, is_parallel: bool):
    source = (
        f"def nest(a, x, A, n):\n    for i in {around}:\n        w = 2\n        while w > 0:\n            w -= 1\n"
        f"        for j in range(i, n):\n            {body}\n"
    )
    nest = Nest(source, ARRAYS, {"n": (4, 6)}, 0)
    _, verdict = verdicts_for_any(orion.parallel_for(nest.function()), nest.arguments())
    check_verdicts([verdict], nest, Tally(), thorough=True)
    assert verdict.is_parallel == is_parallel


def test_a_condition_on_a_scalar_that_changes_meanwhile_is_none():
    source = (
        "def nest(n, e):\n    t = 0.0\n    for i in range(n):\n        for j in range(n):\n"
        "            if j == e:\n                t = 0.5 * t + 1.0\n        e = i % 3\n    return t\n"
    )
    nest = Nest(source, {}, {"n": (5, 7), "e": (2, 2)}, 0)
    outer, inner = orion.parallel_for(nest.function()).plan(**nest.arguments()).verdicts
    relations = [d.relation for verdict in (outer, inner) for d in verdict.carried if d.array == "t"]
    assert relations
    assert not any("e" in isl.Map(text).get_var_names(isl.dim_type.param) for text in relations)


def test_a_bound_of_a_loop_around_that_is_not_affine_makes_no_error():
    source = (
        "def nest(A, n):\n    for i in range(2):\n        for j in range(i * n):\n            A[i, i] += 1.0\n"
        "            for k in range(n):\n                A[j, k] = 0.5\n"
    )
    nest = Nest(source, {"A": ArraySpec("float64", "value", (6, 6), (9, 9))}, {"n": (5, 7)}, 0)
    mine, theirs = nest.arguments(), nest.arguments()
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(nest.function())(**mine)
    nest.function()(**theirs)
    np.testing.assert_array_equal(mine["A"], theirs["A"])


def test_sizes_at_which_a_dependence_was_left_out_are_refused():
    nest = nest_of("A[i - 2, 0] = A[i + 5, 1]")
    arguments = nest.arguments() | {"A": np.zeros((12, 2))}
    with pytest.raises(orion.OutOfBoundsError):
        orion.parallel_for(nest.function())(**arguments)
