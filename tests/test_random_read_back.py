"""Random loops that store an element and read it back in the same iteration, against Python.

Parts of a loop's body that run on their own, as the first pass of a scan, leave out or repeat stores. So whatever is
read back must be known to depend on what was stored: by another spelling of the subscript, through a row, a slice or a
helper, under a condition, from an inner loop, beside a scalar. All numbers are whole and stay small, so that sums are
exact in any order. Kernels are run by the Python interpreter.
"""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from orion.rewrites.scans import apply, find
from tests.loop_text import defined
from tests.random_functions import compare, plans, rewritten
from tests.trials import ALL, TIMES, times

LONG, SHORT = 21, (9, 2, 1, 0)
"""Two blocks and the rest of a third; fewer."""

HELPERS = """
def put(v, i, value):
    v[i] = value


def get(v, i):
    return v[i]


def both(v, i, value):
    v[i] = value
    return value
"""


@pytest.fixture(autouse=True)
def short_loops(monkeypatch):
    """Loops of any length, and with little work, go through blocks."""
    monkeypatch.setattr(apply, "LENGTH", 8)
    monkeypatch.setattr(apply, "LEAST_NS", 1)
    monkeypatch.setattr(find, "MEMORY_NS", 0.0)
    monkeypatch.setattr(find, "GAIN", 0.0)


