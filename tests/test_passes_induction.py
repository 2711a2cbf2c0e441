"""Integers that grow by a constant in every trip: what they are replaced by, and what stays as it is."""

import textwrap

import pytest

from orion.ir.printer import print_expr, print_function
from orion.ir.types import ArrayType, ScalarType
from orion.passes.induction import close_inductions
from orion.typing.infer import infer_types
from tests.loop_text import from_body

TYPES = {
    "a": ArrayType("float64", 1),
    "b": ArrayType("float64", 1),
    "n": ScalarType("int64", weak=True),
    "m": ScalarType("int64", weak=True),
    "k": ScalarType("int64", weak=True),
    "x": ScalarType("float64", weak=True),
}


def closed(body: str) -> str:
    function = from_body(body, ", ".join(TYPES))
    text = print_function(close_inductions(function, infer_types(function, TYPES)))
    return textwrap.dedent(text.partition("\n")[2]).strip()


def plain(body: str) -> str:
    return textwrap.dedent(print_function(from_body(body, ", ".join(TYPES))).partition("\n")[2]).strip()


TABLE = {
    "from an argument, needed after": (
        """
        for i in range(n):
            b[k] = a[i]
            k += 2
        return k
        """,
        """
        for i in range(n):
            b[k + 2 * i] = a[i]
        k = k + 2 * max(0, n)
        return k
        """,
    ),
    "from a constant, not needed after": (
        """
        k = 3
        for i in range(n):
            b[k] = a[i]
            k = 1 + k
        """,
        """
        for i in range(n):
            b[i + 3] = a[i]
        """,
    ),
    "read before and after it grows, twice in a trip": (
        """
        k = 0
        for i in range(n):
            b[k] = a[i]
            k = k + 1
            b[k] = a[i]
            k += 2
            if a[i] > x:
                b[k] = 0.0
        """,
        """
        for i in range(n):
            b[3 * i] = a[i]
            b[3 * i + 1] = a[i]
            if a[i] > x:
                b[3 * i + 3] = 0.0
        """,
    ),
    "downwards, from an expression": (
        """
        k = n - 1
        for i in range(n):
            b[k] = a[i]
            k -= 1
        """,
        """
        for i in range(n):
            b[n - 1 + -i] = a[i]
        """,
    ),
    "a start and a step of the loop": (
        """
        k = 0
        for i in range(m, n, 3):
            b[k] = a[i]
            k += 1
        return k
        """,
        """
        k = 0
        for i in range(m, n, 3):
            b[(i - m) // 3] = a[i]
        k = max(0, -((m - n) // 3))
        return k
        """,
    ),
    "a loop that goes downwards": (
        """
        k = 0
        for i in range(n, 0, -2):
            b[k] = a[i]
            k += 4
            b[k] = 0.0
        return k
        """,
        """
        k = 0
        for i in range(n, 0, -2):
            b[-2 * (i - n)] = a[i]
            b[-2 * (i - n) + 4] = 0.0
        k = 4 * max(0, -((n - 0) // -2))
        return k
        """,
    ),
    "a step that does not divide, downwards": (
        """
        k = 0
        for i in range(n, 0, -2):
            b[k] = a[i]
            k += 1
        """,
        """
        for i in range(n, 0, -2):
            b[(n - i) // 2] = a[i]
        """,
    ),
    "an inner loop with a known number of trips": (
        """
        k = 0
        for i in range(n):
            for j in range(4):
                b[k] = a[j]
                k += 1
            b[k] = 0.0
            k += 1
        """,
        """
        for i in range(n):
            for j in range(4):
                b[5 * i + j] = a[j]
            b[5 * i + 4] = 0.0
        """,
    ),
    "an inner loop with any number of trips": (
        """
        for i in range(n):
            for j in range(m):
                b[k] = a[j]
                k += 1
        """,
        """
        for i in range(n):
            for j in range(m):
                b[k + j] = a[j]
            k = k + max(0, m)
        """,
    ),
    "begun anew for each row": (
        """
        for i in range(n):
            k = 10 * i
            for j in range(m):
                b[k] = a[j]
                k += 2
        """,
        """
        for i in range(n):
            for j in range(m):
                b[10 * i + 2 * j] = a[j]
        """,
    ),
    "both sides of a branch begin with it": (
        """
        k = -1
        for i in range(n):
            if a[i] > x:
                k += 1
                b[k] = 1.0
            else:
                k = k + 1
                b[k] = 0.0
        """,
        """
        for i in range(n):
            if a[i] > x:
                b[i] = 1.0
            else:
                b[i] = 0.0
        """,
    ),
    "by way of another name": (
        """
        k = -1
        for i in range(n):
            m = k + 1
            b[m] = a[i]
            k = m + 1
        """,
        """
        for i in range(n):
            m = 2 * i - 1 + 1
            b[m] = a[i]
        """,
    ),
    "a step that is an argument, where nothing is stored by it": (
        """
        k = 0
        k += m
        for i in range(1, n):
            b[i] = a[k]
            k += m
        return k
        """,
        """
        k = 0
        k += m
        for i in range(1, n):
            b[i] = a[k + m * (i - 1)]
        k = k + m * max(0, n - 1)
        return k
        """,
    ),
    "two nested loops, where nothing is stored by it": (
        """
        k = 0
        for i in range(n):
            for j in range(1, m):
                b[j] = a[k]
                k += 1
            k += 1
        """,
        """
        for i in range(n):
            for j in range(1, m):
                b[j] = a[(max(0, m - 1) + 1) * i + (j - 1)]
        """,
    ),
    "a float that grows by whole numbers": (
        """
        x = 0.0
        for i in range(n):
            x += 2.0
            b[i] = x * a[i]
        return x
        """,
        """
        x = 0.0
        for i in range(n):
            b[i] = float(2 * i + 2) * a[i]
        x = float(2 * max(0, n))
        return x
        """,
    ),
    "two at once, one from the other": (
        """
        k = n
        m = k
        for i in range(9):
            b[k] = a[m]
            k += 1
            m += 2
        return k + m
        """,
        """
        k = n
        m = k
        for i in range(9):
            b[n + i] = a[m + 2 * i]
        k = n + 9
        m = m + 18
        return k + m
        """,
    ),
}


