"""Where a subscript is on an axis, in affine conditions: a negative one counts from the end."""

from __future__ import annotations

from collections.abc import Iterator

from orion.ir.nodes import Expr, Slice, Subscript, Var, every
from orion.sets.names import number_text
from orion.verify.events import Leaving
from orion.verify.text_values import Scope, UnprovedError, Value, all_of, any_of, compared, constant, total


def on_axis(scope: Scope, index: Expr, at: str, length: Value) -> str:
    """That an element lies where a subscript says along an axis. UnprovedError where that is not affine."""
    if not isinstance(index, Slice):
        return wrapped(scope.value(index), "==", at, length)
    width = 1 if index.step is None else constant(scope.value(index.step))
    if width is None or width < 1:
        raise UnprovedError("a slice whose step is not known, or negative")
    texts = []
    lower: Value = {} if index.lower is None else scope.value(index.lower)
    if index.lower is not None:
        texts.append(wrapped(lower, "<=", at, length))
    if index.upper is not None:
        texts.append(wrapped(scope.value(index.upper), ">", at, length))
    if width > 1:
        first = constant(lower)
        if first is None or first < 0:
            raise UnprovedError("a slice with a step whose start is not known")
        texts.append(f"({at} - {number_text(first)}) mod {number_text(width)} = 0")
    return all_of(texts)


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
