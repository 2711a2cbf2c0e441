"""The loops of TSVC with subscripts that are read from arrays (see `tests/test_tsvc.py`): the condition that each needs
to be parallel, and what it does where that does not hold."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import orion
from tests.trials import worker_counts


def s491(a, b, c, d, ip):
    for i in range(a.shape[0]):
        a[ip[i]] = b[i] + c[i] * d[i]


def s4112(a, b, ip, s):
    for i in range(a.shape[0]):
        a[i] += b[ip[i]] * s


def s4113(a, b, c, ip):
    for i in range(a.shape[0]):
        a[ip[i]] = b[ip[i]] + c[i]


def s4114(a, b, c, d, ip, n1):
    for i in range(n1 - 1, a.shape[0]):
        k = ip[i]
        a[i] = b[i] + c[a.shape[0] - k + 1 - 2] * d[i]
        k += 5


def s4115(a, b, ip):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[ip[i]]
    return total


def s4116(a, aa, ip, j, inc):
    total = 0.0
    for i in range(a.shape[0] - 1):
        off = inc + i
        total += a[off] * aa[j - 1, ip[i]]
    return total


def s4117(a, b, c, d):
    for i in range(a.shape[0]):
        a[i] = b[i] + c[i // 2] * d[i]


def vas(a, b, ip):
    for i in range(a.shape[0]):
        a[ip[i]] = b[i]


DISTINCT = "ip has no two equal elements"
TABLE = {s491: DISTINCT, s4112: "", s4113: DISTINCT, s4114: "", s4115: "", s4116: "", s4117: "", vas: DISTINCT}
"""The condition that each needs; none where it only reads by such subscripts."""

N = 200


def arguments(function, *, equal=False):
    rng = np.random.default_rng(4)
    ip = rng.permutation(N - 1) if function in (s4114, s4116) else rng.permutation(N)
    ip = np.append(ip, 0)[:N]
    if equal:
        ip[7] = ip[90]
    known = {"ip": ip, "aa": rng.random((3, N)), "s": 0.5, "n1": 1, "j": 2, "inc": 1}
    return [known.get(name, rng.random(N)) for name in inspect.signature(function).parameters]


@pytest.mark.parametrize("function", TABLE, ids=lambda f: f.__name__)
def test_is_parallel_under_its_condition(function):
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(function).plan(*arguments(function))
    plan.check()
    assert plan.is_parallel
    assert plan.strategy == "independent"
    assert [one for one in plan.conditions if "element" in one and "negative" not in one] == [TABLE[function]] * bool(
        TABLE[function]
    )


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("function", TABLE, ids=lambda f: f.__name__)
def test_is_right_whether_it_holds_or_not(function, equal):
    theirs = arguments(function, equal=equal)
    expected = function(*theirs)
    decorated = orion.parallel_for(function)
    for workers in worker_counts(1, 2, 4):
        with orion.session(workers=workers, force_parallel=True):
            mine = arguments(function, equal=equal)
            found = decorated(*mine)
            plan = decorated.plan(*mine)
            plan.check()
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        if workers > 1 and equal and TABLE[function]:
            assert plan.strategy == "inspected"
