"""`return` inside loops and `else` of loops, as flags and `break`s; and that the functions still do the same."""

from __future__ import annotations

import itertools

import pytest

from orion.frontend.check import check_function
from orion.ir.printer import print_function, print_stmt
from orion.passes.leaving import leave_by_break
from tests.loop_text import from_body

LEFT = [
    (
        "for i in range(n):\n    if a[i] > 0:\n        return i\nreturn -1",
        "returned = 0\nfor i in range(n):\n"
        "    if a[i] > 0:\n        returned_1 = i\n        returned = 1\n        break\n"
        "if returned == 1:\n    return returned_1\nreturn -1",
    ),
    (
        "while n:\n    for i in range(n):\n        return i, 2\n        n = 3\n    return",
        "returned = 0\nwhile n:\n"
        "    for i in range(n):\n        returned_1 = i\n        returned = 1\n        break\n"
        "    if returned != 0:\n        break\n    returned = 2\n    break\n"
        "if returned == 1:\n    return returned_1, 2\nif returned == 2:\n    return",
    ),
    (
        "returned = 5\nif n:\n    for i in range(n):\n        return returned\nreturn 1",
        "returned = 5\nif n:\n    returned_ = 0\n    for i in range(n):\n"
        "        returned_ = 1\n        break\n    if returned_ == 1:\n        return returned\nreturn 1",
    ),
]


@pytest.mark.parametrize(("body", "expected"), LEFT)
def test_a_return_in_a_loop_is_a_break_and_a_return_after_it(body, expected):
    left = check_function(leave_by_break(from_body(body), ()))
    assert "\n".join(print_stmt(statement) for statement in left.body) == expected


def test_a_function_without_returns_in_loops_stays_as_it_is():
    function = from_body("for i in range(n):\n    a[i] = 1\nif n:\n    return 1\nreturn 0")
    assert leave_by_break(function, ()) is function


def test_else_of_a_loop_without_break_is_what_comes_after_it():
    function = from_body("for i in range(n):\n    while n:\n        break\nelse:\n    n = 1\nreturn n")
    assert [print_stmt(statement) for statement in function.body][1:] == ["n = 1", "return n"]


SEARCHES = [
    "for i in range(n):\n    if a[i] > 2:\n        break\nelse:\n    i = -1\nreturn i",
    "for i in range(n):\n    for k in range(i):\n        if a[i] == a[k]:\n            break\n    else:\n"
    "        if a[i] > 1:\n            return i, -1\n        continue\n    return i, k\nelse:\n    return 'none'",
    "i = 0\nwhile i < n:\n    if a[i] < 0:\n        return a[i]\n    if a[i] > 1:\n        break\n    i += 1\nelse:\n"
    "    for i in range(n):\n        if a[i] == 1:\n            return i + 10\n    return 20\nreturn i",
]


@pytest.mark.parametrize("body", SEARCHES)
def test_the_function_returns_the_same(body):
    text = f"def f(a, n):\n    i = k = 0\n    {body.replace(chr(10), chr(10) + '    ')}".replace("'none'", "-5")
    plain: dict = {}
    exec(text, plain)
    left: dict = {}
    function = from_body(text.partition("\n")[2].replace("\n    ", "\n").removeprefix("    "), "a, n")
    exec(print_function(leave_by_break(function, ())), left)
    for a in itertools.product((-1, 0, 1, 2, 3), repeat=3):
        assert left["f"](list(a), 3) == plain["f"](list(a), 3), a
