"""Conditions under which a loop is parallel whose iterations conflict for some sizes or some data."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orion.cli.audit.accesses import Model
from orion.cli.audit.races import Races
from orion.cli.audit.values import Finding, Verdict
from orion.dependence.access import Dependence
from orion.dependence.conditions import as_assumed, free_of
from orion.dependence.properties import properties_without
from orion.errors import OrionError
from orion.ir.nodes import Dim, Expr, Var
from orion.ir.spans import NOWHERE
from orion.ir.types import ArrayType
from orion.plan.conditions import in_words
from orion.sets.names import extent_name, isl_name

if TYPE_CHECKING:
    import islpy as isl


def condition_of(dependences: Sequence[Dependence], model: Model, races: Races, loop: ast.For) -> Finding:
    """Return the condition under which none of these dependences is there, or why there is none to be told."""
    blurred = [one for one in dependences if not one.exact]
    exact = [one for one in dependences if one.exact]
    found: list[Finding] = []
    if blurred:
        found.append(_of_contents(blurred, model))
    if exact:
        found.append(_of_exact(exact, model, races, loop))
    unknown = next((one for one in found if one.verdict is Verdict.UNKNOWN), None)
    if unknown is not None:
        return unknown
    condition = " and ".join(one.condition for one in found)
    return Finding(Verdict.CONDITIONAL, found[0].code, found[0].reason, condition, found[0].hint)


def _of_contents(dependences: Sequence[Dependence], model: Model) -> Finding:
    """The properties of index arrays that keep iterations apart."""
    wanted = properties_without(dependences, model.maps)
    first = dependences[0]
    reason = first.reason
    told = f"iterations may meet over `{first.array}` ({_lines(first)})"
    if wanted:
        condition = " and ".join(f"{array} {one}" for array, one in wanted)
        return Finding(Verdict.CONDITIONAL, "AUD111", told, condition)
    hint = reason.hint if reason is not None else ""
    if reason is None:
        return Finding(Verdict.UNKNOWN, "AUD130", told)
    return Finding(Verdict.UNKNOWN, reason.code, f"{told}: {reason.message}", hint=hint)


def _of_exact(dependences: Sequence[Dependence], model: Model, races: Races, loop: ast.For) -> Finding:
    """What decides about conflicts whose elements are known: data, sizes, or whether values differ."""
    may = [one for one in dependences if one.source.is_may or one.sink.is_may]
    sure = [one for one in dependences if one not in may]
    if may and not sure:
        one = may[0]
        span = (one.source if one.source.is_may else one.sink).span
        if not _is_guarded(loop, span.line):
            reason = f"what line {span.line} calls may write `{one.array}` ({_lines(one)})"
            return Finding(Verdict.UNKNOWN, "AUD130", reason)
        reason = f"where a condition in the loop holds, iterations meet over `{one.array}` ({_lines(one)})"
        condition = f"no two iterations that touch an element of `{one.array}` in common get to line {span.line}"
        return Finding(Verdict.CONDITIONAL, "AUD113", reason, condition)
    one = (sure or may)[0]
    free = free_of(dependences, 0, _known(model), model.maps)
    if free is not None:
        words = _words(free, model)
        if words:
            reason = f"at some sizes iterations meet over `{one.array}` ({_lines(one)})"
            return Finding(Verdict.CONDITIONAL, "AUD110", reason, words)
    if one.kind == "output" and races.store(one.source) is not None:
        reason = f"several iterations write one element of `{one.array}` ({_lines(one)}), perhaps with the same value"
        return Finding(Verdict.UNKNOWN, "AUD123", reason)
    reason = f"iterations may meet over `{one.array}` ({_lines(one)}), if sizes and integers are such"
    return Finding(Verdict.UNKNOWN, "ORN101", reason)


def _is_guarded(loop: ast.For, line: int) -> bool:
    """Whether a line of a loop stands in something that may not be run."""
    guards = (ast.If, ast.While, ast.For, ast.IfExp, ast.BoolOp, ast.Compare)
    jumps = any(isinstance(one, ast.Continue) for one in ast.walk(loop))
    inside = (one for one in ast.walk(loop) if isinstance(one, guards) and one is not loop)
    return jumps or any(one.lineno <= line <= (one.end_lineno or one.lineno) for one in inside)


def _known(model: Model) -> frozenset[str]:
    """The parameters whose values a call gives."""
    found = set()
    for name, kind in model.types.items():
        if isinstance(kind, ArrayType):
            found |= {extent_name(name, axis) for axis in range(kind.ndim)}
        else:
            found.add(isl_name(name))
    return frozenset(found)


def _words(free: isl.Set, model: Model) -> str:
    """A set of sizes as an expression of Python; empty where it has none."""
    names: Mapping[str, Expr] = {
        extent_name(name, axis): Dim(name, axis, NOWHERE)
        for name, kind in model.types.items()
        if isinstance(kind, ArrayType)
        for axis in range(kind.ndim)
    } | {isl_name(name): Var(name, NOWHERE) for name, kind in model.types.items() if not isinstance(kind, ArrayType)}
    try:
        return in_words(as_assumed(0, free), names)
    except (OrionError, KeyError, ValueError, RuntimeError):
        return ""


def _lines(one: Dependence) -> str:
    lines = sorted({one.source.span.line, one.sink.span.line})
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} and {lines[1]}"
