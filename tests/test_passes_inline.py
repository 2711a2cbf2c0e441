"""Calls of helpers replaced by what the helpers do."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from orion.ir.nodes import For, walk
from orion.ir.printer import print_function
from orion.ir.types import ArrayType, ScalarType
from orion.passes.inline import inline_helpers
from orion.pipeline import through_passes
from tests import loop_functions
from tests.loop_text import defined, from_text

HELPERS = """
def square(x):
    return x * x

def cube(x):
    y = square(x)
    return y * x

def shift(row, by=1.0):
    row -= by

def total(row):
    t = 0.0
    for k in range(len(row)):
        t += row[k]
    return t

def bump(a, i):
    a[i] += 1
    return a[i]

def counted(a, i):
    i += 1
    a[i] = i

def sign(x):
    if x > 0:
        return 1
    return -1

def both(x, y):
    return y, x

def nothing(x):
    pass
"""
PARAMS = "W, a, n, x"
TYPES = {
    "W": ArrayType("float64", 2),
    "a": ArrayType("float64", 1),
    "n": ScalarType("int64", weak=True),
    "x": ScalarType("float64", weak=True),
}


def source(body: str) -> str:
    return f"def f({PARAMS}):\n" + textwrap.indent(body, "    ") + HELPERS


def inlined(body: str) -> str:
    lines = print_function(inline_helpers(from_text(source(body)))).splitlines()
    return textwrap.dedent("\n".join(lines[1:]))


CASES = [
    ("an expression of a name", "y = square(x)", "y = x * x"),
    ("an expression of a constant", "y = square(3)", "y = 3 * 3"),
    ("an argument that is computed once", "y = square(x + 1)", "square_x = x + 1\ny = square_x * square_x"),
    ("in a larger expression", "y = 2 * square(x) + square(n)", "y = 2 * (x * x) + n * n"),
    ("in an argument", "y = square(square(x))", "square_x = x * x\ny = square_x * square_x"),
    ("a helper of a helper", "y = cube(x)", "cube_y = x * x\ny = cube_y * x"),
    (
        "twice: locals stay apart",
        "y = cube(x) + cube(n)",
        "cube_y = x * x\ncube_y_ = n * n\ny = cube_y * x + cube_y_ * n",
    ),
    ("a row written in place", "shift(W[0], x)", "row = W[0]\nrow -= x"),
    ("a default", "shift(W[0])", "row = W[0]\nrow -= 1.0"),
    (
        "a loop",
        "y = total(W[0])",
        "row = W[0]\nt = 0.0\nfor k in range(len(row)):\n    t += row[k]\ny = t",
    ),
    (
        "names that the function has too",
        "t = 0.0\nk = 1\nrow = W[k]\ny = total(W[0]) + t",
        "t = 0.0\nk = 1\nrow = W[k]\ntotal_row = W[0]\ntotal_t = 0.0\n"
        "for total_k in range(len(total_row)):\n    total_t += total_row[total_k]\ny = total_t + t",
    ),
    ("an array by name", "y = bump(a, n)", "a[n] += 1\ny = a[n]"),
    ("a parameter that is assigned", "counted(a, n)", "i = n\ni += 1\na[i] = i"),
    ("a test", "if square(x) > 1:\n    y = 1", "if x * x > 1:\n    y = 1"),
    ("a bound", "for i in range(square(n)):\n    y = square(i)", "for i in range(n * n):\n    y = i * i"),
    ("a result", "return square(x)", "return x * x"),
    ("an update", "y = 0.0\ny += square(x)", "y = 0.0\ny += x * x"),
    ("two results", "y, z = both(x, n)", "y, z = n, x"),
    ("nothing", "nothing(x)", "pass"),
    ("the left side of `and`", "y = square(x) > 1 and x > 2", "y = x * x > 1 and x > 2"),
    ("a comparison", "y = 1 < square(x)", "y = 1 < x * x"),
    # not replaced
    ("an early return stays", "y = sign(x)", "y = sign(x)"),
    ("what may be skipped stays", "y = x > 1 and square(x) > 1", "y = x > 1 and square(x) > 1"),
    ("a branch of a choice stays", "y = square(x) if x > 1 else 2", "y = square(x) if x > 1 else 2"),
    ("the end of a chain stays", "y = 1 < x < square(x)", "y = 1 < x < square(x)"),
    ("a test of `while` stays", "while square(x) > 1:\n    x = x / 2", "while square(x) > 1:\n    x = x / 2"),
    ("a write inside an expression stays", "y = a[0] + bump(a, 0)", "y = a[0] + bump(a, 0)"),
    ("a write in an update stays", "a[0] += bump(a, 0)", "a[0] += bump(a, 0)"),
    ("beside a write all stay", "y = square(x) + bump(a, 0)", "y = square(x) + bump(a, 0)"),
]


@pytest.mark.parametrize(("body", "after"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_a_call_becomes_what_the_helper_does(body, after):
    assert inlined(body) == after


@pytest.mark.parametrize("body", [row[1] for row in CASES], ids=[row[0] for row in CASES])
def test_the_function_computes_what_it_did(body):
    assigned = "y = " in body and not body.startswith(("if", "for"))
    text = source(body + ("\nreturn y" if assigned else ""))
    before = defined(text)
    function = inline_helpers(from_text(text))
    after = defined("\n\n".join(print_function(one) for one in (function, *function.helpers)))
    assert run(after) == run(before)


def run(function) -> tuple:
    W, a = np.arange(8.0).reshape(2, 4), np.arange(4.0)
    result = function(W, a, 2, 3.0)
    return W.tolist(), a.tolist(), result


def test_helpers_that_are_not_called_any_more_go():
    function = inline_helpers(from_text(source("y = cube(x) + sign(x)")))
    assert [helper.name for helper in function.helpers] == ["sign"]


def test_loops_of_helpers_have_numbers_of_their_own():
    function = inline_helpers(from_text(source("for i in range(n):\n    y = total(W[i]) + total(W[0])")))
    numbers = [node.index for node in walk(function.body[0]) if isinstance(node, For)]
    assert numbers == [0, 1, 2]


def test_places_are_those_of_the_helper_in_the_same_file_and_of_the_call_in_another():
    same = from_text(source("y = cube(x)"))
    (first, _) = inline_helpers(same).body
    assert same.helpers[-1].source.line(first.span.line).strip() == "y = square(x)"
    other = from_text("def f(x):\n    y = square(x) + square(x + 1)\n", square=loop_functions.square)
    for statement in inline_helpers(other).body:
        assert {node.span.file for node in walk(statement)} == {other.source.file}


def test_views_see_through_helpers():
    body = "for i in range(n):\n    shift(W[i], total(W[i]))"
    resolved = through_passes(from_text(source(body)), TYPES)
    assert print_function(resolved).splitlines()[2:] == [
        "        t = 0.0",
        "        for k in range(W.shape[1]):",
        "            t += W[i, k]",
        "        W[i] -= t",
    ]
