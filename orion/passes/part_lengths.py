"""Lengths of values that are made of parts of arrays, where their types know none: `a[:k].copy()`, `a[0:2] + b[1:3]`.

A slice from `l` to `u` of an axis of n elements has max(0, end(u) - end(l)) of them, where end(b) is b within 0 and n,
and n + b within these if b is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from orion.ir.constants import constant_value
from orion.ir.nodes import Binary, Call, Compare, Const, Dim, Expr, Slice, Subscript, Unary, Var
from orion.ir.spans import NOWHERE, without_spans
from orion.typing.expression_types import Typing
from orion.typing.functions import is_elementwise
from orion.typing.value_type import ONE

Lengths = tuple[Expr | None, ...]
ZERO = Const(0, NOWHERE)


def leaf_lengths(value: Expr, typing: Typing, of_name: Callable[[str], Lengths | None]) -> Iterator[Lengths]:
    """The lengths of the arrays and parts that a value is computed of, element by element; `of_name` gives those of a
    name, None of one that is left out. Lengths that nobody knows are None."""
    kind = typing.of(value)
    match value:
        case Subscript(base, index) if kind.rank and not any(
            typing.of(p).rank for p in index if not isinstance(p, Slice)
        ):
            own = of_name(base.name) or typing.of(base).lengths
            extents = [Dim(base.name, axis, NOWHERE) if length is None else length for axis, length in enumerate(own)]
            parts = (*index, *(Slice(None, None, None, NOWHERE) for _ in extents[len(index) :]))
            pairs = zip(parts, extents, strict=True)
            yield tuple(slice_length(part, extent) for part, extent in pairs if isinstance(part, Slice))
        case Var(name) if kind.rank:
            found = of_name(name)
            if found is not None:
                yield found
        case Unary(_, operand):
            yield from leaf_lengths(operand, typing, of_name)
        case Binary(op, left, right) if op != "@":
            yield from leaf_lengths(left, typing, of_name)
            yield from leaf_lengths(right, typing, of_name)
        case Compare(_, operands):
            yield from (found for one in operands for found in leaf_lengths(one, typing, of_name))
        case Call(".copy" | "np.copy" | ".astype", (inner, *_)):
            yield from leaf_lengths(inner, typing, of_name)
        case Call(function, arguments) if is_elementwise(function):
            yield from (found for one in arguments for found in leaf_lengths(one, typing, of_name))
        case _ if kind.rank:
            yield kind.lengths


def slice_length(part: Slice, extent: Expr) -> Expr | None:
    """How long a slice of an axis is; None where its step is unknown, or negative and not -1 of the whole axis.

    >>> from orion.ir.printer import print_expr
    >>> print_expr(slice_length(Slice(None, Const(2, NOWHERE), None, NOWHERE), Dim("a", 0, NOWHERE)))
    'min(2, a.shape[0])'
    """
    if part.lower is part.upper is None and (part.step is None or constant_value(part.step) in (1, -1)):
        return extent
    step = 1 if part.step is None else constant_value(part.step) or 0
    if step < 1:
        return None
    first = ZERO if part.lower is None else _end(part.lower, extent)
    last = extent if part.upper is None else _end(part.upper, extent)
    length = last if first == ZERO else _call("max", ZERO, Binary("-", last, first, NOWHERE))
    if step > 1:
        rounded = Binary("+", length, Const(step - 1, NOWHERE), NOWHERE)
        length = Binary("//", rounded, Const(step, NOWHERE), NOWHERE)
    return without_spans(length)


def _end(bound: Expr, extent: Expr) -> Expr:
    """A bound of a slice as a place within the axis."""
    value = constant_value(bound)
    if value == 0:
        return ZERO
    if value is not None and value > 0:
        return _call("min", bound, extent)
    if value is not None:
        return _call("max", ZERO, Binary("+", extent, bound, NOWHERE))
    is_negative = _call("min", ONE, _call("max", ZERO, Unary("-", bound, NOWHERE)))
    from_start = Binary("+", bound, Binary("*", extent, is_negative, NOWHERE), NOWHERE)
    return _call("min", extent, _call("max", ZERO, from_start))


def _call(function: str, *arguments: Expr) -> Expr:
    return Call(function, arguments, NOWHERE)
