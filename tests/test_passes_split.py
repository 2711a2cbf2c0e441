"""A function taken apart: which loops are planned, over which dimensions, and what stands between them."""

from __future__ import annotations

import pytest

from orion.errors import UnsupportedLoopError
from orion.frontend.parse import parse_function
from orion.ir.printer import print_stmt
from orion.ir.program import Branch, Program, Repeat, RunLoop, Scalars, Step
from orion.ir.types import ArrayType, ScalarType, SparseType
from orion.passes.between import SYNTHETIC, peel_loop
from orion.passes.split import split_program
from orion.pipeline import through_passes
from orion.rewrites.peel.apply import peel_outer_loop
from tests import loop_functions
from tests.loop_text import from_body

TYPES = {
    "A": ArrayType("float64", 2),
    "B": ArrayType("float64", 2),
    "a": ArrayType("float64", 1),
    "p": ArrayType("int64", 1),
    "R": SparseType(2, "int32", ("float64",)),
    "S": SparseType(1, "int32", ("float64",)),
    "n": ScalarType("int64", weak=True),
    "m": ScalarType("int64", weak=True),
    "x": ScalarType("float64", weak=True),
}
PARAMS = ", ".join(TYPES)


def program(body: str, ordered: bool | None = None) -> Program:
    return split_program(through_passes(from_body(body, PARAMS), TYPES), TYPES, ordered)


def opened_at(split: Program, number: int, *, plainly: bool = False) -> Program | None:
    peeled = peel_loop(split.nests[number], TYPES)
    return None if peeled is None or (plainly and not peeled.is_plain) else peel_outer_loop(split, number, peeled)


def shown(steps: tuple[Step, ...], split: Program) -> list:
    """Steps as nested lists: "i j" for a planned loop, "(x = 1)" for scalars, ["for t in range(n)", …] for a repeat,
    ["if x > 1", [steps], [other steps]] for a branch."""
    found: list = []
    for step in steps:
        match step:
            case RunLoop(number):
                nest = split.nests[number]
                found.append(" ".join(nest.dims) + (" once" if nest.loops[0].index == SYNTHETIC else ""))
            case Scalars(body):
                found.append(f"({'; '.join(print_stmt(statement) for statement in body)})")
            case Repeat(loop, inner):
                found.append([_first_line(loop), *shown(inner, split)])
            case Branch(statement, sides):
                found.append([_first_line(statement), *(shown(side, split) for side in sides)])
    return found


def _first_line(statement) -> str:
    return print_stmt(statement).splitlines()[0].rstrip(":")


