"""The 25 loops whose subscripts are read from arrays: right on any number of workers, and parallel where a property of
an array of subscripts makes them so."""

from __future__ import annotations

import numpy as np
import pytest

import orion
from benchmarks.indirect.loops import LOOPS
from tests.trials import worker_counts

BY_CONTENTS = {"permute", "invert", "update_rows", "scale_rows", "softmax_rows", "unpack_runs"}
ORDERED = [one for one in LOOPS if one.ordered]


def test_what_the_list_has():
    assert len({one.name for one in LOOPS}) == 25
    assert sum(one.repeats for one in LOOPS) >= 8
    assert sum(one.is_deep for one in LOOPS) >= 5
    assert 5 <= sum(one.ordered for one in LOOPS) <= 20


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("one", ORDERED, ids=lambda one: one.name)
def test_those_with_an_order_are_right(one):
    decorated = orion.parallel_for(one.function)
    expected = one.arguments(300)
    one.function(*expected)
    for workers in worker_counts(1, 2, 4):
        with orion.session(workers=workers, force_parallel=True):
            given = one.arguments(300)
            decorated(*given)
        for mine, theirs in zip(given, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("one", LOOPS, ids=lambda one: one.name)
def test_those_that_properties_decide_are_parallel(one):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(ordered=one.ordered)(one.function).plan(*one.arguments(300))
    plan.check()
    by_contents = any("element" in text or "goes down" in text for text in plan.conditions)
    assert by_contents == (one.name in BY_CONTENTS or one.name == "by_colour")  # which is inspected as one loop
    assert plan.is_parallel or not by_contents or one.name == "by_colour"
