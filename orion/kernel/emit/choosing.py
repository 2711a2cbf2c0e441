"""Conditions on data that choose between two values for one element: both are computed, and one of them is stored.

The processor cannot foresee how such a condition turns out, and half of what it does on a guess is thrown away. A
choice between two values that are there already needs no guess, and does not stand in the way of vectors.

Where a value is made from the element before in the same row, as in the longest common subsequence, there are no
vectors, and the choice is one more step that the next trip waits for: a right guess ends that wait. Such an `if` stays.
"""

from __future__ import annotations

from orion.ir.nodes import Assign, Binary, Call, Compare, Const, Expr, Node, Stmt, Subscript, Unary, Var, holds, walk
from orion.ir.spans import without_spans

MOST_NODES = 40
"""The longest values that are computed in vain."""

OPERATORS = ("+", "-", "*")
FUNCTIONS = ("min", "max", "abs")


def choice_of_values(test: Expr, body: tuple[Stmt, ...], orelse: tuple[Stmt, ...]) -> tuple[Assign, Assign] | None:
    """The two assignments of which a condition chooses one, where both values can be computed whatever it is.

    The condition must depend on elements of arrays: one on loop variables may be what keeps subscripts in range.
    """
    match body, orelse:
        case (Assign(Subscript() as target) as first,), (Assign(Subscript() as other) as second,):
            pass
        case _:
            return None
    if not isinstance(test, Compare) or not holds(Subscript, test):
        return None
    if without_spans(target) != without_spans(other):
        return None
    values = (first.value, second.value)
    chained = any(_is_beside(node, target) for value in values for node in walk(value))
    return (first, second) if not chained and all(map(_is_harmless, values)) else None


def _is_beside(node: Node, target: Subscript) -> bool:
    """Whether this is an element so many places from the target in its row: `L[i, j - 1]` beside `L[i, j]`."""
    if not isinstance(node, Subscript) or without_spans(node.base) != without_spans(target.base):
        return False
    (*rows, here), (*own, there) = map(without_spans, node.index), map(without_spans, target.index)
    match here:
        case Binary("+" | "-", left, Const()):
            return rows == own and left == there
        case _:
            return False


def _is_harmless(value: Expr) -> bool:
    nodes = list(walk(value))
    return len(nodes) <= MOST_NODES and all(
        isinstance(node, Const | Var | Subscript | Unary)
        or (isinstance(node, Binary) and node.op in OPERATORS)
        or (isinstance(node, Call) and node.function in FUNCTIONS)
        for node in nodes
    )
