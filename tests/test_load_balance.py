"""Loops whose work differs along the dimension that is cut: each worker gets about as much of it."""

from __future__ import annotations

import warnings

import islpy as isl
import numpy as np
import pytest

import orion
from benchmarks.polybench.kernels import KERNELS
from orion.cost.extents import parameter_values
from orion.cost.uneven import points_along
from orion.dependence.bounds import fix_parameters
from orion.sets.maps import Maps

TRIANGLES = ("syrk", "syr2k", "correlation", "covariance", "cholesky", "lu", "trisolv", "gramschmidt")


def shares(plan: orion.Plan, loop: orion.LoopPlan, workers: int) -> np.ndarray:
    """The share of each worker in the iterations of a planned loop, which isl counts one by one."""
    schedule = plan.schedule_of(loop, workers)
    values = parameter_values(plan.sizes.shapes, plan.sizes.integers)
    domain = fix_parameters(Maps().set(loop.analysis.domain), values)
    domain = domain.project_out(isl.dim_type.param, 0, domain.dim(isl.dim_type.param))
    counts = np.zeros(schedule.workers)
    for tile, owner in enumerate(schedule.owner):
        part = domain
        for dim, block in enumerate(np.unravel_index(tile, schedule.grid)):
            low, high = schedule.bounds[dim][block : block + 2]
            part = part.lower_bound_val(isl.dim_type.set, dim, isl.Val(int(low)))
            part = part.upper_bound_val(isl.dim_type.set, dim, isl.Val(int(high) - 1))
        counts[owner] += int(part.count_val().to_python())
    return counts / counts.sum()


def shared_out(plan: orion.Plan) -> list[orion.LoopPlan]:
    return [loop for loop in plan.function.loops if loop.space is not None]


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("name", TRIANGLES)
def test_workers_have_about_the_same_share_of_the_triangles_of_polybench(name, workers):
    kernel = next(one for one in KERNELS if one.name == name)
    with orion.session("threads", workers), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = orion.parallel_for(kernel.function).plan(*kernel.inputs("small").values())
    costliest = max(shared_out(plan), key=lambda loop: (len(loop.nest.limits), loop.iterations or 0))
    found = shares(plan, costliest, workers)
    assert found.max() <= 1.1 * found.min(), (costliest, found)


@orion.parallel_for
def rows_up_to(a, out):
    for i in range(a.shape[0]):
        for j in range(i):
            out[i] += a[i, j]


@orion.parallel_for
def columns_from(a):
    for i in range(a.shape[0]):
        for j in range(i, a.shape[1]):
            a[i, j] = a[i, j] * 2.0 + 1.0


@orion.parallel_for
def band(a, out, w):
    for i in range(a.shape[0]):
        for j in range(max(0, i - w), min(i, 300)):
            out[i] += a[i, j]


@orion.parallel_for
def rectangle(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += 1.0


def bounds_of(function, *arguments, workers=4):
    with orion.session("threads", workers):
        plan = function.plan(*arguments)
    (loop,) = shared_out(plan)
    return loop, plan.schedule_of(loop, workers)


@pytest.mark.parametrize(
    ("function", "more"), [(rows_up_to, (np.zeros(400),)), (columns_from, ()), (band, (np.zeros(400), 150))]
)
def test_users_loops_are_cut_by_what_each_iteration_has_to_do(function, more):
    a = np.zeros((400, 400))
    loop, schedule = bounds_of(function, a, *more)
    assert loop.space == 0
    rows = {
        "rows_up_to": np.arange(400),
        "columns_from": 400 - np.arange(400),
        "band": np.array([max(0, min(i, 300) - max(0, i - 150)) for i in range(400)]),
    }[function.__name__]
    each = np.zeros(schedule.workers)
    for block, owner in enumerate(schedule.owner):
        each[owner] += rows[schedule.bounds[0][block] : schedule.bounds[0][block + 1]].sum()
    assert each.max() <= 1.1 * each.min(), each


def test_rectangles_are_cut_evenly():
    _, schedule = bounds_of(rectangle, np.zeros((400, 300)))
    lengths = np.diff(schedule.bounds[0])
    assert lengths.max() - lengths.min() <= 1


def test_what_is_shown_is_what_is_cut(capsys):
    """The numbers of a triangle come out as the loop has them in every grid of workers."""
    a = np.random.default_rng(3).random((400, 400))
    expected = a.copy()
    for i in range(400):
        expected[i, i:] = expected[i, i:] * 2.0 + 1.0
    for workers in (1, 2, 3):
        got = a.copy()
        with orion.session("threads", workers):
            columns_from(got)
        np.testing.assert_array_equal(got, expected)


POINTS = [
    "{ [i, j, k] : 0 <= i < 40 and 0 <= j <= i and 0 <= k < 7 }",
    "{ [i, j, k] : 0 <= i < 40 and 0 <= j <= i and j <= k < i }",
    "{ [i, j] : 0 <= i < 40 and i <= 2 j < 80 }",
    "{ [i, j] : 0 <= i < 40 and 0 <= j <= i; [i, j] : 0 <= i < 40 and 0 <= j < 5 }",
    "{ [i] : 3 <= i < 40 }",
    "{ [i, j] : 10 <= i < 20 and i = j }",
    "{ [i, j, k] : 0 <= k < 20 and k <= j < 20 and k <= i < 20 }",
]
DIMENSIONS = [(text, dim) for text in POINTS for dim in range(isl.Set(text).dim(isl.dim_type.set))]


@pytest.mark.parametrize(("text", "dim"), DIMENSIONS)
def test_points_are_counted_nearly(text, dim):
    points = isl.Set(text)
    at = np.arange(-2, 45)
    exact = [int(points.fix_val(isl.dim_type.set, dim, isl.Val(int(value))).count_val().to_python()) for value in at]
    found = points_along(points, dim, at.astype(float))
    assert found is not None
    np.testing.assert_allclose(found, exact, atol=1 + 0.1 * max(exact))


def test_points_without_an_end_are_not_counted():
    assert points_along(isl.Set("{ [i, j] : 0 <= i < 9 and j >= i }"), 0, np.arange(9.0)) is None
