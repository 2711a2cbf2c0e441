"""Operators in place on whole arrays, as what they are: `g += v` writes elements, `g[:] += v`, and no name.

With subscripts they are updates of elements to the analysis, like any others: sums into elements, statements of a nest.
"""

from __future__ import annotations

from dataclasses import replace

from orion.ir.assigned import assigned_by
from orion.ir.function import Function
from orion.ir.nodes import Assign, Bind, For, Slice, Stmt, Subscript, Update, Var, every
from orion.ir.rewriting import expand
from orion.ir.types import ArrayType, Types


def with_subscripts(function: Function, types: Types) -> Function:
    """The function with operators in place on arrays of the arguments, and of those that it makes, made updates of
    their elements. A name that is also given another value stands for that afterwards, and stays."""
    arrays = {name: kind for name, kind in types.items() if isinstance(kind, ArrayType) and kind.ndim}
    arrays = {name: kind for name, kind in arrays.items() if name not in _rebound(function)}

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Update(Var(name, span) as target) if name in arrays:
                whole = (Slice(None, None, None, span),) * arrays[name].ndim
                return (replace(statement, target=Subscript(target, whole, span)),)
            case _:
                return (statement,)

    body = expand(function.body, change)
    return function if body == function.body else replace(function, body=body)


def _rebound(function: Function) -> set[str]:
    """The names that statements give another value, operators in place apart."""
    return {name for node in every((Assign, Bind, For), *function.body) for name in assigned_by(node)}
