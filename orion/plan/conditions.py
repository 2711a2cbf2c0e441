"""The conditions of a plan: what holds of the sizes and integers of the calls that it is for, and of this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

from orion.cost.candidate import Strategy
from orion.cost.sizes import Sizes
from orion.dependence.conditions import as_set, holds, is_possible
from orion.ir.assumed import Assumed, OfArray, OfSizes, OfWorkers
from orion.ir.function import Function, in_users_words, written_names
from orion.ir.nodes import Binary, Dim, Expr, For, Logic, Var, every
from orion.ir.printer import print_expr
from orion.ir.spans import NOWHERE
from orion.ir.types import ArrayType, ScalarType, Types
from orion.passes.local_arrays import definitions
from orion.plan.plan import Considered, FunctionPlan, LoopPlan, source_nest
from orion.plan.source_plans import loops_of_source
from orion.reasons import Reason
from orion.rewrites.reorder.expressions import from_isl
from orion.rewrites.scans.find import in_blocks_in_words
from orion.sets.names import extent_name, isl_name
from orion.source import Span


def may_hold(assumed: Assumed, sizes: Sizes) -> bool:
    """Whether a condition holds in a call or, where there is none, may."""
    match assumed:
        case OfSizes():
            return is_possible(assumed, sizes.values) if sizes.symbolic else holds(assumed, sizes.values)
        case OfArray(array=array, has=wanted):
            return sizes.symbolic or (array, wanted, True) in sizes.shown
        case OfWorkers(least=least):
            return sizes.force_parallel or sizes.workers >= least


def conditions_in_words(function: Function, types: Types) -> tuple[str, ...]:
    """What a variant of a function takes to hold, as expressions of Python."""
    texts = (_in_words(assumed, _names(function, types)) for assumed in function.assumed)
    return tuple(dict.fromkeys(in_users_words(text, function) for text in texts))


def in_words(assumed: OfSizes, names: Mapping[str, Expr]) -> str:
    """A condition as an expression of Python; `names` are what parameters stand for.

    >>> from orion.ir.spans import NOWHERE
    >>> names = {"lo": Var("lo", NOWHERE), "a__0": Dim("a", 0, NOWHERE)}
    >>> in_words(OfSizes(0, "(lo >= 0 or 2lo <= a__0)", ("lo", "a__0")), names)
    'lo >= 0 or a.shape[0] >= 2*lo'
    """
    import islpy as isl

    condition = as_set(assumed)
    known = {name: names.get(name, Var(name, NOWHERE)) for name in assumed.names}
    found = from_isl(isl.AstBuild.alloc(condition.get_ctx()).expr_from_set(condition), known, NOWHERE)
    return _told(found)


def _told(condition: Expr) -> str:
    match condition:
        case Logic(op, parts):
            is_other = [isinstance(part, Logic) and part.op != op for part in parts]
            texts = zip(map(_told, parts), is_other, strict=True)
            return f" {op} ".join(f"({text})" if in_brackets else text for text, in_brackets in texts)
        case _:
            return print_expr(condition).replace(" * ", "*")


def _in_words(assumed: Assumed, names: Mapping[str, Expr]) -> str:
    match assumed:
        case OfSizes():
            return in_words(assumed, names)
        case OfArray(array=array, has=wanted):
            return f"{array} {wanted}"
        case OfWorkers(least=least):
            return f"there are at least {least} workers"


def _names(function: Function, types: Types) -> Mapping[str, Expr]:
    """What the parameters of isl stand for in the source: an array that is taken for rows has one axis there."""
    names: dict[str, Expr] = {}
    rows = {one.array: one.widths for one in function.rows}
    for name in function.given:
        match types[name]:
            case ScalarType():
                names[isl_name(name)] = Var(name, NOWHERE)
            case ArrayType() if name in rows:
                elements = reduce(lambda left, right: Binary("*", left, right, NOWHERE), rows[name])
                names[extent_name(name, 0)] = Binary("//", Dim(name, 0, NOWHERE), elements, NOWHERE)
                names |= {extent_name(name, axis): width for axis, width in enumerate(rows[name], 1)}
            case ArrayType(ndim=ndim):
                names |= {extent_name(name, axis): Dim(name, axis, NOWHERE) for axis in range(ndim)}
            case _:
                pass
    written = written_names(function)
    return names | {isl_name(name): value for name, value in definitions(function).items() if name not in written}


def with_conditions(plan: FunctionPlan, function: Function, failing: Iterable[Assumed]) -> FunctionPlan:
    """A plan with what is to be said of a variant that was not taken, which has this function, because conditions do
    not hold at its sizes and integers."""
    names, known = _names(plan.program.function, dict(plan.types)), plan.sizes.values
    spans = {loop.index: loop.span for loop in every(For, *function.body)}
    found = list(plan.considered)
    failing = tuple(failing)
    shown = [one for one in failing if isinstance(one, OfArray) and (one.array, one.has, False) in plan.sizes.shown]
    for assumed in shown or failing:  # of others nothing was looked for then
        condition, span = _in_words(assumed, names), spans[assumed.index]
        of_call = [name for name in assumed.names if name in known] if isinstance(assumed, OfSizes) else []
        values = ", ".join(f"{print_expr(names.get(name, Var(name, NOWHERE)))} = {known[name]}" for name in of_call)
        message = f"`{condition}` does not hold" + (f": {values}" if values else "")
        if isinstance(assumed, OfWorkers):
            message = f"there are fewer: {plan.sizes.workers}"
        way = _better(plan, span)
        if way:
            found.append(
                Considered(f"line {span.line} {way}, if {condition}", None, Reason.of("ORN125", message, span))
            )
    loops = tuple(_with_scans_from(loop, function, shown or failing, spans, plan) for loop in plan.loops)
    return replace(plan, loops=loops, considered=tuple(found))


def _better(plan: FunctionPlan, span: Span) -> str:
    """How the `for` at a place may run where a condition holds, if that is better than how it runs; "" where it is
    not."""
    loops = [loop for loop in loops_of_source(plan) if span in {one.span for one in source_nest(loop).loops}]
    shared = next((loop for loop in loops if loop.strategy is not Strategy.SERIAL), None)
    if shared is None:
        return "in parallel"
    if shared.copies:
        return f"without copies of {' and '.join(f'`{one.array}`' for one in shared.copies)}"
    return "" if shared.strategy is Strategy.INDEPENDENT else "with fewer conflicts"


def _with_scans_from(
    loop: LoopPlan, function: Function, failing: Iterable[Assumed], spans: Mapping[int, Span], plan: FunctionPlan
) -> LoopPlan:
    """A serial loop with the sizes from which on scans share it out, where these alone are against it."""
    names = _names(plan.program.function, dict(plan.types))
    for one in function.in_blocks:
        found = [each for each in failing if isinstance(each, OfSizes) and each.index == one.loop]
        if loop.is_parallel or not found or spans[one.loop] != loop.nest.span:
            continue
        condition = " and ".join(in_words(each, names) for each in found)
        message = f"{in_blocks_in_words(one.names, function)}, except where `{condition}`"
        return replace(loop, reasons=(*loop.reasons, Reason.of("ORN120", message, loop.nest.span)))
    return loop
