"""What moves between loops that leave an array cut along one axis and take it up cut along another.

Each loop by itself may be cheapest along another dimension: rows of a matrix for one, columns for the next. Then all
of the matrix goes from worker to worker between them, each round. So candidates are compared with what their
neighbours do, too (the alignment of arrays across loops: Li and Chen 1991; Kennedy and Kremer 1998).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from orion.cost.placement import Placement, PlacementKind, array_bytes
from orion.cost.worth import rounds_of
from orion.dataclass import dataclass
from orion.ir.program import Program, Repeat, RunLoop, Step, blocks_of
from orion.ir.types import Shapes, Types
from orion.plan.plan import LoopPlan, Reordered


@dataclass(frozen=True, slots=True)
class Handover:
    """Loop `second` is the next after loop `first` to use an array, `times` times per call."""

    first: int
    second: int
    array: str
    times: float


def handovers(program: Program, loops: Sequence[LoopPlan], values: Mapping[str, int]) -> tuple[Handover, ...]:
    """Who takes which array over from whom, among the loops as written over ranges that several workers run. The
    elements of a sparse array are cut alike for all loops over it."""
    arrays = {
        loop.nest.number: [placement.array for placement in loop.placements]
        for loop in loops
        if loop.runs_on > 1 and loop.nest.elements is None and not isinstance(loop.form, Reordered)
    }
    return tuple(_handovers(program.steps, 1.0, {}, arrays, values))


def _handovers(
    steps: Iterable[Step],
    times: float,
    last: dict[str, int],
    arrays: Mapping[int, Sequence[str]],
    values: Mapping[str, int],
) -> Iterator[Handover]:
    """Those of steps that are run `times` times; `last` is who used each array last."""
    for step in steps:
        if isinstance(step, RunLoop):
            for array in arrays.get(step.number, ()):
                if last.get(array, step.number) != step.number:
                    yield Handover(last[array], step.number, array, times)
                last[array] = step.number
        for block in blocks_of(step):
            yield from _handovers(block, times, last, arrays, values)
            if isinstance(step, Repeat) and (others := rounds_of(step, values) - 1) > 0:
                yield from _handovers(block, times * others, last, arrays, values)


def moved_between(
    number: int,
    own: Iterable[Placement],
    loops: Sequence[LoopPlan],
    found: Iterable[Handover],
    types: Types,
    shapes: Shapes,
) -> float:
    """The bytes that move between loop `number`, if it has placements `own`, and its neighbours, in one call.

    An array that is cut along another axis goes to the other workers as a whole: that is its size times w − 1 for w
    workers, to be compared with what `placements` counts.
    """
    axes = {placement.array: placement.dim for placement in own if placement.kind is PlacementKind.PARTITIONED}
    total = 0.0
    for one in found:
        if number not in (one.first, one.second) or one.array not in axes:
            continue
        other = loops[one.first if number == one.second else one.second]
        there = [p.dim for p in other.placements if p.array == one.array and p.kind is PlacementKind.PARTITIONED]
        if there and there[0] != axes[one.array]:
            size = array_bytes(one.array, types, shapes) or 1
            total += one.times * size * (max(2, loops[number].runs_on) - 1)
    return total
