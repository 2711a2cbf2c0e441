"""A name that is the variable of one loop and something else in others: each loop is planned by itself."""

from __future__ import annotations

import random
import textwrap
from contextlib import suppress

import numpy as np
import pytest

import orion
from tests.loop_text import defined
from tests.trials import TIMES

SHARED = {
    "a scalar of another loop": (
        "t = 0\nwhile t < k:\n    for u in range(n):\n        y[u] += x[u]\n    for v in range(n):\n        s = 0.0\n"
        "        for e in range(3):\n            u = at[v, e]\n            s += x[u]\n"
        "        y[v] += s\n    t += 1\nreturn y"
    ),
    "with a swap": (
        "r, new = x.copy(), np.empty(n)\nfor t in range(k):\n    d = 0.0\n    for u in range(n):\n        d += r[u]\n"
        "    for v in range(n):\n        s = 0.0\n        for e in range(3):\n            u = at[v, e]\n"
        "            s += r[u]\n        new[v] = 0.1 * s + d\n    r, new = new, r\nreturn r"
    ),
    "a name before": (
        "u = 7\nt = u\nwhile t > 0:\n    for u in range(n):\n        y[u] += x[u]\n    for v in range(n):\n"
        "        u = at[v, 0]\n        y[v] += x[u]\n    t -= 1\nreturn y"
    ),
}

KEPT = {
    "read after the loop": (
        "t = 0\nu = 0\nwhile t < k:\n    for u in range(n - t):\n        y[u] += x[u]\n    t += 1\nreturn u + y[0]"
    ),
    "read in the next round": (
        "t = 0\nu = 3\nwhile t < k:\n    y[u] += 1.0\n    for u in range(n - t):\n"
        "        y[u] += x[u]\n    t += 1\nreturn y"
    ),
    "read after an empty loop": (
        "t = 0\nu = 5\nwhile t < k:\n    for u in range(n * t, n):\n        y[u] += x[u]\n"
        "    y[u] += 2.0\n    t += 1\nreturn y"
    ),
    "read in a branch": (
        "t = 0\nu = 5\nwhile t < k:\n    for u in range(n - 2):\n        y[u] += x[u]\n"
        "    if x[0] > 0.0:\n        y[u] += 2.0\n"
        "    t += 1\nreturn y"
    ),
}


def of_text(text):
    body = ("n = len(x)\n" + text).replace("\n", "\n    ")
    return defined(f"def f(x, at, y, k):\n    {body}\n", np=np)


def given():
    rng = np.random.default_rng(1)
    return rng.integers(0, 9, 40).astype(float), rng.integers(0, 40, (40, 3)), np.zeros(40), 3


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("name", [*SHARED, *KEPT])
def test_is_what_python_gives(name, workers):
    function = of_text((SHARED | KEPT)[name])
    with orion.session(workers=workers, force_parallel=True):
        decorated = orion.parallel_for(function)
        plan = decorated.plan(*given())
        plan.check()
        assert plan.is_parallel or name in KEPT
        mine, its = given(), given()
        np.testing.assert_allclose(decorated(*mine), function(*its), rtol=1e-13)
        for one, other in zip(mine, its, strict=True):
            np.testing.assert_array_equal(one, other)


MADE = """
def total(row, other):
    s = 0.0
    for a, b in zip(row, other):
        s += a * b
    return s

def f(X, k):
    n, d = X.shape
    var = np.ones((k, d))
    out = np.zeros(n)
    for t in range(k):
        for i in range(n):
            for c in range(k):
                out[i] += total(X[i], var[c])
        for c in range(k):
            var[c] = X[c] * 0.5
    return out, var
"""


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_an_array_that_is_made_once_have_names(workers):
    function = defined(MADE, np=np)
    function = function.__globals__["f"]
    x = np.random.default_rng(0).integers(0, 5, (20, 4)).astype(float)
    with orion.session(workers=workers, force_parallel=True):
        decorated = orion.parallel_for(function)
        assert decorated.plan(x, 3).is_parallel
        for found, want in zip(decorated(x, 3), function(x, 3), strict=True):
            np.testing.assert_array_equal(found, want)