@pytest.mark.parametrize(("before", "after"), TABLE.values(), ids=TABLE)
def test_it_is_replaced_by_its_value(before, after):
    assert closed(before) == textwrap.dedent(after).strip()


UNCHANGED = {
    "under a condition": "for i in range(n):\n    if a[i] > x:\n        b[k] = a[i]\n        k += 1",
    "a trip may end early": "for i in range(n):\n    b[k] = a[i]\n    if a[i] > x:\n        continue\n    k += 1",
    "the loop may end early": "for i in range(n):\n    b[k] = a[i]\n    if a[i] > x:\n        break\n    k += 1",
    "by the loop's own variable": "for i in range(n):\n    if k > 3:\n        x = a[i]\n    k += i",
    "by a product with the loop's own variable": "for i in range(n):\n    x = a[k]\n    k += 2 * i",
    "a float": "for i in range(n):\n    b[i] = x\n    x += 0.5",
    "a step that is an argument": "for i in range(n):\n    b[k] = a[i]\n    k += m",
    "a float that may begin with any": "for i in range(n):\n    b[i] = x\n    x += 2.0",
    "a float that begins with a fraction": "x = 0.5\nfor i in range(n):\n    b[i] = x\n    x += 2.0",
    "a float that grows by fractions": "x = 1.0\nfor i in range(n):\n    b[i] = x\n    x += 0.1",
    "a float that may pass 53 bits": "x = 1.0\nfor i in range(n):\n    b[i] = x\n    x += 1e9",
    "only one side of a branch": (
        "for i in range(n):\n    if x:\n        k += 1\n        x = a[k]\n    else:\n        x = 1.0"
    ),
    "by another number": (
        "for i in range(n):\n    if x:\n        k += 1\n        x = a[k]\n    else:\n        k += 2\n        x = a[k]"
    ),
    "a test of it": (
        "for i in range(n):\n    if k:\n        k += 1\n        x = a[k]\n    else:\n        k += 1\n        x = a[k]"
    ),
    "a step that the loop changes": "for i in range(n):\n    x = a[k]\n    k += m\n    m = i",
    "a step that is a float": "for i in range(n):\n    b[i] = x\n    x = x + 1",
    "set elsewhere too": "for i in range(n):\n    b[k] = a[i]\n    k += 1\n    if a[i] > x:\n        k = 0",
    "it is a loop variable too": "for i in range(n):\n    b[k] = x\n    k += 1\n    for k in range(2):\n        x += k",
    "the loop variable is assigned": "for i in range(n):\n    b[k] = a[i]\n    k += 1\n    i = 0",
    "a bound is assigned": "for i in range(m, n):\n    b[k] = a[i]\n    k += 1\n    m = 0",
    "the step of the loop is an argument": "for i in range(0, n, m):\n    b[k] = a[i]\n    k += 1",
    "a bound is read from an array": "for i in range(int(a[0]), n):\n    b[k] = a[i]\n    k += 1",
    "a reduction": "for i in range(n):\n    k += 2\nreturn k",
    "in a while loop": "while k < n:\n    b[k] = 0.0\n    k += 1",
    "multiplied": "for i in range(n):\n    b[k] = a[i]\n    k *= 2",
}


@pytest.mark.parametrize("body", UNCHANGED.values(), ids=UNCHANGED)
def test_it_stays_as_it_is(body):
    assert closed(body) == plain(body)


def test_what_was_replaced_is_noted():
    function = from_body("for i in range(n):\n    b[k] = a[i]\n    k -= 2\n    b[k] = 0.0", ", ".join(TYPES))
    (found,) = close_inductions(function, infer_types(function, TYPES)).inductions
    assert (found.name, print_expr(found.step), found.loop, found.span.line) == ("k", "-2", 0, 4)
