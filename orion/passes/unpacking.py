"""Rows that are taken apart, and loops that look like those over elements of a sparse array but go over a dense one.

    for x, y in P:              for x_index in range(P.shape[0]):
        d[0] += x * y               x, y = P[x_index, 0], P[x_index, 1]
                                    d[0] += x * y

Only types tell a row from a tuple, and a dense array from a sparse one. That a row has as many elements as there are
names is looked at in each call (`orion.typing.lengths`), as far as the assignment may be reached.
"""

from __future__ import annotations

from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.function import Function, Unpacked
from orion.ir.nodes import Assign, Const, Count, Dim, Elements, Expr, For, Range, Slice, Stmt, Subscript, Tuple, Var
from orion.ir.refuse import unsupported
from orion.ir.rewriting import expand, rewrite_function, with_new
from orion.ir.types import SparseType, Types
from orion.typing.expression_types import Typing


def over_dense_arrays(function: Function, types: Types) -> Function:
    """The function with loops over the rows of dense arrays as loops over ranges: `for x, y in P`."""
    taken = {*function.params, *assigned_names(function.body)}
    sparse = {name for name, kind in types.items() if isinstance(kind, SparseType)}

    def changed(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case For(Elements(array, (key,), (value,), True, span), body) if array not in sparse and key != value:
                place = f"{key}_index"
                while place in taken:
                    place += "_"
                row = Subscript(Var(array, span), (Var(place, span),), span)
                first = Assign(Tuple((Var(key, span), Var(value, span)), span), row, span)
                space = Range(place, Const(0, span), Dim(array, 0, span), Const(1, span), span)
                return (replace(statement, space=space, body=(first, *body)),)
        return (statement,)

    def counted(expr: Expr) -> Expr:
        """`len(P)`, which is read as a number of elements where a loop looks like one over those."""
        return Dim(expr.array, 0, expr.span) if isinstance(expr, Count) and expr.array not in sparse else expr

    return rewrite_function(with_new(function, body=expand(function.body, changed)), counted)


def take_rows_apart(function: Function, typing: Typing) -> Function:
    """The function with rows that are given to several targets as tuples of their elements. UnsupportedLoopError where
    how many these are is not known before it runs."""
    found: list[Unpacked] = []

    def changed(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Tuple(targets), (Var() | Subscript()) as row, span) if typing.of(row).rank == 1:
                (length,) = typing.of(row).lengths
                if length is None:
                    why = "how many elements the row has is known only as the loop runs"
                    raise unsupported("a row is taken apart", row.span, function.source, why=why, hint="use subscripts")
                found.append(Unpacked(length, len(targets), span, is_written=False))
                places = [Const(number, row.span) for number in range(len(targets))]
                return (replace(statement, value=Tuple(tuple(_element(row, place) for place in places), row.span)),)
            case Assign(Subscript() as row, Tuple(items), span):  # `ranges[j] = low, high`
                (length,) = typing.of(row).lengths
                if length is None or any(isinstance(part, Slice) for part in row.index):
                    why = "how many elements the row has is not known before"
                    hint = "write them one by one"
                    raise unsupported("a tuple is written to a row", row.span, function.source, why=why, hint=hint)
                found.append(Unpacked(length, len(items), span, is_written=True))
                targets = tuple(_element(row, Const(number, row.span)) for number in range(len(items)))
                return (replace(statement, target=Tuple(targets, row.span)),)
        return (statement,)

    body = expand(function.body, changed)
    return replace(function, body=body, unpacked=(*function.unpacked, *found)) if found else function


def _element(row: Var | Subscript, place: Const) -> Subscript:
    if isinstance(row, Var):
        return Subscript(row, (place,), row.span)
    return Subscript(row.base, (*row.index, place), row.span)