STEPS = [
    ("a loop over elements", "for (i, j), r in R:\n    A[i, j] = r", ["i j"]),
    ("a nest", "for i in range(n):\n    for j in range(m):\n        A[i, j] = 0", ["i j"]),
    (
        "scalars between loops",
        "t = 0.0\nfor (i, j), r in R:\n    t += r\nu = t / 2\nfor i in range(n):\n    a[i] = u\nreturn u",
        ["(t = 0.0)", "i j", "(u = t / 2)", "i", "(return u)"],
    ),
    (
        "rounds around a loop over elements",
        "for t in range(n):\n    for (i, j), r in R:\n        A[i, j] = r\n    x *= 0.5",
        [["for t in range(n)", "i j", "(x *= 0.5)"]],
    ),
    (
        "rounds around rounds",
        "for t in range(n):\n    y = x\n    for u in range(m):\n        for i, r in S:\n            a[i] = y",
        [["for t in range(n)", "(y = x)", ["for u in range(m)", "i"]]],
    ),
    (
        "rounds around loops of both kinds",
        "for t in range(n):\n    for i in range(n):\n        a[i] = 0\n    for i, r in S:\n        a[i] += r",
        [["for t in range(n)", "i", "i"]],
    ),
    (
        "several loops in a loop",
        "for i in range(n):\n    for j in range(m):\n        A[i, j] = 0\n    for j in range(m):\n        A[i, j] += j",
        ["i"],
    ),
    ("a statement that writes an array", "a[0] = 1.0\nfor i in range(n):\n    a[i] += 1", ["once once", "i"]),
    (
        "a statement that reads an array",
        "y = a[0]\nz = y + a[1]\nw = 2\nfor i in range(n):\n    a[i] = z",
        ["(z = 0.0)", "once once", "(w = 2)", "i"],
    ),
    (
        "a branch around a loop",
        "if n > 3:\n    for i in range(n):\n        a[i] = 1\nelse:\n    a[0] = 2",
        ["once once"],
    ),
    (
        "`while` around an array",
        "while a[0] > 0:\n    a[0] -= 1",
        ["once once"],
    ),
    ("`while` over scalars, which is compiled", "while x > 0.5:\n    x /= 2", ["once once"]),
    (
        "a branch around a loop over elements",
        "if x > 1:\n    for i, r in S:\n        a[i] = r\n    x = 0.0\nelif x > 0:\n    a[0] = x",
        [["if x > 1", ["i", "(x = 0.0)"], ["once once"]]],
    ),
    (
        "a branch whose test reads an array",
        "if a[0]:\n    for i, r in S:\n        a[i] = r",
        ["(test = False)", "once once", ["if test", ["i"], []]],
    ),
    (
        "`while` around a loop over elements",
        "while x > 1:\n    for i, r in S:\n        a[i] = r\n    x /= 2",
        [["while x > 1", "i", "(x /= 2)"]],
    ),
    (
        "`while` whose test reads an array",
        "while a[0] > 1:\n    for i, r in S:\n        a[i] += r",
        ["(test = False)", ["while True", "once once", "(if not test:\n    break)", "i"]],
    ),
    (
        "rounds that are left",
        "for t in range(n):\n    if x < 0:\n        continue\n    for i, r in S:\n        x -= r\n    if a[0] > x:\n"
        "        break",
        [
            "(test = False)",
            ["for t in range(n)", "(if x < 0:\n    continue)", "i", "once once", "(if test:\n    break)"],
        ],
    ),
    (
        "a branch in rounds",
        "for t in range(n):\n    if t > 1:\n        for i, r in S:\n            a[i] = r",
        [["for t in range(n)", ["if t > 1", ["i"], []]]],
    ),
    (
        "rounds whose number is read from an array",
        "for t in range(p[0]):\n    for i, r in S:\n        a[i] = r",
        ["(bound = 0; bound_ = 0; bound__ = 0)", "once once", ["for t in range(bound, bound_, bound__)", "i"]],
    ),
    (
        "an early return",
        "if n > 1:\n    return 0\nfor i in range(n):\n    a[i] = 0\nreturn 1\nx = 3",
        ["(if n > 1:\n    return 0)", "i", "(return 1)"],
    ),
    (
        "an early return of an element",
        "if n > 1:\n    return a[n]\nfor i in range(n):\n    a[i] = 0",
        ["(result_0 = 0.0)", ["if n > 1", ["once once", "(return result_0)"], []], "i"],
    ),
    (
        "a result that reads an array",
        "return a[0] + x, n",
        ["(result_0 = 0.0; result_1 = 0)", "once once", "(return result_0, result_1)"],
    ),
    ("a result with an extent", "return len(a) * len(R)", ["(return a.shape[0] * len(R))"]),
    (
        "a name that is taken",
        "once = 1\na[once] = 2.0\nresult_0 = 3\nreturn a[result_0]",
        ["(result_0_ = 0.0; once = 1)", "once_ once", "(result_0 = 3)", "once_ once", "(return result_0_)"],
    ),
    ("nothing but scalars", "y = x + 1\nreturn y", ["(y = x + 1; return y)"]),
    ("a loop over scalars", "y = 0.0\nfor i in range(n):\n    y += i\nreturn y", ["(y = 0.0)", "i", "(return y)"]),
]


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS])
def test_the_steps_of_a_function(body, expected):
    split = program(body)
    assert shown(split.steps, split) == expected
    assert [nest.number for nest in split.nests] == list(range(len(split.nests)))


