"""What is shown of a plan is what a call runs: text, data, schedule and check are read from the value that runs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import orion
from orion.plan.plan import Member
from orion.reasons import Reason, ReasonKind
from tests.inspect_loops import CASES
from tests.shown_runs import arguments_of, ran, shown, told_strategies, told_workers
from tests.trap_loops import TRAPS
from tests.whole_functions import cases

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import sgd_mf
from ratings_data import Shape, generate

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def grad_step(X, y, w, grad):
    for s in range(X.shape[0]):
        e = X[s] @ w - y[s]
        for f in range(X.shape[1]):
            grad[f] += e * X[s, f]


def train(X, y, w, grad, epochs):
    for _epoch in range(epochs):
        for f in range(X.shape[1]):
            grad[f] = 0.0
        for s in range(X.shape[0]):
            e = X[s] @ w - y[s]
            for f in range(X.shape[1]):
                grad[f] += e * X[s, f]
        for f in range(X.shape[1]):
            w[f] -= 1e-9 * grad[f]


def gauss_seidel(A, sweeps):
    for _t in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def two_grids(A, B, C):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[i, j] = A[i, j] + 1.0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            C[i, j] = A[i, j] + B[i, A.shape[1] - 1 - j]


def samples(count, epochs=None):
    rng = np.random.default_rng(0)
    X, y = rng.random((count, 64)), rng.random(count)
    return X, y, np.zeros(64), np.zeros(64), *([] if epochs is None else [epochs])


def ratings_and_factors(count, *more):
    ratings = generate(Shape(900, 700, count, (0.9, 1.2), (60, 60)))
    R = orion.sparse((ratings.users, ratings.items), ratings.stars, shape=ratings.shape)
    rng = np.random.default_rng(1)
    return R, rng.random((900, 16), np.float32), rng.random((700, 16), np.float32), *more


def seen():
    return np.ones(900, np.float32), np.ones(700, np.float32)


EXAMPLES = {
    "example sgd": (sgd_mf.sgd.__wrapped__, lambda: ratings_and_factors(100_000, 0.01, 0.05, 3)),
    "example sgd, few": (sgd_mf.sgd.__wrapped__, lambda: ratings_and_factors(40, 0.01, 0.05, 3)),
    "example adagrad": (sgd_mf.adagrad.__wrapped__, lambda: ratings_and_factors(100_000, *seen(), 0.01, 0.05, 3)),
    "example adagrad, few": (sgd_mf.adagrad.__wrapped__, lambda: ratings_and_factors(40, *seen(), 0.01, 0.05, 3)),
    "example rmse": (sgd_mf.rmse.__wrapped__, lambda: ratings_and_factors(100_000)),
    "example rmse, few": (sgd_mf.rmse.__wrapped__, lambda: ratings_and_factors(40)),
}
FUNCTIONS = {
    "gradient": (grad_step, lambda: samples(200_000)),
    "gradient of few": (grad_step, lambda: samples(10)),
    "epochs": (train, lambda: samples(200_000, 3)),
    "epochs of few": (train, lambda: samples(10, 3)),
    "Gauss-Seidel": (gauss_seidel, lambda: (np.zeros((800, 800)), 5)),
    "small Gauss-Seidel": (gauss_seidel, lambda: (np.zeros((20, 20)), 5)),
    "neighbours": (two_grids, lambda: tuple(np.zeros((1500, 1000)) for _ in range(3))),
    "small neighbours": (two_grids, lambda: tuple(np.zeros((30, 20)) for _ in range(3))),
}
GOLDEN = {
    f"golden {function.__name__}": (function, lambda case=case: arguments_of(*case)) for function, case in CASES.items()
}
TRAPPED = {f"trap {function.__name__}": (function, make) for function, (make, _) in TRAPS.items()}
WHOLE = {name: (function, lambda name=name: cases()[name][1]) for name, (function, _) in cases().items()}
EVERY = {**EXAMPLES, **FUNCTIONS, **GOLDEN, **TRAPPED, **WHOLE}


def planned(name, **options):
    function, make = EVERY[name]
    return orion.parallel_for(**options)(function), make()


@pytest.mark.parametrize("name", EVERY)
def test_what_is_shown_is_what_runs(name, monkeypatch):
    """Lines, blocks, the dimension that is shared out, workers and copies, in data and text."""
    function, arguments = planned(name)
    with orion.session("threads", 2):
        plan = function.plan(*arguments)
        data, text = plan.to_dict(), str(plan)
        assert shown(data, plan.function.program.function.source) == ran(monkeypatch, function, arguments)
    mine = [loop for loop in data["loops"] if loop["is_written_by_user"]]
    assert list(told_workers(text)) == [loop["runs_on"] for loop in mine]
    assert list(told_strategies(text)) == [loop["strategy"] for loop in mine] == [loop.strategy for loop in plan.loops]
    assert plan.runs_on == max((loop["runs_on"] for loop in data["loops"]), default=1)


def test_what_was_considered_is_told_with_its_time_and_the_reason():
    function, arguments = planned("small Gauss-Seidel")
    with orion.session("threads", 2):
        plan = function.plan(*arguments)
    (other,) = plan.considered
    assert other.name.startswith("wavefront: tiles of ")
    assert 1e3 < other.nanoseconds < 1e6
    assert "more than it gains" in other.reason.message
    assert other.name in str(plan).replace("\n" + " " * 14, " ")
    assert plan.to_dict()["considered"][0]["name"] == other.name
    assert "Considered, and not taken" in plan._repr_html_()


def test_a_loop_that_only_sizes_keep_from_another_order_is_parallel_and_runs_as_written():
    function, arguments = planned("small Gauss-Seidel")
    with orion.session("threads", 2):
        plan = function.plan(*arguments)
        assert (plan.strategy, plan.runs_on, plan.is_parallel) == ("serial", 1, True)
        assert [reason.code for reason in plan.reasons if reason.code >= "ORN120"] == ["ORN120"]
        assert plan.considered[0].name.startswith("wavefront: tiles of ")
        assert plan.schedule().tiles == 1


def test_loops_that_are_run_as_one_are_shown_in_its_blocks():
    function, arguments = planned("neighbours")
    with orion.session("threads", 2):
        plan = function.plan(*arguments)
    assert [isinstance(loop.form, Member) for loop in plan.loops] == [True, True]
    (fused,) = plan.function.loops
    assert [(loop.strategy, loop.space, loop.cuts[0]) for loop in plan.loops] == [
        (fused.strategy, fused.space, fused.cuts[0])
    ] * 2


@pytest.mark.parametrize("name", ["gradient", "small Gauss-Seidel", "Gauss-Seidel", "k-means", "golden shift"])
def test_what_a_plan_holds_is_one_line_at_the_prompt(name):
    function, arguments = planned(name)
    with orion.session("threads", 2):
        plan = function.plan(*arguments)
        values = [
            *(plan, plan.function, plan.schedule(loop=0)),
            *(plan.loops, plan.dependences, plan.verdicts, plan.reasons, plan.placements, plan.considered),
            *(one for loop in plan.loops for one in (loop.nest, loop.analysis, loop.parts, loop.form)),
        ]
    for value in values:
        for one in value if isinstance(value, tuple) else (value,):
            assert "\n" not in repr(one)
            assert len(repr(one)) < 300
    line = function.__wrapped__.__code__.co_firstlineno
    assert repr(plan.loops[0]).endswith(f"in line {line + 1}, {plan.runs_on} worker{'s' * (plan.runs_on > 1)}>")


def test_a_verdict_names_the_arrays_that_must_be_private():
    def smoothed(A, out, row):
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                row[j] = 2.0 * A[i, j]
            for j in range(1, A.shape[1]):
                out[i, j] = row[j] + row[j - 1]

    with orion.session("threads", 2):
        plan = orion.parallel_for(smoothed).plan(np.zeros((1000, 900)), np.zeros((1000, 900)), np.zeros(900))
    outer, *inner = plan.verdicts
    assert (outer.is_parallel, outer.private) == (True, ("row",))
    assert [verdict.private for verdict in inner] == [(), ()]
    assert "parallel given row of its own for each iteration" in " ".join(str(plan).split())
    assert plan.to_dict()["loops"][0]["verdicts"][0]["private"] == ["row"]


def summed_columns(data, mean):
    for j in range(data.shape[1]):
        mean[j] = 0.0
        for i in range(data.shape[0]):
            mean[j] += data[i, j]
        mean[j] /= data.shape[0]


def test_conflicts_of_a_new_order_are_those_of_its_loops():
    """As written no two iterations of j meet; the loop over i that runs in its place has iterations that do."""
    with orion.session("threads", 2):
        plan = orion.parallel_for(summed_columns).plan(np.zeros((1000, 1000)), np.zeros(1000))
    assert plan.strategy == "1d"
    text = " ".join(str(plan).split())
    assert "no two iterations touch the same element" not in text
    assert "mean iterations with the same j" in text
    assert plan.graph.number_of_edges() == len(plan.dependences) > 0


def test_what_was_not_found_out_is_said_of_a_loop_whose_tiles_wait():
    function, arguments = planned("Gauss-Seidel")
    with orion.session("threads", 2):
        plan = function.plan(*arguments)
    message = "not a stronger one: it would take too long: orders were not looked for"
    limit = Reason(ReasonKind.RULES_OUT, "ORN109", message, (plan.loops[0].nest.span,), "")
    loops = tuple(replace(loop, reasons=(*loop.reasons, limit)) for loop in plan.function.loops)
    capped = replace(plan, function=replace(plan.function, loops=loops))
    assert "a stronger one" in str(capped)
    assert "orders were not looked for [ORN109]" in " ".join(str(capped).split())
    assert "ORN109" in capped._repr_html_().split("<summary>")[0]


def test_neighbours_that_are_not_run_as_one_are_no_strategy():
    def shifted(A, B, C):
        for i in range(1, A.shape[0]):
            for j in range(A.shape[1]):
                B[i, j] = A[i, j] + 1.0
        for i in range(1, A.shape[0]):
            for j in range(A.shape[1]):
                C[i, j] = A[i, j] + B[i - 1, j]

    with orion.session("threads", 2):
        plan = orion.parallel_for(shifted).plan(*(np.zeros((1500, 1000)) for _ in range(3)))
    assert "ORN123" in {reason.code for reason in plan.reasons}
    text = str(plan)
    assert "fused       not fused with the loop in line" in text
    assert "[ORN123]" in text
    assert "simpler     fused" not in text
    assert "ORN123" in plan._repr_html_().split("<summary>")[0]
