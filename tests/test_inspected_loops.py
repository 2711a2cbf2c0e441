"""Loops that run in tiles which an inspection has found: the results are Python's to the bit, on any number of workers;
when calls inspect; what happens when arrays of subscripts change, or are wrong."""

from __future__ import annotations

import itertools
import threading
import warnings
from time import perf_counter_ns

import numpy as np
import pytest

import orion
from orion.errors import OutOfBoundsError
from orion.plan.plan import Inspected
from tests.loop_text import defined
from tests.trials import ALL, combined, times

N = 40
SIGNATURE = "x, y, W, idx, ptr, pair, small, w, lab, four, lo, n"

TEXTS = {
    "repeated places": "for i in range(n):\n    x[idx[i]] = x[idx[i]] * 0.5 + y[i]",
    "a chain by reads": "for i in range(1, n):\n    x[i] = x[idx[i] % i] + y[i]",
    "a first iteration that is not 0": "for i in range(5, n):\n    x[idx[i]] += x[i] * y[i]",
    "a first iteration from the call": "for i in range(lo, n):\n    x[idx[i]] += x[i] * y[i]",
    "every third": "for i in range(2, n, 3):\n    x[idx[i]] = x[i - 1] + y[i]",
    "backwards": "for i in range(n - 1, -1, -1):\n    x[i] = x[idx[i]] * 0.5 + y[i]",
    "backwards by twos": "for i in range(n - 1, 2, -2):\n    x[i] = x[idx[i]] + x[i - 1]",
    "rows": "for i in range(n):\n    for d in range(W.shape[1]):\n        W[idx[i], d] = W[i, d] * 0.5 + y[i]",
    "rows as a whole": "for i in range(n):\n    W[idx[i]] = W[idx[i]] * 0.5 + y[i]",
    "one column": "for i in range(n):\n    W[idx[i], 2] = W[i, 2] * 0.5 + y[i]",
    "columns by subscripts": "for i in range(n):\n    W[idx[i], small[i] % 4] = W[i, 1] * 0.5 + y[i]",
    "inner ranges": (
        "for i in range(n):\n    s = y[i]\n"
        "    for p in range(ptr[i], ptr[i + 1]):\n        s += 0.1 * x[idx[p]]\n    x[i] = s"
    ),
    "a table of places": "for i in range(n):\n    x[pair[i, 0]] = x[pair[i, 1]] + y[i]",
    "two arrays": "for i in range(n):\n    t = x[idx[i]]\n    x[idx[i]] = y[pair[i, 0]] + 1.0\n    y[pair[i, 1]] = t",
    "subscripts from the end": "for i in range(n):\n    x[-1 - idx[i]] = x[i] + y[i]",
    "sums of subscripts": "for i in range(n - 3):\n    x[(idx[i] + i) % n] = x[i] + y[i]",
    "small integers": "for i in range(n):\n    x[small[i]] = x[i] * 0.5 + y[i]",
    "small integers that would wrap around": "for i in range(n):\n    x[(small[i] + 200) % n] = x[i] * 0.5 + y[i]",
    "a name for a place": (
        "for i in range(n):\n    k = idx[i]\n    if k > 9:\n        k = k - 7\n    x[k] = x[i] + y[i]"
    ),
    "a condition on what is read": "for i in range(n):\n    if idx[i] % 2 == 0:\n        x[idx[i]] = x[i] + y[i]",
    "a condition on what is written": "for i in range(n):\n    if x[i] > 0.0:\n        x[idx[i]] = x[i] * 0.5",
    "either place by what is written": (
        "for i in range(n):\n    if x[i] > 0.2:\n        x[idx[i]] += 1.0\n    else:\n        x[pair[i, 1]] -= 1.0"
    ),
    "a place that a loop counts": (
        "for i in range(n):\n    k = 0\n"
        "    for p in range(ptr[i], ptr[i + 1]):\n        k += idx[p]\n    x[k % n] = x[i] + 1.0"
    ),
    "a while loop": (
        "for i in range(n):\n    k = i\n    while k > 3:\n        k = k // 2\n        x[idx[k]] = x[i] * 0.5 + 0.1 * k"
    ),
    "an inner loop that is left": (
        "for i in range(n):\n    for p in range(ptr[i], ptr[i + 1]):\n        if x[idx[p]] > 0.9:\n            break\n"
        "        x[idx[p]] += 0.25"
    ),
    "an inner loop that goes on": (
        "for i in range(n):\n    for p in range(ptr[i], ptr[i + 1]):\n"
        "        if idx[p] % 3 == 0:\n            continue\n"
        "        x[idx[p]] += x[i] * 0.25"
    ),
    "the greatest change": (
        "err = 0.0\nfor i in range(n):\n    t = x[idx[i]] * 0.5 + y[i]\n    err = max(err, abs(t - x[i]))\n"
        "    x[i] = t\nreturn err"
    ),
    "the greatest change, and where": (
        "best = -1.0\nwhere = -1\nfor i in range(1, n):\n    t = x[idx[i] % i] * 0.5 + w[i]\n"
        "    if abs(t - x[i]) > best:\n        best = abs(t - x[i])\n        where = i\n    x[i] = t\n"
        "return best, where"
    ),
    "the greatest change is no number": (
        "err = 0.0\nfor i in range(n):\n    t = np.sqrt(x[idx[i]] - 0.3)\n    err = max(err, t)\n"
        "    x[i] = 0.5 * x[i] + y[i] / n\nreturn err"
    ),
    "how many changes": (
        "changed = 0\nfor i in range(n):\n    t = min(x[i], x[idx[i]])\n    if t < x[i]:\n        x[i] = t\n"
        "        changed += 1\nreturn changed"
    ),
    "whether anything changed": (
        "same = True\nfor i in range(n):\n    t = min(x[i], x[idx[i]])\n    same = same and t == x[i]\n    x[i] = t\n"
        "return same"
    ),
    "rounds until nothing changes": (
        "rounds = 0\nwhile rounds < 50:\n    changed = 0\n    for i in range(n):\n        t = min(x[i], x[idx[i]])\n"
        "        if t < x[i]:\n            x[i] = t\n            changed += 1\n    rounds += 1\n"
        "    if changed == 0:\n        break\nreturn rounds"
    ),
    "rounds": "for t in range(3):\n    for i in range(n):\n        x[idx[i]] = x[i] * 0.5 + y[i] + t",
    "a condition on what was computed of what is written": (
        "for i in range(n):\n    h = x[idx[i]] * 2.0\n    if y[i] < h / (1.0 + h):\n        x[i] = 1.0\n"
        "    else:\n        x[i] = 0.25 * h"
    ),
    "counts of neighbours": (
        "for i in range(n):\n    count = np.zeros(8)\n    for p in range(ptr[i], ptr[i + 1]):\n"
        "        count[lab[idx[p]]] += 1\n    lab[i] = np.argmax(count)"
    ),
    "counts of neighbours, as many as an argument says": (
        "for i in range(n):\n    count = np.zeros(n)\n    for p in range(ptr[i], ptr[i + 1]):\n"
        "        count[lab[idx[p]]] += 1\n    lab[i] = np.argmax(count)"
    ),
    "two inner loops over one range": (
        "for i in range(n):\n    count = np.zeros(8)\n    for p in range(ptr[i], ptr[i + 1]):\n"
        "        count[lab[idx[p]]] += 1\n    x[i] = 0.1 * count.max()\n"
        "    for p in range(ptr[i], ptr[i + 1]):\n        x[idx[p]] += y[i] * 0.5"
    ),
    "an array that is filled anew": (
        "for i in range(n):\n    four[:] = 0.5\n    for p in range(ptr[i], ptr[i + 1]):\n"
        "        four[p % 4] = x[idx[p]]\n    x[i] = four.max() * 0.5"
    ),
    "rounds of one statement": "for t in range(3):\n    for i in range(n):\n        x[i] = x[idx[i]] * 0.5 + y[i]",
    "rounds with something between": (
        "for t in range(4):\n    err = 0.0\n    for i in range(n):\n        old = x[i]\n"
        "        x[i] = 0.5 * x[idx[i]] + y[i]\n        err = max(err, abs(x[i] - old))\n    y[t] = err"
    ),
    "rounds that end early": (
        "for t in range(9):\n    err = 0.0\n    for i in range(n):\n        old = x[i]\n"
        "        x[i] = 0.5 * x[idx[i]] + y[i]\n        err = max(err, abs(x[i] - old))\n    if err < 0.1:\n"
        "        break\nreturn t, err"
    ),
    "rounds that return": (
        "for t in range(9):\n    err = 0.0\n    for i in range(n):\n        s = y[i]\n"
        "        for p in range(ptr[i], ptr[i + 1]):\n            s -= 0.1 * x[idx[p]]\n"
        "        err = max(err, abs(x[i] - s))\n        x[i] = s\n    if err < 0.01:\n        return t\nreturn -1"
    ),
    "rounds of rounds": (
        "k = 0\nwhile x[3] < 9.0 and k < 4:\n    for t in range(2):\n        for i in range(n):\n"
        "            x[idx[i]] = x[i] * 0.5 + y[i] + t\n    for i in range(n):\n        x[i] += 0.25\n    k += 1\n"
        "return k"
    ),
    "two loops": (
        "for i in range(n):\n    x[idx[i]] = x[i] * 0.5 + y[i]\nfor i in range(n):\n    y[i] = 2.0 * x[i]\n"
        "for i in range(n):\n    y[pair[i, 0]] = y[pair[i, 1]] + x[i]"
    ),
    "sizes with names": "m = len(idx)\nk = m // 2\nfor i in range(k):\n    x[idx[i + k]] = x[i] * 0.5 + y[i]",
    "sizes by their shape": "m, k = W.shape\nfor i in range(m):\n    W[idx[i], i % k] = W[i, 0] * 0.5 + y[i]",
    "a triangle": "for i in range(n):\n    for j in range(i):\n        x[idx[j]] = x[i] * 0.25 + y[j]",
    "inner ranges that are empty now and then": (
        "for i in range(n - 1, -1, -2):\n    for j in range(i % 3, 2):\n        x[idx[j]] = x[i] * 0.25 + y[j]"
    ),
    "goes on in a branch": (
        "for i in range(n):\n    if i > 4:\n        if x[i] > 0.5:\n            continue\n    else:\n"
        "        y[i] = 1.0\n    y[idx[i]] = 0.5 * y[i] + x[i]"
    ),
    "greatest of groups": "for i in range(n):\n    x[idx[i]] = max(x[idx[i]], y[i])",
    "a nest": (
        "for i in range(n):\n    for a in range(2):\n"
        "        for b in range(2):\n            W[pair[i, a], pair[i, b] % 4] += y[i]"
    ),
    "an array that the function makes": (
        "z = np.zeros(n)\nfor i in range(1, len(z)):\n    z[i] = z[idx[i] % i] + y[i]\n"
        "for i in range(n):\n    x[i] = z[i]"
    ),
    "floats that decide": "for i in range(n):\n    if w[i] > 0.5:\n        x[idx[i]] = x[i] + w[i]",
}


