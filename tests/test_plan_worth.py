"""Whether loops inside serial ones are shared out: only where what it costs to start them is little next to their work.

Loops between scalar statements, branches or `while`s, and those with results, are started from Python in each round;
others in a compiled serial loop, for much less.
"""

import numpy as np
import pytest

import orion
from orion.plan.worth import STARTED_NS, SYNC_NS


def decaying(a, b, rounds):
    """The second loop needs the first of the same round, the first the second one of the round before."""
    for t in range(rounds):
        rate = 1.0 / (t + 1)
        for i in range(a.shape[0]):
            a[i] = a[i] * rate + b[a.shape[0] - 1 - i]
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def steady(a, b, rounds):
    for _ in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.5 + b[a.shape[0] - 1 - i]
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def by_mean(a, b, rounds):
    """A result of a loop is used by the next one."""
    for _ in range(rounds):
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i]
        for i in range(b.shape[0]):
            b[i] = b[i] * 0.3 - total


def where_flagged(a, b, rounds):
    for t in range(rounds):
        for i in range(a.shape[0]):
            a[i] = a[i] * 0.5 + b[a.shape[0] - 1 - i]
        if a[t] > 0.5:
            for i in range(b.shape[0]):
                b[i] = b[i] * 0.3 - a[a.shape[0] - 1 - i]


def plan_at(function, size):
    a = np.zeros(size)
    with orion.session("threads", 2):
        return orion.parallel_for(function).plan(a, a.copy(), 10)


@pytest.mark.parametrize("function", [decaying, by_mean, where_flagged], ids=lambda function: function.__name__)
def test_rounds_that_are_started_from_python_must_be_long(function):
    assert STARTED_NS > SYNC_NS
    assert plan_at(function, 2_000_000).runs_on == 2
    rounds = [loop for loop in plan_at(function, 2_000_000).loops if loop.strategy == "independent"]
    assert len(rounds) == 2
    small = plan_at(function, 200_000)
    assert not [loop for loop in small.loops if loop.runs_on > 1 and loop.origin is None]


def test_rounds_that_are_compiled_may_be_short():
    assert plan_at(steady, 200_000).runs_on == 2
    assert plan_at(steady, 1_000).runs_on == 1


def test_where_a_branch_is_not_worth_starting_the_loops_beside_it_still_are():
    """In the order that has the `if` run once, by one worker, rounds are compiled."""
    (loop,) = plan_at(where_flagged, 200_000).loops
    assert loop.origin is not None
    assert loop.runs_on == 2
