"""Subscripts of what is no name: `np.argsort(x)[:k]`, `(a * b)[0]`. What they take parts of gets a name first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.lifting import Lifter
from orion.ir.nodes import PART, Assign, Call, Expr, Slice, Stmt, Subscript, Var
from orion.ir.refuse import unsupported


def with_named_bases(function: Function, taken: Collection[str]) -> Function:
    """The function with subscripts of names alone; `taken` are further names that it has."""
    names = {*function.params, *assigned_names(function.body), *taken}

    def lift(expr: Call, before: list[Stmt]) -> Expr:
        base, *index = expr.arguments
        if not isinstance(base, Var):
            called = base.function.rpartition(".")[2] if isinstance(base, Call) else "value"
            name = f"{called.rpartition(':')[2]}_{expr.span.line}"
            while name in names:
                name += "_"
            names.add(name)
            before.append(Assign(Var(name, base.span), base, base.span))
            base = Var(name, base.span)
        return Subscript(base, tuple(index), expr.span)

    def instead(expr: Expr) -> Expr:
        assert isinstance(expr, Call)
        if (found := as_one_subscript(expr)) is not None:
            return found
        what = "a subscript of an expression is not supported where it may not be evaluated"
        raise unsupported(what, expr.span, function.source, hint="give the value a name first")

    lifter = Lifter(lambda expr: isinstance(expr, Call) and expr.function == PART, lift, instead)
    return replace(function, body=lifter.block(function.body))


def as_one_subscript(expr: Call) -> Subscript | None:
    """`W[i][k]` as `W[i, k]`: right where `i` is a number. None for a part of anything else."""
    base, *index = expr.arguments
    if isinstance(base, Subscript) and not any(isinstance(part, Slice) for part in base.index):
        return Subscript(base.base, (*base.index, *index), expr.span)
    return None
