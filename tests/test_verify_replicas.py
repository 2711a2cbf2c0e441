"""The proof that workers which pull copies together do not wait for ever, against plans in which they would."""

from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.errors import PlanError
from orion.verify.replicas import prove_replicas


@orion.parallel_for
def add(given, x, y):
    for i in range(given.shape[0]):
        x[i % 4] += given[i]
        y[i % 4] += given[i]


def planned():
    policy = orion.elastic(mode="sync", alpha=0.5)
    given = [orion.replicate(np.zeros(4), policy=policy) for _ in range(2)]
    with orion.session("threads", 2, force_parallel=True):
        return add.plan(np.ones(100), *given).function.loops[0].nest


def test_plans_hold():
    prove_replicas(planned(), 2, waits=False, takes=False, ends_early=False)
    prove_replicas(planned(), 1, waits=True, takes=True, ends_early=True)


@pytest.mark.parametrize(
    ("change", "text"), [("waits", "wait for ever"), ("takes", "wait for ever"), ("ends_early", "last pull")]
)
def test_changed_plans_do_not(change, text):
    given = {"waits": False, "takes": False, "ends_early": False}
    with pytest.raises(PlanError, match=text):
        prove_replicas(planned(), 2, **(given | {change: True}))


def test_pulls_are_to_be_stable():
    with pytest.raises(PlanError, match="not stable"):
        prove_replicas(planned(), 4, waits=False, takes=False, ends_early=False)


def changed(**values):
    """The nest, its first replica with other values."""
    nest = planned()
    first, *others = nest.function.replicas
    function = replace(nest.function, replicas=(replace(first, **values), *others))
    return replace(nest, function=function)


def test_policies_go_together_and_centres_are_left_alone():
    with pytest.raises(PlanError, match="together"):
        prove_replicas(changed(policy=orion.local_sgd()), 2, waits=False, takes=False, ends_early=False)
    with pytest.raises(PlanError, match="used beside"):
        prove_replicas(changed(array="given"), 2, waits=False, takes=False, ends_early=False)
