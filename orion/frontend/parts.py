"""Subscripts of what is no name: `np.argsort(x)[:k]`, `(a * b)[0]`. What they take parts of gets a name first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from orion.ir.as_statements import as_branches
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.lifting import Lifter
from orion.ir.nodes import PART, RETURNED, Assign, Call, Expr, Return, Slice, Stmt, Subscript, Var, every
from orion.ir.refuse import unsupported
from orion.ir.rewriting import expand, rewrite_function, with_new, with_parts


def with_returned_parts(function: Function) -> Function:
    """The function with parts of parts of arrays that it returns, `path[:k][::-1]`, as what only a `return` knows."""

    def returned(statement: Stmt) -> tuple[Stmt, ...]:
        if isinstance(statement, Return) and statement.value is not None:
            value = with_parts(statement.value, lambda part: _as_returned(part, function.lists))
            statement = with_new(statement, value=value)
        return (statement,)

    return with_new(function, body=expand(function.body, returned))


def _as_returned(part: Expr, lists: Collection[str]) -> Expr:
    match part:
        case Call(".copy" | "np.copy", (inner,)) if not part.keywords:
            return Call(".copy", (_as_returned(inner, lists),), part.span)
        case Call(function, (base, *index)) if function == PART and all(isinstance(one, Slice) for one in index):
            found = _as_returned(base, lists)
            is_array = isinstance(found, Subscript) and found.base.name not in lists
            if is_array or (isinstance(found, Call) and found.function == RETURNED):
                return Call(RETURNED, (found, *index), part.span)
    return part


def with_named_bases(function: Function, taken: Collection[str]) -> Function:
    """The function with subscripts of names alone; `taken` are further names that it has. Any function of the user's
    may write arrays, for all that is known here."""
    parts = [call for call in every(Call, *function.body) if call.function == PART]
    if not parts:
        return function
    bases = {part.arguments[0] for part in parts}
    names = {*function.params, *assigned_names(function.body), *taken}
    staying: dict[Expr, str] = {}

    def lift(base: Expr, before: list[Stmt]) -> Expr:
        called = base.function.rpartition(".")[2] if isinstance(base, Call) else "value"
        name = f"{called.rpartition(':')[2]}_{base.span.line}"
        while name in names:
            name += "_"
        names.add(name)
        before.append(Assign(Var(name, base.span), base, base.span))
        return Var(name, base.span)

    def instead(base: Expr, why: str) -> Expr:
        staying[base] = why
        return base

    def subscript(expr: Expr) -> Expr:
        if not isinstance(expr, Call) or expr.function != PART:
            return expr
        base, *index = expr.arguments
        if isinstance(base, Var):
            return Subscript(base, tuple(index), expr.span)
        found = as_one_subscript(expr)
        if found is None:
            what, hint = "a subscript of an expression is not supported here", "give the value a name first"
            why, text = staying.get(base, ""), as_branches(expr.span, function.source)
            raise unsupported(what, expr.span, function.source, why=why, hint=hint, replacement=text)
        return found

    lifter = Lifter(lambda expr: expr in bases, lift, instead, lambda call: call.function.startswith("helper:"))
    return rewrite_function(replace(function, body=lifter.block(function.body)), subscript)


def as_one_subscript(expr: Call) -> Subscript | None:
    """`W[i][k]` as `W[i, k]`: right where `i` is a number. None for a part of anything else."""
    base, *index = expr.arguments
    if isinstance(base, Subscript) and not any(isinstance(part, Slice) for part in base.index):
        return Subscript(base.base, (*base.index, *index), expr.span)
    return None