# body of the outermost loop over i · the dimensions
DIMENSIONS = [
    ("for j in range(i, n):\n    A[i, j] = 0", "i j"),
    ("for j in range(2 * i + n, m - i):\n    A[i, j] = 0", "i j"),
    ("for j in range(n // 2, m % 4):\n    A[i, j] = 0", "i j"),
    ("for j in range(A.shape[1]):\n    A[i, j] = 0", "i j"),
    ("for j in range(m):\n    for k in range(n):\n        A[i, j] += B[k, j]", "i j k"),
    ("for j in range(m - 1, -1, -1):\n    A[i, j] = 0", "i j"),
    ("for j in range(i * i):\n    A[i, j] = 0", "i"),
    ("for j in range(n // i):\n    A[i, j] = 0", "i"),
    ("for j in range(p[i], p[i + 1]):\n    A[i, j] = 0", "i"),
    ("for j in range(min(i, n)):\n    A[i, j] = 0", "i j"),
    ("for j in range(0, m, n):\n    A[i, j] = 0", "i"),
    ("x = 0.0\nfor j in range(m):\n    A[i, j] = x", "i"),
    ("for j in range(m):\n    A[i, j] = 0\na[i] = 1", "i"),
    ("for j in range(m):\n    m = m + 1\n    A[i, j] = 0", "i"),
    ("for j in range(m):\n    i = 3\n    A[i, j] = 0", "i"),
    ("for i in range(m):\n    a[i] = 0", "i"),
    ("for j in range(m):\n    if x > j:\n        break\n    A[i, j] = 0", "i"),
    ("for j in range(m):\n    for k in range(n):\n        if x > k:\n            break\n    A[i, j] = 0", "i j"),
    ("for j in range(m):\n    if x > j:\n        continue\n    A[i, j] = 0", "i j"),
    (
        "for j in range(m):\n    k = 0\n"
        "    while k < 3:\n        k += 1\n        if k == j:\n            break\n    A[i, j] = k",
        "i j",
    ),
]


@pytest.mark.parametrize(("body", "dims"), DIMENSIONS, ids=[body for body, _ in DIMENSIONS])
def test_the_dimensions_of_a_nest(body, dims):
    indented = "\n".join("    " + line for line in body.splitlines())
    (nest,) = program(f"for i in range(n):\n{indented}").nests
    assert " ".join(nest.dims) == dims
    assert len(nest.loops) == len(nest.dims)
    assert nest.body == nest.loops[-1].body


ORDERS = [
    ("for i in range(n):\n    a[i] = 0", None, True),
    ("for i in range(n):\n    a[i] = 0", False, False),
    ("for i, r in S:\n    a[i] = r", None, False),
    ("for i, r in S:\n    a[i] = r", True, True),
]


@pytest.mark.parametrize(("body", "asked", "ordered"), ORDERS)
def test_ranges_are_ordered_and_elements_are_not_unless_asked(body, asked, ordered):
    assert [nest.ordered for nest in program(body, asked).nests] == [ordered]


def test_the_example_of_the_first_page():
    function = parse_function(loop_functions.gauss_seidel)
    types = {"A": ArrayType("float64", 2), "sweeps": ScalarType("int64", weak=True)}
    (nest,) = split_program(through_passes(function, types), types).nests
    assert nest.dims == ("t", "i", "j")
    assert [loop.index for loop in nest.loops] == [0, 1, 2]
    assert nest.span.line == function.span.line + 1
    assert nest.elements is None
    assert [space.var for space in nest.ranges] == ["t", "i", "j"]


# ---------------------------------------------------------------- opening the outermost loop

OPENED = [
    ("for t in range(n):\n    for i in range(n):\n        a[i] += t", [["for t in range(n)", "i"]]),
    (
        "for t in range(n):\n    y = x * t\n"
        "    for i in range(n):\n        a[i] = y\n    for i in range(m):\n        a[i] *= 2",
        [["for t in range(n)", "(y = x * t)", "i", "i"]],
    ),
    (
        "for t in range(n):\n    for i in range(n):\n        for j in range(m):\n            A[i, j] += t",
        [["for t in range(n)", "i j"]],
    ),
]


@pytest.mark.parametrize(("body", "expected"), OPENED)
def test_a_nest_becomes_rounds_around_the_loops_inside(body, expected):
    before = "for k in range(n):\n    a[k] = 0\n"
    split = program(before + body + "\n" + before)
    peeled_loop = opened_at(split, 1, plainly=True)
    assert peeled_loop == opened_at(split, 1)
    assert shown(peeled_loop.steps, peeled_loop) == ["k", *expected, "k"]
    assert [nest.number for nest in peeled_loop.nests] == list(range(len(peeled_loop.nests)))
    assert peeled_loop.nests[-1].dims == ("k",)


def test_a_nest_inside_rounds_is_opened_where_it_stands():
    split = program(
        "for t in range(n):\n    for i, r in S:\n        a[i] = r\n"
        "    for u in range(m):\n        for i in range(n):\n            a[i] = u"
    )
    peeled_loop = opened_at(split, 1)
    assert shown(peeled_loop.steps, peeled_loop) == [["for t in range(n)", "i", ["for u in range(m)", "i"]]]


