"""Whether the rows of every operation have lengths that fit, decided from the shapes of a call before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from orion.errors import ArgumentError, describe
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Const,
    Dim,
    Expr,
    Node,
    Slice,
    Subscript,
    Unary,
    Update,
    Var,
    every,
)  # fmt: skip
from orion.ir.printer import print_expr
from orion.ir.types import Shapes
from orion.source import SourceText
from orion.typing.infer import Typing
from orion.typing.value_type import literal_limits


def check_lengths(nodes: Iterable[Node], typing: Typing, shapes: Shapes, source: SourceText) -> None:
    """Raise `ArgumentError` where two rows of one operation have different lengths for arrays of these shapes; `nodes`
    are what may be evaluated.

    Lengths that depend on more than shapes and constants are left to the compiled loop, which checks them as it runs.
    """
    for node in nodes:
        for left, right, kind in _barriers(node):
            _check(left, right, kind, typing, shapes, source)


def check_unpacked(function: Function, nodes: Iterable[Node], shapes: Shapes) -> None:
    """Raise `ArgumentError` where a row that may be taken apart has more or fewer elements than there are targets."""
    reached = {node.span for node in nodes if isinstance(node, Assign)} if function.unpacked else set()
    for one in function.unpacked:
        length = known_length(one.length, shapes)
        if length is not None and length != one.count and one.span in reached:
            what = f"a row of {length} elements is given to {one.count} names"
            why = f"a row has as many elements as names: `{print_expr(one.length)}` is {length}"
            hint = f"pass an array whose rows have {one.count} elements, or name all of them"
            if one.is_written:
                what = f"{one.count} values are written to a row of {length} elements"
                why = f"a row takes as many values as it has elements: `{print_expr(one.length)}` is {length}"
                hint = f"pass an array whose rows have {one.count} elements"
            raise ArgumentError(describe(what, span=one.span, source=function.source, why=why, hint=hint))


PRODUCT, OPERANDS, WRITTEN = "product", "operands", "written"
"""How two rows meet: as factors of a dot product, element by element, or one written to the other. Of the last two a
single element stands for as many as the other has; what is written stays as long as it is."""


def _barriers(node: Node) -> Iterator[tuple[Expr, Expr, str]]:
    """The pairs of operands whose rows must fit, and how they meet."""
    match node:
        case Binary("@", left, right) | Call("np.dot", (left, right)):
            yield left, right, PRODUCT
        case Binary(_, left, right):
            yield left, right, OPERANDS
        case Assign(Subscript() as target, value) | Update(Subscript() | Var() as target, _, value):
            yield target, value, WRITTEN


def _check(left: Expr, right: Expr, kind: str, typing: Typing, shapes: Shapes, source: SourceText) -> None:
    first, second = known_lengths(left, typing, shapes), known_lengths(right, typing, shapes)
    for one, other in _axes(first, second, kind == PRODUCT):
        if one is None or other is None or one == other or _stretches(one, other, kind):
            continue
        alone = kind == WRITTEN and one == 1
        why = "NumPy repeats a single element that is read, not one that is written; " if alone else ""
        raise ArgumentError(
            describe(
                f"`{_as_written(left)}` and `{_as_written(right)}` differ in length: {one} and {other}",
                span=left.span,
                source=source,
                quotes=(right.span,) if right.span.line != left.span.line else (),
                why=f"{why}{_shapes_in((left, right), shapes)}",
                hint="pass arrays whose rows have the same length",
            )
        )


def _stretches(one: int, other: int, kind: str) -> bool:
    """Whether a row of one element is repeated for each of the other."""
    return other == 1 if kind == WRITTEN else kind == OPERANDS and 1 in (one, other)


def _as_written(expr: Expr) -> str:
    """The text of an operand: `g` where an operator in place on the whole array is taken for one on `g[:]`."""
    if isinstance(expr, Subscript) and expr.span == expr.base.span:
        return expr.base.name
    return print_expr(expr)


def _axes(
    first: Sequence[int | None], second: Sequence[int | None], is_product: bool
) -> Iterator[tuple[int | None, int | None]]:
    """The axes that must agree: of a product the last with the last but one, else axis by axis from the end."""
    if not first or not second:
        return
    if is_product:
        yield first[-1], second[max(0, len(second) - 2)]
    else:
        yield from zip(reversed(first), reversed(second), strict=False)


def known_lengths(expr: Expr, typing: Typing, shapes: Shapes) -> list[int | None]:
    """The lengths of the axes of an expression, as far as shapes and constants give them."""
    match expr:
        case Subscript(base, index):
            extents = [known_length(length, shapes) for length in typing.of(base).lengths]
            parts = [*index, *(None for _ in extents[len(index) :])]
            pairs = zip(parts, extents, strict=True)
            return [_of_slice(part, extent) for part, extent in pairs if part is None or isinstance(part, Slice)]
        case Unary("-" | "+", operand):
            return known_lengths(operand, typing, shapes)
        case Binary("+" | "-" | "*" | "/", left, right):
            sides = known_lengths(left, typing, shapes), known_lengths(right, typing, shapes)
            return [_broadcast(one, other) for one, other in zip_longest(*map(reversed, sides), fillvalue=1)][::-1]
        case _:
            return [known_length(length, shapes) for length in typing.of(expr).lengths]


def _broadcast(one: int | None, other: int | None) -> int | None:
    return other if one == 1 else one if other == 1 or one == other else None


def _of_slice(part: Slice | None, extent: int | None) -> int | None:
    if part is None or extent is None:
        return extent
    bounds = [None if bound is None else literal_limits(bound) for bound in (part.lower, part.upper, part.step)]
    given = [bound is not None for bound in (part.lower, part.upper, part.step)]
    if any(is_given and bound is None for is_given, bound in zip(given, bounds, strict=True)):
        return None
    lower, upper, step = (None if bound is None else bound[0] for bound in bounds)
    return None if step == 0 else len(range(*slice(lower, upper, step).indices(extent)))


def known_length(length: Expr | None, shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """The value of a length, where shapes and constants give one.

    >>> from orion.ir.spans import NOWHERE
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
    names = [n.name for n in every(Var, *operands) if n.name in shapes]
    return ", ".join(f"`{name}` has shape {shapes[name]}" for name in dict.fromkeys(names))
