"""Random loops that inspections may find tiles of: in rounds, with arrays and scalars of iterations' own, conditions on
what is written, results, and inner ranges. Results are Python's to the bit, but for sums in copies; plans are
proved."""

from __future__ import annotations

import random
import textwrap
import warnings

import numpy as np
import pytest

import orion
from orion.errors import OutOfBoundsError
from orion.plan.plan import Inspected, NotInspected
from tests.loop_text import defined
from tests.trials import TIMES, combined

N = 14
TRIALS = 8
"""Loops of each of the seeds."""

SIGNATURE = "x, y, W, lab, idx, ptr, pair, n, rounds, by"


class Writer:
    """Writes one function: `seed` tells which."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.results = []
        self.has_count = False
        self.hidden = 0

    def pick(self, *options):
        return self.random.choice(options)

    def some(self, part):
        return self.random.random() < part

    def place(self, p=""):
        """A subscript of an array of n elements."""
        own = ["idx[p]", "idx[p]", "idx[p]"] if p else ["idx[i]", "idx[i]", "pair[i, 0]", "pair[i, 1]"]
        return self.pick(*own, *own, "i", "-1 - idx[i]", "(idx[i] + i) % n", "idx[i] % (i + 1)", "n - 1 - i")

    def read(self, p=""):
        return self.pick(f"x[{self.place(p)}]", f"x[{self.place(p)}]", f"W[{self.place(p)}, 1]", "y[i]", "x[i]")

    def value(self, p=""):
        return self.pick(
            f"{self.read(p)} * 0.5 + y[i]", f"0.25 * {self.read(p)} + 0.5 * {self.read(p)}", f"max({self.read(p)}, 0.1)"
        )

    def target(self, p=""):
        return self.pick("x[i]", f"x[{self.place(p)}]", f"x[{self.place(p)}]", f"W[{self.place(p)}, {self.pick(0, 1)}]")

    def condition(self):
        return self.pick("idx[i] % 3 == 0", "y[i] > 0.4", "x[i] > 0.5", f"{self.read()} > 0.6", "i > 3")

    def statements(self):
        makers = (
            self.assignment, self.assignment, self.update, self.branch, self.inner, self.by_hidden, self.counts,
            self.extreme, self.row,
        )  # fmt: skip
        return [line for _ in range(self.pick(1, 1, 2, 3)) for line in self.pick(*makers)()]

    def assignment(self):
        return [f"{self.target()} = {self.value()}"]

    def update(self):
        return [f"{self.target()} {self.pick('+=', '-=', '*=')} {self.pick('0.5', 'y[i]', self.read())}"]

    def branch(self):
        lines = [f"if {self.condition()}:", *indented(self.pick(self.assignment, self.update, self.inner)())]
        if self.some(0.5):
            lines += ["else:", *indented(self.pick(self.assignment, self.update, lambda: ["pass"])())]
        return lines

    def inner(self):
        space = self.pick("ptr[i], ptr[i + 1]", "ptr[i], ptr[i + 1]", "0, 2", "i % 3, 3")
        lines = [f"for p in range({space}):"]
        if self.some(0.2):
            lines += [f"    if idx[p] % {self.pick(2, 3)} == 0:", "        continue"]
        return [*lines, f"    {self.target('p')} {self.pick('=', '+=')} {self.value('p')}"]

    def by_hidden(self):
        self.hidden += 1
        name = f"h{self.hidden}"
        lines = [f"{name} = {self.value()}", f"if y[i] < {name} / (1.0 + {name}):", *indented(self.assignment())]
        return [*lines, "else:", f"    {self.target()} = 0.25 * {name}"] if self.some(0.7) else lines

    def counts(self):
        if self.has_count:
            return self.assignment()
        self.has_count = True
        count = self.pick("count = np.zeros(8)", "count = np.zeros(n)", "count = np.zeros(8, np.int64)")
        ends = "lab[i] = np.argmax(count)", f"lab[{self.place()}] = np.argmax(count)", "x[i] = 0.1 * count.max()"
        return [count, "for p in range(ptr[i], ptr[i + 1]):", "    count[lab[idx[p]]] += 1", self.pick(*ends)]

    def row(self):
        return [f"W[{self.place()}] = W[{self.place()}] * 0.5 + y[i]"]

    def extreme(self):
        name = f"r{len(self.results)}"
        kind = self.pick("max", "min", "count", "place", "all")
        self.results.append((name, {"max": "-1.0", "min": "9.0", "count": "0", "place": "-1", "all": "True"}[kind]))
        match kind:
            case "max" | "min":
                return [f"{name} = {kind}({name}, {self.read()})"]
            case "count":
                return [f"if {self.condition()}:", f"    {name} += 1"]
            case "place":
                return [f"if {self.condition()}:", f"    {name} = i"]
            case _:
                return [f"{name} = {name} and {self.condition()}"]

    def function(self):
        body = self.statements()
        space = self.pick("n", "n", "1, n", "n - 1, -1, -1", "0, n, 2", "by, n")
        begins = [f"{name} = {value}" for name, value in self.results]
        loop = [f"for i in range({space}):", *indented(body)]
        ends = [f"return {', '.join(name for name, _ in self.results)}"] if self.results else []
        form = self.pick("plain", "rounds", "rounds", "begun anew", "while", "left", "returned")
        more = self.pick([], [], ["y[3] = 0.5 * x[3]"], ["for i in range(n):", "    y[i] = 0.5 * y[i] + 0.1 * x[i]"])
        match form:
            case "plain":
                lines = [*begins, *loop, *more]
            case "rounds":
                lines = [*begins, "for t in range(rounds):", *indented([*loop, *more])]
            case "begun anew":
                lines = [*begins, "for t in range(rounds):", *indented([*begins, *loop, *more])]
            case "while":
                test = self.pick("k < rounds", "k < rounds and x[3] < 5.0")
                lines = [*begins, "k = 0", f"while {test}:", *indented([*begins, *loop, *more, "k += 1"])]
            case "left":
                leave = ["if x[2] > 0.7:", "    break"]
                lines = [*begins, "for t in range(rounds):", *indented([*begins, *loop, *more, *leave])]
            case _:
                leave = ["if x[2] > 0.7:", f"    {ends[0] if ends else 'return'}"]
                lines = [*begins, "for t in range(rounds):", *indented([*begins, *loop, *more, *leave])]
        return f"def f({SIGNATURE}):\n{textwrap.indent(chr(10).join([*lines, *ends]), '    ')}\n"


def indented(lines):
    return [f"    {line}" for line in lines]


def given(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 3, N)
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    idx = rng.integers(0, N, max(N, int(ptr[-1])))
    if seed % 3 == 0:
        idx = np.minimum(idx, np.arange(idx.size))  # chains
    if seed % 5 == 0:
        idx[:N] = rng.permutation(N)
    kind = (np.int64, np.int32)[seed % 2]
    pair = rng.integers(0, N, (N, 2)).astype(np.int32)
    lab = rng.integers(0, 8, N)
    return [rng.random(N), rng.random(N), rng.random((N, 2)), lab, idx.astype(kind), ptr, pair, N, 3, seed % 4]


def outcome(call, arguments):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(*arguments), arguments
    except (IndexError, OutOfBoundsError):
        return IndexError


def one_case(number, workers=(1, 2, 3)):
    """Whether the function of that number has run in tiles that were found."""
    text = Writer(number).function()
    function = defined(text)
    decorated, inspected = orion.parallel_for(function), False
    for count, seed in combined(workers[::-1], (number, number + 1)):
        expected = outcome(function, given(seed))
        with orion.session(workers=count, force_parallel=True):
            told = f"number {number}, seed {seed}, {count} workers\n{text}"
            plan = decorated.plan(*given(seed), inspect=True)
            inspected |= any(isinstance(loop.tiles, Inspected | NotInspected) for loop in plan.function.loops)
            try:
                plan.check()
            except Exception as error:
                raise AssertionError(f"{told}{error}") from error
            is_rounded = any(loop.copies for loop in plan.function.loops)
            for _ in range(2):
                compare(outcome(decorated, given(seed)), expected, told, 1e-13 if is_rounded else 0.0)
    return inspected


def compare(found, expected, told, rounding):
    """Sums into elements are rounded by blocks, where there are copies of arrays."""
    if expected is IndexError or found is IndexError:
        assert found is expected, told
        return
    for mine, theirs in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        if rounding and mine is not None:
            np.testing.assert_allclose(mine, theirs, rounding, err_msg=told)
        else:
            np.testing.assert_equal(mine, theirs, told)


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(3 * TIMES))
def test_they_are_right_and_proved(seed):
    assert sum(one_case(1000 * seed + trial) for trial in range(TRIALS)) >= TRIALS // 4
