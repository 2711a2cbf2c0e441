"""Helpers that write arrays, called inside expressions and tests: evaluated when Python evaluates them."""

import random
import re

import numpy as np
import pytest

import orion
from orion.frontend.check import check_function
from orion.frontend.parse import parse_function
from orion.ir.printer import print_function
from orion.ir.types import ArrayType, ScalarType
from orion.passes.picking import pick_by_loops
from orion.passes.writing_calls import with_calls_first
from orion.typing.infer import infer_types
from tests.loop_text import defined
from tests.serial_results import assert_as_serial
from tests.trials import TIMES

pytestmark = pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")


def find(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


def bump(a, k):
    a[k % len(a)] += 1.0
    if a[k % len(a)] > 3.0:
        return a[0]
    return a[k % len(a)]


def joined(src, dst, parent, a):
    sets = len(parent)
    for e in range(len(src)):
        x, y = find(parent, src[e]), find(parent, dst[e])
        if x != y:
            parent[y] = x
            sets -= 1
    return sets


def in_tests(src, dst, parent, a):
    n = 0
    for e in range(len(src)):
        if find(parent, src[e]) != find(parent, dst[e]):
            n += 1
            root = find(parent, src[e])
            parent[root] = find(parent, dst[e])
    return n


def in_a_while(src, dst, parent, a):
    k = 0
    while bump(a, k) < 3.5:
        k += 1
    return k


def in_sums(src, dst, parent, a):
    total = 0.0
    for k in range(9):
        total += 2.0 * bump(a, k) + a[k % 4]
        total = total + bump(a, k) * bump(a, k + 1)
    return total


FUNCTIONS = [joined, in_tests, in_a_while, in_sums]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_is_what_python_does(function):
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 40, 60), rng.integers(0, 40, 60)
    assert_as_serial(function, src, dst, np.arange(40), np.zeros(4))


@pytest.mark.parametrize(
    "value",
    [
        "a[0] + bump(a, 0)", "a[k] * 2.0 + bump(a, k)", "np.sum(a) + bump(a, k)", "bump(a, k) if k > 1 else 0.0",
        "k > 1 and bump(a, k) > 1.0", "max(a[k], bump(a, k))",
    ],
)  # fmt: skip
def test_what_was_read_before_is_not_read_after(value):
    function = defined(
        f"def f(a, n):\n    for k in range(n):\n        x = {value}\n        a[3] += x\n", bump=bump, np=np
    )
    with pytest.raises(orion.UnsupportedLoopError, match="may write an array"):
        orion.parallel_for(function)(np.zeros(4), 3)


def expression(rng, depth):
    """A number made of elements, parts of expressions, what arrays pick, and calls that write, in all orders."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["a[k % 4]", "k", "2.0", "a[0]", "bump(a, k)", "bump(a, 2)", "a[idx].sum()", "(a * 2.0)[1]"])
    one, two = expression(rng, depth - 1), expression(rng, depth - 1)
    kinds = [
        f"({one} + {two})", f"({one} - {two})", f"bump(a, int({one}))", f"a[int({one}) % 4]", f"max({one}, {two})",
        f"(a + {one})[int({two}) % 4]", f"({one} if {two} > 2.0 else a[1])", f"float({one} > 1.0 and {two} > 0.0)",
        f"float(0.0 < {one} < {two})", f"a[idx[: 1 + int({one}) % 3]].sum()", f"np.sort(a)[int({one}) % 4]",
    ]  # fmt: skip
    return rng.choice(kinds)


FORMS = [
    "x = {}", "y += {}", "if {} > 2.0:\n            y += 1.0", "a[2] = {}", "a[k % 4] += {}", "a[int({}) % 4] = {}",
]  # fmt: skip
TYPES = {"a": ArrayType("float64", 1), "idx": ArrayType("int64", 1), "n": ScalarType("int64", True)}


@pytest.mark.parametrize("seed", range(34 * TIMES))
def test_reads_as_it_is_written(seed):
    rng = random.Random(seed)
    line = rng.choice(FORMS)
    line = line.format(*(expression(rng, 3) for _ in range(line.count("{}"))))
    text = f"def f(a, idx, n):\n    x = y = 0.0\n    for k in range(n):\n        {line}\n    return x, y\n"
    function = defined(text, bump=bump, np=np)
    try:
        found = with_calls_first(parse_function(function), TYPES)
        found = check_function(pick_by_loops(found, infer_types(found, TYPES)))
    except orion.UnsupportedLoopError as error:
        assert re.search("is not supported here|is not supported where", str(error)), str(error)  # noqa: PT017
        return
    read = defined(print_function(found), bump=bump, np=np)
    mine, theirs, idx = np.arange(4.0), np.arange(4.0), np.array([3, 0, 2])
    assert read(mine, idx, 7) == function(theirs, idx, 7), print_function(found)
    assert mine.tolist() == theirs.tolist(), print_function(found)


@pytest.mark.parametrize("value", ["bump(a, 1) + (a * 2.0)[1]", "a[0] + bump(a, 1) + np.sort(a)[0]"])
def test_parts_of_expressions_after_calls_are_refused(value):
    function = defined(f"def f(a, n):\n    for k in range(n):\n        a[k] = {value}\n", bump=bump, np=np)
    with pytest.raises(orion.UnsupportedLoopError, match="that is called before it may change what it is made of"):
        orion.parallel_for(function).plan(np.zeros(4), 3)