def written(text):
    body = "\n".join(f"    {line}" for line in text.splitlines())
    return defined(f"def f({SIGNATURE}):\n{body}\n", np=np)


def given(seed=0):
    rng = np.random.default_rng(seed)
    ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 3, N))])
    idx = rng.integers(0, N, max(int(ptr[-1]), N))
    ptr[-1] = min(ptr[-1], idx.size)
    return [
        rng.random(N), rng.random(N), rng.random((N, 4)), idx, ptr, rng.integers(0, N, (N, 2)).astype(np.int32),
        rng.integers(0, N, N).astype(np.uint8), rng.random(N), rng.integers(0, 8, N),
        np.zeros(4), 3, N,
    ]  # fmt: skip


def same(mine, theirs):
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


OTHERWISE = {
    "rows",
    "greatest of groups",
    "a nest",
    "an inner loop that is left",
    "inner ranges that are empty now and then",
}
"""Those that are parallel by other means, or have no inspector."""


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", TEXTS)
def test_results_are_pythons(name):
    function = written(TEXTS[name])
    decorated = orion.parallel_for(function)
    for seed, workers in combined(range(3), (4, 2, 1)):
        theirs = given(seed)
        wanted = function(*theirs)
        with orion.session(workers=workers, force_parallel=True):
            mine = given(seed)
            plan = decorated.plan(*mine, inspect=True)
            plan.check()
            np.testing.assert_equal(decorated(*mine), wanted)
            same(mine, theirs)
        if workers > 1:
            by_inspection = any(isinstance(loop.tiles, Inspected) for loop in plan.loops)
            assert by_inspection or name in OTHERWISE, plan


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_results_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for text in list(TEXTS.values())[:: 1 if ALL else 8]:
            function = written(text)
            mine, theirs = given(), given()
            wanted = function(*theirs)
            np.testing.assert_equal(orion.parallel_for(function)(*mine), wanted)
            same(mine, theirs)


