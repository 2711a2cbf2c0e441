"""The iterations that a plan names as an example are iterations of the call, and touch one element, as plain Python
runs them."""

import re

import numpy as np
import pytest

import orion
from benchmarks.polybench.kernels import KERNELS
from orion.inspect.text.conflicts import conflicts_of
from orion.inspect.text.telling import loops_around
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
