"""A proof that reads of a loop may see copies of their arrays made before it.

The condition of `orion.rewrites.copy_in.find` is proved by isl for the loop as it was, all such reads of an array
together; and that the copy is the first thing that is done with its memory, all of it, right before the loop.
"""

from __future__ import annotations

from orion.errors import PlanError
from orion.ir.nodes import Assign, Subscript, Var
from orion.ir.program import LoopNest, Renamed, RunLoop, Step, blocks_of
from orion.ir.spans import without_spans
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.rewrites.copy_in.apply import original
from orion.rewrites.copy_in.find import may_see_copy


def prove_renamed(function: FunctionPlan, plan: LoopPlan) -> None:
    """Raises `PlanError` where a read would see a value from before the loop that the loop itself has changed."""
    types, nest = dict(function.types), plan.nest
    for one in nest.renamed:
        if not may_see_copy(original(nest), types, one.array, one.reads):
            raise PlanError(f"{nest.span}: reads of {one.array} need what the loop writes, not a copy made before it")
        if not any(_is_made(block, function, nest.number, one) for block in _blocks(function.program.steps)):
            raise PlanError(f"{nest.span}: {one.copy} is no copy of {one.array} made right before the loop")


def _blocks(steps: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    inside = [found for step in steps for block in blocks_of(step) for found in _blocks(block)]
    return [steps, *inside]


def _is_made(steps: tuple[Step, ...], function: FunctionPlan, number: int, one: Renamed) -> bool:
    """Whether the loops right before the one with that number make the copy."""
    place = next((k for k, step in enumerate(steps) if step == RunLoop(number)), 0)
    for step in reversed(steps[:place]):
        if not isinstance(step, RunLoop) or not (nest := function.program.nests[step.number]).is_filling:
            return False
        if _copies(nest, one, function):
            return True
    return False


def _copies(nest: LoopNest, one: Renamed, function: FunctionPlan) -> bool:
    """Whether a nest copies all elements."""
    made = next((made for made in function.program.function.made if made.name == one.copy), None)
    match nest.body:
        case (Assign(Subscript(Var(target), to), Subscript(Var(source), of)),):
            index = tuple(part.name for part in to if isinstance(part, Var))
            ends = tuple(without_spans(space.stop) for space in nest.ranges)
            whole = made is not None and ends == tuple(map(without_spans, made.lengths))
            return (target, source) == (one.copy, one.array) and to == of and index == nest.dims and whole
        case _:
            return False
