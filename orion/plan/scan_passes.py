"""The work of the passes of a scan (`orion.rewrites.scans.apply`), as it is where nothing overflows."""

from __future__ import annotations

from collections.abc import Iterable

from orion.cost.worth import Work
from orion.dataclass import replace
from orion.ir.constants import constant_value
from orion.ir.nodes import Const, For, If, Range, Stmt
from orion.ir.sums import difference
from orion.plan.plan import Fill, LoopPlan
from orion.source import Span


def usual_works(loop: LoopPlan) -> tuple[Work, ...]:
    """Return the works of a loop. Those of a pass of a scan are without what is done instead where a block overflows,
    and without the iterations after the last block."""
    in_blocks = {one.loop for one in loop.nest.function.in_blocks}
    if not in_blocks or not (isinstance(loop.form, Fill) or loop.nest.loops[0].index in in_blocks):
        return loop.works
    return tuple(replace(one, body=_usual(one.body, loop.nest.span)) for one in loop.works)


def _usual(body: Iterable[Stmt], span: Span) -> tuple[Stmt, ...]:
    """Statements with the first branch in place of each test that the rewrite has made, and with the number of trips
    in place of bounds that depend on loops around."""
    found: list[Stmt] = []
    for statement in body:
        match statement:
            case If(_, then, _) if statement.span == span:
                found += _usual(then, span)
            case For(Range(start=start, stop=stop) as space, inner):
                trips = constant_value(difference(stop, start))
                if isinstance(trips, int):
                    space = replace(space, start=Const(0, span), stop=Const(trips, span))
                found.append(replace(statement, space=space, body=_usual(inner, span)))
            case _:
                found.append(statement)
    return tuple(found)
