"""Which serial run the result of a loop equals, in words."""

from __future__ import annotations

from orion.inspect.text.telling import scans_of
from orion.inspect.text.words import listed
from orion.ir.function import written_names
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.plan.rounded import rounded_in_parts


def order_in_words(loop: LoopPlan, plan: FunctionPlan) -> str:
    """Which serial run the result equals, if one does, and which floats are rounded in another way."""
    if loop.nest.late and loop.runs_on > 1:
        order = "as written" if loop.ordered else "any"
        return f"{order}, on each worker; what is relaxed is what no serial run would give"
    floats = _floats(loop, plan)
    if not loop.ordered:
        any_order = "any: the result is that of some serial order of the iterations (plan.serial_order())"
        return f"{any_order}; {floats}" if floats else any_order
    if floats:
        return f"as written, but {floats} from those of the serial loop"
    return "as written: the result is that of the loop run from its first iteration to its last"


def _floats(loop: LoopPlan, plan: FunctionPlan) -> str:
    """What is combined from parts, and is therefore rounded in another way; "" where nothing is."""
    scanned = [name for one in scans_of(loop) if one.is_rounded for name in one.names]
    found = dict.fromkeys((*rounded_in_parts(loop, plan), *scanned))
    if not found:
        return ""
    accumulated = {name: one.source for one in loop.nest.function.accumulated for name in one.names}
    said = dict.fromkeys(accumulated.get(name, name) for name in found)
    written = written_names(loop.nest.function)
    names = listed([f"`{name}`" for name in said if name in written])
    return f"floats {f'in {names} ' if names else ''}are combined from parts: their last digits may differ"
