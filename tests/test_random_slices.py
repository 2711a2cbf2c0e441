"""Random statements over slices, in loops and by themselves: what NumPy computes, and its errors.

Kernels are run by the Python interpreter, on several workers, at sizes of which some are too small for the slices.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.loop_text import defined
from tests.random_functions import compare, plans, rewritten
from tests.trials import ALL, times

ARRAYS = {"A": 2, "B": 2, "C": 2, "x": 1, "y": 1}
"""Names and dimensions: A, B and C are n × m, x has n elements and y has m."""

COSTLY = ["max(k, t)", "np.maximum(t, 2)", "abs(t - 2 * k)", "A[0, :].max()", "int(x.sum())", "np.minimum(k, A[-1, 0])"]
"""Scalars that are computed once for all elements of a statement."""

SHAPES = [(7, 6), (4, 4), (2, 3), (1, 2), (3, 1)]
SEEDS = range(times(24, 12))


class Maker:
    """Writes a random function. `cut` is how many elements the slices of a statement leave out, by axis."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.cut = (0, 0)
        self.arrays = 0

    def slice(self, axis, low=None):
        """A slice that leaves out as many elements as the statement's slices do, some at the beginning."""
        cut = self.cut[axis]
        low = self.random.randint(0, cut) if low is None else low
        if self.random.random() < 0.06:
            low += 1  # a length of its own
        high = cut - low
        name = "nm"[axis]
        first = self.random.choice([f"{low}", f"{low}", f"k + {low - 1}" if low else ""]) if low else ""
        last = self.random.choice([f"-{high}", f"{name} - {high}", f"-(k + {high - 1})"]) if high > 0 else ""
        if not last and self.random.random() < 0.04:
            last = self.random.choice([f"{name} + k", f"{name} + 2", f"k * {name}", "12"])  # past the end, but for 12
        return f"{first}:{last}" if first or last else ":"

    def part(self, array, index=None):
        """A part of an array by slices; `index` is what stands in the first axis instead."""
        if ARRAYS[array] == 1:
            return f"{array}[{self.slice(0 if array == 'x' else 1)}]"
        first = self.slice(0) if index is None else index
        return f"{array}[{first}, {self.slice(1)}]"

    def value(self, target, index):
        rank = ARRAYS[target] - (index is not None)
        reads = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.1:
                reads.append(self.random.choice(["2", "k", "t", "A[0, 0]", "x[-1]", "B[1, 0]"]))
            elif kind < 0.2:
                reads.append(self.random.choice(COSTLY))
            elif rank == 2 and kind < 0.3 and index is None:
                left = self.random.choice([self.part("x"), f"{self.random.choice('AB')}[{self.slice(0)}, 0]"])
                right = self.random.choice([self.part("y"), f"{self.random.choice('AB')}[-1, {self.slice(1)}]"])
                reads.append(f"np.outer({left}, {right})")
            elif rank == 2 and kind < 0.85:
                reads.append(self.part(self.random.choice("ABC")))
            elif rank == 2:
                reads.append(self.part("y"))
            elif index is not None:
                reads.append(
                    self.random.choice([self.part("y"), self.part(self.random.choice("AB"), self.near(index))])
                )
            else:
                other = self.random.choice("ABC")
                column = f"{other}[{self.slice(0)}, {self.random.choice(['0', '-1', '1'])}]"
                row = f"{other}[{self.random.choice(['0', '-1', 'k'])}, {self.slice(1)}]"
                reads.append(self.random.choice([self.part(target), column if target == "x" else row]))
        text = reads[0]
        for read in reads[1:]:
            text = self.random.choice([f"{text} + {read}", f"{text} - 2 * {read}", f"({text}) * {read}"])
        return self.random.choice([text, text, f"3 * ({text})", f"-({text})"])

    def near(self, index):
        return self.random.choice([index, f"{index} - 1", f"{index} - 1", "0"])

    def statement(self, inside):
        self.cut = self.random.choice([0, 0, 1, 2]), self.random.choice([0, 1, 2])
        index = "i" if inside else None
        target = self.random.choice("AB" if inside else "AABCxy")
        if not inside and ARRAYS[target] == 2 and self.random.random() < 0.2:
            which = self.random.choice(["0", "-1"])
            left = f"{target}[{which}, {self.slice(1)}]"
            other = self.random.choice("ABC")
            return f"{left} = {other}[{self.random.choice(['0', '1', '-1', '-2'])}, {self.slice(1)}]"
        op = self.random.choice(["=", "=", "+=", "*="])
        return f"{self.part(target, index)} {op} {self.value(target, index)}"

    def made(self):
        """A new array, and a statement that it is used in."""
        self.cut = self.random.choice([0, 1, 2]), 0
        self.arrays += 1
        name, value = f"r{self.arrays}", self.value("x", None)
        use = self.random.choice(
            [name, f"2 * {name}", f"{name} - {self.part('x')}", f"{self.random.choice(COSTLY)} * {name}"]
        )
        return [f"{name} = {value}", f"{self.part('x')} {self.random.choice(['=', '+='])} {use}"]

    def function(self):
        lines = ["def f(A, B, C, x, y, k, T):", "    n, m = A.shape", "    t = 3"]
        for _ in range(self.random.randint(1, 3)):
            form = self.random.choice(["plain", "time", "time", "rows", "both"])
            body = [self.statement(form == "rows") for _ in range(self.random.randint(1, 3))]
            if form != "rows" and self.random.random() < 0.3:
                body += self.made()
            if form == "plain":
                lines += [f"    {one}" for one in body]
            elif form == "rows":
                lines += ["    for i in range(1, n):", *(f"        {one}" for one in body)]
            else:
                lines += ["    for s in range(T):", *(f"        {one}" for one in body)]
            if form == "both":
                lines += ["        t = t - 1", "        v = " + self.part("A")]
                lines += ["        " + f"C[{self.slice(0)}, {self.slice(1)}] += v"]
        return "\n".join([*lines, "    return t", ""])


def arguments(shape, seed):
    rng = np.random.default_rng(seed)
    n, m = shape
    sizes = {"A": (n, m), "B": (n, m), "C": (n, m), "x": (n,), "y": (m,)}
    dtype = "float64" if seed % 10 == 0 else "int64"  # rows of floats may be in vectors, which have to be compiled
    return {name: rng.integers(-4, 5, size).astype(dtype) for name, size in sizes.items()} | {"k": 1, "T": 2}


@pytest.fixture(autouse=True)
def all_rows(monkeypatch):
    """Rows are shared out by columns whether that pays or not."""
    monkeypatch.setattr("orion.rewrites.slices.apply.ROW", 0)
    monkeypatch.setattr("orion.rewrites.slices.find.is_slow", lambda statement: True)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_slices_are_numpys(seed):
    source = Maker(seed).function()
    function = defined(source, np=np)
    shapes = SHAPES[: 2 if seed % 10 == 0 else None]
    for shape in shapes if ALL else {SHAPES[0], shapes[1 + seed % (len(shapes) - 1)]}:
        compare(function, lambda shape=shape: arguments(shape, seed), 1 + seed % 3, f"{shape}\n{source}")


def test_most_of_them_are_loops():
    """The generator reaches what it is for: functions that run as loops, and others that do not at some sizes."""
    count = 40 if ALL else 20
    made = ((defined(Maker(seed).function(), np=np), arguments(SHAPES[0], seed)) for seed in range(count))
    taken = [rewritten(plan) for plan in plans(made)]
    assert sum("slices" in names for names in taken) >= 15 * count // 40
