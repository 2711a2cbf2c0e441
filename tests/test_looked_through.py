"""Subscripts that are elements of arrays of integers, in loops that are run again and again: a call looks through the
arrays once, and where all of them are inside, the loops look at none."""

from __future__ import annotations

import random

import numpy as np
import pytest

import orion
from tests.loop_text import defined
from tests.trials import TIMES

N, ROUNDS = 7, 3
CONTENTS = ("inside", "negative", "inside", "outside", "far outside", "inside")
"""What the arrays hold in calls that come one after the other."""

STATEMENTS = (
    ("s += x[nbr[e]]",),
    ("w = nbr[e]", "s += x[w]", "s += y[w]"),
    ("if x[nbr[e]] > 3:", "    s += y[nbr[e]]"),
    ("if nbr[e] >= 0:", "    s += x[nbr[e]]"),
    ("s += x[w]", "w = nbr[e]"),
    ("w = nbr[e]", "if w > 2:", "    w = far", "s += x[w]"),
    ("s = max(s, x[far] + M[nbr[e], small[e]])",),
    ("s += x[nbr[small[e]]]",),
    ("s += x[small[e]]",),
    ("w = nbr[e]", "x[w] += 1"),
    ("s += nbr[e]", "nbr[e] = nbr[e]", "s += x[nbr[e]]"),
)


class Gathering:
    """A function whose text and arguments are those of a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        chance = random.Random(seed)
        found = [line for _ in range(chance.randint(1, 2)) for line in chance.choice(STATEMENTS)]
        lines = [
            "r = 0",
            "while r < rounds:",
            "    for v in range(out.shape[0]):",
            "        s = out[v]",
            "        w = far",
        ]
        if chance.random() < 0.8:
            lines += ["        for e in range(ptr[v], ptr[v + 1]):", *("            " + line for line in found)]
        else:
            lines += ["        e = v", *("        " + line for line in found)]
        lines += ["        out[v] = s", "    r += 1"]
        self.text = "def f(ptr, nbr, small, x, y, M, out, far, rounds):\n" + "\n".join("    " + line for line in lines)

    def arguments(self, contents: str) -> tuple[object, ...]:
        rng = np.random.default_rng(self.seed)
        ptr = np.sort(rng.integers(0, 20, N + 1))
        nbr, small = rng.integers(0, 5, 20), rng.integers(0, 5, 20).astype(np.int8)
        changed = (nbr, small)[self.seed % 2]
        changed[rng.integers(20)] = {"inside": 1, "negative": -2, "outside": 5, "far outside": -6}[contents]
        x, y, M = rng.integers(0, 9, 5), rng.integers(0, 9, 5), rng.integers(0, 9, (5, 5))
        return ptr, nbr, small, x, y, M, np.zeros(N, np.int64), int(rng.integers(0, 5)), ROUNDS


def outcome(function, arguments):
    try:
        function(*arguments)
    except IndexError:
        return None
    return arguments


@pytest.mark.parametrize("seed", range(25 * TIMES))
def test_it_is_what_python_gives(seed):
    case = Gathering(seed)
    function = defined(case.text)
    looped = orion.parallel_for(function)
    with orion.session(workers=1 + seed % 2, force_parallel=True):
        for contents in CONTENTS:
            expected, found = (outcome(one, case.arguments(contents)) for one in (function, looped))
            assert (expected is None) == (found is None), f"{contents}\n{case.text}"
            for one, other in zip(expected or (), found or (), strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{contents}\n{case.text}")


def source(function, *arguments):
    with orion.session(workers=2, force_parallel=True):
        return orion.parallel_for(function).kernel_source(*arguments)


def test_many_are_told_the_extremes():
    texts = [source(defined(case.text), *case.arguments("inside")) for case in map(Gathering, range(40))]
    assert sum("nbr_least" in text for text in texts) > 15
    assert sum("small_greatest" in text for text in texts) > 3


def relaxed(ptr, nbr, x, new, rounds):
    for _ in range(rounds):
        for v in range(len(new)):
            total = 0.0
            for e in range(ptr[v], ptr[v + 1]):
                total += x[nbr[e]]
            new[v] = total
        for v in range(len(new)):
            x[v] = new[v] / 4.0


def once(ptr, nbr, x, new):
    for v in range(len(new)):
        for e in range(ptr[v], ptr[v + 1]):
            new[v] += x[nbr[e]]


def ring(n):
    nbr = (np.repeat(np.arange(n), 3) + np.tile([-1, 0, 1], n)) % n
    return np.arange(0, 3 * n + 1, 3), nbr, np.arange(n, dtype=float), np.zeros(n)


def test_a_loop_that_is_run_once_is_not_told():
    assert "nbr_least" in source(relaxed, *ring(50), 3)
    assert "nbr_least" not in source(once, *ring(50))


def test_no_elements_are_no_subscripts():
    looped = orion.parallel_for(relaxed)
    given = np.zeros(4, np.int64), np.zeros(0, np.int64), np.ones(3), np.ones(3)
    with orion.session(workers=1, force_parallel=True):
        for _ in range(4):
            looped(*given, 2)
    assert not given[2].any()


@pytest.mark.parametrize("call", [0, 4])
def test_subscripts_past_63_bits_are_outside(call):
    ptr, nbr, x, new = ring(9)
    given = ptr, nbr.astype(np.uint64), x, new
    looped = orion.parallel_for(relaxed)
    with orion.session(workers=1, force_parallel=True):
        for _ in range(call):
            looped(*given, 2)
        given[1][5] = 2**63 + 5
        with pytest.raises(orion.OutOfBoundsError, match="leaves `x`"):
            looped(*given, 2)
