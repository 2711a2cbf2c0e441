"""Calls as loops, or as arrays of calls for rows, before the statement that they are in: for hints."""

from __future__ import annotations

import ast
from collections.abc import Callable

from orion.ir.as_statements import STEP, has_effects, put_before
from orion.ir.constants import constant_value
from orion.ir.nodes import Call
from orion.ir.refuse import written
from orion.source import Replacement, SourceText, Span
from orion.typing.value_type import ValueType

Rewritten = Callable[[Span, SourceText], Replacement | None]

PLACES = {"np.median": 1, "np.percentile": 2, "np.quantile": 2}
"""Functions of a row that give a number → how many arguments they have before the axis."""


def summed_from(span: Span, source: SourceText) -> Replacement | None:
    """`sum(x, start)` as a loop before the statement, which begins at the start."""
    match written(span, source):
        case ast.Call(ast.Name("sum"), [items, start], []) if not has_effects(start):
            pass
        case _:
            return None
    total, value = source.fresh("total"), source.fresh("value")
    loop = f"for {value} in {ast.unparse(items)}:\n{STEP}{total} += {value}"
    return put_before(span, source, f"{total} = {ast.unparse(start)}\n{loop}", total)


def of_each_row(call: Call, types: tuple[ValueType, ...]) -> Rewritten | None:
    """`np.median(A, axis=1)` as an array of the medians of rows; None for a call of anything else."""
    count = PLACES.get(call.function)
    if count is None or types[0].rank != 2 or any(kind.rank or kind.items for kind in types[1:count]):
        return None
    match call.arguments[count:], call.keywords:
        case ((axis,), ()) | ((), (("axis", axis),)) if len(call.arguments) >= count:
            place = constant_value(axis)
        case _:
            return None
    if place not in (-2, -1, 0, 1):
        return None
    return lambda span, source: _of_each(span, source, count, by_columns=place % 2 == 0)


def _of_each(span: Span, source: SourceText, count: int, *, by_columns: bool) -> Replacement | None:
    match written(span, source):
        case ast.Call(function, [ast.Name(array), *others]) if not any(map(has_effects, others)):
            pass
        case _:
            return None
    results, row, column = source.fresh("results"), source.fresh("row"), source.fresh("column")
    part, space = (
        (f"{array}[:, {column}]", f"{column} in range({array}.shape[1])") if by_columns else (row, f"{row} in {array}")
    )
    given = ", ".join([part, *map(ast.unparse, others[: count - 1])])
    made = f"{results} = np.array([{ast.unparse(function)}({given}) for {space}])"
    return put_before(span, source, made, results)
