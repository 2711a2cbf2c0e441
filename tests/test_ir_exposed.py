"""Which names may be read before they have a value."""

from __future__ import annotations

import pytest

from orion.ir.exposed import exposed_reads, exposed_scalars
from tests.loop_text import from_body

UNSURE = [
    "for i in range(n):\n    x = i\na[0] = x",
    "for i in range(n):\n    if i > 3:\n        x = i\n    a[i] = x",
    "for i in range(n):\n    if i > 0:\n        a[i] = x\n    x = i",
    "for i in range(n):\n    for x in range(i):\n        pass\n    a[i] = x",
    "for k, x in a:\n    pass\na[0] = x",
    "while n > 0:\n    n -= 1\n    x = n\na[0] = x",
    "while True:\n    if n > 3:\n        break\n    x = 1\na[0] = x",
    "for i in range(n):\n    x = i\na[x] = 1",
    "for i in range(n):\n    x = i\nx += 1",
    "for i in range(n):\n    x = i\nif x > 1:\n    n = 1",
    "for i in range(n):\n    x = i\nfor i in range(x):\n    n = 1",
    "for i in range(n):\n    x = i\nwhile x > 1:\n    n = 1",
]
SURE = [
    "x = 0\nfor i in range(n):\n    x = i\na[0] = x",
    "for i in range(n):\n    if i > 3:\n        x = i\n    else:\n        x = 0\n    a[i] = x",
    "for i in range(n):\n    for k in range(i):\n        x = k\n        a[i] = x + i",
    "for k, x in a:\n    W[k] = x",
    "x, y = 1, 2\na[0] = x + y",
    "while True:\n    x = 1\n    if n > 3:\n        break\na[0] = x",
    "x = 1\nx += 1",
]


@pytest.mark.parametrize("body", UNSURE)
def test_a_name_that_only_a_branch_or_a_loop_sets_is_unsure(body):
    function = from_body(body)
    assert list(exposed_reads(function.body, {*function.params})) == ["x"]


@pytest.mark.parametrize("body", SURE)
def test_a_name_that_every_way_sets_is_sure(body):
    function = from_body(body)
    assert exposed_reads(function.body, {*function.params}) == {}


def test_the_place_is_that_of_the_first_such_use():
    function = from_body("for i in range(n):\n    x = i\na[0] = x\na[1] = x")
    assert exposed_reads(function.body, {*function.params})["x"].line == function.span.line + 3


ENTERED = [
    "for j in range(3):\n    x = j\na[0] = x",
    "for j in range(5, 0, -2):\n    x = j\na[0] = x",
    "for x in range(2):\n    pass\na[0] = x",
    "for j in range(3):\n    x = j\n    if x > n:\n        break\na[0] = x",
    "for j in range(3):\n    for k in range(1, 2):\n        x = j\na[0] = x",
    "for j in range(3):\n    if j > 1:\n        x = 1\n    else:\n        x = 2\n    if n:\n        break\na[0] = x",
]
NOT_ENTERED = [
    "for j in range(0):\n    x = j\na[0] = x",
    "for j in range(3, 1):\n    x = j\na[0] = x",
    "for j in range(n):\n    x = j\na[0] = x",
    "for j in range(3):\n    if n > j:\n        break\n    x = j\na[0] = x",
    "for j in range(3):\n    if n > j:\n        continue\n    x = j\na[0] = x",
    "for j in range(3):\n    if n > j:\n        x = 1\na[0] = x",
    "for j in range(3):\n    a[0] = x\n    x = j",
    "for j in range(3):\n    for k in range(n):\n        if k > 2:\n            break\n        x = 1\na[0] = x",
    "for j in range(3):\n    while n > j:\n        x = 1\n        n -= 1\na[0] = x",
]


@pytest.mark.parametrize("body", ENTERED + SURE)
def test_scalars_of_the_first_trip_of_a_loop_that_is_entered_are_sure(body):
    function = from_body(body)
    assert not exposed_scalars(function.body, {*function.params})


@pytest.mark.parametrize("body", NOT_ENTERED + UNSURE)
def test_scalars_that_no_trip_sets_for_sure_are_unsure(body):
    function = from_body(body)
    assert list(exposed_scalars(function.body, {*function.params})) == ["x"]


@pytest.mark.parametrize("body", ENTERED + NOT_ENTERED)
def test_the_table_is_pythons(body):
    """A name that is called sure has a value in every run of the text, for any n."""
    for n in range(-1, 7):
        try:
            exec(body, {"n": n, "a": [0] * 9, "range": range})
            ran = True
        except NameError:
            ran = False
        assert ran or body in NOT_ENTERED
