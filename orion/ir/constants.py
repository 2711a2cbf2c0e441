"""Integers that are written as expressions of numbers alone."""

from __future__ import annotations

from orion.ir.nodes import Binary, Const, Expr, Unary

BITS = 64
"""No integer is shifted or raised by more: it would not fit."""


def fold(op: str, left: int, right: int) -> int | None:
    """The value of an operation on integers, as Python computes it; None where it has none that is an integer.

    >>> fold("//", -7, 2), fold("%", -7, 2), fold("//", 7, 0)
    (-4, 1, None)
    """
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//" if right:
            return left // right
        case "%" if right:
            return left % right
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right
        case ">>" if right >= 0:
            return left >> right
        case "<<" if 0 <= right < BITS:
            return left << right
        case "**" if 0 <= right < BITS:
            return int(left**right)
        case _:
            return None


def constant_value(expr: Expr) -> int | None:
    """The value of an expression of integers; None of one with names, or of other types.

    >>> from orion.ir.spans import NOWHERE
    >>> one = Const(1, NOWHERE)
    >>> constant_value(Unary("-", Binary("-", one, Const(3, NOWHERE), NOWHERE), NOWHERE))
    2
    """
    match expr:
        case Const(int(value)) if not isinstance(value, bool):
            return value
        case Unary("-" | "+" as op, operand):
            found = constant_value(operand)
            return found if found is None or op == "+" else -found
        case Binary(op, left, right):
            one, other = constant_value(left), constant_value(right)
            return None if one is None or other is None else fold(op, one, other)
        case _:
            return None


def as_literal(expr: Expr) -> Expr:
    """The expression, or the number that it is, written as a literal."""
    value = constant_value(expr)
    if value is None:
        return expr
    return Const(value, expr.span) if value >= 0 else Unary("-", Const(-value, expr.span), expr.span)