def test_opened_loops_keep_the_order_that_was_asked_for():
    split = program("for t in range(n):\n    for i in range(n):\n        a[i] += t", ordered=False)
    assert [nest.ordered for nest in opened_at(split, 0).nests] == [False]


APART = [
    (
        "for t in range(n):\n    for i in range(n):\n        a[i] = 0\n    a[0] = 1",
        [["for t in range(n)", "i", "once once"]],
    ),
    (
        "for t in range(p[0]):\n    for i in range(n):\n        a[i] = 0",
        ["once once", ["for t in range(bound, bound_, bound__)", "i"]],
    ),
    (
        "for t in range(n):\n    if x > t:\n        for i in range(n):\n            a[i] = 0",
        [["for t in range(n)", ["if x > t", ["i"], []]]],
    ),
    (
        "while x > 1:\n    for i in range(n):\n        a[i] += x\n    if a[0] > 3:\n        x = 0.0\n    x /= 2",
        [["while x > 1", "i", "once once", "(x /= 2)"]],
    ),
    (
        "a[0] = 1\nif a[1] > 2:\n    for i in range(n):\n        a[i] = 0",
        ["once once", "once once", ["if test", ["i"], []]],
    ),
]


@pytest.mark.parametrize(("body", "expected"), APART)
def test_a_loop_around_more_than_loops_and_scalars_is_taken_apart(body, expected):
    split = program(body)
    assert len(split.nests) == 1
    assert opened_at(split, 0, plainly=True) is None
    peeled_loop = opened_at(split, 0)
    assert peeled_loop is not None
    assert shown(peeled_loop.steps, peeled_loop) == expected
    assert set(peeled_loop.tests) <= {"test"}
    assert set(peeled_loop.variables) <= {"bound", "bound_", "bound__"}


def test_a_break_out_of_rounds_is_plain():
    split = program("for t in range(n):\n    if t > 3:\n        break\n    for i in range(n):\n        a[i] = 0")
    peeled_loop = opened_at(split, 0, plainly=True)
    assert peeled_loop is not None
    assert shown(peeled_loop.steps, peeled_loop) == [["for t in range(n)", "(if t > 3:\n    break)", "i"]]


CLOSED = [
    "for i in range(n):\n    a[i] = 0",
    "for i, r in S:\n    a[i] = r",
    "a[0] = 1",
    "if a[0] > 1:\n    a[1] = 2",
    "for t in range(n):\n    g = np.zeros(3)\n    for i in range(3):\n        g[i] = a[i]\n    for i in range(n):\n"
    "        a[i] = g[0]",
    "for t in range(n):\n    for i in range(n):\n        a[i] = t\n    x += i",
    "while x > 0:\n    for i in range(n):\n        a[i] = x\n    x -= i",
    "while x > 0:\n    for i in range(n):\n        a[i] = x\n    x -= 1\nreturn i",
]


@pytest.mark.parametrize("body", CLOSED)
def test_a_loop_that_can_only_be_run_as_a_whole_is_not_opened(body):
    assert opened_at(program(body), 0) is None


# ---------------------------------------------------------------- what may not stand where

REFUSED = [
    (
        "for (i, j), r in R:\n    for k, s in S:\n        a[k] = r",
        "a loop over elements inside another loop over elements",
        "for k, s in S",
    ),
    (
        "for (i, j), r in R:\n    if r > 1:\n        for k, s in S:\n            a[k] = r",
        "a loop over elements inside another loop over elements",
        "for k, s in S",
    ),
    ("for i in range(n):\n    if a[i] > 0:\n        return A[i]\nreturn 0", "this array cannot be returned", "A[i]"),
    (
        "if n > 1:\n    g = np.zeros(3)\nfor i, r in S:\n    g[0] += r",
        "the array `g` may be used before it is made",
        "g",
    ),
    (
        "g = np.zeros(p[0])\nfor i in range(n):\n    g[0] += a[i]",
        "the array `g` is made between loops",
        "g = np.zeros(p[0])",
    ),
    ("return a[p[0] :]", "this array cannot be returned", "a[p[0] :]"),
    ("return A[p[0]], x", "this array cannot be returned", "A[p[0]]"),
    (
        "for i in range(3):\n    g = A[i] * 2\nfor i in range(n):\n    A[i] = g",
        "the array `g` may be used before it is made",
        "g",
    ),
    (
        "g = A[0]\nfor i in range(n):\n    g[0] = 1\n    g = A[i]",
        "`g` stands for parts of arrays in more than one loop",
        "g = A[0]",
    ),
]


