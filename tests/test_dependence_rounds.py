"""Arrays that are private to the iterations of a loop inside a serial one: the last iteration must be the same in all
rounds, because the last tile, whichever it is in a round, has the array itself."""

import warnings
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import orion
from orion.cost.candidate import Strategy
from orion.dependence.access import PrivateArray
from orion.errors import PlanError, SerialLoopWarning
from orion.plan.plan import Tiled
from orion.rewrites.privatize.find import last_iteration

LAST = [
    # the domain of a loop with i, from 0 to m - 1, around: is its last iteration the same in all rounds, and which
    ("[i, m, n] -> { [j] : 0 <= i < m and 0 <= j < n }", "[n, m] -> { [j] : j = n - 1 and m > 0 and n > 0 }"),
    ("[i, m, n] -> { [j] : 0 <= i < m and i <= j < n }", "[n, m] -> { [j] : j = n - 1 and m > 0 and n > 0 }"),
    ("[i, m, n] -> { [j] : 0 <= i < m and 0 <= j < n - i }", None),
    ("[i, m, n] -> { [j] : 0 <= i < m and 0 <= j < i }", None),
    ("[i, m, n] -> { [j] : 0 <= i < m and 0 <= j < n and i = 3 }", "[n, m] -> { [j] : j = n - 1 and m > 3 and n > 0 }"),
    ("[i, m, n] -> { [j, k] : 0 <= i < m and 0 <= j < n and 0 <= k < 5 + i - i }", "[n, m] -> "
     "{ [j, k] : j = n - 1 and k = 4 and m > 0 and n > 0 }"),
    ("[i, m, n] -> { [j, k] : 0 <= i < m and 0 <= j < n and i <= 2k < n }", "[n, m] -> "
     "{ [j, k] : j = n - 1 and k = floor((n - 1)/2) and m > 0 and n > 0 }"),
    ("[i, m, n] -> { [j] : i <= j }", None),
]  # fmt: skip


@pytest.mark.parametrize(("domain", "last"), LAST, ids=[row[0] for row in LAST])
def test_the_last_iteration_of_all_rounds(domain: str, last: str | None):
    found = last_iteration(domain, ["i"])
    assert (found is None) == (last is None)
    assert found is None or found.is_equal(isl.Set(last))


def shorter_every_round(a, b, m):
    for i in range(m):
        for j in range(m - i):
            b[0] = a[j]


def strided_from_the_round(x, b, m, n):
    for i in range(m):
        for k in range(i, n, 2):
            b[1] = x[k]


def as_long_every_round(a, b, m):
    for i in range(m):
        for j in range(i, m):
            b[0] = a[j]


def as_many_as_a_remainder(a, b, m):
    k = 0
    for i in range(m):
        k += i
    for _ in range(2):
        for j in range(k % 4):
            b[0] = a[j]


def as_many_as_are_counted(a, b, m):
    count = 0
    for i in range(m):
        if a[i] > 3:
            count += 1
    for j in range(min(count, 5)):
        b[0] = a[j]
        a[j] = b[0] + 1


CASES = [
    (shorter_every_round, lambda: {"a": np.arange(9.0), "b": np.zeros(2), "m": 7}),
    (strided_from_the_round, lambda: {"x": np.arange(9.0), "b": np.zeros(2), "m": 4, "n": 9}),
    (as_long_every_round, lambda: {"a": np.arange(9.0), "b": np.zeros(2), "m": 7}),
]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("function", "make"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_the_last_value_is_that_of_the_last_round(function, make, workers):
    mine, theirs = make(), make()
    function(**theirs)
    with warnings.catch_warnings(), orion.session(workers=workers, force_parallel=True):
        warnings.simplefilter("ignore", SerialLoopWarning)
        orion.parallel_for(function)(**mine)
    np.testing.assert_array_equal(mine["b"], theirs["b"])


def test_an_end_that_is_computed_is_no_end_that_blocks_are_cut_for():
    for function in (as_many_as_a_remainder, as_many_as_are_counted):
        looped = orion.parallel_for(function)
        for m in range(1, 9):
            mine, theirs = ({"a": np.arange(9.0), "b": np.zeros(2), "m": m} for _ in range(2))
            function(**theirs)
            with warnings.catch_warnings(), orion.session(workers=2, force_parallel=True):
                warnings.simplefilter("ignore", SerialLoopWarning)
                looped.plan(**mine).check()
                looped(**mine)
            np.testing.assert_array_equal(mine["b"], theirs["b"])


def test_a_plan_with_another_last_iteration_in_each_round_is_not_proved():
    with orion.session(workers=2, force_parallel=True):
        arguments = CASES[-1][1]()
        plan = orion.parallel_for(as_long_every_round).plan(**arguments)
        (loop,) = plan.function.loops
        assert [array.name for array in loop.private_arrays] == ["b"]
        plan.check()
        shorter = orion.parallel_for(shorter_every_round).plan(**CASES[-3][1]())
    (other,) = shorter.function.loops
    analysis = replace(other.analysis, private=(PrivateArray("b", other.nest.span, ()),))
    free = {"strategy": Strategy.INDEPENDENT, "tiles": Tiled(0, ()), "cuts": (2,) * len(other.cuts)}
    cut = replace(other, analysis=analysis, **free)
    broken = replace(shorter, function=replace(shorter.function, loops=(cut,)))
    with pytest.raises(PlanError, match="not the same in all rounds"):
        broken.check()