UNORDERED = ("repeated places", "two arrays", "columns by subscripts", "inner ranges", "a table of places")


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", UNORDERED)
def test_loops_in_any_order_do_what_their_serial_order_does(name):
    text = TEXTS[name]
    turned = written(text.replace("for i in range(n):", "for i in n:", 1))
    decorated = orion.parallel_for(ordered=False)(written(text))
    for seed, workers in combined(range(3), (2, 4)):
        with orion.session(workers=workers, force_parallel=True):
            mine, theirs = given(seed), given(seed)
            plan = decorated.plan(*mine, inspect=True)
            plan.check()
            decorated(*mine)
        order = plan.serial_order(workers)
        first = list(dict.fromkeys(order[:, 0].tolist()))
        assert sorted(first) == list(range(N))
        turned(*theirs[:-1], first)
        same(mine[:-1], theirs[:-1])


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(6))
def test_a_maximum_that_no_number_begins_anew_keeps_the_order(seed):
    """`max(t, top)` takes a NaN, and then whatever comes next: two chains, which would be a tile each, do not."""

    def tops(x, before, y):
        top = -1.0
        for i in range(2, len(x)):
            x[i] = 0.5 * x[before[i]] + y[i]
            top = max(np.sqrt(x[i]), top)
        return top

    rng, before = np.random.default_rng(seed), np.maximum(np.arange(N) - 2, 0)
    x, y = rng.random(N), rng.random(N) - 0.45
    theirs = x.copy()
    wanted = tops(theirs, before, y)
    with orion.session(workers=2, force_parallel=True):
        decorated, mine = orion.parallel_for(tops), x.copy()
        decorated.plan(mine, before, y, inspect=True).check()
        np.testing.assert_equal(decorated(mine, before, y), wanted)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_sums_of_floats_keep_their_order():
    text = "s = 0.0\nfor i in range(n):\n    x[i] = x[idx[i]] * 0.5 + y[i]\n    s += x[i]\nreturn s"
    with orion.session(workers=2, force_parallel=True):
        mine, theirs = given(), given()
        decorated = orion.parallel_for(written(text))
        assert decorated.plan(*mine, inspect=True).strategy == "serial"
        assert decorated(*mine) == pytest.approx(written(text)(*theirs), rel=1e-14)


