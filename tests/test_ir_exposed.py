"""Which names may be read before they have a value."""

from __future__ import annotations

import pytest

from orion.ir.exposed import exposed_reads
from tests.loop_text import from_body

UNSURE = [
    "for i in range(n):\n    x = i\na[0] = x",
    "for i in range(n):\n    if i > 3:\n        x = i\n    a[i] = x",
    "for i in range(n):\n    if i > 0:\n        a[i] = x\n    x = i",
    "for i in range(n):\n    for x in range(i):\n        pass\n    a[i] = x",
    "for k, x in a:\n    pass\na[0] = x",
    "while n > 0:\n    n -= 1\n    x = n\na[0] = x",
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
