"""The conditions of a plan: what holds of the sizes and integers of the calls that it is for, and of this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orion.cost.sizes import Sizes
from orion.dependence.conditions import holds, in_words, is_possible
from orion.ir.assumed import Assumed, OfArray, OfSizes
from orion.ir.nodes import For, Function, every
from orion.ir.types import ArrayType, ScalarType, Types
from orion.plan.plan import Considered, FunctionPlan
from orion.reasons import Reason
from orion.sets.names import extent_name, isl_name


def may_hold(assumed: Assumed, sizes: Sizes) -> bool:
    """Whether a condition holds in a call or, where there is none, may."""
    match assumed:
        case OfSizes():
            return is_possible(assumed, sizes.values) if sizes.symbolic else holds(assumed, sizes.values)
        case OfArray(array=array, has=wanted):
            return sizes.symbolic or (array, wanted) in sizes.shown


def conditions_in_words(function: Function, types: Types) -> tuple[str, ...]:
    """What a variant of a function takes to hold, as expressions of Python."""
    return tuple(_in_words(assumed, _names(function, types)) for assumed in function.assumed)


def _in_words(assumed: Assumed, names: Mapping[str, str]) -> str:
    match assumed:
        case OfSizes():
            return in_words(assumed, names)
        case OfArray(array=array, has=wanted):
            return f"{array}: {wanted}"


def _names(function: Function, types: Types) -> Mapping[str, str]:
    """What the parameters of isl are called in the source."""
    names: dict[str, str] = {}
    for name in function.given:
        match types[name]:
            case ScalarType():
                names[isl_name(name)] = name
            case ArrayType(ndim=ndim):
                shapes = (f"{name}.shape[{axis}]" for axis in range(ndim))
                names |= {extent_name(name, axis): shape for axis, shape in enumerate(shapes)}
            case _:
                pass
    return names


def with_conditions(plan: FunctionPlan, failing: Iterable[Assumed]) -> FunctionPlan:
    """A plan with the variants that were not taken because conditions do not hold at its sizes and integers."""
    names, known = _names(plan.program.function, dict(plan.types)), plan.sizes.values
    spans = {loop.index: loop.span for loop in every(For, *plan.program.function.body)}
    found = list(plan.considered)
    for assumed in failing:
        condition, span = _in_words(assumed, names), spans[assumed.index]
        of_call = assumed.names if isinstance(assumed, OfSizes) else ()
        values = ", ".join(f"{names.get(name, name)} = {known[name]}" for name in of_call if name in known)
        reason = Reason.of("ORN125", f"`{condition}` does not hold" + (f": {values}" if values else ""), span)
        found.append(Considered(f"line {span.line} in parallel, if {condition}", None, reason))
    return replace(plan, considered=tuple(found))
