"""Subscripts of what is no name: `np.argsort(x)[:k]`, `(a * b)[0]`. What they take parts of gets a name first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.lifting import Lifter
from orion.ir.nodes import PART, Assign, Call, Expr, For, If, Slice, Stmt, Subscript, Var, While, every
from orion.ir.refuse import unsupported
from orion.ir.rewriting import expand, rewrite


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

    body = expand(function.body, lambda statement: (without_parts_beside_calls(statement, function),))
    lifter = Lifter(lambda expr: isinstance(expr, Call) and expr.function == PART, lift, instead)
    return replace(function, body=lifter.block(body))


def as_one_subscript(expr: Call) -> Subscript | None:
    """`W[i][k]` as `W[i, k]`: right where `i` is a number. None for a part of anything else."""
    base, *index = expr.arguments
    if isinstance(base, Subscript) and not any(isinstance(part, Slice) for part in base.index):
        return Subscript(base.base, (*base.index, *index), expr.span)
    return None


def without_parts_beside_calls(statement: Stmt, function: Function) -> Stmt:
    """A statement in which no part of an expression stands beside a call of a helper, which may change what it is made
    of: `W[labels[i]][k]` is one subscript there; an error for others."""

    def whole(expr: Expr) -> Expr:
        if not isinstance(expr, Call) or expr.function != PART:
            return expr
        if (found := as_one_subscript(expr)) is not None:
            return found
        what = "a subscript of an expression is not supported beside a call of a function of your own"
        why = "which of the two is evaluated first may matter"
        raise unsupported(what, expr.span, function.source, why=why, hint="give the value a name first")

    own = _head(statement)
    calls = [call.function for call in every(Call, own)]
    if PART not in calls or not any(name.startswith("helper:") for name in calls):
        return statement
    changed = rewrite(own, whole)
    kept = {name: getattr(statement, name) for name in ("body", "orelse") if hasattr(statement, name)}
    return replace(changed, **kept)


def _head(statement: Stmt) -> Stmt:
    """A statement without the blocks in it."""
    match statement:
        case If():
            return replace(statement, body=(), orelse=())
        case While() | For():
            return replace(statement, body=())
        case _:
            return statement
