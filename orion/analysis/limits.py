"""What was not found out of a loop because it would have taken too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from orion.analysis.one_loop import AnalysedLoop, is_without_waits
from orion.reasons import Hint, Reason, ReasonKind


def with_limits(loop: AnalysedLoop, given_up: Iterable[str]) -> AnalysedLoop:
    """The loop with what was given up of it, where it is serial or has tiles that wait."""
    return replace(loop, capped=tuple(_capped(loop, given_up)))


def _capped(loop: AnalysedLoop, given_up: Iterable[str]) -> Iterator[Reason]:
    """What was not found out of a loop that is serial, or has tiles that wait, because it would have taken too long."""
    if is_without_waits(loop):
        return
    for what in given_up:
        message = f"it would take too long: {what}"
        yield against_stronger(Reason(ReasonKind.BLOCKS, "ORN109", message, (loop.nest.span,), Hint.LIMIT), loop)


def against_stronger(reason: Reason, loop: AnalysedLoop) -> Reason:
    """What keeps a loop serial as what it is of a loop that is parallel, but by no strong strategy."""
    if not loop.candidates or reason.kind is ReasonKind.RULES_OUT:
        return reason
    return replace(reason, kind=ReasonKind.RULES_OUT, message=f"not a stronger one: {reason.message}")