@pytest.mark.parametrize(("body", "what", "place"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_may_not_stand_there_is_refused(body, what, place):
    with pytest.raises(UnsupportedLoopError) as error:
        program(body)
    lines = str(error.value).splitlines()
    assert what in lines[0]
    source, carets = (line.partition("| ")[2] for line in lines[1:3])
    assert source[carets.index("^") : len(carets)] == place
    assert "  help: " in str(error.value)


def test_splitting_works_without_resolving_views_first():
    split = split_program(from_body("a[0] = 1.0\nreturn a[0]", PARAMS), TYPES)
    assert shown(split.steps, split) == ["(result_0 = 0.0)", "once once", "once once", "(return result_0)"]


LAST_VALUES = [
    ("for i in range(n):\n    last = a[i]\nreturn last", "last = 0.0"),
    ("for i in range(n):\n    k = p[i]\na[k] = 1", "k = 0"),
    ("for i in range(n):\n    big = a[i] > 1\nreturn big", "big = False"),
    ("for i in range(n):\n    for k in range(m):\n        y = a[k]\n    a[i] = y", "y = 0.0"),
]


@pytest.mark.parametrize(("body", "zero"), LAST_VALUES)
def test_scalars_that_only_a_loop_sets_have_a_value_before_it(body, zero):
    first = program(body).steps[0]
    assert isinstance(first, Scalars)
    assert [print_stmt(statement) for statement in first.body] == [zero]


KEPT = [
    (
        "for i in range(n):\n    a[i] = 0\nreturn i",
        ["last_i = 0", "for i in range(n):\n    last_i = i\n    a[i] = 0", "i = last_i", "return i"],
    ),
    (
        "i = 3\nfor i in range(n):\n    a[i] = 0\nreturn i",
        ["i = 3", "last_i = i", "for i in range(n):\n    last_i = i\n    a[i] = 0", "i = last_i", "return i"],
    ),
    (
        "for i in range(n):\n    for j in range(m):\n        A[i, j] = 0\nreturn j",
        [
            "last_j = 0",
            "for i in range(n):\n    for j in range(m):\n        last_j = j\n        A[i, j] = 0",
            "j = last_j",
            "return j",
        ],
    ),
    (
        "for i in range(n):\n    a[i] = 0\nfor k in range(i):\n    a[k] = 1",
        [
            "last_i = 0", "for i in range(n):\n    last_i = i\n    a[i] = 0", "i = last_i",
            "for k in range(i):\n    a[k] = 1",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), KEPT, ids=[body for body, _ in KEPT])
def test_a_loop_keeps_the_variable_that_is_read_after_it(body, expected):
    assert [print_stmt(statement) for statement in program(body).function.body] == expected


AFTER_THE_LOOP = [
    ("for i, r in S:\n    a[i] = r\nreturn r", "`r` is read after its loop"),
    ("for i in range(n):\n    i += 1\nreturn i", "`i` is read after its loop"),
    (
        "j = 0\nfor t in range(n):\n    for k in range(j):\n        a[k] = 1\n    for j, r in S:\n        a[j] = r",
        "`j` is read after",
    ),
]


@pytest.mark.parametrize(("body", "what"), AFTER_THE_LOOP, ids=[body for body, _ in AFTER_THE_LOOP])
def test_loop_variables_have_no_value_after_a_planned_loop(body, what):
    with pytest.raises(UnsupportedLoopError) as error:
        program(body)
    assert what in str(error.value)
    assert "keep it under another name: `last = " in str(error.value)


def test_loop_variables_may_be_used_again():
    body = "for i in range(n):\n    a[i] = 0\nfor i in range(n):\n    a[i] += i\ni = 3\nreturn i"
    assert [nest.dims for nest in program(body).nests] == [("i",), ("i",)]


def test_the_variable_of_a_loop_inside_a_body_may_be_read_after_it():
    body = "for i in range(n):\n    for k in range(m):\n        if a[k] > 0:\n            break\n    a[i] = k"
    assert [nest.dims for nest in program(body).nests] == [("i",)]
