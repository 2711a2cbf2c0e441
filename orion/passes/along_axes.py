"""Least and greatest values, products and means along an axis, as loops and sums.

m = A.max(axis=1)                 m = np.empty(A.shape[0])
                                  for i in range(A.shape[0]):
                                      m[i] = np.max(A[i])

m = A.max(axis=0)                 m = A[0].copy()
                                  for i in range(1, A.shape[0]):
                                      for j in range(A.shape[1]):
                                          m[j] = np.maximum(m[j], A[i, j])

m = A.prod(axis=0)                m = np.ones(A.shape[1]), and the same loops with m[j] = m[j] * A[i, j]

m = A.mean(axis=0)                m = np.sum(A, axis=0) / A.shape[0]

m = x.max(axis=0), of a row       m = x.max()

Numba compiles none of these, and loops are shared out like any other.
"""

from __future__ import annotations

from collections.abc import Iterator

from orion.dataclass import dataclass, replace
from orion.ir.as_statements import as_branches
from orion.ir.assigned import assigned_names
from orion.ir.constants import constant_value
from orion.ir.function import Function
from orion.ir.lifting import Lifter
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Const,
    Dim,
    Dtype,
    Expr,
    For,
    Range,
    Stmt,
    Subscript,
    Var,
    every,
    names_in,
)
from orion.ir.program import new_numbers
from orion.ir.refuse import unsupported
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite_function
from orion.passes.writes import helper_writes
from orion.source import Replacement
from orion.typing.expression_types import Typing

EXTREMES = {"np.max": "np.maximum", ".max": "np.maximum", "np.min": "np.minimum", ".min": "np.minimum"}
PRODUCTS = ("np.prod", ".prod")
MEANS = ("np.mean", ".mean")


def with_loops_along_axes(function: Function, typing: Typing) -> Function:
    """The function without such calls. UnsupportedLoopError for arrays of more than two dimensions, and where a loop
    may not stand before the statement."""
    if not any(map(_is_along, every(Call, *function.body))):
        return function
    function = rewrite_function(function, lambda expr: _without_only_axis(expr, typing))
    taken = {*function.params, *assigned_names(function.body), *typing.names}
    writer = _Writer(function, typing, taken, new_numbers(function.body))
    body = expand(function.body, writer.direct)
    writes = helper_writes(function, {name: kind.rank for name, kind in typing.names.items()})
    return replace(function, body=Lifter(_is_along, writer.lift, writer.instead, writes).block(body))


def _is_along(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function in (*EXTREMES, *PRODUCTS, *MEANS) and _axis(expr) is not None


def _without_only_axis(expr: Expr, typing: Typing) -> Expr:
    """A call along the one axis of a row as one for the whole row; any other expression as it is."""
    if not isinstance(expr, Call) or not _is_along(expr) or typing.of(expr.arguments[0]).rank != 1:
        return expr
    return replace(expr, arguments=expr.arguments[:1], keywords=())


def _axis(call: Call) -> Expr | None:
    """The axis that a call is given; None for a call for the whole array."""
    found = dict(call.keywords).get("axis", call.arguments[1] if len(call.arguments) > 1 else None)
    return None if isinstance(found, Const) and found.value is None else found


@dataclass(slots=True)
class _Writer:
    function: Function
    typing: Typing
    taken: set[str]
    numbers: Iterator[int]

    def direct(self, statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name) as target, Call(called) as value) if _is_along(value) and name not in names_in(value):
                if called not in MEANS:
                    return tuple(self.folded(target, value))
        return (statement,)

    def lift(self, expr: Call, before: list[Stmt]) -> Expr:
        if expr.function in MEANS:
            array, axis = self.array(expr, before)
            total = Call("np.sum", (array,), expr.span, (("axis", Const(axis, expr.span)),))
            return Binary("/", total, Dim(array.name, axis, expr.span), expr.span)
        found = Var(fresh(f"{expr.function.rpartition('.')[2]}_{expr.span.line}", self.taken), expr.span)
        before += self.folded(found, expr)
        return found

    def instead(self, expr: Expr, why: str) -> Expr:
        assert isinstance(expr, Call)
        text = as_branches(expr.span, self.function.source)
        raise self.refusal(expr, "is not supported here", why, "give it a name first", text)

    def refusal(self, call: Call, what: str, why: str, hint: str, instead: Replacement | None = None) -> Exception:
        name = call.function.rpartition(".")[2]
        text = f"`{name}` with `axis=` {what}"
        source = self.function.source
        return unsupported(text, call.span, source, why=why, hint=hint, is_for_numba=True, replacement=instead)

    def array(self, call: Call, before: list[Stmt]) -> tuple[Var, int]:
        """The name of the array that a call is about, which it is given in a statement before, and the axis."""
        part, axis = call.arguments[0], _axis(call)
        rank, number = self.typing.of(part).rank, None if axis is None else constant_value(axis)
        if rank != 2 or number is None:
            raise self.refusal(call, f"of {rank} dimensions is not supported", "", "write a loop over the other axes")
        if not isinstance(part, Var):
            name = Var(fresh(f"array_{call.span.line}", self.taken), call.span)
            before.append(Assign(name, part, call.span))
            part = name
        return part, number % rank

    def folded(self, target: Var, call: Call) -> Iterator[Stmt]:
        before: list[Stmt] = []
        array, axis = self.array(call, before)
        yield from before
        span = call.span
        i, j = (Var(fresh(f"{target.name}_{name}", self.taken), span) for name in "ij")
        shape, dtype = Dim(array.name, 1 - axis, span), Dtype(self.typing.of(call).dtype, span)
        if axis == 1:
            yield Assign(target, Call("np.empty", (shape, dtype), span), span)
            row = Call(f"np.{call.function.rpartition('.')[2]}", (Subscript(array, (i,), span),), span)
            yield self.loop(i, 0, shape, (Assign(Subscript(target, (i,), span), row, span),))
            return
        one, other = Subscript(target, (j,), span), Subscript(array, (i, j), span)
        is_product = call.function in PRODUCTS
        first = Call(".copy", (Subscript(array, (Const(0, span),), span),), span)
        yield Assign(target, Call("np.ones", (shape, dtype), span) if is_product else first, span)
        kept = Binary("*", one, other, span) if is_product else Call(EXTREMES[call.function], (one, other), span)
        inner = self.loop(j, 0, Dim(array.name, 1, span), (Assign(one, kept, span),))
        yield self.loop(i, 0 if is_product else 1, Dim(array.name, 0, span), (inner,))

    def loop(self, variable: Var, start: int, stop: Expr, body: tuple[Stmt, ...]) -> For:
        span = variable.span
        return For(Range(variable.name, Const(start, span), stop, Const(1, span), span), body, next(self.numbers), span)
