"""Calls like the one before, of which nothing is found again but where the arrays lie (`orion/again.py`): whatever came
before, a call does what it does as the first one."""

from __future__ import annotations

import random
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import orion
from orion.again import OFTEN
from orion.kernel.parking import AWAY, STATE
from orion.runtime.memory import RunMemory
from orion.runtime.threads.again import MISSED, RunAgain
from orion.runtime.threads.pool import Pool
from tests.test_looked_through import relaxed, ring
from tests.trials import TIMES

FACTOR = 2.0


def shifted(x):
    return x + FACTOR


def scaled(a, b, n, factor):
    for i in range(n):
        a[i] = factor * shifted(b[i])


def summed(a, b, n, factor):
    total = factor
    for i in range(n):
        total += a[i] * b[i]
    return total


def placed(a, b, n, factor):
    least, place = factor, -1
    for i in range(n):
        if b[i] < least:
            least = b[i]
            place = i
    return least, place, a


def in_rounds(a, b, n, factor):
    for _ in range(3):
        for i in range(1, n - 1):
            a[i] = b[i - 1] + b[i + 1]
        for i in range(1, n - 1):
            b[i] = factor * a[i]
    return a[1:n]


def between(a, b, n, factor):
    norm = 0.0
    for i in range(n):
        norm += b[i] * b[i]
    scale = factor / (norm + 1.0)
    for i in range(n):
        a[i] = scale * b[i]
    return norm


def made(a, b, n, factor):
    """One of its arrays is returned, the other is there in the next call too."""
    twice, sums = np.zeros(n), np.zeros(n)
    for i in range(n):
        twice[i] = factor * b[i]
    for i in range(n):
        sums[i] += a[i] + twice[i]
    return sums, a


def told(a, b, n, factor):
    """None and texts are no scalars of a loop."""
    scale = 2.0
    if factor is None:
        scale = 0.5
    for i in range(n):
        a[i] += scale * b[i]
    return a if factor is None else scale


FUNCTIONS = (scaled, summed, placed, in_rounds, between, made, told)


@pytest.fixture
def calls_again(monkeypatch):
    """The calls of which nothing was found again but where the arrays lie."""
    run, found = RunAgain.__call__, []

    def counted(self, *given):
        found.append(given)
        returned = run(self, *given)
        if returned is MISSED:
            found.pop()
        return returned

    monkeypatch.setattr(RunAgain, "__call__", counted)
    return found


