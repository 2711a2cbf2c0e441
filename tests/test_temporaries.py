"""Arrays and sizes that helpers and rounds make for themselves: the loops around them are as parallel as without, and
the results are Python's, bit for bit, on any number of workers."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from tests.trials import worker_counts

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "error::orion.UnprovedWarning")


def accelerations(pos, mass):
    n = pos.shape[0]
    acc = np.zeros_like(pos)
    for i in range(n):
        for j in range(n):
            if i != j:
                d = pos[j] - pos[i]
                r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-3
                acc[i] += mass[j] * d / (r2 * np.sqrt(r2))
    return acc


def accelerations_into(pos, mass, out):
    n = pos.shape[0]
    for i in range(n):
        out[i] = 0.0
        for j in range(n):
            d = pos[j] - pos[i]
            r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-3
            out[i] += mass[j] * d / (r2 * np.sqrt(r2))


def accelerations_by_element(pos, mass):
    n, dims = pos.shape
    acc = np.zeros((n, dims))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            r2 = 1e-3
            for k in range(dims):
                r2 += (pos[j, k] - pos[i, k]) * (pos[j, k] - pos[i, k])
            w = mass[j] / (r2 * np.sqrt(r2))
            for k in range(dims):
                acc[i, k] += w * (pos[j, k] - pos[i, k])
    return acc


def accelerations_in_turn(pos, mass):
    n = pos.shape[0]
    acc = np.zeros_like(pos)
    d = np.empty(3)
    for i in range(n):
        for j in range(n):
            for k in range(3):
                d[k] = pos[j, k] - pos[i, k]
            r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-3
            for k in range(3):
                acc[i, k] += mass[j] * d[k] / (r2 * np.sqrt(r2))
    return acc


def leapfrog(pos, vel, mass, out, dt, steps):
    for _t in range(steps):
        acc = accelerations(pos, mass)
        vel += dt * acc
        pos += dt * vel


def one_update(pos, vel, mass, out, dt, steps):
    for _t in range(steps):
        acc = accelerations(pos, mass)
        pos += dt * acc


def into_an_argument(pos, vel, mass, out, dt, steps):
    for _t in range(steps):
        accelerations_into(pos, mass, out)
        vel += dt * out
        pos += dt * vel


def by_element(pos, vel, mass, out, dt, steps):
    n = pos.shape[0]
    for _t in range(steps):
        acc = accelerations_by_element(pos, mass)
        for i in range(n):
            for k in range(3):
                vel[i, k] += dt * acc[i, k]
                pos[i, k] += dt * vel[i, k]


def in_turn(pos, vel, mass, out, dt, steps):
    for _t in range(steps):
        acc = accelerations_in_turn(pos, mass)
        vel += dt * acc
        pos += dt * vel


def kick_drift_kick(pos, vel, mass, out, dt, steps):
    for _t in range(steps):
        acc = accelerations(pos, mass)
        vel += 0.5 * dt * acc
        pos += dt * vel
        acc = accelerations(pos, mass)
        vel += 0.5 * dt * acc


def kick_drift_kick_by_element(pos, vel, mass, out, dt, steps):
    n = pos.shape[0]
    for _t in range(steps):
        acc = accelerations(pos, mass)
        for i in range(n):
            for k in range(3):
                vel[i, k] += 0.5 * dt * acc[i, k]
        for i in range(n):
            for k in range(3):
                pos[i, k] += dt * vel[i, k]
        acc = accelerations(pos, mass)
        for i in range(n):
            for k in range(3):
                vel[i, k] += 0.5 * dt * acc[i, k]


def one_before(pos, vel, mass, out, dt, steps):
    acc = accelerations(pos, mass)
    for _t in range(steps):
        vel += 0.5 * dt * acc
        pos += dt * vel
        acc = accelerations(pos, mass)
        vel += 0.5 * dt * acc


BODIES = [
    leapfrog, one_update, into_an_argument, by_element, in_turn, kick_drift_kick, kick_drift_kick_by_element, one_before
]  # fmt: skip


def bodies(count, steps=3):
    given = np.random.default_rng(1)
    return given.random((count, 3)), given.random((count, 3)), given.random(count), np.zeros((count, 3)), 0.01, steps


@pytest.mark.parametrize("count", [23, 1, 0])
@pytest.mark.parametrize("function", BODIES, ids=lambda one: one.__name__)
def test_bodies(function, count):
    expected = bodies(count)
    function(*expected)
    for workers in worker_counts(1, 2, 4):
        with orion.session("threads", workers, force_parallel=True):
            ours = orion.parallel_for(function, fastmath=False)
            arguments = bodies(count)
            ours.plan(*arguments).check()
            ours(*arguments)
        for one, other in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", BODIES, ids=lambda one: one.__name__)
def test_the_loops_over_bodies_are_shared_out(function):
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*bodies(40))
    assert {loop.strategy for loop in plan.loops} <= {"independent", "1d"}


# ---------------------------------------------------------------- arrays that live in one loop, and those that do not


def handed_on(A, out, steps):
    """`row` is made in a loop, and read after it."""
    for _t in range(steps):
        row = A[0] * 1.0
        for i in range(A.shape[0]):
            row = A[i] * 2.0
            out[i] += row[0]
        for j in range(A.shape[1]):
            A[0, j] += row[j]


def made_twice(A, out, steps):
    for _t in range(steps):
        tmp = A * 2.0
        for i in range(A.shape[0]):
            tmp = A * out[i]
            out[i] += tmp[i, 0]
        A += 0.125 * tmp


def further_in(A, out, steps):
    """`B` is made in a serial loop inside the rounds, which is serial because of it."""
    n = A.shape[0]
    for _t in range(steps):
        for _s in range(3):
            B = A.copy()
            for i in range(1, n - 1):
                A[i] = 0.5 * (B[i - 1] + B[i + 1])
        A[0] = A[n - 1] * 0.5


def both(A, out, steps):
    n = A.shape[0]
    for _t in range(steps):
        acc = np.zeros(n)
        for i in range(n):
            w = A[:, 0] * A[i, 0]
            acc[i] = w[0] + w[n - 1]
        for _s in range(2):
            B = A.copy()
            for i in range(1, n - 1):
                A[i] = 0.5 * (B[i - 1] + B[i + 1]) + acc[i]
        out += acc


# ---------------------------------------------------------------- sizes


def size_in_a_round(A, out, steps):
    for _t in range(steps):
        n, m = A.shape
        last = n - 1
        for i in range(last, -1, -2):
            out[i] += A[last - i, m - 1]


def size_of_an_array_made(A, out, steps):
    for _t in range(steps):
        B = A[1:, 0] * 2.0
        m = B.shape[0]
        for i in range(m):
            out[i] += B[i]
        A += 0.5


def the_same_in_branches(A, out, steps):
    for t in range(steps):
        if t % 2 == 0:
            n = A.shape[0]
            for i in range(n):
                out[i] += A[i, 0]
        else:
            n = A.shape[0]
            for i in range(n):
                out[i] -= A[i, 1]


def one_name_two_sizes(A, out, steps):
    for _t in range(steps):
        m = A.shape[1]
        for j in range(m):
            out[j] = 0.5 * out[j] + A[0, j]
        m = A.shape[0]
        for i in range(m):
            out[i] = 0.5 * out[i] + A[i, 0]


def before_it_is_given(A, out, steps):
    n = 2
    for _t in range(steps):
        for i in range(n):
            out[i] += A[i, 0]
        n = A.shape[0]


def numbers_that_are_equal(A, out, steps):
    for t in range(steps):
        if t % 2:
            k = 1
        else:
            k = 1.0
        for i in range(A.shape[0]):
            out[int(k) - 1 + i] += A[i, 0] / k + (k + 2) // 2


def product_of_sizes(A, out, steps):
    """Rounds add to `out` alone, and are shared out: the loop that fills `flat` is serial by itself."""
    for _t in range(steps):
        n, m = A.shape
        k = n * m
        flat = np.zeros(k)
        for i in range(n):
            for j in range(m):
                flat[i * m + j] = A[i, j]
        for q in range(min(k, out.shape[0])):
            out[q] += flat[k - 1 - q]


def of_a_name_that_changes(A, out, steps):
    for _t in range(steps):
        steps -= 1
        n = steps
        for i in range(n):
            out[i] += A[i, 0]


def in_a_while(A, out, steps):
    r = 0
    while r < steps:
        n = A.shape[0]
        half = n // 2
        tmp = A * 2.0
        for i in range(half):
            out[i] = tmp[i + half, 0] + out[i]
        for i in range(n):
            A[i] = tmp[i] * 0.25
        r += 1


OTHERS = [
    handed_on, made_twice, further_in, both, size_in_a_round, size_of_an_array_made, the_same_in_branches,
    one_name_two_sizes, before_it_is_given, numbers_that_are_equal, of_a_name_that_changes, in_a_while,
    product_of_sizes,
]  # fmt: skip


@pytest.mark.parametrize(("shape", "steps"), [((30, 5), 4), ((5, 5), 1), ((30, 5), 0)])
@pytest.mark.parametrize("function", OTHERS, ids=lambda one: one.__name__)
def test_results_are_those_of_python(function, shape, steps):
    given = np.random.default_rng(2).random(shape)
    expected = given.copy(), np.zeros(shape[0])
    function(*expected, steps)
    for workers in worker_counts(1, 2, 4):
        with orion.session("threads", workers, force_parallel=True):
            ours = orion.parallel_for(function, fastmath=False)
            arguments = given.copy(), np.zeros(shape[0])
            ours.plan(*arguments, steps).check()
            ours(*arguments, steps)
        for one, other in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "function",
    [further_in, size_in_a_round, size_of_an_array_made, the_same_in_branches, in_a_while],
    ids=lambda one: one.__name__,
)
def test_loops_over_sizes_given_in_rounds_are_shared_out(function):
    with orion.session("threads", 2, force_parallel=True):
        plan = orion.parallel_for(function).plan(np.ones((30, 5)), np.zeros(30), 4)
    assert "serial" not in {loop.strategy for loop in plan.loops}


def narrow(a, out, k, steps):
    for _t in range(steps):
        n = k - 120
        for i in range(n):
            out[i] += a[i]


def test_narrow_integers_stay_narrow():
    ours = orion.parallel_for(narrow)
    for k in (np.int8(127), np.int8(-8), np.int16(127), 125):
        mine, theirs = np.zeros(150), np.zeros(150)
        with np.errstate(over="ignore"):
            narrow(np.arange(150.0), theirs, k, 2)  # -8 - 120 is -128, 8 bits wide
            ours(np.arange(150.0), mine, k, 2)
        np.testing.assert_array_equal(mine, theirs)
