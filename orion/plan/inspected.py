"""Loops that run in tiles which an inspection of their subscripts has found."""

from __future__ import annotations

from dataclasses import replace

from orion.cost.candidate import Strategy
from orion.cost.placement import Placement, PlacementKind
from orion.cost.sizes import Sizes
from orion.dependence.inspection import Inspectable, Inspection
from orion.plan.plan import Inspected, LoopPlan, NotInspected
from orion.reasons import Reason


def with_inspection(plan: LoopPlan, inspectable: Inspectable, sizes: Sizes) -> LoopPlan:
    """The plan of a loop that is serial without an inspection, with what one has found, if there was one and its tiles
    pay."""
    found = dict(sizes.inspected).get(inspectable)
    if found is None:
        return replace(plan, tiles=NotInspected(inspectable), reasons=(*plan.reasons, _not_yet(plan, inspectable)))
    if not (found.pays or sizes.force_parallel):
        return replace(plan, tiles=NotInspected(inspectable), reasons=(*plan.reasons, _too_costly(plan, found)))
    return replace(
        plan,
        strategy=Strategy.INSPECTED,
        tiles=Inspected(inspectable, found),
        cuts=(found.tiles, *plan.cuts[1:]),
        is_parallel=found.tiles > 1,
        placements=tuple(map(_in_place, plan.placements)),
        reasons=(*plan.reasons, _found(plan, found)),
        runs_on=min(found.workers, found.tiles),
        rounds_overlap=False,
    )


def may_gain(plan: LoopPlan, sizes: Sizes) -> bool:
    """Whether a loop runs in tiles that an inspection has found, or may when it is inspected."""
    match plan.tiles:
        case Inspected():
            return True
        case NotInspected(inspectable):
            return inspectable not in dict(sizes.inspected)
        case _:
            return False


def _in_place(placement: Placement) -> Placement:
    """Where an array lives of which tiles touch elements that nobody can say before: in memory that all share."""
    kind = PlacementKind.SERVED if placement.is_written else PlacementKind.REPLICATED
    return Placement(placement.array, kind, None, None, placement.is_written, 0)


def _not_yet(plan: LoopPlan, inspectable: Inspectable) -> Reason:
    message = (
        f"which iterations need which is written in {_listed(inspectable.reads)}: once calls with the same contents "
        "have taken 0.1 s the loop runs in tiles that these allow, if that is faster; `plan(…, inspect=True)` looks at "
        "once"
    )
    return Reason.of("ORN127", message, plan.nest.span)


def _too_costly(plan: LoopPlan, found: Inspection) -> Reason:
    message = (
        f"{_in_numbers(found)}; on {found.workers} workers they would take {_ms(found.tiles_ns)}, as written "
        f"{_ms(found.serial_ns)} (predicted)"
    )
    return Reason.of("ORN128", message, plan.nest.span)


def too_short(plan: LoopPlan, iterations: int, time: float) -> Reason:
    """Why a loop is not inspected that takes so many nanoseconds."""
    microseconds = max(1, round(time / 1000))
    message = f"not looked at: {iterations:,} iterations take about {microseconds} µs, too little to share out"
    return Reason.of("ORN128", message, plan.nest.span)


def _found(plan: LoopPlan, found: Inspection) -> Reason:
    gain = found.serial_ns - found.tiles_ns
    each = f", each of {found.rounds:,.0f} times in a call" if found.rounds > 1 else ""
    calls = f", which pays from call {1 + int(found.inspection_ns / (gain * found.rounds))} on" if gain > 0 else ""
    message = (
        f"{_in_numbers(found)}: {_ms(found.tiles_ns)} on {found.workers} workers, as written {_ms(found.serial_ns)} "
        f"(predicted{each}); looking took {_ms(found.inspection_ns)}{calls}"
    )
    return Reason.of("ORN129", message, plan.nest.span)


def _in_numbers(found: Inspection) -> str:
    chain = f"the longest chain has {found.depth:,} of {found.order.size:,} iterations"
    return f"{found.tiles:,} tile{'s' * (found.tiles != 1)}, {found.kind}; {chain}"


def _ms(nanoseconds: float) -> str:
    milliseconds = nanoseconds / 1e6
    return f"{milliseconds:,.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"


def _listed(names: tuple[str, ...]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
