"""Steps of ranges that are given by the call, as the numbers that they are there.

    for i in range(lo, hi, step):
        a[i] = 0.0

Which elements the iterations touch is an affine function of their numbers once the step is a number. A function is
analysed anew for each value that a step has, under the condition that it has it: there are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.constants import as_literal
from orion.ir.function import Function
from orion.ir.nodes import Const, Expr, For, Range, Stmt, Var, every, names_in
from orion.ir.rewriting import expand, rewrite


def names_in_steps(function: Function) -> dict[str, int]:
    """The arguments that the steps of ranges are made of, where nothing assigns them, each with the first `for`."""
    changed = assigned_names(function.body)
    first = {name: loop.index for loop in reversed([*every(For, *function.body)]) for name in _names(loop)}
    return {name: first[name] for name in function.given if name in first and name not in changed}


def _names(loop: For) -> set[str]:
    return names_in(loop.space.step) if isinstance(loop.space, Range) else set()


def with_steps(function: Function, values: Mapping[str, int]) -> Function:
    """The function with numbers for these names in the steps of its ranges."""

    def number(expr: Expr) -> Expr:
        return Const(values[expr.name], expr.span) if isinstance(expr, Var) and expr.name in values else expr

    def stepped(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case For(Range(step=step) as space) if names_in(step) & values.keys():
                return (replace(statement, space=replace(space, step=as_literal(rewrite(step, number)))),)
            case _:
                return (statement,)

    return replace(function, body=expand(function.body, stepped))
