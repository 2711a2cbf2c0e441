"""That a planned loop is one value in all its parts: what is compiled, shown and proved of it are the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from orion.errors import PlanError
from orion.ir.nodes import Const, Elements, Expr, Var
from orion.ir.program import LoopNest, Program
from orion.schedule.schedule import Schedule
from orion.verify.early_exits import prove_unended


def prove_nest(nest: LoopNest, number: int, program: Program) -> None:
    """PlanError where a planned loop is not that of the program with its number, or its loops, dimensions and body are
    not those of one another."""
    chain = all(outer.body == (inner,) for outer, inner in pairwise(nest.loops))
    space = nest.loops[0].space
    dims = space.keys if isinstance(space, Elements) else tuple(one.var for one in nest.ranges)
    own = chain and nest.loops[-1].body == nest.body and nest.dims == dims
    alike = replace(nest, function=program.function) == replace(program.nests[number], function=program.function)
    if not own or not alike:
        raise PlanError(f"{nest.span}: planned loop {number} is not that of its program")


def prove_ended(nest: LoopNest, schedule: Schedule) -> None:
    """PlanError where a loop that its body may end is run in several tiles, unless those after the end may run."""
    if schedule.tiles > 1:
        prove_unended(nest)


def is_outline(nest: LoopNest) -> bool:
    """Whether loops go from limit to limit of a box, or are one trip from 0 to 1."""
    limits = nest.limits or ((0, 1),)
    bounds = [tuple(map(_plain, (space.start, space.stop, space.step))) for space in nest.ranges]
    return bounds == [(first, end, 1) for first, end in limits]


def _plain(part: Expr) -> object:
    return part.value if isinstance(part, Const) else part.name if isinstance(part, Var) else None
