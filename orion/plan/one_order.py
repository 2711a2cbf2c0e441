"""Loops over one sparse array of which some store values: they go through it in the same tiles, since the values that
one stores lie where the others read them.

Loops in any order have the same tiles for one array anyway (`orion.cost.grid`). Those in the order of the array may cut
other dimensions, (32, 1) and (1, 32) tiles, say. Then each takes the blocks of all of them, where that keeps its order:

- where the first dimension alone is cut, tiles one after the other have the elements in the order of the array;
- of two dimensions, conflicts of a loop agree in the one that it shares out, or go forwards in both. Elements with the
  same first key are in tiles in the order of the second one, and those with the same second key in that of the first.

Otherwise all of them are serial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from orion.analysis.one_loop import AnalysedLoop
from orion.plan.plan import LoopPlan, Tiled
from orion.reasons import Reason

Again = Callable[[AnalysedLoop], LoopPlan]


def in_one_order(loops: Sequence[AnalysedLoop], plans: Sequence[LoopPlan], again: Again) -> tuple[LoopPlan, ...]:
    """The plans of the loops of a function, where those over an array that is stored have the same tiles; `again` plans
    a loop that is another now."""
    found = list(plans)
    for numbers in _apart(plans):
        cuts = tuple(map(max, *(plans[number].cuts for number in numbers)))
        if all(_keeps_order(plans[number], cuts) for number in numbers):
            for number in numbers:
                found[number] = replace(plans[number], cuts=cuts)
        else:
            for number in numbers:
                found[number] = _serial(loops[number], plans[number], again)
    return tuple(found)


def _apart(plans: Sequence[LoopPlan]) -> Iterator[list[int]]:
    """The numbers of loops over the same array in different tiles, some of which store its values."""
    over: dict[str, list[int]] = {}
    for number, plan in enumerate(plans):
        if plan.nest.elements is not None:
            over.setdefault(plan.nest.elements.array, []).append(number)
    for numbers in over.values():
        is_stored = any(plans[number].nest.stored for number in numbers)
        if is_stored and len({plans[number].cuts for number in numbers}) > 1:
            yield numbers


def _keeps_order(plan: LoopPlan, cuts: Sequence[int]) -> bool:
    return all(blocks == 1 for blocks in cuts[1:]) or (len(cuts) == 2 and isinstance(plan.tiles, Tiled))


def _serial(loop: AnalysedLoop, plan: LoopPlan, again: Again) -> LoopPlan:
    serial = again(replace(loop, candidates=(), summed=None))
    if not plan.is_parallel or plan.nest.elements is None:
        return serial
    array = plan.nest.elements.array
    message = f"values of `{array}` are stored, and the loops over it would go through its elements in different tiles"
    return replace(serial, reasons=(*serial.reasons, Reason.of("ORN130", message, plan.nest.span)))