class Maker:
    """Writes a random function over vectors b and c, a matrix B and the one element of e, which it writes, and over x
    and y, which it reads."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.is_scan = self.random.random() < 0.5
        """Whether one scalar is handed on, in a form that is one of scans, and mostly other values are stored."""

    def pick(self, *choices):
        return self.random.choice(choices)

    def own(self):
        """The subscript of the iteration, in one of its spellings."""
        return self.pick("i", "i", "i", "i + 1 - 1", "n - 1 - (n - 1 - i)", "i - len(x)", "i + k - k")

    def value(self):
        """What is stored: often what iterations hand on."""
        if self.is_scan and self.random.random() < 0.8:
            return self.pick("x[i]", "y[i]", "x[i] + y[i]", "t", "min(x[i], 1)", "i")
        return self.pick(
            "s", "s", "r", "m", "t", "x[i]", "y[i]", "s + x[i]", "x[i] - r", "max(s, y[i])", "min(t, x[i])", "z + 1",
        )  # fmt: skip

    def store(self):
        at, value = self.own(), self.value()
        return self.pick(
            f"b[{at}] = {value}",
            f"b[{at}] = {value}",
            f"b[{at}] += {value}",
            f"c[{self.own()}] = b[{at}] = {value}",
            f"b[{at}], c[i] = {value}, {self.value()}",
            f"b[{at}], z = {value}, {self.value()}",
            f"z, b[{at}] = {self.value()}, {value}",
            f"b[{at}], b[{self.own()}] = {value}, b[i] + 1",
            f"z = b[{at}] = {value}",
            f"if {self.test()}:\n    b[{at}] = {value}",
            f"if {self.test()}:\n    b[{at}] = {value}\nelse:\n    b[i] -= 1",
            f"put(b, {at}, {value})",
            f"z = both(b, {at}, {value})",
            f"e[0] = {value}",
            f"e[0] += {value}",
            f"e[-1] = {value}",
            f"B[{at}, 0] = {value}",
            f"B[{at}][1] = {value}",
            f"B[{at}, :] = {value}",
            f"B[{at}] += {value}",
            f"row = B[{at}]\nrow[0] = {value}",
            f"row = B[{at}, 1:]\nrow[0] = {value}\nrow[-1] += 1",
            f"B[{at}].fill({value})",
            f"B[{at}, 2] = {value}\nB[i].sort()",
            f"for j in range(3):\n    B[{at}, j] = {value} + j",
            f"for j in range(3):\n    if x[j] > {self.pick('x[i]', 's')}:\n        {self.pick('break', 'continue')}\n"
            f"    b[{at}] = {value} + j",
        )

    def read(self):
        at = self.own()
        if self.is_scan and self.random.random() < 0.4:
            return self.pick("x[i]", "y[i]", "x[i] - y[i]", "abs(y[i])")
        return self.pick(
            f"b[{at}]", f"b[{at}]", f"c[{at}]", f"get(b, {at})", f"min(b[{at}], x[i])", "e[0]",
            "e[k - 2]", f"B[{at}, 0]", f"B[{at}][1]", f"np.sum(B[{at}])", f"B[{at}].max()", f"B[{at}, -1]",
            f"abs(b[{at}])", f"b[{at}:{at} + 1].sum()", "y[i]", "y[i] - b[i]",
            f"(b[{at}] if x[i] > 0 else y[i])", "b[i - 1]", "z", "x[i]", "B[i, 1:].sum()", "(b[i] > 1)",
        )  # fmt: skip

    def test(self):
        return (
            f"{self.pick('x[i]', 'y[i]', 's', 't', self.read())} {self.pick('<', '>', '==')} {self.pick('0', 'y[i]')}"
        )

    def taken(self):
        """What is read back, in a scalar of the iteration."""
        return self.pick(
            f"t = {self.read()}",
            f"t = {self.read()}",
            f"t = {self.read()} - {self.read()}",
            f"t, z = {self.read()}, {self.read()}",
            f"z = {self.read()}\nt = z + x[i]",
            f"t = y[i]\nif {self.test()}:\n    t = {self.read()}",
            f"t = 0\nfor j in range(3):\n    if y[j] > {self.pick('x[i]', 'b[i]', 's')}:\n        "
            f"{self.pick('break', 'continue')}\n    t = t + {self.pick('y[j]', 'B[i, j]', 'b[i]', '1')}",
            f"for j in range({self.pick('2', '3')}):\n    B[i, j] = {self.value()}\nt = j * x[i]",
        )

    def step(self):
        """What iterations hand on, by what was read back."""
        t = self.pick("t", "t", "t", self.read(), "x[i]")
        if self.is_scan:
            found = f"s = {self.pick('f[i] * s', '-s', 's', '(x[i] > 0) * s')} + {t}"
            return f"if {self.test()}:\n    {found}" if self.random.random() < 0.2 else found
        return self.pick(
            f"s += {t}", f"s = f[i] * s + {t}", f"s = {t} - s", f"s = {t}", f"r = f[i] * r + {t}", f"s = s + {t} - 1",
            f"m = max(m, {t})", f"m = np.maximum(m, {t})", f"if {t} > m:\n    m = {t}\n    last = i",
            f"s, r = r, s + {t}", f"s, r = s + {t}, r - x[i]", f"if {self.test()}:\n    s += {t}", f"e[0] += {t}",
            f"c[i] = c[i - 1] + {t}", f"if {self.test()}:\n    s = {t}\nelse:\n    s += x[i]", f"q += {t}",
            f"if {t} > 4:\n    last = i\n    {self.pick('break', 'pass')}", f"last = {t}", f"m = min(m, {t})",
        )  # fmt: skip

    def use(self):
        return self.pick("c[i] = s", "d[i] = s + r", "d[i] = m", "q += s", "d[i] = t", "d[i] = b[i]", "q = max(q, s)")

    def function(self):
        lines = [self.store(), self.taken(), self.step(), *(["d[i] = s"] if self.is_scan else [])]
        others = (self.store, self.taken) if self.is_scan else (self.store, self.taken, self.step, self.use)
        lines += [self.pick(*others)() for _ in range(self.random.randint(0, 2))]
        if self.random.random() < 0.25:
            self.random.shuffle(lines)
        space = self.pick("n", "n", "1, n", "n - 1, -1, -1", "n - 1, 0, -1")
        begin = [
            "def f(x, y, f, b, c, d, B, e, k, n):",
            "    s, r, m, q, last = 1, 2, -9, 0, -1",
            "    t, z = 0, 3",
            f"    for i in range({space}):",
        ]
        body = [f"        {line}" for text in lines for line in text.split("\n")]
        return "\n".join(
            [*begin, *body, f"    return {self.pick('s, r, m, q, last', 's', 's, m', '0', 't, z')}", HELPERS]
        )


def arguments(n, seed):
    rng = np.random.default_rng(seed)
    dtype = ("float64", "float64", "int64")[seed // 4 % 3]
    made = {name: rng.integers(-3, 4, n + 4).astype(dtype) for name in "xybcd"}
    made |= {"f": rng.integers(-1, 2, n + 4).astype(dtype), "e": np.ones(1, dtype)}
    return made | {"B": rng.integers(-3, 4, (n + 4, 3)).astype(dtype), "k": 2, "n": n}


@pytest.mark.parametrize("seed", range(times(60, 24)))
def test_random_loops_that_read_back_are_pythons(seed):
    source = Maker(seed).function()
    function = defined(source)
    for n in (LONG, *(SHORT if ALL else (SHORT[seed % 4],))):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            compare(function, lambda n=n: arguments(n, seed), 1 + seed % 4, f"n = {n}\n{source}")


def test_rewrites_are_taken_for_some():
    """The generator reaches what it is for, and what it must not be taken for."""
    makers = ((Maker(seed), seed) for seed in range(60 * TIMES))
    made = [*plans((defined(one.function()), arguments(LONG, seed)) for one, seed in makers if one.is_scan)]
    assert sum("scans" in rewritten(plan) for plan in made) >= TIMES
    assert sum(plan.is_parallel for plan in made) >= 3 * TIMES
