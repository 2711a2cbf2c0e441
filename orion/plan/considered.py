"""Other ways to run a function that were considered and not taken: what would be done, the predicted time, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from orion.cost.placement import Placement
from orion.cost.worth import Changes, meeting_ns
from orion.ir.nodes import For, every
from orion.ir.program import LoopNest
from orion.plan.plan import Considered, FunctionPlan, LoopPlan
from orion.plan.whole import enclosing_loops, in_formulas, main_part, whole_loops
from orion.reasons import Reason, ReasonKind

COPIES = {"ORN122": "copies for each block", "ORN124": "copies made before the loop"}
"""What the reasons are against that a loop itself has for having no copies."""


def considered(
    plan: FunctionPlan, numbers: Iterable[int], changes: Sequence[Changes], workers: int
) -> Considered | None:
    """The variant of a function that runs planned loops `numbers` in place of some of the source, where that does not
    pay; `changes` are what those have to do. None where none of them is shared out at these sizes."""
    shared = [loop for loop in whole_loops(plan) if loop.is_written_by_user and loop.is_shared_out]
    shared = [loop for loop in shared if _is_among(loop, set(numbers))]
    if not shared:
        return None
    known = [one for one in changes if one.work is not None]
    most = min(workers, max(loop.runs_on for loop in shared))
    time = sum(one.work or 0.0 for one in known) / most + meeting_ns(known) if known else None
    starts = sum(one.meetings for one in changes)
    if any(part.is_swept for loop in shared for part in loop.parts):
        message = "at these sizes, arrays stay in the cache without it, or its tiles would be too small"
    else:
        message = f"starting its loops {starts:,.0f} times would cost more than it gains"
    reason = Reason(ReasonKind.SIZES, "ORN120", message, tuple(loop.nest.span for loop in shared), "")
    return Considered("; ".join(_name(loop, plan) for loop in shared), time, reason)


def _is_among(loop: LoopPlan, numbers: set[int]) -> bool:
    return any(part.nest.number in numbers for part in loop.parts or (loop,))


def _name(loop: LoopPlan, plan: FunctionPlan) -> str:
    """A loop and its strategy: "blocks of f in line 6, in rounds of line 4"."""
    part = main_part(loop)
    shown = in_formulas(part) if part.origin else part
    assert shown.space is not None
    cut = ", ".join(shown.nest.dims[dim] for dim in sorted((shown.space, *shown.time)))
    tiles = f"tiles of ({cut})" if shown.time else f"blocks of {cut}"
    around = [outer.span.line for outer in enclosing_loops(plan, part.nest.number) if outer.index >= 0]
    rounds = f", in rounds of line {around[-1]}" if around else ""
    order = ", in another order" if loop.parts else ""
    return f"{loop.strategy}: {tiles} in line {loop.nest.span.line}{order}{rounds}"


def with_considered(plan: FunctionPlan, other: Considered | None, not_taken: FunctionPlan) -> FunctionPlan:
    """A plan with what was considered and not taken. Its loops that are serial where those of the plan that was not
    taken are shared out say that only sizes are against it; statements that run once have loops in them told of."""
    told = tuple(loop for loop in whole_loops(not_taken) if loop.is_written_by_user)
    indices = {_index(loop) for loop in told if loop.is_shared_out}
    loops = (_with_inside(_said(loop, indices), told, indices) for loop in plan.loops)
    more = () if other is None else (other,)
    return replace(plan, loops=tuple(loops), considered=(*more, *plan.considered))


def _said(loop: LoopPlan, indices: set[int]) -> LoopPlan:
    """A serial loop with the reason that only sizes are against it, where `indices` has a `for` in it."""
    if loop.is_parallel or not loop.is_written_by_user or indices.isdisjoint(_indices(loop.nest)):
        return loop
    message = "it runs as written: at these sizes, meeting other workers would cost more than it gains"
    return replace(loop, reasons=(*loop.reasons, Reason(ReasonKind.SIZES, "ORN120", message, (loop.nest.span,), "")))


def _with_inside(loop: LoopPlan, told: Iterable[LoopPlan], indices: set[int]) -> LoopPlan:
    """Statements that run once with the loops of the source in them, as they are then run: by one worker."""
    if loop.is_written_by_user or loop.nest.is_filling:
        return loop
    own = _indices(loop.nest)
    inside = loop.inside or tuple(_inside(one, loop) for one in told if _index(one) in own)
    return replace(loop, inside=tuple(_said(one, indices) for one in inside))


def _inside(loop: LoopPlan, once: LoopPlan) -> LoopPlan:
    """A loop as part of statements that run once."""
    return replace(
        loop,
        nest=replace(loop.nest, number=once.nest.number),
        strategy="serial",
        space=None,
        time=(),
        cuts=(1,) * len(loop.nest.dims),
        placements=tuple(_on_one_worker(placement) for placement in loop.placements),
        reasons=tuple(reason for reason in loop.reasons if reason.kind is not ReasonKind.SIZES),
        runs_on=1,
        origin=None,
        parts=(),
        copies=(),
        together=None,
        is_inside=True,
    )


def _on_one_worker(placement: Placement) -> Placement:
    return replace(placement, kind="replicated", dim=None, loop_dim=None, bytes_moved=0, halo=(0, 0))


def _index(loop: LoopPlan) -> int:
    return (loop.origin.nest if loop.origin else loop.nest).loops[0].index


def _indices(nest: LoopNest) -> set[int]:
    return {node.index for node in every(For, nest.loops[0])}


def copies_not_made(loops: Iterable[LoopPlan]) -> Iterator[Considered]:
    """The ways to run loops with copies of arrays that cost too much, from the reasons that the loops have."""
    for loop in loops:
        for reason in loop.reasons:
            if reason.code in COPIES:
                yield Considered(f"line {loop.nest.span.line} with {COPIES[reason.code]}", None, reason)
