"""Searches: loops that a `break` or a `return` ends are shared out where later iterations have no effect and cannot
fail."""

from __future__ import annotations

import math
import random
import warnings

import islpy as isl
import numpy as np
import pytest

import orion
from orion.dependence import scalars
from orion.dependence.bounds import BoundsChecks
from orion.dependence.early_exits import set_at_exit
from orion.errors import PlanError
from orion.frontend.parse import parse_function
from orion.ir.nodes import For, every
from orion.kernel.calling import ENDED, end_mark
from orion.kernel.support.intrinsics import is_after_end, tell_end
from orion.rewrites.early_exits import apply, find
from orion.verify.early_exits import prove_set_at_exit
from tests.loop_text import defined
from tests.random_functions import compare, plans, rewritten
from tests.trials import ALL, TIMES, times, worker_counts

N = 700
PLACES = (None, 0, 1, 21, 22, 350, N - 1)
"""Where the element that is looked for is: nowhere, first, in the first block, at borders of blocks, last."""


def any_of(a, x):
    for i in range(len(a)):  # noqa: SIM110 - what is tested
        if a[i] == x:
            return True
    return False


def all_others(a, x):
    for value in a:  # noqa: SIM110 - what is tested
        if value == x:
            return False
    return True


def first(a, x):
    for i in range(a.shape[0]):
        if a[i] == x:
            return i
    return -1


def last(a, x):
    at = -1
    for i in range(a.shape[0] - 1, -1, -1):
        if a[i] == x:
            at = i
            break
    return at


def every_third(a, x):
    for i in range(1, len(a), 3):
        if a[i] == x or a[i - 1] == x:
            return i, a[i - 1], a[i]
    return -1, 0.0, 0.0


def from_names(a, x):
    found = False
    at = 7
    value = 0.5
    for i in range(len(a)):
        if a[i] == x:
            found = True
            at = 2 * i
            if i > 20:
                value = a[i - 1]
            break
    return found, at, value


def with_else(a, x):
    for i in range(len(a)):
        if a[i] == x:
            at = i
            break
    else:
        at = -5
    return at


def the_variable(a, x):
    i = -1
    for i in range(len(a)):
        if a[i] == x:
            break
    return i


def a_prefix(a, x):
    total, count, most, at, seen = 0.0, 0, -1.0, -1, 0.0
    for i in range(len(a)):
        if a[i] == x:
            break
        total += a[i]
        count += 1
        seen = a[i]
        if a[i] > most:
            most, at = a[i], i
    return total, count, most, at, seen


def two_ends(a, x):
    why = 0
    for i in range(len(a)):
        if a[i] == x:
            why = 1
            break
        if a[i] > 40 and i > 600:
            why = 2
            break
    return why


def is_sorted(a, x):
    b = a[0]
    for i in range(1, len(a)):
        if a[i] == x and a[i - 1] != x:
            b = a[i - 1]
            return False, b
    return True, b


def skipping(a, x):
    for i in range(len(a)):
        if a[i] > 20 and a[i] != x:
            continue
        if math.sqrt(abs(a[i])) > 9 or a[i] == x:
            return i
    return -1


def not_set_before(a, x):
    known = -2
    for i in range(len(a)):
        if known > 0:
            break
        if a[i] == x:
            known = i + 1
            break
    return known


SEARCHES = (
    any_of, all_others, first, last, every_third, from_names, with_else, the_variable, a_prefix, two_ends, is_sorted,
    skipping, not_set_before,
)  # fmt: skip


def given(place):
    a = np.floor(np.random.default_rng(1).random(N) * 30)
    if place is not None:
        a[place:] = np.where(np.arange(N - place) % 5 == 0, 50.0, a[place:])
    return a, 50.0


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", orion.SerialLoopWarning)
        yield


@pytest.mark.parametrize("function", SEARCHES, ids=lambda function: function.__name__)
def test_searches_are_shared_out_and_pythons(function):
    for workers in worker_counts(1, 2, 4):
        with orion.session(workers=workers, force_parallel=True):
            search = orion.parallel_for(function, require_parallel=True)
            for place in PLACES:
                assert search(*given(place)) == function(*given(place)), (workers, place)
            plan = search.plan(*given(3))
            assert plan.check() is None
            assert plan.loops[0].is_parallel


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_searches_on_ray():
    with orion.session(backend="ray", workers=2, force_parallel=True):
        for function in (first, last, a_prefix, from_names):
            search = orion.parallel_for(function)
            for place in PLACES:
                assert search(*given(place)) == function(*given(place)), (function, place)


