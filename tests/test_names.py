"""Names that stand for more than one thing: loop variables that are read after their loop or bound other loops, scalars
that are loop variables too, names like those that the compiler makes; and steps that are arguments."""

import warnings

import numpy as np
import pytest

import orion
from orion.rewrites.reorder.apply import fresh_names
from tests.oracles.nest_check import check_compiled, check_proof, check_results, plain_result, prepare
from tests.oracles.nests import ArraySpec, Nest
from tests.oracles.tally import Tally
from tests.oracles.verdict_check import verdicts_for_any

ARRAYS = {
    "A": ArraySpec("float64", "value", (40, 40), (40, 40)),
    "a": ArraySpec("float64", "value", (12,), (12,)),
    "x": ArraySpec("float64", "sign", (12,), (12,)),
    "p": ArraySpec("int64", "whole", (12,), (12,)),
}
INTEGERS = {"n": (9, 9), "m": (7, 7), "k": (2, 2)}

AFTER = {
    "inner variable": "for i in range(n):\n    a[i] = 0.0\n    for j in range(m):\n        a[i] += x[j]\nreturn j",
    "read by an if": "for i in range(n):\n    a[i] = 0.0\n    for j in range(m):\n        a[i] += x[j]\n"
    "if a[j] > x[j]:\n    for i in range(m):\n        p[i] = j",
    "stored": "for i in range(n):\n    a[i] = 0.0\n    for j in range(m):\n        a[i] += x[j]\nx[j] += 1",
    "not always set": "for i in range(n):\n    for j in range(i % 3):\n        a[i] += x[j]\n        if x[j] > 0:\n"
    "            break\nreturn j",
    "both of a nest": "for i in range(n):\n    for j in range(m):\n        A[i, j] = 1.0\nreturn i, j, A[i, j]",
    "then bounds a loop": "for i in range(n):\n    for j in range(3):\n        A[i, j] += 1.0\n"
    "    for j in range(j, m):\n        A[i, j] += 2.0",
}
SETS = {
    "sum and variable": "s = 5\nfor i in range(n):\n    for s in range(3):\n        a[i] += x[i]\n    s += 4\nreturn s",
    "variable after sum": "s = 5\nfor i in range(n):\n    s += 2\n    for s in range(3):\n        a[i] += x[i]\n"
    "return s",
    "grows by a constant": "for i in range(n):\n    for j in range(3):\n        a[i] += x[j]\n    j = j + 2\nreturn j",
}
BOUNDS = {
    "of its own loop": "for n in range(n):\n    a[n] += x[n]\nreturn n",
    "of its own inner loop": "for i in range(n):\n    for i in range(i):\n        A[i, i] += 1.0",
    "of the loop around": "for j in range(m):\n    a[j] = j\nfor i in range(j):\n    for j in range(i):\n"
    "        A[i, j] += 1",
    "an argument that is set later": "for i in range(n):\n    a[i] += 1.0\nn = 3\nfor i in range(n):\n    a[i] += 2.0\n"
    "return n",
    "an argument": "for i in range(m):\n    for m in range(m):\n        A[i, m] += 1.0",
    "two loops further out": "for i in range(m):\n    for j in range(i, m):\n        for i in range(j):\n"
    "            A[i, j] += 1.0",
}
MADE = {
    "scalars": "for i in range(1, n):\n    for j in range(1, m):\n        x_low = A[i, j - 1] * 0.3\n"
    "        x0_step = x_low + A[i - 1, j]\n        A[i, j] = x0_step + x_low",
    "loops in a statement": "for i in range(n):\n    for j in range(m):\n        s = 0.0\n        for xu in range(9):\n"
    "            for xv in range(11):\n                s = 0.7 * s + A[xu, j + xv]\n        A[i, j] = s",
}
STEPS = {
    "up": "for i in range(0, n, k):\n    a[i] = x[i] + 1",
    "down": "for i in range(n - 1, 0, -k):\n    a[i] = x[i] + 1",
    "inside": "for i in range(n):\n    for j in range(1, m, k):\n        A[i, j] += x[j]",
    "of tiles": "for s in range(0, n, k):\n    for i in range(s, min(s + k, n)):\n        A[i, i + 1] += A[i, i]",
    "of tiles, down": "for s in range(n - 1, -1, -k):\n    for i in range(s, max(s - k, -1), -1):\n"
    "        A[i, i + 1] += A[i, i]",
    "one element": "for i in range(0, n, k):\n    a[0] = x[i]\n    p[i] = a[0] > 0",
}
CASES = {
    f"{kind}: {name}": body
    for kind, table in (("after", AFTER), ("sets", SETS), ("bounds", BOUNDS), ("made", MADE), ("steps", STEPS))
    for name, body in table.items()
}
COMPILED = ("after: inner variable", "bounds: two loops further out", "made: loops in a statement")


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_the_undecorated_function(case: str):
    text = "\n".join(f"    {line}" for line in CASES[case].splitlines())
    nest = Nest(f"def nest({', '.join([*ARRAYS, *INTEGERS])}):\n{text}\n", ARRAYS, INTEGERS, 5)
    expected = plain_result(nest.function(), nest)
    decorated = orion.parallel_for(nest.function())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = prepare(decorated, nest, 3, force=True)
        check_proof(prepared.plan, True, Tally())
        check_results(prepared, nest, expected)
        if case in COMPILED:
            check_compiled(decorated, nest, expected, prepared)


def after_a_loop(A, n):
    for i in range(1, n):
        w = 0
        for j in range(i):
            w = j
        A[i, w % 4 + 4] = A[i - 1, w % 4 + 3] + 1.0


def test_what_an_inner_loop_leaves_in_a_scalar_is_not_known():
    outer, inner = orion.parallel_for(after_a_loop).plan(np.zeros((50, 50)), 45).verdicts
    assert not outer.is_parallel
    assert inner.is_parallel


def tiled_by_hand(A, B, C, n, size):
    for ii in range(0, n, size):
        for jj in range(0, n, size):
            for i in range(ii, min(ii + size, n)):
                for j in range(jj, min(jj + size, n)):
                    for k in range(n):
                        C[i, j] += A[i, k] * B[k, j]


def test_tiles_of_an_unknown_size_are_parallel_inside():
    plan = orion.parallel_for(tiled_by_hand).plan(*(np.zeros((40, 40)) for _ in range(3)), 40, 8)
    assert plan.is_parallel
    assert plan.conditions == ("size == 8",)
    assert [verdict.is_parallel for verdict in plan.verdicts] == [True, True, True, True, False]
    arguments = {"A": np.zeros((40, 40)), "B": np.zeros((40, 40)), "C": np.zeros((40, 40)), "n": 40, "size": 8}
    unknown = verdicts_for_any(orion.parallel_for(tiled_by_hand), arguments)
    assert [verdict.is_parallel for verdict in unknown] == [False, False, True, True, False]


def test_no_name_of_the_user_begins_like_those_made_of_a_new_variable():
    assert fresh_names(3, {"x1", "x2_low", "x20", "x"}) == ["x0", "xx1", "xx2"]
