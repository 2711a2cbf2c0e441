"""Loops over the segments of an array written as one loop over its elements.

for c in range(len(first) - 1):                 for k in range(len(order)):
    for k in range(first[c], first[c + 1]):         …
        …                                       # where first never goes down, from 0 to len(order)
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from orion.dependence.given_sizes import GivenSizes
from orion.ir.assigned import assigned_names
from orion.ir.assumed import Assumed, Covers, OfArray, Property
from orion.ir.function import Function
from orion.ir.nodes import Const, Dim, For, Range, Stmt
from orion.ir.program import new_numbers
from orion.ir.rewriting import expand
from orion.ir.spans import without_spans
from orion.ir.sums import plus
from orion.ir.types import Types
from orion.passes.view_names import written_names
from orion.rewrites.coalesce.find import Segments, is_read_elsewhere, segments
from orion.rewrites.slices.bounds import condition, equal
from orion.source import Span
from orion.typing.expression_types import Typing


def apply(function: Function, types: Types, typing: Typing, places: Set[Span]) -> tuple[Function, ...]:
    """The function with one loop in place of two at these places, where the arrays are those that it is given, and
    nobody writes to the starts of segments."""
    numbers, given = new_numbers(function.body), GivenSizes.of(function, types)
    changing = written_names(function, typing) | assigned_names(function.body)
    given_arrays = {*function.given} - assigned_names(function.body) - {one.array for one in function.rows}
    assumed: list[Assumed] = []

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(statement, For) or statement.span not in places:
            return (statement,)
        found = segments(statement, typing)
        if found is None or found.starts in changing or not {found.starts, found.array} <= given_arrays:
            return (statement,)
        if is_read_elsewhere(statement, function):
            return (statement,)
        loop, all_of_them = _as_one(found, next(numbers)), plus(Dim(found.starts, 0, statement.span), -1)
        if without_spans(found.count) != without_spans(all_of_them):
            limit = condition(loop.index, [equal(found.count, all_of_them)], (), given.forms, given.known)
            if limit is None:
                return (statement,)
            if limit.names:
                assumed.append(limit)
        assumed.append(OfArray(loop.index, found.starts, Property.SORTED))
        assumed.append(OfArray(loop.index, found.starts, Covers(found.array, found.axis)))
        return (loop,)

    body = expand(function.body, change)
    return (replace(function, body=body, assumed=(*function.assumed, *assumed)),) if assumed else ()


def _as_one(found: Segments, number: int) -> For:
    inner = found.inner
    assert isinstance(inner.space, Range)
    span = inner.space.span
    whole = replace(inner.space, start=Const(0, span), stop=Dim(found.array, found.axis, span))
    return replace(inner, space=whole, index=number)
