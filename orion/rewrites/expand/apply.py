"""Scalars that each iteration of a loop begins anew, kept in an array with a place for each iteration.

for i in range(n):                     s_i = np.empty(n)
    s = 0.0                            for i in range(n):
    for j in range(m):                     s_i[i] = 0.0
        s += x[i, j]                       for j in range(m):
        y[j] += x[i, j]                        s_i[i] += x[i, j]
        out[i, j] = s + y[j]                   y[j] += x[i, j]
                                               out[i, j] = s_i[i] + y[j]
"""

from __future__ import annotations

from dataclasses import replace

from orion.errors import UnsupportedLoopError
from orion.ir.function import Function
from orion.ir.nodes import Assign, Call, Const, Dim, Expr, For, Range, Stmt, Subscript, Update, Var, every
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite
from orion.passes.sizes import with_arrays
from orion.rewrites.expand.find import expandable
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.infer import infer_types, with_local_arrays


def apply(function: Function, typing: Typing) -> tuple[Function, tuple[int, ...]]:
    """The function with such scalars in arrays, and the lines of the loops that it is another for."""
    found = [(loop, name) for loop in every(For, *function.body) for name in expandable(loop, function, typing)]
    taken, lines = {*typing.names}, list[int]()
    for loop, name in found:
        array = fresh(f"{name}_{loop.space.var}" if isinstance(loop.space, Range) else name, taken)
        changed = replace(function, body=_with_places(function.body, loop.index, name, array))
        types = with_local_arrays(typing.arguments, changed)
        try:
            function = with_arrays(changed, infer_types(changed, types), (array,))
        except UnsupportedLoopError:  # how many iterations there are is not known when a call begins
            continue
        lines.append(loop.span.line)
    return function, tuple(dict.fromkeys(lines))


def _with_places(body: tuple[Stmt, ...], index: int, name: str, array: str) -> tuple[Stmt, ...]:
    """Statements with an array in place of a scalar in `for` number `index`, which is made before that."""

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(statement, For) or statement.index != index:
            return (statement,)
        space, span = statement.space, statement.span
        assert isinstance(space, Range)
        made = Call("np.empty", (_length(space.stop),), span)
        inside = tuple(_placed(one, name, array, space.var) for one in statement.body)
        return Assign(Var(array, span), made, span), replace(statement, body=inside)

    return expand(body, change)


def _length(stop: Expr) -> Expr:
    """The end of a range that begins at no negative number, or 0 where the range is empty."""
    return stop if isinstance(stop, Dim) else Call("max", (stop, Const(0, stop.span)), stop.span)


def _placed(statement: Stmt, name: str, array: str, variable: str) -> Stmt:
    """A statement with an element in place of a scalar."""

    def place(span: Span) -> Subscript:
        return Subscript(Var(array, span), (Var(variable, span),), span)

    def given(inner: Stmt) -> tuple[Stmt, ...]:
        match inner:
            case Assign(Var(target)) | Update(Var(target)) if target == name:
                return (replace(inner, target=place(inner.target.span)),)
            case _:
                return (inner,)

    (found,) = expand((statement,), given)
    return rewrite(found, lambda expr: place(expr.span) if isinstance(expr, Var) and expr.name == name else expr)