# ---------------------------------------------------------------- when calls inspect


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", ["repeated places", "rounds", "a chain by reads"])
@pytest.mark.parametrize("force_parallel", [True, False])
def test_the_plan_is_the_one_that_the_next_call_runs_by(name, force_parallel):
    decorated, arguments = orion.parallel_for(written(TEXTS[name])), given()
    with orion.session(workers=2, force_parallel=force_parallel):
        plan, text = decorated.plan(*arguments), decorated.explain(*arguments)
        source = decorated.kernel_source(*arguments)
        decorated(*arguments)
        (loop,) = decorated.last_run.plan.function.loops
        assert plan.loops[0].strategy == loop.strategy == ("inspected" if force_parallel else "serial")
        assert plan.to_dict() == decorated.last_run.plan.to_dict()
        assert text == str(decorated.last_run.plan)
        assert source == decorated.kernel_source(*arguments)


@pytest.fixture
def soon(monkeypatch):
    """Calls look as soon as they find the contents of one before."""
    monkeypatch.setattr("orion.inspecting.LOOK_AFTER_NS", 0.0)


def big(n=60_000):
    rng = np.random.default_rng(1)
    return rng.random((n, 8)), rng.permutation(n), rng.random(n)


def far(W, idx, y):
    for i in range(len(idx)):
        s = y[i]
        for d in range(8):
            s += np.exp(-W[i, d])
        for d in range(8):
            W[idx[i], d] = s + d


def runs_inspected(decorated, *arguments):
    """Whether the call, which is made here, runs in tiles that an inspection has found."""
    decorated(*arguments)
    prepared = decorated._preparations.plain._last.prepared
    return any(isinstance(loop.tiles, Inspected) for loop in prepared.plan.loops)


