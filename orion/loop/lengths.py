"""Whether the rows of every operation have lengths that fit, decided from the shapes of a call before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from orion.errors import ArgumentError, describe
from orion.loop.infer import Typing
from orion.loop.ir import Assign, Binary, Call, Const, Dim, Expr, Function, Node, Subscript, Update, Var, walk
from orion.loop.printer import print_expr
from orion.loop.types import Shapes
from orion.loop.value_type import ValueType


def check_lengths(function: Function, typing: Typing, shapes: Shapes) -> None:
    """Raise `ArgumentError` where two rows of one operation have different lengths for arrays of these shapes.

    Lengths that depend on more than shapes and constants are left to the compiled loop, which checks them as it runs.
    """
    for statement in function.body:
        for node in walk(statement):
            for left, right, is_product in _meetings(node):
                _check(left, right, is_product, typing, shapes, function)


def _meetings(node: Node) -> Iterator[tuple[Expr, Expr, bool]]:
    """The pairs of operands whose rows must fit, and whether they are the factors of a dot product."""
    match node:
        case Binary("@", left, right) | Call("np.dot", (left, right)):
            yield left, right, True
        case Binary(_, left, right):
            yield left, right, False
        case Assign(Subscript() as target, value) | Update(Subscript() | Var() as target, _, value):
            yield target, value, False


def _check(
    left: Expr, right: Expr, is_product: bool, typing: Typing, shapes: Shapes, function: Function
) -> None:
    first, second = typing.of(left), typing.of(right)
    for a, b in _axes(first, second, is_product):
        lengths = known_length(a, shapes), known_length(b, shapes)
        fits = None in lengths or lengths[0] == lengths[1] or (not is_product and 1 in lengths)
        if not fits:
            raise ArgumentError(
                describe(
                    f"`{print_expr(left)}` and `{print_expr(right)}` differ in length: {lengths[0]} and {lengths[1]}",
                    span=left.span,
                    source=function.source,
                    quotes=(right.span,) if right.span.line != left.span.line else (),
                    why=f"{_shapes_in((left, right), shapes)}",
                    hint="pass arrays whose rows have the same length",
                )
            )


def _axes(
    first: ValueType, second: ValueType, is_product: bool
) -> Iterator[tuple[Expr | None, Expr | None]]:
    """The axes that must agree: of a product the last with the last but one, else axis by axis from the end."""
    if not first.rank or not second.rank:
        return
    if is_product:
        yield first.lengths[-1], second.lengths[max(0, second.rank - 2)]
    else:
        yield from zip(reversed(first.lengths), reversed(second.lengths), strict=False)


def known_length(length: Expr | None, shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """The value of a length, where shapes and constants give one.

    >>> from orion.loop.spans import NOWHERE
    >>> known_length(Binary("-", Dim("W", 1, NOWHERE), Const(1, NOWHERE), NOWHERE), {"W": (3, 5)})
    4
    """
    match length:
        case Const(int(value)):
            return value
        case Dim(array, axis) if array in shapes:
            return shapes[array][axis]
        case Binary("+" | "-" as op, left, right):
            a, b = known_length(left, shapes), known_length(right, shapes)
            return None if a is None or b is None else max(0, a + b if op == "+" else a - b)
        case _:
            return None


def _shapes_in(operands: Iterable[Expr], shapes: Shapes) -> str:
    names = [n.name for operand in operands for n in walk(operand) if isinstance(n, Var) and n.name in shapes]
    return ", ".join(f"`{name}` has shape {shapes[name]}" for name in dict.fromkeys(names))
