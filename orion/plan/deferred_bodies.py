"""The bodies of loops in another order, made where a plan is to be run.

A plan says all that it says of such loops from their bands; their text is by far the longest part of the work.
"""

from __future__ import annotations

from collections.abc import Sequence

from orion.dataclass import dataclass, replace
from orion.dependence.access import ScalarRoles
from orion.dependence.scalars import scalar_roles
from orion.ir.program import Program
from orion.ir.types import Types
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.rewrites.reorder.apply import Deferred, with_bodies

DEFERRED = ("skewed_buffers",)
"""The rewrites that are made with the bodies of loops."""


@dataclass(frozen=True, slots=True)
class Bodies:
    """A program with the bodies of all its loops, and by number what those that were outlines do with scalars."""

    program: Program
    scalars: dict[int, ScalarRoles]


def with_deferred_bodies(program: Program, deferred: Sequence[Deferred], types: Types) -> Bodies:
    """The program with the bodies of all loops that run outlines."""
    for one in deferred:
        program = with_bodies(program, one, types)
    live = {one.first + position: after for one in deferred for position, after in enumerate(one.live)}
    return Bodies(program, {number: scalar_roles(program.nests[number], types, live[number]) for number in live})


def plan_with_bodies(plan: FunctionPlan, made: Bodies) -> FunctionPlan:
    """The plan of a program for the same one with the bodies of its loops."""
    return replace(plan, program=made.program, deferred=(), loops=tuple(_loop(loop, made) for loop in plan.loops))


def _loop(loop: LoopPlan, made: Bodies) -> LoopPlan:
    number = loop.nest.number
    if number not in made.scalars:
        return loop
    analysis = replace(loop.analysis, scalars=made.scalars[number])
    nest = made.program.nests[number]
    skewed = DEFERRED * bool(nest.buffers)
    return replace(loop, nest=nest, analysis=analysis, rewrites=(*loop.rewrites, *skewed))
