"""Integers of 64 bits: whether operations on them, in subscripts, bounds and tests, stay within 64 bits at a call.

The analysis computes without bounds, as Python does; machine code and NumPy's scalars do not, and Numba tells LLVM that
sums with a sign never wrap around. So a call in which they may leave 64 bits is refused, which is done in
`orion.typing.integers_at_call`. Only arguments near 2**63, or such constants, can make them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orion.ir.function import Function
from orion.ir.nodes import Binary, Expr, For, Range, Stmt, Unary, children, every
from orion.ir.types import Shapes
from orion.typing.expression_types import Typing
from orion.typing.narrow import ANY, Marker, is_narrow, is_within, result_limits
from orion.typing.value_type import Limits

USUAL: Limits = (-(2**57), 2**57)
"""What integers are taken to be that are known when the loop runs only: elements, and what is counted."""

MOST_BITS = 64
"""Exponents and shifts from which on nothing but 0, 1 and -1 is held by 64 bits."""


def leaving_64_bits(function: Function, typing: Typing, shapes: Shapes, limits: Mapping[str, Limits]) -> Expr | None:
    """The first operation on integers of 64 bits in a subscript, a bound or a test that may leave them at these sizes
    and with integer arguments between these limits; None where there is none."""
    marker = _Marker(function, typing, shapes, limits)
    marker.whole()
    return next(iter(marker.leaving), None)


class _Marker(Marker):
    """One pass over the function, which looks for operations on integers of 64 bits that leave them. `leaving` are
    those found."""

    __slots__ = ("leaving",)
    length_limits = (0, USUAL[1])

    def __post_init__(self) -> None:
        super().__post_init__()
        self.leaving: list[Expr] = []

    def statement(self, statement: Stmt) -> Stmt:
        match statement:
            case For(Range() as space) if self.is_empty(space):
                return statement
            case _:
                return super().statement(statement)

    def range(self, space: Range) -> Range:
        found = super().range(space)
        if USUAL in (self.interval(space.start), self.interval(space.stop)):
            self.known.pop(space.var, None)
        return found

    def is_empty(self, space: Range) -> bool:
        """Whether a range is sure to have no values: its body is not run, whatever its operations come to."""
        start, stop, step = (self.interval(bound) for bound in (space.start, space.stop, space.step))
        is_first_past = (step[0] > 0 and stop[1] <= start[0]) or (step[1] < 0 and start[1] <= stop[0])
        bounds_are_known = not any(self.leaves(bound) for bound in (space.start, space.stop, space.step))
        return is_first_past and bounds_are_known

    def leaves(self, bound: Expr) -> bool:
        """Whether a bound itself may leave 64 bits."""
        count = len(self.leaving)
        self.bound(bound)
        return len(self.leaving) > count

    def marked(self, expr: Expr, to_python: bool = True) -> Expr:
        """An expression in place; what is computed for a function, a comparison or a quotient is in place with it."""
        for part in every((Binary, Unary), expr):
            if self.is_operation(part) and not self.computed(part)[1]:
                self.leaving.append(part)
                break
        return expr

    def is_operation(self, expr: Binary | Unary) -> bool:
        """Whether it is one on integers of 64 bits, also on elements of arrays, which no analysis looks into."""
        return self.is_integer(expr) and not any(is_narrow(self.typing.of(part).dtype) for part in _operands(expr))

    def interval(self, expr: Expr) -> Limits:
        return _usual(super().interval(expr))

    def any_of(self, expr: Expr) -> Limits:
        room = self.room(expr)
        return room if is_within(room, USUAL) else USUAL

    def result(self, expr: Binary | Unary, parts: list[tuple[Limits, bool]]) -> tuple[Limits, bool]:
        """Of unknown values come unknown ones, which are far from 2**63 unless something else in them is not. Narrow
        integers may wrap around, also those that are one of several values: what comes of that is as narrow."""
        room, kind = self.room(expr), self.typing.of(expr)
        limits, are_exact = [_usual(one) for one, _ in parts], all(is_exact for _, is_exact in parts)
        found = result_limits(expr, limits) or _powers(expr, limits)
        if found is None:  # of operands that have left 64 bits comes anything, whatever is done with them
            return self.any_of(expr), are_exact
        if is_narrow(kind.dtype):
            return found if is_within(found, room) else room, are_exact
        if USUAL in limits and isinstance(expr, Binary) and expr.op == "*":
            return USUAL, are_exact
        fits = is_within(found, room) and (kind.weak or all(is_within(one, room) for one in limits))
        return USUAL if USUAL in limits else found if is_within(found, room) else room, are_exact and fits


def _operands(expr: Expr) -> Iterator[Expr]:
    """What the operations of an expression are on: names, elements, lengths, numbers, results of functions."""
    if isinstance(expr, Binary | Unary):
        for part in children(expr):
            yield from _operands(part)  # type: ignore[arg-type]
    else:
        yield expr


def _powers(expr: Expr, parts: list[Limits]) -> Limits | None:
    """The interval of a power or a shift; None for other operations, and where nothing is known of an operand.

    >>> from orion.ir.nodes import Const
    >>> from orion.ir.spans import NOWHERE
    >>> two, k = Const(2, NOWHERE), Const(3, NOWHERE)
    >>> _powers(Binary("**", two, k, NOWHERE), [(2, 2), (0, 3)])
    (1, 8)
    >>> _powers(Binary("<<", two, k, NOWHERE), [(-2, 2), (1, 3)])
    (-16, 16)
    """
    match expr, parts:
        case Binary("**" | "<<" as op, _, _), [(a, b), (c, d)] if USUAL not in parts and d >= 0:
            exponents = max(c, 0), min(d, MOST_BITS)
            ends = [base**e if op == "**" else base << e for base in (a, b) for e in exponents]
            farthest = max(map(abs, ends))
            return (-farthest, farthest) if a < 0 else (min(ends), farthest)
        case _:
            return None


def _usual(limits: Limits) -> Limits:
    """The limits of a value; those of an unknown one where they are all that a dtype of 64 bits holds."""
    return limits if limits != ANY and is_within(limits, ANY) else USUAL
