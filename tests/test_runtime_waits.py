"""Workers that wait for the tiles of the loop before rather than meet: never too early, and the meetings are saved."""

from dataclasses import replace

import numpy as np
import pytest

import orion
from orion.runtime import worker as worker_module
from orion.runtime.prepared import PreparedProgram
from orion.runtime.waits import waits_between, waits_for_all
from orion.runtime.worker import Worker
from tests.oracles.interpreted import Order, kernel_code, run_interpreted


def reversed_after(a, b):
    for i in range(a.shape[0]):
        a[i] = a[i] * 3 + i
    for i in range(a.shape[0]):
        b[i] = a[a.shape[0] - 1 - i] - b[i]


def variance(a, b):
    s = 0
    for i in range(a.shape[0]):
        s += a[i]
    m = s // a.shape[0]
    v = 0
    for i in range(a.shape[0]):
        v += (a[i] - m) ** 2
    return v


def round_after_round(a, b):
    """The second loop of a round comes after the first one, which meets the second one of the round before."""
    for t in range(3):
        for i in range(1, a.shape[0] - 1):
            b[i] = a[i - 1] + 2 * a[i] - a[i + 1]
        for i in range(1, a.shape[0] - 1):
            a[i] = b[i] - b[i - 1] + t


def after_rounds(a, b):
    """The last loop runs for the first time when the one before has been run three times."""
    for t in range(3):
        for i in range(a.shape[0]):
            a[i] = a[i] * 3 + t
    for i in range(a.shape[0]):
        b[i] = a[a.shape[0] - 1 - i]


def three(a, b):
    """The third loop need not wait for the second one, but for the first."""
    total = 0
    for i in range(a.shape[0]):
        a[i] = a[i] * 3 + i
    for i in range(b.shape[0]):
        b[i] = b[i] * 5 - i
    for i in range(a.shape[0]):
        total += a[a.shape[0] - 1 - i] * i
    return total


def histogram(a, b):
    """A loop whose array is combined after its tiles, and one that reads it."""
    for i in range(a.shape[0]):
        b[a[i] % 5] += a[i]
    for i in range(a.shape[0]):
        a[i] = b[i % 5]


FUNCTIONS = (reversed_after, variance, round_after_round, after_rounds, three, histogram)


def inputs():
    return np.arange(7, 23) % 11, np.arange(16) % 7


def prepared(function, workers) -> PreparedProgram:
    arguments = dict(zip(("a", "b"), inputs(), strict=True))
    return orion.parallel_for(function)._preparations.plain.prepare(arguments, workers, True).program


def run(program, order):
    a, b = inputs()
    codes = [kernel_code(loop.kernel.text) for loop in program.loops]
    returned = run_interpreted(program, codes, {"a": a, "b": b}, order)
    return returned, a.tolist(), b.tolist()


def expected(function):
    a, b = inputs()
    return function(a, b), a.tolist(), b.tolist()


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_whatever_the_order_in_which_workers_get_on(function, workers):
    program = prepared(function, workers)
    assert program.workers == workers
    for seed in range(12):
        assert run(program, Order(seed)) == expected(function)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_on_threads(function, workers):
    loop = orion.parallel_for(function)
    with orion.session(workers=workers, force_parallel=True):
        for _ in range(20):
            assert expected(loop) == expected(function)


MEETINGS = {reversed_after: 0, variance: 0, three: 0, after_rounds: 0, round_after_round: 2, histogram: 2}
"""How often each worker meets the others. In `round_after_round` the first loop comes after the second, in `histogram`
copies are combined."""


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_meetings_are_saved(function, monkeypatch):
    found = []
    monkeypatch.setattr(Worker, "meet", lambda self, part=None, meet=Worker.meet: (found.append(self), meet(self))[1])
    run(prepared(function, 2), Order(0))
    assert len(found) == 2 * MEETINGS[function]


def unlike_numbers_of_rounds(a, b):
    """The second loop is run twice as often as the first: it gets further ahead in each round."""
    total = 0
    for t in range(12):
        for i in range(a.shape[0]):
            a[i] = (a[i] * 3 + b[a.shape[0] - 1 - i] + t) % 1009
        k = 0
        while k < 2:
            for i in range(a.shape[0]):
                b[i] = (b[i] - a[a.shape[0] - 1 - i] * k) % 1009
                total += b[i]
            k += 1 + total // 10**9
    return total


def test_what_is_waited_for_is_worked_out_once_for_two_loops(monkeypatch):
    found = []

    def counted(*given):
        found.append(given[1])
        return waits_between(*given)

    monkeypatch.setattr(worker_module, "waits_between", counted)
    program = prepared(unlike_numbers_of_rounds, 2)
    assert run(program, Order(0)) == expected(unlike_numbers_of_rounds)
    assert found
    assert len(found) == 2 * len(set(found))  # by each worker once


def test_without_the_waits_some_order_gives_wrong_numbers(monkeypatch):
    """So that the first test would see it."""

    def nothing(*given):
        offsets, waits, lags = waits_between(*given)
        return np.zeros_like(offsets), waits, lags

    monkeypatch.setattr(worker_module, "waits_between", nothing)
    program = prepared(reversed_after, 2)
    assert any(run(program, Order(seed)) != expected(reversed_after) for seed in range(12))


def test_what_is_waited_for():
    program = prepared(reversed_after, 2)
    first, second = program.loops
    own = first.schedule.order[1]
    others = [tile for tile in range(first.schedule.tiles) if tile not in own]
    tile, (offsets, waits, lags) = waits_for_all(first, own)
    assert (tile.tolist(), waits.tolist(), set(lags.tolist())) == ([first.schedule.tiles], others, {0})
    assert offsets[tile[0]] == 0
    assert offsets[tile[0] + 1] == waits.size
    at = int(second.schedule.order[1][0])
    offsets, waits, lags = waits_between(program.loops, (0, 1), own, at, 2)
    assert [k for k in range(second.schedule.tiles) if offsets[k] < offsets[k + 1]] == [at]
    assert waits.tolist() == [second.schedule.tiles + 1 + tile for tile in others]
    assert set(lags.tolist()) == {2}
    assert waits_between(program.loops, (1, 0), own, at, 0) is None


def test_only_the_last_loop_ends_a_worker():
    """Not one that may run again or not at all, nor one after which copies are combined."""

    def maybe(a, b):
        if a.shape[0] > 3:
            for i in range(a.shape[0]):
                a[i] = a[i] * 3 + i

    last = {function.__name__: prepared(function, 2).last for function in (*FUNCTIONS, maybe)}
    assert last == {
        "reversed_after": 1, "variance": 1, "round_after_round": None, "after_rounds": 1, "three": 2, "histogram": 1,
        "maybe": None,
    }  # fmt: skip
    program = prepared(histogram, 2)
    assert replace(program, program=replace(program.program, steps=program.program.steps[:1])).last is None
