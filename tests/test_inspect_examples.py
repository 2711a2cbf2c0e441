"""The iterations that a plan names as an example are iterations of the call, and touch one element, as plain Python
runs them."""

import re

import numpy as np
import pytest

import orion
from benchmarks.polybench.kernels import KERNELS
from orion.inspect.text.conflicts import conflicts_of
from orion.inspect.text.fors import loops_around
from orion.plan.explain import is_certain, witness_pair
from tests.oracles.brute_force import record
from tests.trap_loops import TRAPS

CASES = {f"trap {function.__name__}": (function, make) for function, (make, _) in TRAPS.items()}
CASES |= {
    kernel.name: (kernel.function, lambda kernel=kernel: tuple(kernel.inputs("tiny").values()))
    for kernel in KERNELS
    if kernel.name in ("cholesky", "durbin", "gesummv", "jacobi-1d", "lu", "nussinov", "seidel-2d", "trmm")
}
PAIR = re.compile(r"(?:such as|e\.g\.) ((?:\w+=-?\d+(?:, | and )?)+)")


def named(function, values):
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return dict(zip(names, values, strict=True))


def told(loop):
    """The examples in the words of a plan: two iterations each, as values of the loop variables."""
    words = [f"such as {one.example}" for one in conflicts_of(loop)]
    for text in PAIR.findall("; ".join((*words, *(reason.message for reason in loop.reasons)))):
        for half in text.strip(", ").split(" and "):
            yield tuple(int(part.split("=")[1]) for part in half.split(", "))


@pytest.mark.parametrize("name", CASES)
def test_examples_are_iterations_of_the_call_that_conflict(name):
    function, make = CASES[name]
    arguments = named(function, make())
    with orion.session(workers=4):
        plan = orion.parallel_for(function).plan(*arguments.values())
    arrays = {name for name, value in arguments.items() if isinstance(value, np.ndarray)}
    for loop in plan.loops:
        around = len(loops_around(loop, plan.function))
        found = record(function, arguments, around + len(loop.nest.dims))
        conflicts = {
            (one[around:], other[around:]) for one, other in found.conflicts() if one[:around] == other[:around]
        }
        for one in filter(is_certain, loop.dependences):
            if one.array in arrays:
                assert witness_pair(one, len(loop.nest.dims), dict(loop.known)) in conflicts
        assert {*told(loop)} <= {one[around:] for one in found.iterations}


def test_no_example_is_named_where_no_iterations_of_the_call_conflict():
    def far(a, shift):
        for i in range(a.shape[0] - shift):
            a[i + shift] = 0.5 * a[i]

    parallel = orion.parallel_for(far)
    assert "i=0 and i=9" in str(parallel.plan(np.ones(1000), 9))
    assert " and i=" not in str(parallel.plan(np.ones(1000), 600))


def test_what_may_meet_is_not_said_to_meet():
    def counted(users, count):
        for k in range(users.shape[0]):
            count[users[k]] = 0.5 * count[users[k]] + 1.0

    plan = orion.parallel_for(counted).plan(np.zeros(9, int), np.ones(9))
    assert "may meet" in "; ".join(reason.message for reason in plan.reasons)


def beyond(a, k):
    for i in range(10):
        a[i + a.size // k] = a[i] + 1.0


def beyond_a_square(a, k):
    for i in range(10):
        a[i + k * k] = a[i] + 1.0


@pytest.mark.parametrize("function", [beyond, beyond_a_square])
def test_a_subscript_that_is_not_affine_gives_no_example(function):
    plan = orion.parallel_for(function).plan(np.ones(50), 3)
    assert {reason.code for reason in plan.reasons} == {"ORN103"}
    assert " and i=" not in "; ".join((str(plan), *(reason.message for reason in plan.reasons)))
    assert all(one["witness"] is None for one in plan.to_dict()["loops"][0]["dependences"])


def test_an_example_of_a_new_order_has_values_of_the_loop_variables():
    def swept(a, p, q):
        for i in range(a.shape[0]):
            for j in range(20):
                a[i, j] += p[i] * q[j]
            s = a[i].sum()
            for j in range(20):
                a[i, j] -= s
            p[i] = a[i].max()

    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(swept).plan(np.ones((30, 20)), np.ones(30), np.ones(20))
    assert plan.is_parallel
    assert "j=20" not in str(plan)
    assert "iterations with the same i meet in a" in str(plan)


def test_a_witness_has_the_values_of_the_variables():
    def every_other(a, n):
        for i in range(2, n, 2):
            a[i] = 0.5 * a[i - 2]

    plan = orion.parallel_for(every_other).plan(np.ones(50), 40)
    assert "such as i=2 and i=4" in str(plan)
    (dependence,) = plan.to_dict()["loops"][0]["dependences"]
    assert dependence["witness"] == [[2], [4]]


def test_a_conflict_that_the_sizes_do_not_allow_is_not_told_of():
    def down(a, b, n):
        for i in range(n - 1, -1, -1):
            b[5, i + 2] = a[i, 0]
            b[i + 1, 2 * i + 2] = b[0, -i]

    with orion.session(workers=2, force_parallel=True):
        parallel = orion.parallel_for(down)
        small, large = (str(parallel.plan(np.ones((9, 9)), np.ones((20, 30)), n)) for n in (5, 9))
    assert "(i) and (i-4)" not in small
    assert "(i) and (i-4)" in large
