"""Conditions on data that choose between two values for one element: both are computed, and one of them is stored.

The processor cannot foresee how such a condition turns out, and half of what it does on a guess is thrown away. A
choice between two values that are there already needs no guess, and does not stand in the way of vectors.
"""

from __future__ import annotations

from orion.loop.ir import Assign, Binary, Call, Compare, Const, Expr, Stmt, Subscript, Unary, Var, walk
from orion.loop.spans import without_spans

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
    if not isinstance(test, Compare) or not any(isinstance(node, Subscript) for node in walk(test)):
        return None
    if without_spans(target) != without_spans(other):
        return None
    return (first, second) if _is_harmless(first.value) and _is_harmless(second.value) else None


def _is_harmless(value: Expr) -> bool:
    nodes = list(walk(value))
    return len(nodes) <= MOST_NODES and all(
        isinstance(node, Const | Var | Subscript | Unary)
        or (isinstance(node, Binary) and node.op in OPERATORS)
        or (isinstance(node, Call) and node.function in FUNCTIONS)
        for node in nodes
    )
