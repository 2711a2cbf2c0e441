"""What options and arguments of plans may be: anything else is refused at once, and said what to write."""

import numpy as np
import pytest

import orion
from orion.errors import ArgumentError, PlanError


def scaled(a, b):
    for i in range(a.shape[0]):
        a[i] = a[i] * b[i]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ordered": "yes"}, "write True or False, or None"),
        ({"ordered": 1}, "write True or False, or None"),
        ({"require_parallel": "no"}, "write True or False"),
        ({"fastmath": None}, "write True or False"),
    ],
)
def test_options_are_truth_values(options, told):
    with pytest.raises(ArgumentError, match=told):
        orion.parallel_for(**options)


@pytest.mark.parametrize("workers", ["two", 0, -1, 1.5])
def test_plans_are_checked_for_a_number_of_workers(workers):
    plan = orion.parallel_for(scaled).plan(np.ones(4), np.ones(4))
    for ask in (plan.check, plan.schedule):
        with pytest.raises(PlanError, match="at least one worker"):
            ask(workers)


def test_a_plan_is_made_for_shapes_that_a_call_takes():
    @orion.parallel_for
    def distances(W, H, out):
        for i in range(W.shape[0]):
            out[i] = W[i] @ H[i]

    for ask in (distances.plan, distances):
        with pytest.raises(ArgumentError, match=r"8(?s:.*)4|4(?s:.*)8"):
            ask(np.ones((2, 8)), np.ones((2, 4)), np.zeros(2))
