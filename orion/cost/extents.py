"""Numbers for the symbols of an analysis: array extents, integer arguments, and the extents of loop dimensions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from orion.dependence.bounds import fix_parameters
from orion.ir.constants import fold
from orion.ir.function import Function
from orion.ir.nodes import INTEGER, Binary, Call, Choose, Compare, Const, Dim, Node, Unary, Var, names_in, walk
from orion.ir.types import Shapes
from orion.passes.local_arrays import definitions
from orion.sets.maps import Maps
from orion.sets.names import extent_name, isl_name, number_of

if TYPE_CHECKING:
    import islpy as isl

UNKNOWN_TRIPS = 256
"""Trips of a loop of which nothing is known."""

WHILE_TRIPS = 16
"""The same for a `while`: searches halve what is left, and iterations until a tolerance are few."""


def parameter_values(shapes: Shapes, integers: Mapping[str, int]) -> dict[str, int]:
    """The values of isl parameters: `array.shape[axis]` for every array, and integer arguments by name.

    >>> parameter_values({"W": (10, 4)}, {"n": 3})
    {'W__0': 10, 'W__1': 4, 'n': 3}
    """
    values = {extent_name(name, axis): extent for name, shape in shapes.items() for axis, extent in enumerate(shape)}
    return values | {isl_name(name): int(value) for name, value in integers.items()}


def named_values(function: Function, values: Mapping[str, int]) -> dict[str, int]:
    """The values of the names that a function gives once, outside of all loops, by extents and integers that have
    `values`; none of what compiled code might find another value for, which has 64 bits."""
    found: dict[str, int] = {}
    for name, expr in definitions(function).items():
        known = {**values, **{isl_name(one): value for one, value in found.items()}}
        value = evaluated(expr, known)
        if value is not None and all(_is_the_same_compiled(node, known) for node in walk(expr)):
            found[name] = value
    return found


def names_behind(function: Function, names: Collection[str]) -> set[str]:
    """These names, and those that the values of the names among them are made of which the function gives once."""
    given = definitions(function)
    found, left = set(names), [name for name in given if {name, isl_name(name)} & {*names}]
    while left:
        new = names_in(given[left.pop()]) - found
        found |= new
        left += [name for name in new if name in given]
    return found


def _is_the_same_compiled(part: Node, values: Mapping[str, int]) -> bool:
    """Whether a part of an expression has the value in compiled code that it has here."""
    match part:
        case Call(function) if function.startswith("math."):
            return function in CORRECTLY_ROUNDED
        case Binary("/", left, right):
            return all(abs(evaluated(one, values) or 0) <= EXACT for one in (left, right))
        case _:
            value = evaluated(part, values)
            return value is None or -LARGEST <= value < LARGEST


def coordinate_ranges(
    domain: str, dims: int, values: Mapping[str, int], maps: Maps | None = None
) -> tuple[tuple[int, int] | None, ...]:
    """Per loop dimension the half-open range of its coordinates, or None where it is not bounded with these values.

    >>> coordinate_ranges("[n] -> { [i, j] : 0 <= i < n and i <= j < n }", 2, {"n": 4})
    ((0, 4), (0, 4))
    """
    maps = maps or Maps()
    key = "ranges", domain, dims, tuple(values.items())
    return maps.once(key, lambda: _ranges(maps.set(domain), dims, values))


def _ranges(domain: isl.Set, dims: int, values: Mapping[str, int]) -> tuple[tuple[int, int] | None, ...]:
    iterations = fix_parameters(domain, values)
    if iterations.is_empty():
        return ((0, 0),) * dims
    found: list[tuple[int, int] | None] = []
    for dim in range(dims):
        low, high = iterations.dim_min_val(dim), iterations.dim_max_val(dim)
        both = low.is_int() and high.is_int()
        found.append((number_of(low), number_of(high) + 1) if both else None)
    return tuple(found)


def bounded_dims(domain: str, dims: int, maps: Maps | None = None) -> tuple[int, ...]:
    """The loop dimensions whose coordinates are bounded once all parameters have values: those that can be cut."""
    maps = maps or Maps()
    return _bounded(maps.set(domain), dims)


def _bounded(iterations: isl.Set, dims: int) -> tuple[int, ...]:
    import islpy as isl

    bounded = []
    for dim in range(dims):
        rest = iterations.project_out(isl.dim_type.set, dim + 1, iterations.dim(isl.dim_type.set) - dim - 1)
        rest = rest.project_out(isl.dim_type.set, 0, dim)
        if rest.dim_has_lower_bound(isl.dim_type.set, 0) and rest.dim_has_upper_bound(isl.dim_type.set, 0):
            bounded.append(dim)
    return tuple(bounded)


def evaluated(expr: Node, values: Mapping[str, int]) -> int | None:
    """The value of an integer expression over extents and integer arguments; None where it has other names.

    >>> from orion.source import Span
    >>> span = Span("f.py", 1, 0, 1, 1)
    >>> evaluated(Binary("+", Dim("A", 0, span), Const(2, span), span), {"A__0": 5})
    7
    """
    match expr:
        case Const(int(value)):
            return value
        case Var(name):
            return values.get(isl_name(name))
        case Dim(array, axis):
            return values.get(extent_name(array, axis))
        case Unary("+", operand):
            return evaluated(operand, values)
        case Unary("-", operand):
            number = evaluated(operand, values)
            return None if number is None else -number
        case Binary(op, left, right):
            one, other = evaluated(left, values), evaluated(right, values)
            return None if one is None or other is None else fold(op, one, other)
        case Call(function, (inner,)) if function in (INTEGER, "np.int64", "round"):
            return evaluated(inner, values)
        case Call("abs", (inner,)):
            number = evaluated(inner, values)
            return None if number is None else abs(number)
        case Call("int" | "math.floor" | "math.ceil" | "math.trunc" as name, (inner,)):
            real = _number(inner, values)
            whole = int if name == "int" else getattr(math, name.removeprefix("math."))
            return None if real is None or not math.isfinite(real) else int(whole(real))
        case Call("min" | "max" | "np.minimum" | "np.maximum" as name, parts):
            found = [value for value in (evaluated(part, values) for part in parts) if value is not None]
            least = name in ("min", "np.minimum")
            return None if len(found) < len(parts) else min(found) if least else max(found)
        case Choose(Compare((op,), operands), then, orelse) if op in COMPARISONS:
            known = [value for value in (evaluated(one, values) for one in operands) if value is not None]
            return evaluated(then if COMPARISONS[op](*known) else orelse, values) if len(known) == 2 else None
        case _:
            return None


def _number(expr: Node, values: Mapping[str, int]) -> float | None:
    """The value of a number that is made of extents and integer arguments by arithmetic and by functions of `math`."""
    whole = evaluated(expr, values)
    if whole is not None:
        return whole
    match expr:
        case Const(float(value)):
            return value
        case Binary(op, left, right) if op in ARITHMETIC:
            parts, make = (left, right), ARITHMETIC[op]
        case Call(name, arguments) if name.startswith("math.") and arguments:
            parts, make = arguments, getattr(math, name.removeprefix("math."))  # type: ignore[assignment]
        case _:
            return None
    found = [_number(part, values) for part in parts]
    known = [value for value in found if value is not None]
    try:
        return float(make(*known)) if len(known) == len(found) else None
    except (ValueError, OverflowError, ZeroDivisionError):  # told where the function itself computes it
        return None


CORRECTLY_ROUNDED = frozenset({"math.ceil", "math.floor", "math.trunc", "math.sqrt", "math.fabs"})
"""Functions that have the same value in every library; others may differ in the last bit."""

LARGEST, EXACT = 2**63, 2**53
"""Integers of 64 bits end before the one; float64 has all of them up to the other."""

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
