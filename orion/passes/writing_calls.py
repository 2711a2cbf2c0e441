"""Calls of helpers that write arrays, inside an expression or a test, as statements of their own before it
(`orion.ir.lifting`). Those for which that is not right stay where they are, and are refused
(`orion.passes.kernel_limits`)."""

from __future__ import annotations

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.lifting import Lifter
from orion.ir.nodes import Assign, Call, Evaluate, Expr, Stmt, Var, every
from orion.ir.rewriting import with_new
from orion.ir.types import ScalarType, Types
from orion.passes.writes import helper_writes


def with_calls_first(function: Function, types: Types) -> Function:
    """The function with calls that write arrays as statements, where that is right."""
    writes = helper_writes(function, {k: 0 if isinstance(kind, ScalarType) else kind.ndim for k, kind in types.items()})
    if not any(map(writes, every(Call, *function.body))):
        return function
    taken = {*function.params, *assigned_names(function.body)}
    whole = {one.value for one in every((Assign, Evaluate), *function.body)}  # statements of their own already

    def lift(call: Call, before: list[Stmt]) -> Expr:
        called, number = call.function.removeprefix("helper:"), 1
        while f"{called}_{number}" in taken:
            number += 1
        taken.add(f"{called}_{number}")
        name = Var(f"{called}_{number}", call.span)
        before.append(Assign(name, call, call.span))
        return name

    def is_lifted(expr: Expr) -> bool:
        return isinstance(expr, Call) and expr not in whole and writes(expr)

    return with_new(function, body=Lifter(is_lifted, lift, lambda call, why: call, writes).block(function.body))
