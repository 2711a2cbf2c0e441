"""Other ways to run a function that were considered and not taken: what would be done, the predicted time, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod

from orion.cost.candidate import Strategy
from orion.cost.placement import Placement, PlacementKind
from orion.cost.worth import Changes, barrier_ns
from orion.dataclass import dataclass, replace
from orion.ir.function import written_names
from orion.ir.nodes import For, every
from orion.ir.program import LoopNest
from orion.plan.plan import (
    Considered,
    FunctionPlan,
    Inside,
    LoopPlan,
    ParallelInside,
    Reordered,
    ReorderedSingle,
    Single,
    Tiled,
    Uncut,
    is_of_source,
    source_nest,
)
from orion.plan.shares import predicted_ns, time_of_run
from orion.plan.source_plans import enclosing_loops, in_formulas, loops_of_source, main_part
from orion.reasons import Reason, ReasonKind

ABSURD = 1000
"""What would take so many times as long as the plan that is taken is not told of."""


def considered(
    plan: FunctionPlan, instead: FunctionPlan, numbers: Iterable[int], changes: Sequence[Changes], workers: int
) -> Considered | None:
    """The variant of a function that runs planned loops `numbers` in place of some of the source, where that does not
    pay, and what of it is not done `instead`; `changes` are what those have to do. None where none of them is shared
    out at these sizes."""
    shared = [loop for loop in loops_of_source(plan) if loop.strategy is not Strategy.SERIAL]
    shared = [loop for loop in shared if _is_among(loop, set(numbers))]
    if not shared:
        return None
    known = [one for one in changes if one.work is not None]
    most = min(workers, max(loop.runs_on for loop in shared))
    time = sum(one.work or 0.0 for one in known) / most + barrier_ns(known) if known else None
    if any(isinstance(part.form, Reordered) and part.form.is_time_tiled for loop in shared for part in loop.parts):
        message = "at these sizes, arrays stay in the cache without it, or its tiles would be too small"
    else:
        message = f"{_meetings(changes)}, which costs more than it gains"
    same = {(_index(loop), loop.strategy) for loop in loops_of_source(instead)}
    told = [loop for loop in shared if (_index(loop), loop.strategy) not in same] or shared
    reason = Reason.of("ORN120", message, *(loop.nest.span for loop in told))
    *names, last = (_name(loop, plan) for loop in told)
    return Considered(f"{'; '.join(names)}; and {last}" if names else last, time, reason)


def _meetings(changes: Sequence[Changes]) -> str:
    """How often workers would meet, loops with the same rounds together, and what that takes each time."""
    rounds = Counter(one for changed in changes for one in changed.rounds)
    starts = sum(one.barriers for one in changes)
    each = sum(one.barriers * one.start_ns for one in changes) / (starts or 1.0)
    factors = [[*([count] if count > 1 or not trips else []), *trips] for trips, count in rounds.items()]
    terms = " + ".join(
        " × ".join(f"{factor:,.0f}" for factor in one) for one in sorted(factors, key=prod, reverse=True)
    )
    total = "once" if starts == 1 else f"{starts:,.0f} times"
    how_often = total if terms == f"{starts:,.0f}" else f"{terms} = {total}"
    return f"workers would meet {how_often}, for about {each / 1000:.0f} µs each time"


def _is_among(loop: LoopPlan, numbers: set[int]) -> bool:
    return any(part.nest.number in numbers for part in loop.parts or (loop,))


def _name(loop: LoopPlan, plan: FunctionPlan) -> str:
    """A loop and its strategy: "blocks of f in line 6, in rounds of line 4"."""
    part = main_part(loop)
    shown = in_formulas(part)
    assert isinstance(shown.tiles, Tiled)
    names = [shown.nest.dims[dim] for dim in sorted((shown.tiles.space, *shown.tiles.time))]
    is_said = written_names(plan.program.function).issuperset(re.findall(r"[A-Za-z_]\w*", " ".join(names)))
    cut = ", ".join(names) if is_said else "iterations"
    tiles = f"tiles of ({cut})" if shown.tiles.time else f"blocks of {cut}"
    around = [outer.span.line for outer in enclosing_loops(plan, part.nest.number) if outer.index >= 0]
    rounds = f", in rounds of line {around[-1]}" if around else ""
    order = ", in another order" if loop.parts else ""
    return f"{loop.strategy}: {tiles} in line {loop.nest.span.line}{order}{rounds}"


def with_considered(
    plan: FunctionPlan, other: Considered | None, not_taken: FunctionPlan, alone: Collection[int] = ()
) -> FunctionPlan:
    """A plan with what was considered and not taken. Its loops that are serial where those of the plan that was not
    taken are shared out say that only sizes are against it; statements that run once have loops in them told of.
    Planned loops `alone` stand for loops in which nothing is worth sharing out."""
    told = loops_of_source(not_taken)
    found = (loop for loop in told if loop.strategy is not Strategy.SERIAL and not _is_among(loop, {*alone}))
    shared = {_index(loop): _Shared(loop.nest.span.line, time_of_run(loop, plan)) for loop in found}
    loops = (_with_inside(_said(loop, shared), told, shared) for loop in plan.loops)
    more = () if other is None or _is_absurd(other, plan) else (other,)
    return replace(plan, loops=tuple(loops), considered=(*more, *plan.considered))


def _is_absurd(other: Considered, plan: FunctionPlan) -> bool:
    """Whether something would take so much longer than what is taken that nobody would think of it."""
    return other.nanoseconds is not None and 0 < ABSURD * predicted_ns(plan) < other.nanoseconds


@dataclass(frozen=True, slots=True)
class _Shared:
    """The line of a `for` that a plan shares out, and the predicted time of one run of it on one worker."""

    line: int
    nanoseconds: float | None


def _said(loop: LoopPlan, shared: Mapping[int, _Shared]) -> LoopPlan:
    """A serial loop with the reason that only sizes are against it, where `shared` has a `for` of it: the loop itself,
    which then has a parallel schedule, or some inside, while it stays serial."""
    own = _indices(loop.nest)
    if loop.is_parallel or not is_of_source(loop) or shared.keys().isdisjoint(own):
        return loop
    is_itself = _index(loop) in shared
    if loop.parallel_inside and not is_itself:
        return loop
    lines = {index: one.line for index, one in shared.items()}
    kept = loop.reasons[: -1 if loop.parallel_inside else None]  # a schedule of the loop itself says more
    reasons = (*kept, Reason.of("ORN120", _why_as_written(loop, lines), loop.nest.span))
    inside = tuple(ParallelInside(index, one.nanoseconds) for index, one in shared.items() if index in own)
    return replace(loop, is_parallel=is_itself, parallel_inside=() if is_itself else inside, reasons=reasons)


def _why_as_written(loop: LoopPlan, lines: Mapping[int, int]) -> str:
    """Why a serial loop runs as written: the loop itself would be shared out in another order, or only what is in it
    is parallel."""
    function, dim = loop.nest.function, loop.nest.dims[0]
    written = written_names(function).difference(one.name for one in function.turns)
    arrays = dict.fromkeys(f"`{one.array}`" for one in loop.blocking if one.array in written)
    if _index(loop) in lines or not arrays or dim not in written:
        return "it runs as written: at these sizes, meeting other workers would cost more than it gains"
    inside = sorted({line for index, line in lines.items() if index in _indices(loop.nest)})
    where = f"line {inside[0]} is" if len(inside) == 1 else f"lines {', '.join(map(str, inside))} are"
    met = " and ".join([", ".join([*arrays][:-1]), [*arrays][-1]] if len(arrays) > 1 else arrays)
    return (
        f"the loop over `{dim}` is serial as written, as its iterations meet in {met}; inside it, {where} parallel, "
        "but too short to share at these sizes"
    )


def _with_inside(loop: LoopPlan, told: Iterable[LoopPlan], shared: Mapping[int, _Shared]) -> LoopPlan:
    """Statements that run once with the loops of the source in them, as they are then run: by one worker."""
    if not isinstance(loop.form, Single | ReorderedSingle):
        return loop
    own = _indices(loop.nest)
    inside = loop.form.inside or tuple(_inside(one, loop) for one in told if _index(one) in own)
    return replace(loop, form=replace(loop.form, inside=tuple(_said(one, shared) for one in inside)))


def _inside(loop: LoopPlan, once: LoopPlan) -> LoopPlan:
    """A loop as part of statements that run once."""
    return replace(
        loop,
        nest=replace(loop.nest, number=once.nest.number),
        form=Inside(),
        strategy=Strategy.SERIAL,
        tiles=Uncut(),
        cuts=(1,) * len(loop.nest.dims),
        is_parallel=False,
        placements=tuple(_on_one_worker(placement) for placement in loop.placements),
        reasons=tuple(reason for reason in loop.reasons if reason.kind is not ReasonKind.SIZES),
        runs_on=1,
        copies=(),
    )


def _on_one_worker(placement: Placement) -> Placement:
    return replace(placement, kind=PlacementKind.REPLICATED, dim=None, loop_dim=None, bytes_moved=0, halo=(0, 0))


def _index(loop: LoopPlan) -> int:
    return source_nest(loop).loops[0].index


def _indices(nest: LoopNest) -> set[int]:
    return {node.index for node in every(For, nest.loops[0])}


def not_made(loops: Iterable[LoopPlan]) -> Iterator[Considered]:
    """The ways to run loops that cost too much, or gain nothing, from the reasons that the loops have."""
    for loop in loops:
        for reason in loop.reasons:
            if reason.row.considered:
                yield Considered(f"line {loop.nest.span.line} with {reason.row.considered}", None, reason)
