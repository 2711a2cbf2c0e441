"""Between which numbers integers lie: which ranges are sure to be no wider than 63 bits say, which divisors are not 0,
and which subscripts are inside of their arrays though no set of isl's says so.

Numba counts the trips of a range as the difference of its bounds, in 64 bits with a sign. Bounds that are lengths,
constants, arguments of a call, narrow integers and variables of loops between such are never so far apart, and are not
looked at again when the loop runs.
"""

from __future__ import annotations

from itertools import chain
from math import prod

from orion.ir.assigned import ASSIGNING, assigned_by
from orion.ir.nodes import (
    INTEGER,
    Binary,
    Call,
    Choose,
    Const,
    Count,
    Dim,
    Expr,
    For,
    Range,
    Slice,
    Subscript,
    Unary,
    Var,
    every,
)  # fmt: skip
from orion.ir.program import OfNewOrder
from orion.ir.spans import without_spans
from orion.kernel.emit.facts import LoopFacts
from orion.typing.expression_types import UntypedNameError
from orion.typing.narrow import ANY, result_limits
from orion.typing.value_type import Limits, dtype_limits

LENGTH: Limits = (0, 2**57)
"""Elements of an array in memory: addresses have fewer bits."""

BOX: Limits = (-(2**60), 2**60)
"""The limits of a box of a loop in another order: the ranges that it is cut from have been looked at by then."""


class Intervals:
    """What is known of the integers of one loop. Variables of loops are known once `note` has seen their range."""

    def __init__(self, facts: LoopFacts) -> None:
        self.facts = facts
        self.loops: dict[str, Limits] = dict.fromkeys(chain.from_iterable(facts.nest.limits), BOX)
        elements = facts.nest.elements
        for axis, key in enumerate(elements.keys if elements else ()):
            self.loops[key] = (0, facts.shapes[elements.array][axis]) if elements else LENGTH
        nodes = list(every(ASSIGNING, *facts.nest.body))
        self.changed = {name for node in nodes if not isinstance(node, For) for name in assigned_by(node)}
        self.unknown = {*self.changed, *facts.nest.dims, *(name for node in nodes for name in assigned_by(node))}

    def is_narrow(self, space: Range) -> bool:
        """Whether the bounds of a range are sure to be less than 2**63 apart. Loops in another order are cut from
        ranges of the source, whose bounds are looked at before anything runs."""
        if isinstance(self.facts.nest.form, OfNewOrder):
            return True
        more = _more_than(space.start, space.stop)
        if more is not None:
            return self.of(more) is not None
        start, stop = self.of(space.start) or ANY, self.of(space.stop) or ANY
        return ANY[0] <= stop[0] - start[1] and stop[1] - start[0] <= ANY[1]

    def note(self, space: Range) -> None:
        """Note what the variable of a range can be."""
        start, stop = self.of(space.start), self.of(space.stop)
        if start is None or stop is None or space.var in self.changed:
            self.loops.pop(space.var, None)
        else:
            upwards = isinstance(space.step, Const) and type(space.step.value) is int and space.step.value > 0
            self.loops[space.var] = (start[0], max(start[0], stop[1] - 1)) if upwards else _hull(start, stop)

    def is_inside(self, subscript: Subscript, axis: int | None) -> bool:
        """Whether a subscript is sure to lie in its array, such as `(i - 1) % n` for an axis of n elements; without an
        axis, all of them. Of arrays that the loop makes, their lengths are known by what they are made with."""
        name = subscript.base.name
        shape = self.facts.shapes.get(name) or self._made_shape(name)
        axes = range(len(subscript.index)) if axis is None else (axis,)
        return all(self._is_below(subscript.index[at], shape[at]) for at in axes) if max(axes) < len(shape) else False

    def _made_shape(self, name: str) -> tuple[int, ...]:
        """The lengths of an array that the loop makes, where they are known at these sizes."""
        lengths = [length for length in self.facts.typing.name(name).lengths if isinstance(length, Const | Dim)]
        found = [limits[0] for limits in map(self.of, lengths) if limits is not None and limits[0] == limits[1]]
        return tuple(found) if len(found) == self.facts.typing.name(name).rank else ()

    def _is_below(self, part: Expr, extent: int) -> bool:
        low, high = (None if isinstance(part, Slice) else self.of(part)) or (0, extent)
        return low >= 0 and high < extent

    def is_near(self, left: Expr, right: Expr) -> bool:
        """Whether `left % right` takes one addition or subtraction at most: -right <= left < 2 * right."""
        found, divisor = self.of(left), self.of(right)
        if found is None or divisor is None or divisor[0] != divisor[1]:
            return False
        return divisor[0] > 0 and -divisor[0] <= found[0] and found[1] < 2 * divisor[0]

    def of(self, expr: Expr) -> Limits | None:
        """The least and the greatest value of an integer expression; None where they are not known."""
        found = self._of(expr)
        if isinstance(expr, Const | Dim | Count):
            return found
        try:
            kind = self.facts.typing.of(expr)
        except UntypedNameError:  # the variable of a loop that the kernel makes
            return None
        if kind.rank or not (kind.is_integer or kind.dtype == "bool"):
            return None
        room = (0, 1) if kind.dtype == "bool" else dtype_limits(kind.dtype)
        if found is not None and room[0] <= found[0] and found[1] <= room[1]:
            return found
        return None if kind.dtype in ("int64", "uint64") else room

    def _of(self, expr: Expr) -> Limits | None:
        match expr:
            case Const(int(value)):
                return int(value), int(value)
            case Dim(array, axis):
                shape = self.facts.shapes.get(array, ())
                return (shape[axis], shape[axis]) if 0 <= axis < len(shape) else LENGTH
            case Count(array):
                return (0, prod(self.facts.shapes[array])) if array in self.facts.shapes else LENGTH
            case Var(name) if name in self.loops:
                return self.loops[name]
            case Var(name) if name in self.facts.integers and name not in self.unknown:
                return self.facts.integers[name]
            case Unary(_, operand):
                return self._operation(expr, (operand,))
            case Binary(_, left, right):
                return self._operation(expr, (left, right))
            case Call("min" | "max" as name, parts) if len(parts) > 1:
                return self._extreme(name, parts)
            case Call(function, (operand,)) if function in ("int", INTEGER):
                return self.of(operand)
            case Choose(_, then, orelse):
                first, second = self.of(then), self.of(orelse)
                return _hull(first, second) if first is not None and second is not None else None
            case _:
                return None

    def _operation(self, expr: Unary | Binary, operands: tuple[Expr, ...]) -> Limits | None:
        found = [self.of(operand) for operand in operands]
        if expr.op == "%" and found[0] is None and self.facts.typing.of(operands[0]).dtype == "int64":
            found[0] = ANY  # whatever is divided, the remainder lies below the divisor
        known = [limits for limits in found if limits is not None]
        return result_limits(expr, known) if len(known) == len(found) else None

    def _extreme(self, name: str, parts: tuple[Expr, ...]) -> Limits | None:
        found = [self.of(part) for part in parts]
        known = [limits for limits in found if limits is not None]
        if len(known) < len(found):
            return None
        nearest = min if name == "min" else max
        return nearest(low for low, _ in known), nearest(high for _, high in known)


def _hull(first: Limits, second: Limits) -> Limits:
    return min(first[0], second[0]), max(first[1], second[1])


def _more_than(start: Expr, stop: Expr) -> Expr | None:
    """What the stop of a range is more than its start, where it is written as their sum."""
    match without_spans(stop):
        case Binary("+", left, right):
            own = without_spans(start)
            return right if left == own else left if right == own else None
        case _:
            return None