@pytest.mark.usefixtures("soon")
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_the_second_call_with_the_same_contents_inspects():
    decorated = orion.parallel_for(far)
    W, idx, y = big()
    with orion.session(workers=2):
        assert [runs_inspected(decorated, W, idx, y) for _ in range(3)] == [False, True, True]
        assert "not looked at yet" not in str(decorated.plan(W, idx, y))
        assert decorated.plan(W, idx, y).strategy == "inspected"
        idx[7] = idx[8]
        assert decorated.plan(W, idx, y).strategy == "serial"
        assert [runs_inspected(decorated, W, idx, y) for _ in range(2)] == [False, True]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_few_short_calls_do_not_inspect(monkeypatch):
    decorated = orion.parallel_for(far)
    W, idx, y = big()
    with orion.session(workers=2):
        (watched,) = decorated._preparations.plain.prepare({"W": W, "idx": idx, "y": y}, 2, False).watched
        assert watched.call_ns > 1e6
        monkeypatch.setattr("orion.inspecting.LOOK_AFTER_NS", 3.5 * watched.call_ns)
        assert [runs_inspected(decorated, W, idx, y) for _ in range(5)] == [False, False, False, True, True]
        idx[7] = idx[8]
        assert [runs_inspected(decorated, W, idx, y) for _ in range(5)] == [False, False, False, False, True]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_rounds_count_as_runs(monkeypatch):
    def rounds(W, idx, y, k):
        for _ in range(k):
            for i in range(len(idx)):
                s = y[i]
                for d in range(8):
                    s += np.exp(-W[i, d])
                for d in range(8):
                    W[idx[i], d] = s + d

    decorated = orion.parallel_for(rounds)
    W, idx, y = big()
    with orion.session(workers=2):
        decorated(W, idx, y, 1)
        few, many = (
            decorated._preparations.plain.prepare({"W": W, "idx": idx, "y": y, "k": k}, 2, False) for k in (2, 40)
        )
        assert many.watched[0].call_ns == 20 * few.watched[0].call_ns
        assert many.watched[0].rounds == 40
        monkeypatch.setattr("orion.inspecting.LOOK_AFTER_NS", 25 * few.watched[0].call_ns)  # 43 rounds were by now
        assert [runs_inspected(decorated, W, idx, y, 40) for _ in range(3)] == [False, True, True]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_plan_that_inspects_is_what_calls_run_by():
    decorated = orion.parallel_for(far)
    W, idx, y = big()
    with orion.session(workers=2):
        assert decorated.plan(W, idx, y).strategy == "serial"
        plan = decorated.plan(W, idx, y, inspect=True)
        assert plan.strategy == "inspected"
        assert plan.runs_on == 2
        assert runs_inspected(decorated, W, idx, y)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_frozen_arrays_are_inspected_where_comparing_them_would_cost_too_much(monkeypatch):
    monkeypatch.setattr("orion.inspecting.CHECK_NS", 1e5)
    monkeypatch.setattr("orion.inspecting.LOOK_AFTER_NS", 0.0)
    decorated = orion.parallel_for(far)
    W, idx, y = big()
    with orion.session(workers=2):
        assert [runs_inspected(decorated, W, idx, y) for _ in range(3)] == [False, False, False]
        assert decorated.plan(W, idx, y, inspect=True).strategy == "serial"
        frozen = orion.freeze(idx.copy())
        assert [runs_inspected(decorated, W, frozen, y) for _ in range(3)] == [False, True, True]
        assert runs_inspected(decorated, W, idx, y) is False


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_nobody_looks_at_contents_that_are_new_in_each_call():
    decorated, rng = orion.parallel_for(far), np.random.default_rng(2)
    W, idx, y = big()
    looked = []
    inspections = decorated._preparations.plain._inspections
    with orion.session(workers=2):
        for _ in range(12):
            idx[:] = rng.permutation(idx)
            assert not runs_inspected(decorated, W, idx, y)
            looked.append(next(iter(inspections.seen.values())).changes)
    assert looked == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9]


