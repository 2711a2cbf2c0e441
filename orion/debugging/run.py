"""`f.debug(...)`: the original function, its planned loops going through their tiles, as Python runs it."""

from __future__ import annotations

import ast
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from types import FunctionType
from typing import Any

from orion.arrays.accumulator import Accumulator
from orion.arrays.replica import Replicated
from orion.dataclass import dataclass
from orion.debugging.hooks import Hooks
from orion.debugging.orders import TileOrder, tile_order
from orion.debugging.source import (
    Hook,
    ends_early,
    made_of,
    name_of,
    nest_of,
    read_outside,
    unused_name,
    with_hooks,
    without_debugging,
)  # fmt: skip
from orion.errors import ArgumentError, OrionError, SerialLoopWarning, describe
from orion.frontend.locate import locate
from orion.plan.plan import Inspected, LoopPlan
from orion.plan.source_plans import main_part
from orion.planned import Plan
from orion.preparations import Numbers, Preparations
from orion.prepared_call import Options
from orion.tracebacks import warn_in_users_line

AsItIs = Callable[[Mapping[str, Any], OrionError], object]


def debug(
    function: FunctionType, signature: inspect.Signature, options: Options, preparations: Preparations,
    numbers: Numbers, arguments: dict[str, Any], workers: int, as_it_is: AsItIs,
) -> Any:  # fmt: skip
    """Run a call; `as_it_is` raises where a function that is not planned cannot be compiled either."""
    _refuse_replicas(function.__name__, arguments)
    planned, lines = without_debugging(function, preparations.lines)
    stages = preparations if planned is function else Preparations(planned, options, lines)
    preparation, given = stages.of(numbers, arguments)
    debugged = function
    try:
        plan = preparation.plan(given, workers, True)
    except OrionError as error:
        as_it_is(given, error)
        _warn(function.__name__, "", "no loop is planned")
    else:
        debugged = _debugged(function, preparations, plan, arguments)
    bound = inspect.BoundArguments(signature, OrderedDict(arguments))
    return debugged(*bound.args, **bound.kwargs)


def _refuse_replicas(name: str, arguments: Mapping[str, Any]) -> None:
    for parameter, value in arguments.items():
        if isinstance(value, Replicated):
            what = f"{name}.debug(): `{parameter}` is a replica"
            why = "each worker of a plan has a copy of its own, and plain Python has one array"
            hint = f"run it on the one array, `{name}.serial(…)`, or debug it with the array itself for `{parameter}`"
            raise ArgumentError(describe(what, why=why, hint=hint))


def _warn(name: str, where: str, why: str) -> None:
    warn_in_users_line(SerialLoopWarning(f"{name}.debug() runs {where or 'the loops'} in written order: {why}"))


def _debugged(
    function: FunctionType, preparations: Preparations, plan: Plan, arguments: Mapping[str, Any]
) -> FunctionType:
    """The function with its loops going through their tiles."""
    definition = deepcopy(locate(function, preparations.lines).definition)
    loops = {(node.lineno, node.col_offset): node for node in ast.walk(definition) if isinstance(node, ast.For)}
    hooks: dict[tuple[int, int], Hook] = {}
    orders: dict[int, TileOrder] = {}
    for number, loop in enumerate(plan.loops):
        at = loop.nest.span.line, loop.nest.span.column
        if at not in loops or loop.nest.span.inlined:
            continue
        order = tile_order(plan, loop, plan.sizes.known)
        if order is not None and order.is_written and loop.nest.elements is None:
            continue
        found = _Candidate(definition, loops[at], loop)
        why = "an iteration runs in several loops" if order is None else found.why_written(arguments)
        if order is None or why:
            if main_part(loop).runs_on > 1 or not loop.ordered:
                _warn(function.__name__, f"the loop in line {at[0]}", why)
            continue
        orders[number] = order
        hooks[at] = Hook(number, len(loop.nest.loops), loop.nest.elements is not None)
    if not hooks:
        return function
    name = unused_name(definition, function)
    return made_of(with_hooks(definition, hooks, name), function, {name: Hooks(orders, plan.arrays)})


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A loop of a function's definition, and its plan."""

    definition: ast.FunctionDef
    node: ast.For
    loop: LoopPlan

    def why_written(self, arguments: Mapping[str, Any]) -> str:
        """Return why the loop runs in its written order, whatever the plan has; an empty string where it need not."""
        return next(self._reasons(arguments), "")

    def _reasons(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        scalars, nest = self.loop.analysis.scalars, nest_of(self.node)[: len(self.loop.nest.loops)]
        if self.loop.nest.elements is None and not self._is_nest(nest):
            yield "its ranges are not a perfect nest of `for … in range(…)`"
        if ends_early(nest):
            yield "it may end early, or has an `else`"
        if scalars.choices:
            yield "it finds the first of equal values"
        given = [value for value in arguments.values() if isinstance(value, Accumulator)]
        if scalars.accumulations and not all(one.is_commutative for one in given):
            yield "the values of an accumulator are combined in order"
        sums = {one.name for one in scalars.reductions}
        outside = read_outside(self.definition, self.node, sums.__contains__)
        private = [one.name for one in self.loop.private_arrays]
        if outside:
            yield f"`{outside}` is read after it, as its last iteration leaves it"
        if private and not isinstance(self.loop.tiles, Inspected):
            yield f"`{private[0]}` is left as its last iteration leaves it"

    def _is_nest(self, nest: list[ast.For]) -> bool:
        """Whether the loops of the source are the ranges of the plan."""
        names = [name_of(one) for one in nest]
        return names == list(self.loop.nest.dims) and all(_is_range(one.iter) for one in nest)


def _is_range(node: ast.expr) -> bool:
    match node:
        case ast.Call(ast.Name(name) | ast.Attribute(_, name), [_, *_], []):
            changes = any(isinstance(one, ast.NamedExpr | ast.Yield | ast.Await) for one in ast.walk(node))
            return name in ("range", "prange") and not changes
        case _:
            return False
