"""Ranges of a `for`, and what they are made of."""

from __future__ import annotations

import ast

from orion.frontend.parse_expressions import parse_expression
from orion.frontend.scope import Scope
from orion.ir.constants import as_literal, constant_value
from orion.ir.nodes import Binary, Const, Expr, Range
from orion.ir.sums import difference, literal, plus, total


def read_range(target: ast.expr, node: ast.expr, scope: Scope) -> Range:
    """`for i in range(…)`."""
    if not isinstance(target, ast.Name):
        raise scope.refuse(target, "a range has one loop variable", "", "write `for i in range(…):`")
    return Range(target.id, *range_bounds(node, scope), scope.span(node))


def range_bounds(node: ast.expr, scope: Scope) -> tuple[Expr, Expr, Expr]:
    """The start, the stop and the step of a call of `range`."""
    assert isinstance(node, ast.Call)
    if not 1 <= len(node.args) <= 3 or node.keywords:
        raise scope.refuse(node, "`range` takes one to three bounds", "", "write `range(start, stop, step)`")
    span = scope.span(node)
    bounds = [parse_expression(argument, scope) for argument in node.args]
    if len(bounds) == 1:
        bounds = [Const(0, span), *bounds]
    if len(bounds) == 2:
        bounds = [*bounds, Const(1, span)]
    step = as_literal(bounds[2])
    if isinstance(step, Const) and step.value == 0:
        raise scope.refuse(node.args[2], "the step of a range is 0")
    return bounds[0], bounds[1], step


def literal_step(step: Expr, node: ast.expr, scope: Scope) -> int:
    """The step of a range as a number; an error where it is none."""
    found = constant_value(step)
    if found is None:
        what = "the step of this range is not a number"
        raise scope.refuse(node, what, "how many items it has depends on its sign", "write the step as a number")
    return found


def from_last_to_first(space: Range, node: ast.expr, scope: Scope) -> Range:
    """The same values from the last to the first."""
    step = literal_step(space.step, node, scope)
    if abs(step) == 1:
        last = plus(space.stop, -step)
    else:
        last = total(space.start, times(plus(trips_of(space.start, space.stop, step), -1), step))
    return Range(space.var, last, plus(space.start, -step), literal(-step, space.span), space.span)


def trips_of(start: Expr, stop: Expr, step: int) -> Expr:
    """How many values a range has, if it has any; else 0 or less."""
    if step < 0:
        return trips_of(stop, start, -step)
    apart = difference(stop, start)
    return apart if step == 1 else Binary("//", plus(apart, step - 1), literal(step, stop.span), stop.span)


def times(expr: Expr, factor: int) -> Expr:
    return expr if factor == 1 else Binary("*", literal(factor, expr.span), expr, expr.span)