@pytest.mark.usefixtures("soon")
@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_arrays_that_take_turns_are_inspected_each():
    decorated = orion.parallel_for(far)
    W, idx, y = big()
    other = np.random.default_rng(8).permutation(idx)
    with orion.session(workers=2):
        ran = [runs_inspected(decorated, W, one, y) for _ in range(3) for one in (idx, other)]
    assert ran == [False, False, True, True, True, True]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_inspections_leave_no_threads_behind():
    decorated, rng = orion.parallel_for(hop), np.random.default_rng(2)
    with orion.session(workers=2, force_parallel=True):
        for k in range(6):
            decorated(rng.random(N), rng.integers(0, N, N), rng.random(N))
            if k == 1:
                before = threading.active_count()
        assert threading.active_count() <= before


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("back", [False, True])
def test_arrays_that_change_while_they_are_inspected(back, monkeypatch):
    """What is listed is that of the contents by which it is kept, whoever writes to the arrays meanwhile."""
    decorated, rng = orion.parallel_for(hop), np.random.default_rng(5)
    idx, y = rng.integers(0, N, N), rng.random(N)
    right, wrong = idx.copy(), rng.integers(0, N, N)
    turns = itertools.cycle([wrong, right if back else wrong])

    def now():
        idx[:] = next(turns)
        return perf_counter_ns()

    monkeypatch.setattr("orion.runtime.listing.perf_counter_ns", now)
    with orion.session(workers=2, force_parallel=True):
        decorated(rng.random(N), idx, y)
        monkeypatch.undo()
        for contents in (right, wrong, right):
            idx[:] = contents
            mine = rng.random(N)
            theirs = mine.copy()
            hop(theirs, idx, y)
            decorated(mine, idx, y)
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_chain_as_long_as_the_loop_is_not_worth_it():
    def chase(x, link):
        for i in range(len(link)):
            x[link[i]] = np.exp(-x[i]) + 1.0

    decorated = orion.parallel_for(chase)
    arguments = np.random.default_rng(0).random(200_000), np.minimum(np.arange(200_000) + 1, 199_999)
    with orion.session(workers=2):
        plan = decorated.plan(*arguments, inspect=True)
    assert plan.strategy == "serial"
    (reason,) = [one for one in plan.reasons if one.code == "ORN128"]
    assert "200,000 of 200,000 iterations" in reason.message


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_trips_of_inner_loops_that_are_arguments_count():
    def slow(x, idx, k):
        for i in range(len(idx)):
            s = x[i]
            for _ in range(k):
                s = np.exp(-s)
            x[idx[i]] = s

    arguments = np.random.default_rng(0).random(60_000), np.random.default_rng(1).permutation(60_000)
    with orion.session(workers=2):
        few, many = (orion.parallel_for(slow).plan(*arguments, k, inspect=True) for k in (0, 40))
    assert many.strategy == "inspected"
    assert few.strategy == "serial"


# ---------------------------------------------------------------- arrays that change, or are wrong


def hop(x, idx, y):
    for i in range(len(idx)):
        x[idx[i]] = 0.5 * x[i] + y[i]


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_a_change_of_one_element_is_noticed():
    decorated, rng = orion.parallel_for(hop), np.random.default_rng(3)
    idx, y = rng.integers(0, N, N), rng.random(N)
    with orion.session(workers=2, force_parallel=True):
        for _ in range(times(200, 60)):
            idx[rng.integers(N)] = rng.integers(N)
            x = rng.random(N)
            expected = x.copy()
            hop(expected, idx, y)
            decorated(x, idx, y)
            np.testing.assert_array_equal(x, expected)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("wrong", [N, -N - 1, 10**12])
def test_a_subscript_that_leaves_its_array_is_said(wrong):
    decorated = orion.parallel_for(hop)
    x, y = np.zeros(N), np.ones(N)
    idx = np.arange(N)
    idx[5] = wrong
    with orion.session(workers=2, force_parallel=True):
        for _ in range(2):
            with pytest.raises(OutOfBoundsError, match=f"{wrong}"):
                decorated(x, idx, y)
        idx[5] = 5
        decorated(x, idx, y)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
def test_bounds_that_go_down_are_empty_ranges():
    text = TEXTS["inner ranges"]
    function = written(text)
    mine, theirs = given(), given()
    for arguments in (mine, theirs):
        arguments[4][10] = 30
    function(*theirs)
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(function)(*mine)
    same(mine, theirs)


