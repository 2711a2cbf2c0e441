"""Sums and differences of integers as a person would write them: numbers are added up, nothing is added to 0.

n - 1 + 1   is   n           hi - (hi - 2)   is   2
"""

from __future__ import annotations

from orion.ir.constants import as_literal, constant_value
from orion.ir.nodes import Binary, Const, Expr
from orion.ir.spans import without_spans
from orion.source import Span


def literal(value: int, span: Span) -> Expr:
    return as_literal(Const(value, span))


def plus(expr: Expr, number: int) -> Expr:
    """An expression and a number.

    >>> from orion.ir.nodes import Var
    >>> from orion.ir.printer import print_expr
    >>> from orion.ir.spans import NOWHERE
    >>> n = Var("n", NOWHERE)
    >>> [print_expr(plus(one, 1)) for one in (n, plus(n, -1), plus(n, -3), Const(4, NOWHERE))]
    ['n + 1', 'n', 'n - 2', '5']
    """
    rest, known = _apart(expr)
    if rest is None:
        return literal(known + number, expr.span)
    sum_of_both = known + number
    if not sum_of_both:
        return rest
    return Binary("+" if sum_of_both > 0 else "-", rest, Const(abs(sum_of_both), expr.span), expr.span)


def total(left: Expr, right: Expr) -> Expr:
    """The sum of two expressions."""
    for one, other in ((left, right), (right, left)):
        known = constant_value(one)
        if known is not None:
            return plus(other, known)
    return Binary("+", left, right, right.span)


def difference(left: Expr, right: Expr) -> Expr:
    """An expression less another one; a number where they are the same but for numbers.

    >>> from orion.ir.nodes import Dim
    >>> from orion.ir.printer import print_expr
    >>> from orion.ir.spans import NOWHERE
    >>> n = Dim("a", 0, NOWHERE)
    >>> print_expr(difference(plus(n, -1), Const(1, NOWHERE))), print_expr(difference(n, plus(n, -3)))
    ('a.shape[0] - 2', '3')
    """
    first, one = _apart(left)
    second, two = _apart(right)
    if second is None:
        return plus(left, -two)
    if first is not None and without_spans(first) == without_spans(second):
        return literal(one - two, left.span)
    return Binary("-", left, right, left.span)


def _apart(expr: Expr) -> tuple[Expr | None, int]:
    """An expression as the sum of something, if there is anything, and a number."""
    known = constant_value(expr)
    if known is not None:
        return None, known
    match expr:
        case Binary("+" | "-" as op, inner, Const(int(number))) if not isinstance(number, bool):
            return inner, number if op == "+" else -number
        case _:
            return expr, 0
