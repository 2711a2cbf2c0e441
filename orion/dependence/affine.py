"""Which expressions are affine, and their isl text.

Affinity is decided here, on the loop language, before isl sees anything: isl's parser knows no source positions, and a
refusal must name the user's expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orion.dependence.names import extent_name, isl_name
from orion.loop.ir import Binary, Const, Count, Dim, Expr, Subscript, Unary, Var, walk
from orion.loop.printer import print_expr
from orion.loop.source import Span


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine expression over loop variables and integer parameters, as isl text.

    `names` are the isl names that occur in it; `value` is its value where none do.
    """

    text: str
    names: frozenset[str]
    value: int | None = None


@dataclass(frozen=True, slots=True)
class NotAffine:
    """Why an expression is not affine: a reason code of `orion.reasons`, a clause, and the place."""

    code: str
    why: str
    span: Span


Form = Affine | NotAffine
Scope = Mapping[str, Form]
"""What each integer scalar in reach stands for: itself (a loop variable or parameter), an affine expression that was
assigned to it, or something unknown."""


def affine_form(expr: Expr, scope: Scope) -> Form:
    """The affine form of an integer expression, or why it has none.

    Affine are: integer constants, names whose form in `scope` is affine, array extents, sums, differences, products
    with a constant, and floor division and modulo by a positive constant.
    """
    match expr:
        case Const(value=bool()):
            return NotAffine("ORN103", "a truth value is used as a subscript", expr.span)
        case Const(value=int(value)):
            return Affine(str(value), frozenset(), value)
        case Var(name):
            unknown = NotAffine("ORN103", f"`{name}` is not an integer known before the loop", expr.span)
            return scope.get(name) or unknown
        case Dim(array, axis):
            name = extent_name(array, axis)
            return Affine(name, frozenset({name}))
        case Unary("-", operand):
            form = affine_form(operand, scope)
            return _product(Affine("-1", frozenset(), -1), form) if isinstance(form, Affine) else form
        case Binary(op, left, right):
            return _binary(op, affine_form(left, scope), affine_form(right, scope), expr)
        case _:
            return _refusal(expr)


def _binary(op: str, left: Form, right: Form, expr: Expr) -> Form:
    if isinstance(left, NotAffine):
        return left
    if isinstance(right, NotAffine):
        return right
    names = left.names | right.names
    if left.value is not None and right.value is not None:
        value = _fold(op, left.value, right.value)
        if value is not None:
            return Affine(str(value), frozenset(), value)
    elif op in ("+", "-"):
        return Affine(f"({left.text} {op} {right.text})", names)
    elif op == "*" and (left.value is not None or right.value is not None):
        return _product(left, right)
    elif op in ("//", "%") and right.value is not None and right.value > 0:
        text = f"floor(({left.text})/{right.value})" if op == "//" else f"(({left.text}) mod {right.value})"
        return Affine(text, names)
    return NotAffine("ORN103", f"`{print_expr(expr)}` is not affine", expr.span)


def _product(left: Affine, right: Affine) -> Affine:
    value = left.value * right.value if left.value is not None and right.value is not None else None
    return Affine(f"({left.text} * {right.text})", left.names | right.names, value)


def _fold(op: str, left: int, right: int) -> int | None:
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
        case _:
            return None


def _refusal(expr: Expr) -> NotAffine:
    text = print_expr(expr)
    for node in walk(expr):
        if isinstance(node, Subscript):
            return NotAffine("ORN102", f"`{text}` is read from an array when the loop runs", expr.span)
    if isinstance(expr, Count):
        return NotAffine("ORN103", f"`{text}` is a product of extents", expr.span)
    return NotAffine("ORN103", f"`{text}` is not affine", expr.span)


def parameter(name: str) -> Affine:
    """The form of an integer that keeps its value while the loop runs."""
    text = isl_name(name)
    return Affine(text, frozenset({text}))
