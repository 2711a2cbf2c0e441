"""Where a subscript is on an axis, in affine conditions: a negative one counts from the end."""

from __future__ import annotations

from collections.abc import Iterator

from orion.ir.nodes import Expr, Slice, Subscript, Var, every
from orion.sets.names import number_text
from orion.verify.events import Leaving
from orion.verify.text_values import Scope, UnprovedError, Value, all_of, any_of, compared, constant, total


def on_axis(scope: Scope, index: Expr, at: str, length: Value) -> tuple[list[str], list[Expr]]:
    """Conditions on the elements of an axis that a subscript or a slice stands for, and the parts of it that have no
    affine value: conditions by these are left out, so that more elements meet the others."""
    if not isinstance(index, Slice):
        place = affine(scope, index)
        return ([], [index]) if place is None else ([wrapped(place, "==", at, length)], [])
    width = 1
    if index.step is not None:
        width = _constant(scope, index.step) or 0
        if width < 1:
            return [], [index.step]
    texts, unknown = list[str](), list[Expr]()
    for op, end in (("<=", index.lower), (">", index.upper)):
        place = None if end is None else affine(scope, end)
        if place is not None:
            texts.append(wrapped(place, op, at, length))
        elif end is not None:
            unknown.append(end)
    if width != 1:
        first = 0 if index.lower is None else _constant(scope, index.lower)
        if first is not None and first >= 0:
            texts.append(f"({at} - {number_text(first)}) mod {number_text(width)} = 0")
        elif index.lower is not None:
            unknown.append(index.lower)
    return texts, unknown


def affine(scope: Scope, expr: Expr) -> Value | None:
    """The value of an expression; None where it is not affine."""
    try:
        return scope.value(expr)
    except UnprovedError:
        return None


def _constant(scope: Scope, expr: Expr) -> int | None:
    value = affine(scope, expr)
    return None if value is None else constant(value)


def leaving(scope: Scope, index: Expr, axis: int, length: Value) -> Iterator[Leaving]:
    """The conditions under which a subscript is outside of its axis, and under which it counts from the end."""
    if not isinstance(index, Slice):
        at = scope.value(index)
        outside = any_of([compared(at, ">=", length), compared(total(at, length), "<", {})])
        yield Leaving(axis, outside, compared(at, "<", {}))


def is_of_data(scope: Scope, expr: Expr) -> bool:
    """Whether an expression may have any integer as its value: elements of arrays are in it, or names that got such."""
    return any(isinstance(part, Subscript) or part.name in scope.of_data for part in every((Var, Subscript), expr))


def wrapped(value: Value, op: str, name: str, length: Value) -> str:
    """That an element lies at, before or from a subscript on, which counts from the end where it is negative."""
    at: Value = {name: 1}
    plain = constant(value)
    if plain is not None:
        return compared(value if plain >= 0 else total(value, length), op, at)
    below = all_of([compared(value, "<", {}), compared(total(value, length), op, at)])
    return any_of([all_of([compared(value, ">=", {}), compared(value, op, at)]), below])
