"""Rows that loops make, with the extents of arrays as their lengths where these have names.

    R = M.shape[1]                          R = M.shape[1]
    for i in range(M.shape[0]):             for i in range(M.shape[0]):
        s = np.zeros(R)                         s = np.zeros(M.shape[1])
        …                                       …
        M[i] = s                                M[i] = s

A row is computed with element by element, in loops that the kernel has for it, where it is as long as an axis of an
array or has a number as its length (`orion.kernel.rows`); that is told by its length alone.
"""

from __future__ import annotations

from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import Call, Const, Dim, Expr, For, Stmt, Tuple, Var, While
from orion.ir.rewriting import rewrite, with_new
from orion.ir.spans import with_span
from orion.passes.local_arrays import definitions
from orion.typing.functions import FUNCTIONS, Form


def with_lengths_of_arrays(function: Function) -> Function:
    """The function with the rows that its loops make as long as axes of arguments, or as numbers, where they are."""
    changed = assigned_names(function.body)
    known = {
        name: value
        for name, value in definitions(function).items()
        if (isinstance(value, Dim) and value.array in function.params and value.array not in changed)
        or (isinstance(value, Const) and type(value.value) is int)
    }

    def length(expr: Expr) -> Expr:
        match expr:
            case Var(name) if name in known:
                return with_span(known[name], expr.span)
            case Tuple(items):
                return replace(expr, items=tuple(map(length, items)))
            case _:
                return expr

    def made(expr: Expr) -> Expr:
        match expr:
            case Call(function=name, arguments=(shape, *rest)) if (
                name in FUNCTIONS and FUNCTIONS[name].form is Form.NEW
            ):
                return replace(expr, arguments=(length(shape), *rest))
            case _:
                return expr

    def inside(statement: Stmt) -> Stmt:
        return rewrite(statement, made) if isinstance(statement, For | While) else statement

    return with_new(function, body=tuple(map(inside, function.body))) if known else function
