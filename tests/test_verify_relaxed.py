"""The proof that no update of a buffer is lost or too late, against plans in which one would be."""

from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.errors import PlanError
from orion.plan.relaxed import NOT_RELAXED, How
from orion.verify.relaxed import prove_relaxed


@orion.parallel_for
def count(group, late):
    for i in range(group.shape[0]):
        late[group[i]] += 1.0


@orion.parallel_for
def strips(group, late):
    for i in range(group.shape[0]):
        late[group[i], 1:3] += 1.0


def planned(function=count, shape=(5000,), **options):
    plan = function.plan(np.arange(100) % 7, orion.buffer(np.zeros(shape), max_delay=40, **options))
    return plan.function.loops[0]


def test_plans_hold():
    for loop in (planned(), planned(deterministic=True), planned(strips, (5000, 4)), planned(strips, (3, 4))):
        prove_relaxed(loop.nest, loop.relaxed, waits=False)


CHANGES = {
    "lost": (lambda relaxed: NOT_RELAXED, "never be applied"),
    "too rare": (lambda relaxed: replace(relaxed, every=41), "later than 40"),
    "never": (lambda relaxed: replace(relaxed, every=0), "later than 40"),
    "too late": (lambda relaxed: replace(relaxed, max_delay=41), "later than 40"),
    "read": (lambda relaxed: changed(relaxed, how=How.READ), "not be found"),
    "unlisted": (lambda relaxed: changed(relaxed, how=How.LISTED, leading=0), "not be found"),
    "finer": (lambda relaxed: changed(relaxed, how=How.LISTED, leading=2), "not be found"),
}


def changed(relaxed, **values):
    return replace(relaxed, arrays=tuple(replace(one, **values) for one in relaxed.arrays))


@pytest.mark.parametrize("name", [*CHANGES])
def test_changed_plans_do_not(name):
    change, text = CHANGES[name]
    loop = planned()
    with pytest.raises(PlanError, match=text):
        prove_relaxed(loop.nest, change(loop.relaxed), waits=False)


def test_a_list_of_rows_holds_no_elements_of_other_rows():
    loop = planned(strips, (5000, 4))
    assert loop.relaxed.arrays[0].how is How.LISTED
    with pytest.raises(PlanError, match="not be found"):
        prove_relaxed(loop.nest, changed(loop.relaxed, leading=2), waits=False)


def test_slices_are_not_added_at_once():
    loop = planned(strips, (5000, 4))
    with pytest.raises(PlanError, match="cannot be applied at once"):
        prove_relaxed(loop.nest, changed(loop.relaxed, how=How.AT_ONCE), waits=False)


def test_a_fixed_order_is_kept():
    loop = planned(deterministic=True)
    for relaxed, waits in ((replace(loop.relaxed, deterministic=False), False), (loop.relaxed, True)):
        with pytest.raises(PlanError, match="fixed order"):
            prove_relaxed(loop.nest, relaxed, waits=waits)