class Arguments:
    """Draws the arguments of calls, mostly such as there were before."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.memory = np.random.default_rng(seed).random(64)
        self.before: tuple[object, ...] = self.new()

    def array(self) -> np.ndarray:
        """An array with a memory of its own, or a part of one that others are parts of."""
        kinds = [
            *[self.memory[:12].copy] * 5,
            lambda: self.memory[:12],
            lambda: self.memory[20:32],
            lambda: self.memory[52:64],
            lambda: self.memory[4:16],
            lambda: self.memory[30:54:2],
            lambda: self.memory[:12].astype(np.float32),
            lambda: np.arange(12),
            self.memory[:9].copy,
            lambda: read_only(self.memory[:12].copy()),
            lambda: self.memory[:12].reshape(3, 4).copy(),
        ]
        return self.choice.choice(kinds)()

    def scalar(self) -> object:
        return self.choice.choice([2.0, 0.5, 3, np.float32(0.1), np.int64(7), True, 2**70, np.nan, None, "text"])

    def count(self) -> object:
        return self.choice.choice([*[12] * 6, 9, 5, 0, 13, np.int64(12), 12.0, -3])

    def new(self) -> tuple[object, ...]:
        return self.array(), self.array(), self.count(), self.scalar()

    def next(self) -> tuple[object, ...]:
        """The same again, mostly: the same arrays, or others like them; else one of them drawn anew, or all."""
        given, what = list(self.before), self.choice.random()
        if what < 0.3:
            given = [one.copy() if isinstance(one, np.ndarray) and one.flags.owndata else one for one in given]
        elif 0.7 <= what < 0.93:
            at = self.choice.choice((0, 1, 2, 3, 3, 3))
            given[at] = self.new()[at]
        elif what >= 0.93:
            given = [*self.new()]
        self.before = tuple(given)
        return self.before


def read_only(array):
    array.flags.writeable = False
    return array


def outcome(function, given):
    """What a call returns, or raises, and what the arrays are then, with those that it returns told by their places."""
    try:
        returned = function(*given)
        said = None
    except Exception as error:
        returned, said = None, (type(error), str(error))
    parts = returned if isinstance(returned, tuple) else (returned,)
    places = [next((k for k, one in enumerate(given) if part is one), part) for part in parts]
    kinds = [type(part) for part in parts]
    return said, kinds, [np.array(part) for part in places], [np.array(one) for one in given[:2]]


def with_copies(given):
    """The same arguments, in a memory of their own that overlaps as theirs does."""
    bases = {}
    for one in given[:2]:
        base = one if one.base is None else one.base
        bases.setdefault(id(base), (base, base.copy()))

    def copied(one):
        base, other = bases[id(one if one.base is None else one.base)]
        found = other
        if one is not base:
            start = one.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            found = np.ndarray(one.shape, one.dtype, other, start, one.strides)
        if not one.flags.writeable:
            found.flags.writeable = False
        return found

    if given[0] is given[1]:
        a = copied(given[0])
        return a, a, *given[2:]
    return copied(given[0]), copied(given[1]), *given[2:]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2 * TIMES))
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_a_call_does_what_it_does_as_the_first_one(function, seed, workers, calls_again):
    looped, arguments = orion.parallel_for(function), Arguments(seed)
    with orion.session(workers=workers, force_parallel=workers > 1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(100):
            given = arguments.next()
            if any(one.base is not None and one.ndim > 1 for one in given[:2]):
                continue  # its base is not the memory that it is a part of
            copies = with_copies(given)
            first = outcome(orion.parallel_for(function), copies)
            np.testing.assert_equal(outcome(looped, given), first)
    assert len(calls_again) > 3


def test_other_globals_and_other_code(monkeypatch):
    looped = orion.parallel_for(scaled)
    a, b = np.zeros(8), np.arange(8.0)
    for factor in (2.0, 2.0, 2.0, 5.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        looped(a, b, 8, 1.0)
        np.testing.assert_array_equal(a, b + factor)
    monkeypatch.setattr(shifted, "__code__", (lambda x: x - 1.0).__code__)
    looped(a, b, 8, 1.0)
    np.testing.assert_array_equal(a, b - 1.0)


def test_parameters_with_defaults_and_others_that_are_no_numbers(calls_again):
    def filled(a, b, how="plus", most=None, unused=None):
        for i in range(len(a)):
            a[i] += 2.0 * b[i]
        if how != "plus":
            return 1
        return 2 if most is None else most

    looped = orion.parallel_for(filled)
    b = np.arange(8.0)
    for given in ((), ("minus",), ("plus", None), ("plus", 3.0, "x"), ("minus", None, None)):
        a = np.zeros(8)
        for number in range(1, OFTEN + 4):
            assert looped(a, b, *given) == filled(np.zeros(8), b, *given)
            np.testing.assert_array_equal(a, 2.0 * number * b)
    assert len(calls_again) > 3


def test_it_is_told_of_profiles_sessions_and_scaling():
    looped = orion.parallel_for(scaled)
    a, b = np.zeros(8), np.arange(8.0)

    def calls():
        for _ in range(OFTEN + 2):
            a[:] = 0
            looped(a, b, 8, 1.0)
            np.testing.assert_array_equal(a, b + FACTOR)

    with orion.session(workers=1):
        calls()
        with orion.profile() as profile:
            calls()
        assert profile.to_dict()["calls"] == OFTEN + 2
        orion.scale(2)
        calls()
    with orion.session(workers=1):
        calls()
    assert looped.last_run.plan.loops


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_subscript_out_of_bounds_is_told_and_calls_go_on(workers, calls_again):
    def gathered(a, b, where):
        for i in range(len(where)):
            a[i] = b[where[i]]

    looped = orion.parallel_for(gathered)
    a, b, where = np.zeros(8), np.arange(8.0), np.arange(8)
    with orion.session(workers=workers, force_parallel=workers > 1):
        for _ in range(OFTEN + 2):
            looped(a, b, where)
        for place in (0, 3, 7):
            where[:] = np.arange(8)
            where[place] = 8
            with pytest.raises(orion.OutOfBoundsError, match=r"8 .*out of bounds|where\[i\]"):
                looped(a, b, where)
        where[7] = 0
        looped(a, b, where)
    np.testing.assert_array_equal(a, b[where])
    assert len(calls_again) > 3


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_an_error_without_a_code_is_told_and_calls_go_on(workers, calls_again):
    def divided(a, b):
        for i in range(len(a)):
            a[i] = 7 // int(b[i])

    looped = orion.parallel_for(divided)
    a, b = np.zeros(8, int), np.ones(8, int)
    with orion.session(workers=workers, force_parallel=workers > 1):
        for place in (*[None] * (OFTEN + 2), 0, 3, 7, None):
            b[:] = 1
            if place is None:
                looped(a, b)
                continue
            b[place] = 0
            with pytest.raises(ZeroDivisionError, match=r"7 // int"):
                looped(a, b)
    assert a.tolist() == [7] * 8
    assert len(calls_again) > 4


@pytest.mark.parametrize("workers", [2, 3])
def test_parked_workers_do_other_things_and_sleep_between_calls(workers, calls_again):
    one, other = orion.parallel_for(scaled), orion.parallel_for(between)
    a, b = np.zeros(50), np.arange(50.0)
    with orion.session(workers=workers, force_parallel=True):
        expected = other(a, b, 50, 3.0)
        for rest in (0.0, 0.0, 0.0, 0.05, 0.0, 0.3):
            time.sleep(rest)
            one(a, b, 50, 1.0)
            np.testing.assert_array_equal(a, b + FACTOR)
            orion.parallel_for(scaled)(a, b, 50, 2.0)  # a first call, which they are called away for
            np.testing.assert_array_equal(a, 2.0 * (b + FACTOR))
            assert other(a, b, 50, 3.0) == expected
    assert len(calls_again) > 5


def divided_at(a, b, m):
    for i in range(len(a)):
        a[i] = 100 // (i - m) + b[i]


@pytest.mark.parametrize("workers", [2, 3])
def test_an_error_of_one_function_is_told_while_workers_are_parked_for_another(workers, calls_again):
    """The worker was woken for `scaled`, and does what is posted for `divided_at`."""
    one, other = orion.parallel_for(scaled), orion.parallel_for(divided_at)
    a, b, c, d = np.zeros(40, int), np.zeros(40, int), np.zeros(20), np.arange(20.0)
    with orion.session(workers=workers, force_parallel=True):
        for _ in range(OFTEN + 2):
            other(a, b, -1)
            one(c, d, 20, 1.0)
        for _ in range(5):
            time.sleep(0.1)
            one(c, d, 20, 1.0)
            with pytest.raises(ZeroDivisionError):
                other(a, b, 35)
            one(c, d, 20, 1.0)
            other(a, b, -1)
            np.testing.assert_array_equal(c, d + FACTOR)
    assert len(calls_again) > 15


@pytest.mark.parametrize("where", ["park", "abort"])
def test_control_c_may_come_anywhere_while_workers_are_woken(where, monkeypatch, calls_again):
    looped = orion.parallel_for(scaled)
    a, b = np.zeros(20), np.arange(20.0)
    park, abort, left = Pool.park, RunMemory.abort, {"park": 1, "abort": 1 if where == "abort" else 0}

    def interrupted(name, then):
        def instead(*given):
            if left[name]:
                left[name] -= 1
                raise KeyboardInterrupt
            return then(*given)

        return instead

    with orion.session(workers=2, force_parallel=True):
        for _ in range(OFTEN + 2):
            looped(a, b, 20, 1.0)
        boxes = calls_again[-1][2].boxes
        while boxes[1, STATE] != AWAY:
            time.sleep(0.01)
        monkeypatch.setattr(Pool, "park", interrupted("park", park))
        monkeypatch.setattr(RunMemory, "abort", interrupted("abort", abort))
        with pytest.raises(KeyboardInterrupt):
            looped(a, b, 20, 3.0)
        looped(a, b, 20, 2.0)
    np.testing.assert_array_equal(a, 2.0 * (b + FACTOR))
    assert not any(left.values())


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("first", [0, 2])
def test_control_c_ends_a_call_that_is_like_the_one_before(workers, first, calls_again):
    def counting(a, most):
        for i in range(len(a)):
            while a[i] < most[i]:
                a[i] += 1.0

    looped = orion.parallel_for(counting)
    a, most = np.zeros(4), np.full(4, 3.0)
    with orion.session(workers=workers, force_parallel=workers > 1):
        for _ in range(OFTEN + 2):
            looped(a, most)
        most[first : first + 2] = 1e12  # of worker 0, or of another one
        timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            looped(a, most)
        timer.join()
        a[:], most[:] = 0.0, 7.0
        looped(a, most)
    np.testing.assert_array_equal(a, most)
    assert len(calls_again) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_take_turns(workers):
    looped = orion.parallel_for(scaled)
    arrays = [(np.zeros(50), np.arange(50.0) + k) for k in range(4)]

    def body(a, b):
        for _ in range(200):
            looped(a, b, 50, 1.0)

    threads = [threading.Thread(target=body, args=pair) for pair in arrays]
    with orion.session(workers=workers, force_parallel=workers > 1):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for a, b in arrays:
        np.testing.assert_array_equal(a, b + FACTOR)


@pytest.mark.parametrize("workers", [1, 2])
def test_arrays_of_subscripts_are_looked_through_again(workers, calls_again):
    looped = orion.parallel_for(relaxed)
    with orion.session(workers=workers, force_parallel=True):
        given = ring(50)
        for _ in range(5):  # from the fourth on, what is known of the call before is used
            looped(*given, 3)
        given[1][70] = 50
        with pytest.raises(orion.OutOfBoundsError, match=r"subscript 50 leaves `x`(?s:.)*`nbr\[70\]` is 50"):
            looped(*given, 3)
        given[1][70] = -1
        mine, its = [one.copy() for one in given], [one.copy() for one in given]
        looped(*mine, 3)
        relaxed(*its, 3)
    assert len(calls_again) > 2
    for one, other in zip(mine, its, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_of_an_array_may_lie_elsewhere_but_not_in_each_other(workers, calls_again):
    looped, memory = orion.parallel_for(scaled), np.random.default_rng(1).random(200)
    with orion.session(workers=workers, force_parallel=True):
        for at, other in ((0, 100), (12, 150), (24, 90), (60, 72), (30, 18), (7, 140)):
            looped(memory[at : at + 12], memory[other : other + 12], 12, 0.5)
        before = len(calls_again)
        assert before > 2
        for at, other in ((40, 41), (41, 40), (50, 61), (61, 50)):
            its = memory.copy()
            scaled(its[at : at + 12], its[other : other + 12], 12, 0.5)
            try:
                looped(memory[at : at + 12], memory[other : other + 12], 12, 0.5)
            except orion.AliasError:
                continue
            np.testing.assert_array_equal(memory, its)
    assert len(calls_again) == before
