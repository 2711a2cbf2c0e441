"""Random functions of short loops with scalars, tests, `while`s, breaks and errors between them.

Sums are of integers, or of halves of them, so that they have the same bits in whatever order tiles are added up.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

INTS, FLOATS, FLAGS = ("k", "m", "p"), ("s", "t"), ("flag", "found")
ARRAYS = "a, b, c, d"
DEEPEST = 3

LOOPS = (
    "a[i] = (a[i] * 3.0 + b[i]) % 64.0",
    "a[i] = b[i] + {f} * 0.125",
    "b[i] = (a[i] + {n}) % 32.0",
    "c[i] = (c[i] * 3 + d[i]) % 97",
    "d[i] = (c[i] + {n}) % 89",
    "c[i] = (c[len(c) - 1 - i] * 5 + d[i]) % 83",
    "{n} += c[i]",
    "{n} += c[i] - d[i]",
    "{f} += c[i] * 0.5",
    "{n} = max({n}, c[i])",
    "{n} = min({n}, d[i])",
    "{f} = max({f}, d[i] * 0.25)",
    "{f} = min({f}, a[i])",
    "if c[i] > {n}:\n    {n} = c[i]\n    {o} = i",
    "if a[i] <= {f}:\n    {f} = a[i]\n    {o} = i",
    "if c[i] == {n} % 97:\n    {g} = True",
    "if d[i] % 5 == {n}:\n    {o} = i",
    "{g} = c[i] > {n}",
    "{n} = ({n} * 3 + c[i]) % 101",
    "{f} = ({f} * 0.5 + a[i]) % 8.0",
    "if c[i] > 40:\n    {g} = not {g}",
)
"""The bodies of loops; {n} and {o} are integers, {f} floats, {g} truth values."""

INT_TERMS = (
    "{n} + 1", "{n} - {o}", "{n} * 3", "{n} // 3", "{n} % 7", "abs({n} - {o})", "max({n}, {o})", "min({n}, 5)",
    "-{n}", "int({f})", "{n} // {o}", "{n} % {o}", "len(a) - {n}", "a.shape[0]", "{n} & 15", "{n} ^ {o}",
    "({n} | 8) % 64",
    "{n} if {test} else {o}", "0", "2", "~{n} % 50",
)  # fmt: skip
FLOAT_TERMS = (
    "{f} + 0.5", "{f} * {h}", "{f} - {n}", "{n} / 8", "{f} / {n}", "{n} / {o}", "abs({f})", "np.sqrt(abs({f}))",
    "float({n})",
    "math.sqrt({f})", "max({f}, {h})", "-{f}", "{f} ** 2", "{f} if {test} else {h}", "1.0", "{f} / {h}", "0.0",
    "math.exp(-abs({f}))", "({f} + {n}) % 16.0", "abs({f}) ** 0.5", "np.abs({f})",
)  # fmt: skip
TESTS = (
    "{n} > {o}", "{n} % 2 == 0", "{f} < {h}", "{f} >= {n}", "{g}", "not {g}", "{n} != 3", "{n}", "0 < {n} < 40",
    "{g} and {n} > 2", "{f} > 1.0 or {g}", "{f} == {h}", "not ({n} > 3 or {f} < 2.0)",
)  # fmt: skip


class Maker:
    """Makes the text of one function by a seed."""

    def __init__(self, seed: int) -> None:
        self.drawn = random.Random(seed)
        self.rounds = 0

    def text(self) -> str:
        first = ["k, m, p = n, 3, -1", "s, t = 0.0, x", "flag, found = False, n > 4", "fuel = 60"]
        if self.drawn.random() < 0.3:
            first[1] = "s, t = 0, x"
        body = [*first, *self.block(1), "return k, m, p, s, t, flag, found"]
        return f"def skeleton({ARRAYS}, n, x):\n" + "\n".join(f"    {line}" for line in body) + "\n"

    def fill(self, text: str) -> str:
        pick, sample = self.drawn.choice, self.drawn.sample
        n, o = sample(INTS, 2)
        f, h = sample(FLOATS, 2)
        while "{test}" in text:
            text = text.replace("{test}", f"({pick(TESTS)})", 1)
        return text.format(n=n, o=o, f=f, h=h, g=pick(FLAGS))

    def block(self, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.drawn.randint(1, 4 if depth < DEEPEST else 2)):
            lines += self.step(depth)
        return lines

    def step(self, depth: int) -> list[str]:
        kind = self.drawn.random()
        if kind < 0.45 or depth > DEEPEST:
            return self.loop()
        if kind < 0.65:
            return [self.scalars()]
        if kind < 0.75:
            orelse = ["else:", *indented(self.block(depth + 1))] if self.drawn.random() < 0.5 else []
            return [f"if {self.fill(self.drawn.choice(TESTS))}:", *indented(self.block(depth + 1)), *orelse]
        self.rounds += 1
        leave = [f"if {self.fill(self.drawn.choice(TESTS))}:", f"    {self.drawn.choice(('break', 'continue'))}"]
        body = self.block(depth + 1)
        if self.drawn.random() < 0.4:
            body[self.drawn.randint(0, 1) * len(body) :] = [*leave, *self.scalars_and_loop()]
        if kind < 0.87:
            head = f"for r{self.rounds} in range({self.drawn.choice(('3', '2', 'k % 4', '5, 0, -2', 'len(a) // 9'))}):"
            return [head, *indented(body)]
        fuel = ["fuel -= 1", "if fuel < 0:", "    break"]
        return [f"while {self.fill(self.drawn.choice(TESTS))}:", *indented([*fuel, *body])]

    def scalars_and_loop(self) -> Iterator[str]:
        yield self.scalars()
        yield from self.loop()

    def scalars(self) -> str:
        kind = self.drawn.random()
        if kind < 0.45:
            return self.fill("{n} = " + self.drawn.choice(INT_TERMS)).replace("{", "{")
        if kind < 0.8:
            return self.fill("{f} = " + self.drawn.choice(FLOAT_TERMS))
        if kind < 0.9:
            return self.fill(
                "{g} = " + self.drawn.choice(("{n} > {o}", "not {g}", "{f} < {h}", "False", "{g} and {n} > 3"))
            )
        return self.fill(self.drawn.choice(("{n}, {o} = {o}, {n}", "{f}, {h} = {h}, {f}", "{n} += 2", "{f} *= 0.5")))

    def loop(self) -> list[str]:
        start = self.drawn.choice(("", "1, ", "2, "))
        body = self.fill(self.drawn.choice(LOOPS)).splitlines()
        return [f"for i in range({start}len(a)):", *indented(body)]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def skeleton_text(seed: int) -> str:
    """The text of a random function of four arrays, an integer and a float."""
    return Maker(seed).text()