NOT_LISTED = {
    "places that are written": "for i in range(n):\n    idx[i] = idx[idx[i]]",
    "places by what is written": "for i in range(n):\n    x[int(x[i] * 9.0)] += y[i]",
    "a scalar that is handed on": "s = 0.0\nfor i in range(n):\n    s = x[idx[i]] - s\n    x[i] = s",
    "an end that nobody can foresee": (
        "for i in range(n):\n    for j in range(10 ** 9):\n        if x[(idx[i] + j) % n] > 0.5:\n            break\n"
        "        x[(idx[i] + j) % n] = 1.0 + x[i] * 0.5"
    ),
    "slices": "for i in range(n - 4):\n    x[idx[i] : idx[i] + 2] = x[i]",
}


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", NOT_LISTED)
def test_loops_without_an_inspector_stay_as_they_are(name):
    function = written(NOT_LISTED[name])
    mine, theirs = given(), given()
    if name == "places by what is written":
        function = written(NOT_LISTED[name].replace("x[int(x[i] * 9.0)]", "x[int(x[i] * 9.0) % n]"))
    function(*theirs)
    with orion.session(workers=2, force_parallel=True):
        decorated = orion.parallel_for(function)
        assert not any(isinstance(loop.tiles, Inspected) for loop in decorated.plan(*mine, inspect=True).loops)
        decorated(*mine)
    same(mine, theirs)


GUARDED = {
    "by what is written": (
        "for i in range(n):\n    if x[i] > 9.0:\n        x[idx[i + n]] = 1.0\n    x[idx[i]] = x[i] * 0.5"
    ),
    "by an inner range": (
        "for i in range(n):\n    for p in range(lo, 2):\n        x[idx[i + 2 * n]] += p\n    x[idx[i]] = x[i] * 0.5"
    ),
}
"""Subscripts that leave their arrays where they are never evaluated."""


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("name", GUARDED)
def test_what_is_never_evaluated_is_no_error(name):
    function = written(GUARDED[name])
    mine, theirs = given(), given()
    mine[3] = theirs[3] = theirs[3][:N].copy()
    function(*theirs)
    with orion.session(workers=2, force_parallel=True):
        orion.parallel_for(function)(*mine)
    same(mine, theirs)


def test_arrays_that_helpers_have_from_elsewhere_are_not_trusted():
    text = "for i in range(n):\n    x[place(idx[i])] = x[i] * 0.5 + y[i]"
    body = "\n".join(f"    {line}" for line in text.splitlines())
    table = np.arange(N)
    place = defined("def place(k):\n    if k > 3:\n        return TABLE[k]\n    return k\n", TABLE=table)
    function = defined(f"def f({SIGNATURE}):\n{body}\n", np=np, place=place)
    decorated = orion.parallel_for(function)
    with orion.session(workers=2, force_parallel=True):
        for _ in range(2):
            mine, theirs = given(), given()
            function(*theirs)
            try:
                decorated(*mine)
            except orion.OrionError:
                return  # a helper may not read such an array at all
            same(mine, theirs)
            table[:] = table[::-1].copy()


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64])
def test_changes_of_several_elements_are_noticed(kind):
    """Those that sums of words times odd numbers do not notice: in the highest bits of two words."""
    signs = TEXTS["floats that decide"].replace("w[i] > 0.5", "w[i] > 0.0")
    function = written(f"{TEXTS['a condition on what is read']}\n{signs}")
    decorated, mine = orion.parallel_for(function), given()
    mine[3] = mine[3].astype(kind)
    with orion.session(workers=2, force_parallel=True):
        for at in range(1, N // 2):
            mine[7][[0, at]] *= -1.0
            mine[3][[0, at]] = (mine[3][[0, at]] + 32) % N
            theirs = [one.copy() if isinstance(one, np.ndarray) else one for one in mine]
            function(*theirs)
            decorated(*mine)
            same(mine, theirs)


def by_parity(u, table, x):
    for i in range(12):
        u[table[i, i % 2]] = x[i]


def by_fifths(u, table, x):
    for i in range(12):
        u[table[i, i % 5]] += u[table[i, 0]] * x[i]


@pytest.mark.parametrize("function", [by_parity, by_fifths])
@pytest.mark.parametrize("workers", [2, 3, 4, 6])
def test_remainders_in_each_part_of_an_inspector(function, workers):
    """Workers list a part of the iterations each: a program for the first part alone took `i % n` for `i - n` at most
    once, which is wrong in others."""
    decorated = orion.parallel_for(function)
    for seed in range(times(20, 6)):
        rng = np.random.default_rng(seed)
        table, x = rng.integers(0, 9, (12, 5)), rng.random(12)
        mine, theirs = np.ones(9), np.ones(9)
        function(theirs, table, x)
        with orion.session(workers=workers, force_parallel=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
            plan = decorated.plan(mine, table, x, inspect=True)
            decorated(mine, table, x)
        assert plan.strategy == "inspected"
        np.testing.assert_array_equal(mine, theirs)