def differ(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if A[i, j] != B[i, j]:
                return i, j
    return -1, -1


def a_row_of(A, x):
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[i, j]
        if total > x:
            return i, total
    return -1, 0.0


def pair_of(a, x):
    for i in range(len(a)):
        for j in range(i + 1, len(a)):
            if a[i] + a[j] == x:
                return i, j
    return -1, -1


@pytest.mark.parametrize("place", [None, (0, 0), (0, 3), (7, 5), (39, 9)])
def test_searches_through_nested_loops(place):
    A = np.floor(np.random.default_rng(2).random((40, 10)) * 4)
    B, a = A.copy(), np.arange(1, 41) * 2.0
    if place is not None:
        B[place] += 100
        a[39 - place[0]] += 1
    for workers in worker_counts(1, 2, 4):
        with orion.session(workers=workers, force_parallel=True):
            assert orion.parallel_for(differ, require_parallel=True)(A, B) == differ(A, B)
            assert orion.parallel_for(a_row_of, require_parallel=True)(B, 50.0) == a_row_of(B, 50.0)
            assert orion.parallel_for(pair_of, require_parallel=True)(a, 81.0) == pair_of(a, 81.0)
            assert orion.parallel_for(differ).plan(A, B).check() is None


def in_rounds(A, x):
    found = 0
    for t in range(A.shape[0]):
        at = A.shape[1]
        for i in range(A.shape[1]):
            if A[t, i] == x:
                at = i
                break
        found += at * (t + 1)
        for i in range(A.shape[1]):
            A[t, i] = at + i
    return found


def test_a_search_in_each_round_of_a_serial_loop():
    A = np.floor(np.random.default_rng(3).random((30, 200)) * 60)
    want = in_rounds(A.copy(), 3.0)
    for workers in worker_counts(1, 2, 4):
        with orion.session(workers=workers, force_parallel=True):
            B, C = A.copy(), A.copy()
            search = orion.parallel_for(in_rounds)
            assert search(B, 3.0) == want
            in_rounds(C, 3.0)
            np.testing.assert_array_equal(B, C)


# ------------------------------------------------------------ conditions


def up_to(a, n, x):
    for i in range(n):
        if a[i] == x:
            return i
    return -1


def neighbours(a, m, x):
    for i in range(len(a)):
        if a[i] == x or a[i + m] == x:
            return i
    return -1


def test_iterations_must_lie_inside_of_arrays():
    a, _ = given(350)
    with orion.session(workers=2, force_parallel=True):
        search = orion.parallel_for(up_to)
        plan = search.plan(a, N, 50.0)
        assert plan.loops[0].is_parallel
        assert "a.shape[0] >= n" in str(plan)
        assert search(a, N, 50.0) == search(a, 600, 50.0) == 350
        with pytest.warns(orion.SerialLoopWarning):
            assert search(a, 2 * N, 50.0) == 350  # as Python, which does not come to the end of a
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(IndexError, match="leaves `a`"):
                search(a, 2 * N, 60.0)
            said = str(search.plan(a, 2 * N, 50.0))
        assert "`a.shape[0] >= n` does not hold" in said
        assert orion.parallel_for(neighbours).plan(a, 0, 50.0).loops[0].is_parallel
        assert not orion.parallel_for(neighbours).plan(a, 1, 50.0).loops[0].is_parallel


# ------------------------------------------------------------ what stays serial


SERIAL = {
    "an array is written": "a[i] = 0.0\nif a[i] > x:\n    break",
    "an array is written at the exit": "if a[i] > x:\n    b[0] = i\n    break",
    "a scalar is passed on": "p = 0.5 * p + a[i]\nif p > x:\n    break",
    "a value is kept without the exit": "if a[i] > 5:\n    q = i\nif q > 3 and a[i] > x:\n    break",
    "a division by what may be 0": "if 8 // (k - i) > x:\n    break",
    "a subscript from an array": "if b[int(a[i])] > x:\n    break",
    "a while": "t = a[i]\nwhile t > 1:\n    t = t / 2\nif t > x:\n    break",
    "bounds of an inner loop from an array": "t = 0.0\nfor j in range(int(a[i])):\n    t += 1\nif t > x:\n    break",
    "a power that may be negative": "if 2 ** (k - i) > x:\n    break",
    "a function that may fail": "if np.power(2, k - i) > x:\n    break",
    "a draw from what may be empty": "if orion.random.integers(i, k, 1, i) > 40:\n    break",
}


def serial(name):
    body = "\n".join(f"        {line}" for line in SERIAL[name].split("\n"))
    start = "def f(a, b, k, x):\n    p = 0.0\n    q = 0\n    for i in range(len(a)):\n"
    return defined(f"{start}{body}\n    return p, q\n", orion=orion)


@pytest.mark.parametrize("name", SERIAL)
def test_others_stay_serial_and_are_pythons(name):
    function = serial(name)
    a, b = np.linspace(0, 9, 40), np.zeros(40)
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        search = orion.parallel_for(function)
        assert not search.plan(a.copy(), b.copy(), 50, 7.0).loops[0].is_parallel
        mine, its = (a.copy(), b.copy()), (a.copy(), b.copy())
        assert search(*mine, 50, 7.0) == function(*its, 50, 7.0)
        for one, other in zip(mine, its, strict=True):
            np.testing.assert_array_equal(one, other)


WAYS = [
    ("if a[i] > x:\n    s = i\n    break", True),
    ("if a[i] > x:\n    s = i\nif a[i] > 2 * x:\n    break", False),
    ("s = i\nif a[i] > x:\n    break", False),
    ("if a[i] > x:\n    if a[i] > 3:\n        s = 1\n    else:\n        s = 2\n    break", True),
    ("if a[i] > x:\n    s = 1\n    if a[i] > 3:\n        continue\n    break", False),
    ("for j in range(3):\n    if a[j] > x:\n        s = 1\n        break\nif s == 1:\n    break", True),
    ("for j in range(3):\n    if a[j] > x:\n        s = 1\n        break\nif s != 0:\n    break", True),
    ("for j in range(3):\n    if a[j] > x:\n        s = 1\n        break\nif s == 2:\n    break", False),
    ("for j in range(3):\n    if a[j] > x:\n        s = 1\nif s == 1:\n    break", True),
    ("for j in range(3):\n    if a[j] > x:\n        s = j\n        break\nif s != 0:\n    break", False),
    ("for j in range(3):\n    s = 1\n    break\ns = 0\nif s != 0:\n    break", False),
    ("f = 0\nif a[i] > x:\n    s = i\n    f = 1\nif f == 1:\n    break", True),
    ("f = 0\nif a[i] > x:\n    s = i\n    f = 1\nif a[i] < 0:\n    f = 0\nif f == 1:\n    break", False),
]


def body_of(text):
    body = "\n".join(f"        {line}" for line in text.split("\n"))
    function = defined(f"def f(a, x, s):\n    for i in range(len(a)):\n{body}\n    return s\n")
    return next(every(For, *parse_function(function).body)).body


@pytest.mark.parametrize(("text", "is_so"), WAYS)
def test_scalars_that_are_set_at_the_exit_alone(text, is_so):
    """By the analysis, and by the checker, which may find less: it looks no further than the end of an inner trip."""
    body = body_of(text)
    assert set_at_exit("s", body) == is_so
    try:
        prove_set_at_exit("s", body)
    except PlanError:
        assert not is_so or "for" in text
    else:
        assert is_so


# ------------------------------------------------------------ the checker


UNLIKE = {
    "an array is written": (find, "is_harmless", lambda *_: True),
    "a division by what may be 0": (find, "is_harmless", lambda *_: True),
    "a subscript from an array": (apply, "bounds_checks", lambda *_: BoundsChecks((), frozenset())),
    "a while": (find, "is_harmless", lambda *_: True),
    "a power that may be negative": (find, "is_harmless", lambda *_: True),
    "a function that may fail": (find, "is_harmless", lambda *_: True),
    "a draw from what may be empty": (find, "is_harmless", lambda *_: True),
    "a value is kept without the exit": (scalars, "set_at_exit", lambda *_: True),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_the_checker_does_not_believe_the_planner(name, monkeypatch):
    """With the planner's own check off such loops are planned in tiles, and refused."""
    where, check, answer = UNLIKE[name]
    monkeypatch.setattr(where, check, answer)
    with orion.session(workers=2, force_parallel=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = orion.parallel_for(serial(name)).plan(np.linspace(0, 9, 40), np.zeros(40), 50, 7.0)
        assert plan.loops[0].is_parallel
        with pytest.raises(PlanError):
            plan.check()


def test_the_checker_looks_at_every_iteration(monkeypatch):
    """Where the condition on sizes is left out, iterations after the end would leave the array."""
    monkeypatch.setattr(apply, "free_of_all", lambda *_: isl.Set("{ : }"))
    a, _ = given(350)
    with orion.session(workers=2, force_parallel=True):
        plan = orion.parallel_for(up_to).plan(a, 2 * N, 50.0)
        assert plan.loops[0].is_parallel
        with pytest.raises(PlanError, match="may leave a"):
            plan.check()


# ------------------------------------------------------------ tiles after the end


def test_tiles_after_the_end_are_not_run():
    from numba import njit

    @njit
    def left_out(tiles, round, control):
        found = 0
        for tile in range(tiles):
            if is_after_end(tile, round, control):
                found += 1
        return found

    tell = njit(tell_end.py_func)
    control = np.zeros(8, np.int64)
    assert left_out(10, 0, control) == 0
    tell(6, 0, control)
    tell(8, 0, control)
    assert left_out(10, 0, control) == 3
    tell(2, 0, control)
    assert left_out(10, 0, control) == 7
    assert control[ENDED] == end_mark(2, 0)
    assert left_out(10, 1, control) == 0  # the next round begins anew


# ------------------------------------------------------------ random searches


class Maker:
    """Writes a random function that looks through arrays a and b of integers."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def value(self, depth=0):
        if depth > 1 or self.random.random() < 0.6:
            return self.pick("a[i]", "a[i]", "b[i]", "b[i + 1]", "a[i - 1]", "t", "p", "i", "k", "2", "s", "b[2 * i]")
        left, right = self.value(depth + 1), self.value(depth + 1)
        return self.pick(f"{left} + {right}", f"{left} - {right}", f"min({left}, {right})", f"abs({left})")

    def test(self):
        return f"{self.value()} {self.pick('<', '>', '==', '!=')} {self.value()}"

    def plain(self):
        return self.pick(
            f"t = {self.value()}", f"t = {self.value()}", f"p += {self.value()}", "q += 1",
            f"m = max(m, {self.value()})", f"if {self.test()}:\n    t = {self.value()}",
            f"if {self.test()}:\n    continue", f"s = {self.value()}",
        )  # fmt: skip

    def exit(self):
        names = [self.pick("s", "u", "s", "q") for _ in range(self.random.randint(0, 2))]
        sets = "".join(f"    {name} = {self.value()}\n" for name in names)
        leave = self.pick("break", "break", "return i", f"return t, {self.value()}")
        if self.random.random() < 0.3:
            inner = f"for j in range({self.pick('3', 'k')}):\n    if a[j] + {self.value()} > {self.pick('7', '3')}:\n"
            return f"{inner}        u = j\n        {self.pick('return j', 'break')}"
        return f"if {self.test()} and {self.test()}:\n{sets}    {leave}"

    def function(self):
        lines = [self.plain() for _ in range(self.random.randint(0, 3))]
        lines += [self.exit() for _ in range(self.pick(1, 1, 2))]
        self.random.shuffle(lines)
        space = self.pick("1, n", "1, n", "n - 1, 0, -1", "1, n, 2", "1, len(a)")
        start = ["def f(a, b, k, n):", "    t, s, u = 0, -1, k", "    p, q, m = 0, 0, -9"]
        body = [f"        {line}" for text in lines for line in text.split("\n")]
        return "\n".join([*start, f"    for i in range({space}):", *body, "    return p, q, m, s, u", ""])


def arguments(n, seed):
    rng = np.random.default_rng(seed)
    return {"a": rng.integers(-5, 6, n + 3), "b": rng.integers(-5, 6, 2 * n + 3), "k": 2, "n": n}


@pytest.mark.parametrize("seed", range(22 * TIMES))
def test_random_searches_are_pythons(seed):
    source = Maker(seed).function()
    function = defined(source)
    for n in (40, *((5, 1, 0) if ALL else ((5, 1, 0)[seed // 3 % 3],))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(function, lambda n=n: arguments(n, seed), 1 + seed % 3, f"n = {n}\n{source}")


def test_many_of_them_are_shared_out():
    """The generator reaches what it is for, and the checker proves what is taken."""
    made = ((defined(Maker(seed).function()), arguments(40, seed)) for seed in range(times(67, 34)))
    assert sum("early_exits" in rewritten(plan) and plan.is_parallel for plan in plans(made)) >= times(16, 7)
