"""Scalars taken from one iteration: which `if`s and assignments are such choices, and which only look like one."""

import pytest

from orion.dependence.choices import directions, extremes
from orion.dependence.scalars import live_after, scalar_roles
from orion.ir.types import ArrayType, ScalarType, SparseType
from orion.passes.split import split_program
from orion.pipeline import through_passes
from tests.loop_text import from_body

TYPES = {
    "a": ArrayType("float64", 1),
    "b": ArrayType("float64", 1),
    "A": ArrayType("float64", 2),
    "R": SparseType(2, "int32", ("float64",)),
    "n": ScalarType("int64", weak=True),
    "best": ScalarType("float64", weak=True),
    "at": ScalarType("int64", weak=True),
}


def roles(body: str, after: str = "return best, at", number: int = 0, ordered: bool | None = None):
    program = split_program(through_passes(from_body(f"{body}\n{after}", ", ".join(TYPES)), TYPES), TYPES, ordered)
    nest = program.nests[number]
    return scalar_roles(nest, TYPES, live_after(program, number))


def loop(*lines: str) -> str:
    return "\n".join(["for i in range(n):", *(f"    {line}" for line in lines)])


CHOICES = [
    (("if a[i] > best:", "    best = a[i]", "    at = i"), ("best", "at"), ">"),
    (("if best < a[i]: best = a[i]; at = i",), ("best", "at"), ">"),
    (("if best >= a[i]: at = i; best = a[i]",), ("best", "at"), "<="),
    (("d = a[i] - b[i]", "if d < best: best = d; at = 2 * i"), ("best", "at"), "<"),
    (("if a[i] <= best: best, at = a[i], i",), ("best", "at"), "<="),
    (("if b[i] > 0 and a[i] > best: best = a[i]; at = i",), ("best", "at"), ">"),
    (("if b[i] > 0:", "    if a[i] > best: best = a[i]; at = i"), ("best", "at"), ">"),
    (("for j in range(3):", "    if A[i, j] > best: best = A[i, j]; at = j"), ("best", "at"), ">"),
    (("if a[i] > best: best = a[i]; at = i", "if b[i] > best: best = b[i]; at = -i"), ("best", "at"), ">"),
    (("if a[i] > best: best = a[i]",), ("best",), ">"),
]


@pytest.mark.parametrize(("lines", "names", "op"), CHOICES)
def test_a_choice_by_comparison(lines, names, op):
    found = roles(loop(*lines))
    assert not found.carried
    best = next(choice for choice in found.choices if choice.op != "last")
    assert (best.names, best.op) == (names, op)


CARRIED = [
    ("another value is kept", ("if a[i] > best: best = b[i]; at = i",)),
    ("the best is read", ("if a[i] > best: best = a[i]; at = i", "b[i] = best")),
    ("its place is read", ("if a[i] > best: best = a[i]; at = i", "b[i] = at")),
    ("the old best is kept", ("if a[i] > best: at = best; best = a[i]",)),
    ("what is kept depends on the old", ("if a[i] > best: best = a[i]; at = at + 1",)),
    ("an array is written", ("if a[i] > best: best = a[i]; b[i] = 1.0",)),
    ("something is done otherwise", ("if a[i] > best: best = a[i]", "else: b[i] = 1.0")),
    ("two comparisons with the best", ("if a[i] > best and best < b[i]: best = a[i]; at = i",)),
    ("either of two conditions", ("if a[i] > best or b[i] > 0: best = a[i]; at = i",)),
    ("equality", ("if a[i] == best: best = a[i]; at = i",)),
    ("a margin", ("if a[i] > best + 0.5: best = a[i]; at = i",)),
    ("set elsewhere too", ("if a[i] > best: best = a[i]; at = i", "if b[i] > 0: at = -1", "b[i] = at")),
    ("two directions", ("if a[i] > best: best = a[i]; at = i", "if b[i] < best: best = b[i]; at = i")),
    ("followers that differ", ("if a[i] > best: best = a[i]; at = i", "if b[i] > best: best = b[i]")),
    ("reset", ("if a[i] > best: best = a[i]; at = i", "if b[i] > 0: best = 0.0")),
    ("the best bounds a loop", ("if a[i] > best: best = a[i]; at = i", "for j in range(at): b[j] = 1.0")),
]


@pytest.mark.parametrize(("lines", "why"), [(lines, why) for why, lines in CARRIED], ids=[why for why, _ in CARRIED])
def test_what_only_looks_like_a_choice_is_carried(lines, why):
    assert "best" in dict(roles(loop(*lines)).carried)


def test_a_place_that_is_set_elsewhere_too_belongs_to_no_choice():
    found = roles(loop("if a[i] > best: best = a[i]; at = i", "if b[i] > 0: at = -1"))
    assert [name for name, _ in found.carried] == ["best", "at"] or dict(found.carried).keys() == {"best"}
    assert not any("best" in choice.names for choice in found.choices)


LAST = [
    (("at = i",), True),
    (("if a[i] > 0: at = i",), True),
    (("at = i", "at += 1"), True),
    (("for j in range(3):", "    at = j"), True),
    (("b[i] = at", "at = i"), False),
    (("if a[i] > 0: at = i", "b[i] = at"), False),
    (("i += 1", "at = i"), False),  # the loop variable no longer says which iteration it is
]


@pytest.mark.parametrize(("lines", "is_last"), LAST)
def test_a_last_value(lines, is_last):
    found = roles(loop(*lines))
    assert any((choice.names, choice.op) == (("at",), "last") for choice in found.choices) == is_last
    assert ("at" in dict(found.carried)) != is_last


def test_what_nobody_needs_is_private():
    (name,) = roles(loop("at = i"), after="return n").private
    assert name == "at_"  # what the argument `at` is given there has a name of its own
    (choice,) = roles(loop("if a[i] > best: best = a[i]; at = i"), after="return best").choices
    assert choice.names == ("best",)


def test_the_order_of_iterations_must_be_known():
    """With a step that is an argument, nobody knows whether a later iteration has a larger variable."""
    body = "for i in range(0, 100, n):\n    if a[i] > best: best = a[i]; at = i"
    assert not roles(body).choices
    assert dict(roles(body).carried).keys() == {"best", "at"}


@pytest.mark.parametrize("ordered", [None, True])
def test_elements_make_choices_too(ordered):
    found = roles("for (i, j), v in R:\n    if v > best: best = v; at = j", ordered=ordered)
    assert [choice.names for choice in found.choices] == [("best", "at")]


def test_directions():
    body = "for i in range(n):\n    for j in range(9, 0, -2):\n        A[i, j] = 0.0"
    function = through_passes(from_body(body, ", ".join(TYPES)), TYPES)
    assert directions(split_program(function, TYPES).nests[0]) == (1, -1)


def test_helpers_may_do_anything():
    """A choice must do nothing but set its names."""

    def touched(x, i):
        x[i] = 0.0
        return x[i]

    body = "for i in range(n):\n    if a[i] > best:\n        best = a[i]; at = touched(b, i)"
    function = from_body(body, "a, b, n, best, at", touched=touched)
    assert not extremes(function.body[0].body)
