"""Loops over one sparse array of which some store values: they go through it in the same tiles, since the values that
one stores lie where the others read them.

Loops in any order have the same tiles for one array anyway (`orion.cost.grid`). Those in the order of the array may cut
other dimensions, into (32, 1) and (1, 32) tiles, say. Then each takes the blocks of all of them, where that keeps its
order:

- where the first dimension alone is cut, tiles one after the other have the elements in the order of the array;
- of two dimensions, conflicts of a loop agree in the one that it shares out, or go forwards in both. Elements with the
  same first key are in tiles in the order of the second one, and those with the same second key in that of the first.

Otherwise all of them are serial. What is cut does not depend on the number of workers: the bits of sums depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from orion.analysis.one_loop import AnalysedLoop
from orion.cost.grid import LINE_BLOCKS, SHARED_GRID, whole_multiple
from orion.cost.sizes import Sizes
from orion.plan.plan import LoopPlan, Tiled
from orion.reasons import Reason

Again = Callable[[AnalysedLoop], LoopPlan]


def in_one_order(
    loops: Sequence[AnalysedLoop], plans: Sequence[LoopPlan], sizes: Sizes, again: Again
) -> tuple[LoopPlan, ...]:
    """The plans of the loops of a function, where those over an array that is stored have the same tiles; `again` plans
    a loop that is another now."""
    found = list(plans)
    for array, numbers in _stored(plans):
        own = [plans[number] for number in numbers]
        cuts = _of_all(own, sizes.shapes.get(array), sizes.workers)
        is_kept = all(_keeps_order(plan, cuts) for plan in own)
        for number in numbers:
            plan = plans[number]
            found[number] = replace(plan, cuts=cuts) if is_kept else _serial(loops[number], plan, array, again)
    return tuple(found)


def _stored(plans: Sequence[LoopPlan]) -> Iterator[tuple[str, list[int]]]:
    """The arrays that several loops go through in its order, some of which store its values, with the numbers of these
    loops."""
    over: dict[str, list[int]] = {}
    for number, plan in enumerate(plans):
        if plan.nest.elements is not None and plan.ordered:
            over.setdefault(plan.nest.elements.array, []).append(number)
    for array, numbers in over.items():
        if len(numbers) > 1 and any(plans[number].nest.stored for number in numbers):
            yield array, numbers


def _of_all(plans: Sequence[LoopPlan], extents: Sequence[int] | None, workers: int) -> tuple[int, ...]:
    """The numbers of blocks where each dimension is cut that one of the loops cuts."""
    tiled = [plan.tiles for plan in plans if isinstance(plan.tiles, Tiled)]
    cut = {dim for tiles in tiled for dim in (tiles.space, *tiles.time)}
    few = any(tiles.time for tiles in tiled) or any(plan.copies for plan in plans)
    blocks = whole_multiple(SHARED_GRID if few else LINE_BLOCKS, workers)
    most = [blocks] * len(plans[0].cuts) if extents is None else [max(1, min(blocks, extent)) for extent in extents]
    return tuple(number if dim in cut else 1 for dim, number in enumerate(most))


def _keeps_order(plan: LoopPlan, cuts: Sequence[int]) -> bool:
    return all(blocks == 1 for blocks in cuts[1:]) or (len(cuts) == 2 and isinstance(plan.tiles, Tiled))


def _serial(loop: AnalysedLoop, plan: LoopPlan, array: str, again: Again) -> LoopPlan:
    serial = again(replace(loop, candidates=(), summed=None))
    if not plan.is_parallel:
        return serial
    message = f"values of `{array}` are stored, and the loops over it would go through its elements in different tiles"
    hint = "put each of the loops into a function of its own, or leave out `ordered=True`"
    return replace(serial, reasons=(*serial.reasons, Reason.of("ORN130", message, plan.nest.span, hint=hint)))
