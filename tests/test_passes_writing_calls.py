"""Helpers that write arrays, called inside expressions and tests: evaluated when Python evaluates them."""

import numpy as np
import pytest

import orion
from orion.frontend.parse import parse_function
from orion.ir.printer import print_function
from orion.ir.types import ArrayType, ScalarType
from orion.passes.writing_calls import with_calls_first
from tests.loop_text import defined
from tests.serial_results import assert_as_serial

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


EXPRESSIONS = [
    "bump(a, k) + a[0]", "bump(a, k) * bump(a, 2) - a[1]", "bump(a, int(bump(a, k)))",
    "k + bump(a, k) if bump(a, 1) > 2.0 else a[0]", "bump(a, k) > 1.0 and a[0] > 0.0", "a[int(bump(a, k)) % 4]",
    "bump(a, int(a[k % 4])) + bump(a, int(a[1])) * a[2]", "1.0 < bump(a, k) < a[3]",
]  # fmt: skip


@pytest.mark.parametrize("value", EXPRESSIONS)
@pytest.mark.parametrize("form", ["x = {}", "y += {}", "if {}:\n            y += 1.0", "a[2] = {}", "a[k % 4] += {}"])
def test_reads_as_it_is_written(value, form):
    line = form.format(value)
    text = f"def f(a, n):\n    x = y = 0.0\n    for k in range(n):\n        {line}\n    return x, y\n"
    function = defined(text, bump=bump, np=np)
    types = {"a": ArrayType("float64", 1), "n": ScalarType("int64", True)}
    read = defined(print_function(with_calls_first(parse_function(function), types)), bump=bump, np=np)
    mine, theirs = np.arange(4.0), np.arange(4.0)
    assert read(mine, 7) == function(theirs, 7)
    assert mine.tolist() == theirs.tolist()


@pytest.mark.parametrize("value", ["(a * 2.0)[1] + bump(a, 1)", "bump(a, 1) + (a * 2.0)[1]", "(a + bump(a, 1))[2]"])
def test_parts_of_expressions_beside_calls_are_refused(value):
    function = defined(f"def f(a, n):\n    for k in range(n):\n        a[k] = {value}\n", bump=bump)
    with pytest.raises(orion.UnsupportedLoopError, match="beside a call"):
        orion.parallel_for(function).plan(np.zeros(4), 3)