AFTER = {
    "two loops": "for i in range(n):\n    y[i] += 1\nfor i in range(k):\n    y[i] *= 2\nreturn i",
    "an element": "for i in range(n):\n    y[i] += 1\nfor i in range(k):\n    y[i] *= 2\ny[i] = 7\nreturn 0",
    "a range that is empty": "for i in range(n):\n    y[i] += 1\nfor i in range(n, n + k):\n"
    "    y[i - n] *= 2\nreturn i",
    "left early": "for i in range(n):\n    if x[i] > 3:\n        break\nfor i in range(k):\n    y[i] *= 2\nreturn i",
    "three": "for i in range(n):\n    y[i] += 1\nfor i in range(k):\n    y[i] *= 2\n"
    "for i in range(k, 0):\n    y[i] = 3\nreturn i",
    "in itself": "for i in range(n):\n    for i in range(k):\n        y[i] += 1\ny[i] = 7\nreturn i",
    "in itself, without a trip": "for i in range(n):\n    for i in range(k - 3):\n        y[i] += 1\nreturn i",
    "in itself, left early": "for i in range(n):\n    for i in range(k):\n        if x[i] > 3:\n"
    "            break\nreturn i",
    "in itself, below others": "for i in range(n):\n    for u in range(k):\n        y[u] += i\n"
    "        for i in range(2):\n            y[i] += 1\n    if x[3] > 2:\n        for i in range(5):\n"
    "            y[i] *= 2\nreturn i",
    "in itself, of pairs": "for i, v in enumerate(x):\n    for i in range(k):\n        y[i] += v\nreturn i",
    "in a loop": "for t in range(2):\n    for i in range(n - t):\n        y[i] += 1\n"
    "    for i in range(k):\n        y[i] *= 2\n    y[i] += 5\nreturn i",
}


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("k", [0, 2])
@pytest.mark.parametrize("name", AFTER)
def test_the_value_before_a_loop_without_trips(name, k):
    function = of_text(AFTER[name])
    for workers in (1, 2):
        with orion.session(workers=workers, force_parallel=True):
            mine, its = (*given()[:3], k), (*given()[:3], k)
            assert orion.parallel_for(function)(*mine) == function(*its)
            np.testing.assert_array_equal(mine[2], its[2])


PARAMETERS = {
    "not read": "for k in range(n):\n    y[k] += x[k]",
    "read before": "s = 2 * k\nfor k in range(n):\n    y[k] += s\nreturn s",
    "read after": "for k in range(n):\n    y[k] += x[k]\nreturn k",
    "read after no trip": "for k in range(n, n):\n    y[k] += x[k]\nreturn k",
    "read in the next round": "for t in range(2):\n    y[0] += k\n    for k in range(n):\n        y[k] += x[k]",
    "another value": "k = 3\nfor u in range(k, n):\n    y[u] += x[k]\nreturn k",
    "in a while": "while y[0] < 9.0:\n    for k in range(n):\n        y[k] += x[k] + 1.0",
}


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("k", [2.5, np.float32(0.5), np.uint8(7), True])
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_that_is_a_loop_variable(name, k):
    function = of_text(PARAMETERS[name])
    with orion.session(workers=2, force_parallel=True):
        decorated = orion.parallel_for(function)
        mine, its = (*given()[:3], k), (*given()[:3], k)
        assert decorated(*mine) == function(*its)
        np.testing.assert_array_equal(mine[2], its[2])


def test_a_plan_names_it_as_the_user_does():
    said = orion.parallel_for(of_text(PARAMETERS["read before"])).explain(*given()[:3], 2.5)
    assert "blocks of k" in said
    assert "k_" not in said


def check_as_python(function, text, workers):
    """Hold a function on numbers of workers against itself undecorated, and its plan against its text. Nothing is said
    of one that leaves an array as it is written."""
    its = given()
    try:
        wanted = function(*its)
    except IndexError:
        return
    for count in workers:
        mine = given()
        with orion.session(workers=count, force_parallel=True):
            looped = orion.parallel_for(function)
            looped.plan(*mine).check()
            np.testing.assert_equal(looped(*mine), wanted, err_msg=text)
        for found, expected in zip(mine[:3], its[:3], strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=text)


