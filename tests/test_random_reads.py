"""Random loops over arrays of subscripts, those that are parallel and others: results are Python's, plans are proved,
and where a plan has independent iterations because of what arrays hold, they may be run in any order."""

from __future__ import annotations

import random
import warnings
from contextlib import suppress

import numpy as np
import pytest

import orion
from orion.errors import OutOfBoundsError
from orion.plan.plan import Written
from tests.loop_text import defined
from tests.trials import ALL, TIMES

N = 12
TRIALS = 10
"""Loops of each of the seeds."""


class Writer:
    """Writes one loop: `seed` tells which. One that is `wild` touches arrays in any way; others write each array at
    places of one form."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.wild = self.random.random() < 0.25
        self.known = []
        self.usual = self.place()

    def pick(self, *options):
        return self.random.choice(options)

    def read(self):
        at = self.pick("i", "i", "i", "i", "i + 1", "n - 1 - i", "i - 1", "2 * i", "0")
        array = self.pick("p", "p", "q", "ptr", "table")
        return f"table[{at}, {self.pick('0', '1', 'i % 2')}]" if array == "table" else f"{array}[{at}]"

    def place(self):
        read = self.pick(self.read(), self.read(), *(self.known or ["p[i]"]))
        form = self.pick(
            "{}", "{}", "{}", "{} + 1", "2 * {}", "n - 1 - {}", "-{}", "{} - i", "{} + i", "{} % 5", "{} // 2"
        )
        return form.format(read)

    def target(self):
        if not self.wild:
            return self.pick(f"out[{self.usual}]", f"out[{self.usual}]", f"rows[{self.usual}, 1]", "data[i]")
        place = self.place()
        return self.pick(f"out[{place}]", f"out[{place}]", f"rows[{place}, 1]", "out[i]", "data[i]")

    def value(self):
        if not self.wild:
            return self.pick("x[i]", "1.0", f"x[{self.place()}]", "i", f"out[{self.usual}]")
        return self.pick("x[i]", f"out[{self.pick('i', self.place())}]", f"x[{self.place()}]")

    def statement(self, depth=0):
        kind = self.random.random()
        if kind < 0.15:
            name = f"s{len(self.known)}"
            text = [f"{name} = {self.read()}"]
            self.known.append(name)
            if not self.wild and len(self.known) == 1:
                self.usual = name
            return text
        if kind < 0.35 and depth < 2:
            return self.inner_loop()
        if kind < 0.45 and depth < 2:
            before = len(self.known)
            inner = [line for _ in range(2) for line in self.statement(depth + 1)]
            if len(self.known) > before:
                self.usual = "p[i]"
            del self.known[before:]
            test = self.pick("x[i] > 3", "i > 2", self.read() + " > 4")
            return [f"if {test}:", *(f"    {line}" for line in inner)]
        return [f"{self.target()} {self.pick('=', '+=', '+=')} {self.value()}"]

    def inner_loop(self):
        ranges = ("ptr[i]", "ptr[i + 1]"), ("ptr[i]", "ptr[i + 1]"), ("p[i]", "p[i] + 2"), ("0", "2"), ("q[i]", "n")
        low, high = self.pick(*ranges) if self.wild else self.pick(ranges[0], ranges[0], ranges[3])
        others = f"out[{self.place()}]", f"data[{self.place()} + j]", "out[j]"
        target = self.pick("data[j]", *others) if self.wild else "data[j]" if low != "0" else f"rows[{self.usual}, j]"
        return [f"for j in range({low}, {high}):", f"    {target} {self.pick('=', '+=')} {self.value()}"]

    def text(self):
        body = [line for _ in range(self.random.randint(1, 3)) for line in self.statement()]
        rounds = self.random.random() < 0.3
        if rounds:
            body = [line.replace("x[i]", "x[i] * t") if self.random.random() < 0.5 else line for line in body]
        head = ["for t in range(2):"] if rounds else []
        loop = ["for i in range(n):", *(f"    {line}" for line in body)]
        return head, [f"    {line}" for line in loop] if rounds else loop


def contents(seed):
    """Arrays of subscripts that are in order, or nearly so."""
    rng = np.random.default_rng(seed)
    p, q = rng.permutation(N), rng.permutation(2 * N)[:N]
    ptr = np.concatenate([[0], np.cumsum(rng.integers(0, 3, N))])
    table = rng.permutation(2 * N).reshape(N, 2)
    for array in (p, q, ptr, table):
        if rng.random() < 0.12:
            array.flat[rng.integers(array.size)] = array.flat[rng.integers(array.size)]
        if rng.random() < 0.06:
            array.flat[rng.integers(array.size)] *= -1
    kind = (
        (np.int64, np.int32, np.uint8)[rng.integers(3)] if min(a.min() for a in (p, q, ptr, table)) >= 0 else np.int64
    )
    return [one.astype(kind) for one in (p, q, ptr, table)]


def given(seed):
    rng = np.random.default_rng(seed + 1)
    sums = [rng.integers(-9, 9, shape).astype(float) for shape in (3 * N, (3 * N, 2), 4 * N, 3 * N)]
    return [*sums[:3], *contents(seed), sums[3]]


def outcome(call, arguments):
    try:
        call(*arguments)
    except (IndexError, OutOfBoundsError, ZeroDivisionError, OverflowError) as error:
        return "fails" if isinstance(error, IndexError | OutOfBoundsError) else type(error).__name__
    return "ok"


def text_of(number):
    head, loop = Writer(number).text()
    signature = "def f(out, rows, data, p, q, ptr, table, x):\n    n = 12\n"
    return signature + "".join(f"    {line}\n" for line in (*head, *loop))


def is_by_contents(plan):
    """Whether a plan is one by what arrays hold."""
    return any("element" in one or "goes down" in one for one in plan.conditions)


def test_many_are_parallel_by_what_arrays_hold():
    numbers = range(40 if ALL else 20)
    plans = []
    with orion.session(workers=2, force_parallel=True):
        for number in numbers:
            with suppress(orion.OutOfBoundsError):
                plans.append(orion.parallel_for(defined(text_of(number), np=np)).plan(*given(number)))
    assert sum(map(is_by_contents, plans)) >= len(numbers) // 5


@pytest.mark.parametrize("seed", range(3 * TIMES))
def test_they_are_right_and_proved(seed):
    for trial in range(TRIALS):
        number = 1000 * seed + trial
        text = text_of(number)
        turned = text.replace("for i in range(n):", "for i in ORDER:")
        function = defined(text, np=np)
        for case in range(2 if ALL else 1):
            one_case(function, turned, number + 10**6 * case, text)


def one_case(function, turned, seed, text):
    expected = given(seed)
    if outcome(function, expected) != "ok":
        return
    told = f"{text}\nseed {seed}"
    plan = run_by_orion(function, seed, expected, told)
    (main,) = plan.loops if len(plan.loops) == 1 else (None,)
    if main is None or main.strategy != "independent" or main.nest.dims[:1] != ("i",) or "for t" in text:
        return
    is_as_written = isinstance(main.form, Written)
    if is_as_written and is_by_contents(plan) and not main.copies and not main.private_arrays:
        in_any_order(turned, seed, expected, told)


def run_by_orion(function, seed, expected, told):
    """The plan by which it was run, which is proved, with Python's results."""
    decorated, mine = orion.parallel_for(function), given(seed)
    with warnings.catch_warnings(), orion.session(workers=4, force_parallel=True):
        warnings.simplefilter("ignore", orion.SerialLoopWarning)
        warnings.simplefilter("ignore", orion.UnprovedWarning)
        plan = decorated.plan(*mine)
        try:
            plan.check()
        except orion.OrionError as error:
            raise AssertionError(f"{error}\n{told}") from None
        decorated(*mine)
    for one, other in zip(mine, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=told)
    return plan


def in_any_order(turned, seed, expected, told):
    """Fail where the iterations in another order do not do the same."""
    orders = np.random.default_rng(seed)
    for _ in range(3):
        again = given(seed)
        defined(turned, np=np, ORDER=orders.permutation(N).tolist())(*again)
        for one, other in zip(again, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"not independent:\n{told}")
