"""Loops in rounds of serial ones: on how many workers a round runs, by what the middle round has to do."""

import numpy as np
import pytest

import orion
from orion.cost.worth import middle_round
from orion.ir.nodes import Const, For, Range, every
from orion.ir.spans import NOWHERE
from tests.loop_text import from_body


def descend(X, y, w, b, step):
    n = X.shape[0]
    for start in range(0, n, b):
        g = np.zeros(X.shape[1])
        for i in range(start, min(start + b, n)):
            g += (X[i] @ w - y[i]) * X[i]
        w -= step / b * g


@pytest.mark.parametrize(("b", "runs_on", "code"), [(32, 1, "ORN120"), (2_000_000, 1, "ORN121"), (15_000_000, 2, None)])
def test_minibatches_run_on_as_many_workers_as_one_keeps_busy(b, runs_on, code):
    X, y = (np.broadcast_to(np.zeros(1), shape) for shape in ((20_000_003, 16), (20_000_003,)))  # of no size in memory
    w = np.zeros(16)
    with orion.session("threads", 2):
        plan = orion.parallel_for(descend).plan(X, y, w, b, 0.1)
    (loop,) = (one for one in plan.loops if one.nest.dims == ("i",))
    assert loop.is_parallel
    assert loop.runs_on == runs_on
    assert code is None or code in {reason.code for reason in loop.reasons}


def test_triangles_are_shared_out():
    def triangle(A, x):
        for i in range(A.shape[0]):
            for j in range(i):
                A[i, j] = A[i, j] * x[j] + np.exp(x[i])

    with orion.session("threads", 2):
        plan = orion.parallel_for(triangle).plan(np.zeros((2000, 2000)), np.zeros(2000))
    assert plan.runs_on == 2


def test_a_middle_round_is_that_of_the_loops_around():
    function = from_body(
        """
        for i in range(2, n, 3):
            for j in range(i, 0, -2):
                for k in range(unknown):
                    a[k] = 0.0
        """,
        "a, n, unknown",
    )
    ranges = [loop.space for loop in every(For, *function.body)]
    assert middle_round(ranges, {"n": 20}) == (("i", 11), ("j", 5))
    assert middle_round([Range("i", Const(5, NOWHERE), Const(5, NOWHERE), Const(1, NOWHERE), NOWHERE)], {}) == (
        ("i", 5),
    )
