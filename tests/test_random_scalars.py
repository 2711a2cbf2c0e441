"""Random loops over scalars that pass from statement to statement and from iteration to iteration, against Python.

What such loops are made of: temporaries with several values, what the iteration before left, counters by way of each
other, sums of several terms, branches. All numbers are whole, so that sums are exact in any order. Kernels are run by
the Python interpreter.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.loop_text import defined
from tests.random_functions import compare, plans
from tests.trials import ALL, TIMES, times

SEEDS = range(times(100, 40))
LONG, SHORT = 13, (4, 1, 0)


class Maker:
    """Writes a random function over arrays a and d, which it writes, and b and c, which it mostly reads."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def index(self):
        return self.pick("i", "i", "i", "i - 1", "i + 1", "p", "q", "2 * i", "3", "-1")

    def value(self, depth=0):
        kind = self.random.random()
        if kind < 0.3:
            return f"{self.pick('b', 'b', 'c', 'c', 'a')}[{self.index()}]"
        if kind < 0.55:
            return self.pick("t", "u", "t", "u", "p", "q")
        if kind < 0.7 or depth > 1:
            return self.pick("i", "2", "-1", "k", "3 * i")
        left, right = self.value(depth + 1), self.value(depth + 1)
        return self.pick(f"{left} + {right}", f"{left} - {right}", f"min({left}, {right})", f"2 * ({left})")

    def scalar(self):
        name = self.pick("t", "u")
        return self.pick(
            f"{name} = {self.value()}",
            f"{name} = {self.value()}",
            f"{name} += {self.value()}",
            f"{name} = {name} + {self.value(1)} - {self.value(1)}",
            "t, u = u, t",
            f"t = max(t, {self.value(1)})",
        )

    def counter(self):
        name, other = self.random.sample(["p", "q"], 2)
        return self.pick(
            f"{name} += 1", f"{name} = {name} + 2", f"{name} -= 1", f"{name} = i", f"{name} = {other} + 1",
            f"{name} += k", f"{name} = {other}", f"{name} += i", f"{name} -= k * i + 1", f"{name} += {other}",
        )  # fmt: skip

    def store(self):
        return f"{self.pick('a', 'd', 'd')}[{self.index()}] {self.pick('=', '=', '=', '+=')} {self.value()}"

    def statement(self, depth=0):
        kind = self.random.random()
        if kind < 0.12 and depth == 0:
            first = self.pick("", "", self.counter() + "\n    ")
            test = f"{self.value(1)} {self.pick('<', '>', '==')} {self.value(1)}"
            return f"if {test}:\n    {first}{self.statement(1)}\nelse:\n    {first}{self.statement(1)}"
        if kind < 0.45:
            return self.scalar()
        if kind < 0.6:
            return self.counter()
        if kind < 0.68 and depth == 0:
            return self.inner()
        return self.store()

    def inner(self):
        """A loop of a few trips, which may give the scalars values that are used after it, or be left."""
        body = [self.statement(1) for _ in range(self.random.randint(1, 2))]
        if self.random.random() < 0.4:
            leave = (
                f"if {self.value(1)} {self.pick('<', '>', '==')} {self.value(1)}:\n    {self.pick('break', 'continue')}"
            )
            body.insert(self.random.randint(0, len(body)), leave)
        lines = "\n".join(body).split("\n")
        trips = self.pick("k", "2", "3", "0", "1, 3", "2, 0, -1", "k, 3", "1")
        return "\n".join([f"for j in range({trips}):", *(f"    {line}" for line in lines)])

    def function(self):
        body = "\n".join(self.statement() for _ in range(self.random.randint(2, 6)))
        space = self.pick("n", "n", "1, n", "k, n", "n - 1, -1, -1", "0, n, 2")
        inner = "\n".join(f"    {line}" for line in f"for i in range({space}):".split("\n"))
        lines = ["def f(a, b, c, d, k, n):", f"    t = {self.pick('0', '0.0', 'b[0]')}", "    u = 1", "    p = 0"]
        lines += [f"    q = {self.pick('-1', '2', 'k')}", inner]
        lines += [f"        {line}" for line in body.split("\n")]
        return "\n".join([*lines, f"    return {self.pick('t', 't, u', 't, u, p, q', '0')}", ""])


def arguments(n, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.integers(-5, 6, 3 * n + 9) for name in "abcd"} | {"k": 2, "n": n}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_scalars_are_pythons(seed):
    source = Maker(seed).function()
    function = defined(source)
    for n in (LONG, *(SHORT if ALL else (SHORT[seed // 3 % 3],))):
        compare(function, lambda n=n: arguments(n, seed), 1 + seed % 3, f"n = {n}\n{source}")


def test_rewrites_are_taken_for_some():
    """The generator reaches what it is for."""
    taken: list[str] = []
    for plan in plans((defined(Maker(seed).function()), arguments(13, seed)) for seed in range(100 * TIMES)):
        taken += [name for name, _ in plan.function.rewrites]
        taken += ["induction"] * bool(plan.function.program.function.inductions) + ["parallel"] * plan.is_parallel
    for name, least in (("wrap_around", 2), ("rename", 1), ("induction", 8), ("parallel", 14)):
        assert taken.count(name) >= least, (name, taken.count(name))
