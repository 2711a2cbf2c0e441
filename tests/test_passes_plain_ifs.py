"""Choices of scalars that become plain `if`s: what is rewritten, what is not, and what comes out for any values."""

import itertools
import math
import textwrap

import numpy as np
import pytest

import orion
from orion.ir.printer import print_function
from orion.ir.types import ArrayType, ScalarType
from orion.passes.plain_ifs import with_plain_ifs
from orion.typing.infer import infer_types
from tests.loop_text import defined, from_body
from tests.oracles.interpreted import Order, kernel_code, run_interpreted

TYPES = {"x": ArrayType("float64", 1), "y": ArrayType("float64", 1), "n": ScalarType("int64", weak=True)}
START = "lo = x[0]\nhi = x[0]\n"
BOTH = """\
for i in range(n):
    if x[i] < lo:
        lo = x[i]
    elif x[i] > hi:
        hi = x[i]
return lo, hi
"""
PLACES = """\
at = 0
to = 0
for i in range(n):
    v = x[i] * 2
    if v < lo:
        lo = v
        at = i
    elif v > hi:
        hi = v
        to = i
return lo, hi, at, to
"""
INNER = """\
for k in range(2):
    for i in range(n):
        if x[i] > 0:
            if hi < x[i]:
                hi = x[i]
            elif lo > x[i]:
                lo = x[i]
return lo, hi
"""


def plain(body):
    """The body after the pass; None where it stays as it is."""
    function = from_body(body, ", ".join(TYPES))
    found = with_plain_ifs(function, infer_types(function, TYPES))
    return None if found is function else textwrap.dedent(print_function(found).partition("\n")[2])


CHOSEN = {
    "s = x[i] if x[i] > s else s": "if x[i] > s:\n    s = x[i]",
    "s = s if x[i] < 2 else s + x[i]": "if not x[i] < 2:\n    s = s + x[i]",
    "s = s + 1 if x[i] < 2 else s": "if x[i] < 2:\n    s = s + 1",
    "s = x[i] if x[i] > s else s + 1": None,
    "y[i] = x[i] if x[i] > s else y[i]": None,
}


@pytest.mark.parametrize("statement", CHOSEN)
def test_a_choice_that_may_leave_a_scalar_as_it_is(statement):
    body = f"s = x[0]\nfor i in range(n):\n    {statement}\nreturn s"
    new = CHOSEN[statement]
    assert plain(body) == (new and body.replace(f"    {statement}", textwrap.indent(new, "    ")))


APART = {
    "one value": START + BOTH,
    "one after the other": "lo = x[0]\nhi = lo\n" + BOTH,
    "at once": "lo, hi = x[0], x[0]\n" + BOTH,
    "a constant": "lo = 0.0\nhi = 0.0\n" + BOTH,
    "one test lets equal ones in": START + BOTH.replace("<", "<="),
    "the other test does": START + BOTH.replace(">", ">="),
    "the greatest first": START + BOTH.replace("<", "~").replace(">", "<").replace("~", ">"),
    "with places": START + PLACES,
    "further in, written the other way round": START + INNER,
}
TOGETHER = {
    "infinities": "lo = np.inf\nhi = -np.inf\n" + BOTH,
    "two values": "lo = x[0]\nhi = x[1]\n" + BOTH,
    "what they begin with changes in between": "lo = x[0]\nx[0] = 1.0\nhi = x[0]\n" + BOTH,
    "nothing known before the loop": "if n > 3:\n    lo = x[0]\nelse:\n    lo = x[1]\nhi = lo\ny[0] = hi\n" + BOTH,
    "both tests let equal ones in": START + BOTH.replace("<", "<=").replace(">", ">="),
    "two values are compared": START + BOTH.replace("x[i] > hi:\n        hi = x[i]", "y[i] > hi:\n        hi = y[i]"),
    "something else is set": START + BOTH.replace("lo = x[i]\n", "lo = x[i] + 1\n"),
    "the least is read elsewhere": START + BOTH.replace("    if", "    y[i] = lo\n    if", 1),
    "the least is set elsewhere": START + BOTH.replace("    if", "    lo = lo + 1\n    if", 1),
    "one is set in both": START + BOTH.replace("lo = x[i]\n", "lo = x[i]\n        hi = x[i]\n"),
    "the same way twice": START + BOTH.replace(">", "<"),
    "an array is written": START + BOTH.replace("lo = x[i]\n", "lo = x[i]\n        x[i] = 9.0\n"),
    "the value changes": START + BOTH.replace("lo = x[i]\n", "lo = x[i]\n        i = 0\n"),
    "an else as well": START + BOTH.replace("hi = x[i]\nreturn", "hi = x[i]\n    else:\n        y[i] = 0.0\nreturn"),
}


@pytest.mark.parametrize("name", APART)
def test_least_and_greatest_are_told_apart(name):
    new = plain(APART[name])
    assert new is not None
    assert new.replace("    if x[i] > hi", "    elif x[i] > hi").count("elif") <= 1
    assert "else" not in new


@pytest.mark.parametrize("name", TOGETHER)
def test_where_that_would_be_something_else_it_stays(name):
    assert plain(TOGETHER[name]) is None


def inputs():
    """Few values with all that is special about them, in every order, and longer rows of them."""
    special = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf]
    yield from (np.array(values) for values in itertools.product(special, repeat=3))
    rng = np.random.default_rng(3)
    yield from (rng.choice(special, 23) for _ in range(20))


def bits(values):
    return [np.float64(value).tobytes() for value in values]


@pytest.mark.parametrize("name", [*APART, "infinities", "two values"])
def test_results_bit_for_bit(name):
    body = {**APART, **TOGETHER}[name]
    function = defined("def f(x, n):\n" + textwrap.indent(body, "    "))
    parallel = orion.parallel_for(function)
    for x in inputs():
        prepared = parallel._preparations.plain.prepare({"x": x, "n": x.size}, 3, True)
        assert all(loop.is_parallel for loop in prepared.plan.loops) == (name in APART)
        codes = [kernel_code(loop.kernel.text) for loop in prepared.program.loops]
        found = run_interpreted(prepared.program, codes, {"x": x, "n": x.size}, Order(1))
        assert bits(found) == bits(function(x, x.size))


def test_a_serial_loop_says_what_to_write():
    body = START + BOTH.replace("x[i] < lo", "i == 1 or x[i] < lo")
    plan = orion.parallel_for(defined("def f(x, n):\n" + textwrap.indent(body, "    "))).plan(np.ones(9), 9)
    assert not plan.is_parallel
    assert "an `if value < lo:` (or >, <=, >=) sets `lo = value`" in str([reason.hint for reason in plan.reasons])
