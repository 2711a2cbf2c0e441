"""What keeps a loop serial: not the arrays of which each iteration could have its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orion.dataclass import replace
from orion.dependence.access import Dependence
from orion.ir.nodes import For
from orion.plan.plan import LoopPlan, Reordered, ReorderedSingle, Verdict
from orion.reasons import ReasonKind
from orion.source import Span


def without_private_blockers(loops: Iterable[LoopPlan], verdicts: Sequence[Verdict]) -> tuple[LoopPlan, ...]:
    """Return planned loops without the reasons of serial ones over arrays that could be private to their iterations,
    where something else keeps them serial."""
    known = {verdict.index: verdict for verdict in verdicts}
    return tuple(_without(loop, [known[one.index] for one in _written(loop) if one.index in known]) for loop in loops)


def _written(loop: LoopPlan) -> tuple[For, ...]:
    """The nest as written: of a planned loop of a new order that of the loop that it stands for."""
    match loop.form:
        case Reordered(origin=origin) | ReorderedSingle(origin=origin):
            return origin.nest.loops
        case _:
            return loop.nest.loops


def _without(loop: LoopPlan, verdicts: Sequence[Verdict]) -> LoopPlan:
    carried = {dependence.array for verdict in verdicts for dependence in verdict.carried}
    names = {name for verdict in verdicts for name in verdict.private} - carried
    own = _pairs(one for one in loop.dependences if one.array in names)
    own -= _pairs(one for one in loop.dependences if one.array not in names)
    kept = tuple(one for one in loop.reasons if one.kind is not ReasonKind.BLOCKS or frozenset(one.spans) not in own)
    blocks = any(one.kind is ReasonKind.BLOCKS for one in kept)
    if loop.is_parallel or not own or not blocks:
        return loop
    return replace(loop, reasons=kept, may_be_private=tuple(sorted(names)))


def _pairs(dependences: Iterable[Dependence]) -> set[frozenset[Span]]:
    return {frozenset((one.source.span, one.sink.span)) for one in dependences}
