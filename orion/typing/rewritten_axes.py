"""Calls along an axis, with a start or with one axis more, and parts of arrays, as what they compute: for hints."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from orion.dataclass import replace
from orion.ir.constants import constant_value
from orion.ir.nodes import Call, Const, Expr, Slice, Subscript, Tuple, Var, every
from orion.ir.printer import print_expr
from orion.ir.refuse import written
from orion.source import Replacement, SourceText, Span
from orion.typing.value_type import ValueType

TRUTHS = {"np.all": "all", ".all": "all", "np.any": "any", ".any": "any"}
WITH_AXIS_SECOND = frozenset(
    {*TRUTHS, "np.median", "np.std", "np.var", ".std", ".var", "np.sort", "np.flip", "np.argsort", ".argsort"}
)
"""Functions whose second argument is the axis."""

EXACT = ("float64", "int64")
"""Dtypes in which NumPy computes what these formulas compute."""


def along_axis(call: Call, types: Sequence[ValueType]) -> str | None:
    """A call with an axis, at its place or by name: without it for a row, and by sums for the truth of rows."""
    array, axis = _array_and_axis(call)
    if array is None or not isinstance(axis, int) or not types:
        return None
    kind = types[0]
    if kind.rank == 1 and axis in (0, -1):
        return print_expr(replace(call, arguments=(array,), keywords=()))
    if kind.rank < 2 or not -kind.rank <= axis < kind.rank:
        return None
    if call.function in TRUTHS and not kind.is_complex:
        return _truth_along(TRUTHS[call.function], array, kind, axis)
    if call.function == "np.linalg.norm" and kind.dtype == "float64" and is_plain(array):
        return f"np.sqrt(np.sum({operand(array)} * {operand(array)}, axis={axis}))"
    return None


def without_axis(span: Span, source: SourceText) -> Replacement | None:
    """`np.std(x, axis=0)` of a row as `np.std(x)`, and `x.std(0)` as `x.std()`."""
    match written(span, source):
        case ast.Call(ast.Attribute(ast.Name("np")) as function, [array, *rest], keywords):
            kept = [array]
        case ast.Call(ast.Attribute() as function, [*rest], keywords):
            kept = []
        case _:
            return None
    (axis,) = [*rest, *(one.value for one in keywords)]
    text = ast.unparse(ast.Call(function, kept, []))
    return Replacement(span, text) if ast.unparse(axis) in ("0", "-1") else None


def _array_and_axis(call: Call) -> tuple[Expr | None, object]:
    match call.arguments, call.keywords:
        case (array, axis), () if call.function in WITH_AXIS_SECOND:
            return array, constant_value(axis)
        case (array,), (("axis", axis),):
            return array, constant_value(axis)
        case _:
            return None, None


def _truth_along(word: str, array: Expr, kind: ValueType, axis: int) -> str:
    written = operand(array)
    if word == "any":
        counted = print_expr(array) if kind.dtype == "bool" else f"{written} != 0"
        return f"np.sum({counted}, axis={axis}) > 0"
    counted = f"~{written}" if kind.dtype == "bool" else f"{written} == 0"
    return f"np.sum({counted}, axis={axis}) == 0"


def with_kept_axis(call: Call, types: Sequence[ValueType]) -> str | None:
    """`np.sum(A, axis=1, keepdims=True)` as `np.sum(A, axis=1)[:, None]`."""
    given = dict(call.keywords)
    keeps = given.pop("keepdims")
    axis = given.pop("axis", None) if len(call.arguments) < 2 else call.arguments[1]
    if given or not types or not types[0].rank or not isinstance(keeps, Const):
        return None
    inner = print_expr(replace(call, keywords=tuple(one for one in call.keywords if one[0] != "keepdims")))
    rank = types[0].rank
    if not keeps.value:
        return inner
    if axis is None or rank == 1:
        return f"np.array({'[' * rank}{inner}{']' * rank})"
    place = constant_value(axis)
    if not isinstance(place, int) or not -rank <= place < rank:
        return None
    parts = [":"] * (rank - 1)
    parts.insert(place % rank, "None")
    return f"{inner}[{', '.join(parts)}]"


def with_start(call: Call, types: Sequence[ValueType]) -> str | None:
    """`np.max(x, initial=c)` as the greatest of the elements and the start; a sum with it as a term."""
    match call.arguments, call.keywords:
        case (array,), (("initial", Const(int() | float() as value) as start),):
            pass
        case _:
            return None
    function, kind = call.function.removeprefix("np.").removeprefix("."), types[0]
    is_same = kind.dtype == "float64" or (kind.dtype == "int64" and isinstance(value, int))
    if value != value or not kind.rank or not is_same:
        return None
    if function == "sum":
        return f"{print_expr(start)} + {print_expr(replace(call, keywords=()))}"
    if function in ("min", "max") and kind.rank == 1:
        return f"np.{function}(np.concatenate(({print_expr(array)}, np.array([{print_expr(start)}]))))"
    return None


def with_fewer_degrees(call: Call, types: Sequence[ValueType]) -> str | None:
    """`np.var(x, ddof=1)` as NumPy computes it."""
    match call.arguments, call.keywords:
        case (array,), (("ddof", Const(int(less))),) if types[0].dtype in EXACT and types[0].rank:
            pass
        case _:
            return None
    if not is_plain(array) or less < 0 or not isinstance(array, Var | Subscript):
        return None
    written = print_expr(array)
    count = f"max({written}.size - {less}, 0)" if less else f"{written}.size"
    found = f"np.sum(({written} - np.mean({written})) ** 2) / {count}"
    return f"np.sqrt({found})" if call.function.endswith("std") else found


def differences_of_columns(call: Call, kind: ValueType) -> str | None:
    """`np.diff(A)` of a matrix as `A[:, 1:] - A[:, :-1]`."""
    match call.arguments:
        case (Var(name),) if kind.dtype != "bool" and not call.keywords:
            axes = ":, " * (kind.rank - 1)
            return f"{name}[{axes}1:] - {name}[{axes}:-1]"
        case _:
            return None


def trace_beside(call: Call, kind: ValueType) -> str | None:
    """`np.trace(A, k)` as the trace of the part that begins at that diagonal."""
    match call.arguments:
        case (Var(name), offset) if kind.rank == 2 and not call.keywords:
            place = constant_value(offset)
        case _:
            return None
    if not isinstance(place, int):
        return None
    return f"np.trace({name}{f'[:, {place}:]' if place > 0 else f'[{-place}:]' if place else ''})"


def reversed_axes(call: Call, kind: ValueType) -> str | None:
    """`np.transpose(A, (1, 0))` as `np.transpose(A)`."""
    match call.arguments:
        case (array, Tuple(axes)) if not call.keywords and [constant_value(one) for one in axes] == [
            *reversed(range(kind.rank))
        ]:
            return print_expr(replace(call, arguments=(array,)))
        case _:
            return None


def quantiles(call: Call, places: ValueType) -> str | None:
    """`np.percentile(x, (10, 20))` as an array of one call for each."""
    match call.arguments:
        case (array, Tuple(items)) if is_plain(array) and not call.keywords and items:
            each = [print_expr(replace(call, arguments=(array, item))) for item in items]
            return None if any(one.rank or one.items for one in places.items) else f"np.array([{', '.join(each)}])"
        case _:
            return None


def range_of_signed(call: Call, kind: ValueType) -> str | None:
    """`np.arange` up to an unsigned integer, in the dtype that NumPy has for it."""
    if len(call.arguments) != 1 or call.keywords or kind.rank:
        return None
    dtype = np.arange(np.dtype(kind.dtype).type(1)).dtype.name
    found = f"np.arange(int({print_expr(call.arguments[0])}))"
    return found if dtype == "int64" else f"{found}.astype(np.{dtype})"


def picked_apart(expr: Subscript, picks: Expr, kind: ValueType, *, is_number: Sequence[bool]) -> str | None:
    """`A[i, picks, 1:]` as `A[i][picks][:, 1:]`: numbers, then the array of subscripts, then slices. None where NumPy
    puts the axes in another order."""
    index = expr.index
    picking = [number or one is picks for one, number in zip(index, is_number, strict=True)]
    first, last = picking.index(True), len(picking) - picking[::-1].index(True)
    if kind.rank != 1 or not all(picking[first:last]):
        return None
    left = [one for one, number in zip(index, is_number, strict=True) if not number]
    steps = [[print_expr(one) if number else ":" for one, number in zip(index, is_number, strict=True)]]
    steps.append([print_expr(one) if one is picks else ":" for one in left])
    steps.append([":" if one is picks else _slice(one) for one in left])
    return print_expr(expr.base) + "".join(f"[{', '.join(found)}]" for step in steps if (found := _trimmed(step)))


def _slice(part: Expr) -> str:
    assert isinstance(part, Slice)
    return print_expr(part)


def _trimmed(parts: list[str]) -> list[str]:
    while parts and parts[-1] == ":":
        parts = parts[:-1]
    return parts


def operand(expr: Expr) -> str:
    """An expression as an operand of any operator."""
    text = print_expr(expr)
    return text if isinstance(expr, Var | Subscript | Call) else f"({text})"


def is_plain(expr: Expr) -> bool:
    """Whether to evaluate an expression twice is to evaluate it once: it calls nothing."""
    return not any(every(Call, expr))
