"""How much of a function runs in parallel: one verdict, which its text, its data, `plan.is_parallel`, `--check` and
warnings follow."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from orion.dataclass import dataclass
from orion.plan.plan import FunctionPlan, LoopPlan, ReorderedSingle, Single
from orion.plan.shares import Share, predicted_ns, runs_alone, shares
from orion.plan.source_plans import loops_of_source
from orion.source import Span

LITTLE = 0.005
"""A part of the work that is not worth a word."""

MOST = 0.5
"""A plan is serial as a whole where one worker has more than this part of its work, and must have it."""


class Extent(StrEnum):
    """How much of the work of a function is shared out among workers."""

    NO_LOOP = "no loop to share out"
    PARALLEL = "parallel"
    TOO_SMALL = "parallel, too small to share"
    SERIAL_HERE = "serial at these sizes"
    PARTLY = "partly parallel"
    SERIAL = "serial"


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The verdict on a planned function.

    `is_parallel`: there are loops, each has a legal parallel schedule or loops inside that have one, and one worker
    need not do most of the work. `share` is the part of the predicted work that is shared out, between 0 and 1, `alone`
    what one worker runs, the costliest first, and `runs_on` the most workers of any loop. `nanoseconds` is the
    predicted time of all on one worker, None where sizes are unknown. `serial` are the places to warn of: loops of the
    source without a parallel schedule, or the function where it is serial as a whole.
    """

    extent: Extent
    is_parallel: bool
    share: float
    runs_on: int
    nanoseconds: float | None
    alone: tuple[Share, ...]
    serial: tuple[Span, ...]


def parallelism(plan: FunctionPlan) -> Parallelism:
    """Return the verdict on a planned function."""
    loops, found = loops_of_source(plan), shares(plan)
    alone = sorted((one for one in found if runs_alone(one.loop, plan.sizes.workers)), key=lambda one: -one.part)
    share = 1.0 - sum(one.part for one in alone)
    is_parallel = _is_parallel(loops, found)
    serial = tuple(loop.nest.span for loop in loops if not _has_parallel_schedule(loop))
    if not serial and not is_parallel:
        serial = (plan.program.function.span,)
    return Parallelism(
        _extent(loops, is_parallel, share, alone),
        is_parallel,
        share,
        max((loop.runs_on for loop in loops), default=1),
        None if plan.sizes.symbolic else predicted_ns(plan),
        tuple(alone),
        serial,
    )


def _extent(loops: tuple[LoopPlan, ...], is_parallel: bool, share: float, alone: Sequence[Share]) -> Extent:
    if not loops:
        return Extent.NO_LOOP
    if share < LITTLE and is_parallel:
        return Extent.SERIAL_HERE if _is_serial_around(alone[0].loop) else Extent.TOO_SMALL
    if share < LITTLE:
        return Extent.SERIAL
    return Extent.PARALLEL if is_parallel and share > 1.0 - LITTLE else Extent.PARTLY


def _is_parallel(loops: tuple[LoopPlan, ...], found: tuple[Share, ...]) -> bool:
    if not loops or not all(map(_has_parallel_schedule, loops)):
        return False
    return sum(share.part for share in found if _must_run_alone(share.loop)) <= MOST


def _must_run_alone(loop: LoopPlan) -> bool:
    """Whether one worker runs a loop, or statements, whatever the sizes."""
    match loop.form:
        case Single(inside):
            return not (inside and all(map(_has_parallel_schedule, inside)))
        case _:
            return not _has_parallel_schedule(loop)


def _has_parallel_schedule(loop: LoopPlan) -> bool:
    """Whether a loop, or what is inside it, is shared out at these sizes or would be at larger ones."""
    return loop.is_parallel or bool(loop.parallel_inside)


def _is_serial_around(loop: LoopPlan) -> bool:
    """Whether a loop is serial, or a statement has a serial loop, with parallel ones inside that are too short."""
    inside = loop.form.inside if isinstance(loop.form, Single | ReorderedSingle) else ()
    return any(one.parallel_inside for one in inside or (loop,))
