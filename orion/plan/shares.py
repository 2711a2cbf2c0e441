"""Where the work of a function is: how much of the predicted time each of the loops that run has, and whether that is
shared out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from orion.cost.candidate import Strategy
from orion.cost.extents import UNKNOWN_TRIPS, coordinate_ranges
from orion.cost.sizes import Sizes
from orion.cost.worth import body_ns, rounds_of, work_ns
from orion.dataclass import dataclass, replace
from orion.ir.nodes import For
from orion.ir.program import Repeat, RunLoop, Step, blocks_of
from orion.ir.types import ArrayType, ScalarType, SparseType, Types
from orion.passes.between import SYNTHETIC
from orion.plan.plan import FunctionPlan, Fused, Inside, LoopPlan, Reordered, ReorderedSingle, Single
from orion.plan.scan_passes import usual_works
from orion.plan.source_plans import loops_of_source
from orion.sets.maps import Maps

NOMINAL = 1000
"""What a size is taken to be that is not known, so that the shares of loops can be compared."""


@dataclass(frozen=True, slots=True)
class Share:
    """A loop that is run, or statements that run once, and its part of the predicted time of all, between 0 and 1."""

    loop: LoopPlan
    part: float


def shares(plan: FunctionPlan) -> tuple[Share, ...]:
    """The share of each planned loop, in the order in which they stand. Predicted for one worker, so that the number of
    workers does not count."""
    times = _times(plan)
    if not any(times):  # nothing is to be done at these sizes
        times = [1.0] * len(times)
    return tuple(Share(loop, time / sum(times)) for loop, time in zip(plan.loops, times, strict=True))


def predicted_ns(plan: FunctionPlan) -> float:
    """The predicted time of all planned loops on one worker."""
    return sum(_times(plan))


def _times(plan: FunctionPlan) -> list[float]:
    sizes, maps = with_nominal(plan.sizes, dict(plan.types)), Maps()
    around = dict(_rounds(plan.program.steps, (), sizes.values))
    return [_loop_ns(loop, sizes, maps) * _rounds_of(loop, around.get(loop.nest.number, ())) for loop in plan.loops]


def time_of_run(loop: LoopPlan, plan: FunctionPlan) -> float | None:
    """The predicted time of one run of a loop on one worker, at the sizes of a plan; None where sizes are unknown, and
    of a loop in another order, whose runs are other ones."""
    if plan.sizes.symbolic or loop.parts:
        return None
    return _loop_ns(loop, with_nominal(plan.sizes, dict(plan.types)), Maps())


def with_nominal(sizes: Sizes, types: Types) -> Sizes:
    """The sizes with NOMINAL for each that is not known."""
    shapes, integers, counts = dict(sizes.shapes), dict(sizes.integers), dict(sizes.counts)
    for name, kind in types.items():
        match kind:
            case ScalarType(dtype) if dtype.startswith(("int", "uint")):
                integers.setdefault(name, NOMINAL)
            case ArrayType(_, ndim):
                shapes.setdefault(name, (NOMINAL,) * ndim)
            case SparseType(keys):
                shapes.setdefault(name, (NOMINAL,) * keys)
                counts.setdefault(name, NOMINAL**2)
    return replace(sizes, shapes=shapes, integers=integers, counts=counts)


def _loop_ns(loop: LoopPlan, sizes: Sizes, maps: Maps) -> float:
    """The predicted time of a loop each time that it is started, on one worker; of one that stands for a loop of the
    source in another order, in all rounds of that."""
    known = work_ns(usual_works(loop), sizes, maps)
    if known is not None:
        return known
    if isinstance(loop.form, Fused):
        return sum(_loop_ns(member, sizes, maps) for member in loop.form.members)
    values = sizes.values
    if loop.nest.elements is not None:
        iterations = sizes.counts.get(loop.nest.elements.array, NOMINAL)
    else:
        ranges = coordinate_ranges(loop.analysis.domain, len(loop.nest.dims), values, maps)
        iterations = prod(UNKNOWN_TRIPS if span is None else span[1] - span[0] for span in ranges)
    return iterations * body_ns(loop.nest.body, values, sizes.shapes)


def _rounds_of(loop: LoopPlan, around: tuple[tuple[bool, float], ...]) -> float:
    is_reordered = isinstance(loop.form, Reordered | ReorderedSingle)
    return prod(rounds for is_new, rounds in around if not (is_new and is_reordered))


def _rounds(
    steps: Iterable[Step], around: tuple[tuple[bool, float], ...], values: Mapping[str, int]
) -> Iterator[tuple[int, tuple[tuple[bool, float], ...]]]:
    """Every planned loop with the serial loops around it: whether a new order has made them, and their rounds."""
    for step in steps:
        if isinstance(step, RunLoop):
            yield step.number, around
        inside = around
        if isinstance(step, Repeat):
            is_new = isinstance(step.loop, For) and step.loop.index == SYNTHETIC
            inside = (*around, (is_new, rounds_of(step, values)))
        for block in blocks_of(step):
            yield from _rounds(block, inside, values)


# ---------------------------------------------------------------- what follows from it


def runs_alone(loop: LoopPlan, workers: int) -> bool:
    """Whether one worker runs a planned loop at the sizes of the plan, though there are more or might be."""
    return isinstance(loop.form, Single) or loop.strategy is Strategy.SERIAL or (loop.runs_on == 1 and workers > 1)


def costliest_part(loop: LoopPlan, found: Iterable[Share]) -> LoopPlan:
    """The part of a loop in another order that has most of its work, of several the one with most dimensions; any other
    loop as it is."""
    parts = {share.loop.nest.number: share.part for share in found}
    key = lambda part: (round(parts[part.nest.number], 6), len(part.nest.limits))  # noqa: E731
    return max(loop.parts, key=key) if loop.parts else loop


def by_cost(plan: FunctionPlan) -> list[int]:
    """The positions of the loops of the source (`orion.plan.source_plans.loops_of_source`), those with most of the work
    first."""
    loops, found = loops_of_source(plan), shares(plan)
    return sorted(range(len(loops)), key=lambda at: -share_of(loops[at], found))


def costliest_loop(plan: FunctionPlan) -> LoopPlan | None:
    """The loop of the source that has most of the work; None where there is none."""
    found = shares(plan)
    return max(loops_of_source(plan), key=lambda loop: share_of(loop, found), default=None)


def share_of(loop: LoopPlan, found: Iterable[Share]) -> float:
    """The share of a loop of the source (`orion.plan.source_plans.source_plans`): of the planned loops that stand for
    it. Of neighbours that are run as one, each has that of all; loops in statements that run once have none of their
    own."""
    if isinstance(loop.form, Inside):
        return 0.0
    numbers = {part.nest.number for part in loop.parts or (loop,)}
    return sum(share.part for share in found if share.loop.nest.number in numbers)