class Reused:
    """A random function of loops over two names, which may be inside of one another, and read anywhere after."""

    def __init__(self, number):
        self.random = random.Random(number)

    def text(self):
        first = "i = 4\n" * self.random.randrange(2) + "u = 2\n" * self.random.randrange(2)
        last = f"y[{self.name()}] += 7\nreturn {self.name()}, {self.name()}"
        return f"{first}for i in range(3):\n    pass\nfor u in range(2):\n    pass\n{self.block(0)}{last}"

    def name(self):
        return self.random.choice("iu")

    def block(self, depth):
        statements = [self.statement(depth) for _ in range(self.random.randint(1, 3 - depth))]
        return textwrap.indent("".join(statements), "    " * (depth > 0))

    def statement(self, depth):
        kind = self.random.randrange(6) if depth < 2 else 5
        if kind < 3:
            stop = self.random.choice(["n", "k", "3", "1", "0", "k - 3", f"{self.name()} + 1"])
            return f"for {self.name()} in range({stop}):\n{self.block(depth + 1)}"
        if kind == 3:
            return f"if x[{self.name()}] > 3.0:\n{self.block(depth + 1)}"
        if kind == 4 and depth:
            return f"if x[{self.name()}] > 6.0:\n    break\n"
        return f"y[{self.name()}] {self.random.choice(['+= 1.0', '*= 2.0', '= 3.0'])}\n"


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("number", range(20 * TIMES))
def test_random_loops_over_two_names(number):
    text = Reused(number).text()
    try:
        function = of_text(text)
    except SyntaxError:  # a `break` in no loop
        return
    with suppress(orion.UnsupportedLoopError):
        check_as_python(function, text, (1, 2))


def given_a_float(x):
    for i in range(4):
        x[i] += 1
    i = x[0]
    for i in range(3):
        x[i] += i
    i = x[1] + 0.5
    return i - 1


def test_a_variable_that_is_given_a_float_behind_its_loop_stays_an_integer_in_it():
    want, found = np.zeros(5), np.zeros(5)
    result = orion.parallel_for(given_a_float)(found)
    assert result == given_a_float(want)
    np.testing.assert_array_equal(found, want)
    assert "i_" not in str(orion.parallel_for(given_a_float).plan(found))


SHORT = ("3", "0, 3", "0, 3, 2", "2")


class Neighbours:
    """Writes two or three loops one after the other with the same ranges, whose bodies may give variables other
    values."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.start = self.random.choice((0, 0, 2, 2, 3))
        self.inner = self.random.choice(["", "{0}, {1} + 4, 2", "{1}, {1} + 2, 2", "{0}, 7", "{1}, {2} + 3", *SHORT])

    def text(self):
        loops = [self.loop() for _ in range(self.random.choice((2, 2, 3)))]
        return "".join(loops) + "return y"

    def loop(self):
        one, other = self.random.choice([("i", "j"), ("i", "j"), ("p", "q")])
        head = f"for {one} in range({self.start}, 10):\n"
        if not self.inner:
            return head + textwrap.indent(self.body(one, one), "    ")
        space = self.inner.format(self.random.choice((self.start, one)), one, self.start)
        return f"{head}    for {other} in range({space}):\n{textwrap.indent(self.body(other, one), 8 * ' ')}"

    def body(self, variable, outer):
        found = [self.statement(variable, outer) for _ in range(self.random.choice((1, 2)))]
        for at in (1, len(found)) if self.random.random() < 0.3 else (len(found),):
            if self.random.random() < 0.7:
                changed = f"{variable} {self.random.choice(['+ 1', '* 2', '- 1', '// 2'])}"
                found.insert(at, f"{variable} = {changed}\n")
        return "".join(found)

    def statement(self, variable, outer):
        back = f" - {self.start}" if self.start and self.random.random() < 0.8 else ""
        value = self.random.choice([f"x[{variable}{back}]", f"x[{variable}{back} + 1]", variable, "1.0"])
        if self.inner in SHORT:
            return f"at[{outer}, {variable}{' - 1' * self.random.randrange(2)}] += 3 * {outer} + {variable}\n"
        return f"y[{outer}{back}] += {value}\n"


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("number", range(30 * TIMES))
def test_random_neighbours_whose_bodies_give_variables_other_values(number):
    text = Neighbours(number).text()
    check_as_python(of_text(text), text, (1, 3))


@pytest.mark.parametrize(
    ("first", "second", "inner_loops"),
    [("", "", 1), ("j += 1", "", 2), ("", "j += 1", 2), ("s = j", "", 1), ("j = 1", "j = 1", 2)],
)
def test_neighbours_share_loops_whose_variables_no_body_changes(first, second, inner_loops):
    loops = (
        f"for i in range(40):\n    for j in range(2):\n        at[i, j] += i\n        {changed or 'pass'}\n"
        for changed in (first, second)
    )
    text = f"{''.join(loops)}return y"
    with orion.session(workers=1, force_parallel=True):
        kernel = orion.parallel_for(of_text(text)).kernel_source(*given())
    assert kernel.count("for i in range") == 1
    assert kernel.count("for j in range") == inner_loops
    check_as_python(of_text(text), text, (1, 3))
