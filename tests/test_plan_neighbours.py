"""Loops that hand arrays over to one another choose the same axis to cut, where both may."""

import numpy as np
import pytest

import orion
from orion.cost.sizes import Sizes
from orion.frontend.parse import parse_function
from orion.ir.program import RunLoop
from orion.ir.types import ArrayType, ScalarType
from orion.passes.split import split_program
from orion.pipeline import REWRITES, through_passes
from orion.plan.neighbours import handovers
from orion.plan.planner import plan_program
from orion.plan.rewriting import Seen, variants_of

MATRIX = ArrayType("float64", 2)
INT = ScalarType("int64", weak=True)


def leapfrog(u, v, rounds):
    for _t in range(rounds):
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] = u[i, j] - 0.5 * (v[i, j] - v[i - 1, j])
        for i in range(v.shape[0]):
            for j in range(1, v.shape[1]):
                v[i, j] = v[i, j] - 0.5 * (u[i, j] - u[i, j - 1])


def once_by_columns(u, v, rounds):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = v[i, j] - v[i - 1, j]


def rows_then_columns(u, v, rounds):
    for _t in range(rounds):
        for i in range(u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = u[i, j - 1] * 0.5 + v[i, j]
        for j in range(u.shape[1]):
            for i in range(1, u.shape[0]):
                u[i, j] = u[i - 1, j] * 0.5 + v[i, j]


def planned(function, workers, shape=(600, 600), rounds=3):
    types = {"u": MATRIX, "v": MATRIX, "rounds": INT}
    program = split_program(through_passes(parse_function(function), types), types, None)
    shapes = {"u": shape, "v": shape}
    return plan_program(
        variants_of(program, types, Seen(program.function, REWRITES)),
        Sizes(shapes, {"rounds": rounds}, workers=workers),
    )


def axes(plan):
    return [{p.array: p.dim for p in loop.placements if p.kind == "partitioned"} for loop in plan.loops]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_both_cut_along_the_same_axis(workers):
    plan = planned(leapfrog, workers)
    first, second = axes(plan)
    assert first == second
    assert {"u", "v"} == set(first)
    assert [loop.cuts for loop in plan.loops] == [loop.cuts for loop in planned(leapfrog, 2).loops]


def test_a_loop_alone_takes_what_is_cheapest_for_itself():
    (own,) = axes(planned(once_by_columns, 2))
    assert own == {"u": 1, "v": 1}  # nothing moves; cut along axis 0, a row of v would


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_where_only_one_axis_is_legal_it_is_taken(workers):
    assert [own["u"] for own in axes(planned(rows_then_columns, workers))] == [0, 1]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_results(workers):
    u, v = np.random.default_rng(1).random((2, 61, 53))
    expected = u.copy(), v.copy()
    leapfrog(*expected, 5)
    with orion.session(workers=workers, force_parallel=True):
        orion.parallel_for(leapfrog)(u, v, 5)
    assert np.array_equal(u, expected[0])
    assert np.array_equal(v, expected[1])


def test_handovers_in_rounds():
    plan = planned(leapfrog, 2, rounds=3)
    numbers = [step.number for step in plan.program.steps[0].steps if isinstance(step, RunLoop)]
    assert numbers == [0, 1]
    times: dict[tuple[int, int, str], float] = {}
    for one in handovers(plan.program, plan.loops, {"rounds": 3}):
        key = one.first, one.second, one.array
        times[key] = times.get(key, 0) + one.times
    assert times == {(0, 1, "u"): 3, (0, 1, "v"): 3, (1, 0, "u"): 2, (1, 0, "v"): 2}
