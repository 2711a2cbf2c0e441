"""That reads may see a copy of their array made before the loop: what `orion.rewrites.copy_in` claims, by isl.

No read that sees the copy may come after a write of the same element by the loop; and the copy is made of all elements
right before the loop, with nothing in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orion.errors import PlanError
from orion.ir.nodes import Assign, Const, Dim, Expr, For, Stmt, Subscript, Var, every
from orion.ir.program import CopiedIn, LoopNest, OfFilling, Program, RunLoop, Step, blocks_of
from orion.ir.rewriting import rewrite
from orion.ir.spans import NOWHERE, without_spans
from orion.verify.conflicts import union
from orion.verify.events import Event, Iterations
from orion.verify.private import earlier

if TYPE_CHECKING:
    import islpy as isl


def original(nest: LoopNest) -> tuple[For, ...]:
    """The loops of a nest with reads of arrays in place of those of copies."""
    arrays = {one.copy: one.array for one in nest.copied_in}

    def read(expr: Expr) -> Expr:
        match expr:
            case Subscript(Var(name), index, span) if name in arrays:
                return Subscript(Var(arrays[name], expr.base.span), index, span)
            case Var(name, span) if name in arrays:
                return Var(arrays[name], span)
            case _:
                return expr

    return tuple(rewrite(loop, read) for loop in nest.loops[:1]) if arrays else nest.loops[:1]


def prove_copied(found: Iterations, one: CopiedIn, context: isl.Context) -> None:
    """PlanError where a read of the copy comes after a write of the element. The iterations are those of the loop with
    copies: reads of them are events of the copy."""
    import islpy as isl

    reads = [event for event in found.events if event.array == one.copy]
    writes = [event for event in found.events if event.array == one.array and event.is_write]
    wrong = PlanError(f"reads of {one.array} need what the loop writes, not a copy made before it")
    if any(event.is_write for event in reads):
        raise wrong
    if not reads or not writes:
        return
    pairs = union(found.touched(event, context) for event in writes)
    pairs = pairs.apply_range(union(found.touched(event, context) for event in reads).reverse())
    if not pairs.intersect(isl.Map.lex_lt(pairs.get_space().domain())).is_empty():
        raise wrong
    if any(_meet(write, read, found, context) for write in writes for read in reads):
        raise wrong


def _meet(write: Event, read: Event, found: Iterations, context: isl.Context) -> bool:
    """Whether a write comes before a read of the same element in one iteration."""
    order = earlier(write, read, len(found.dims), context)
    if order is None:
        return False
    same = order.apply_range(found.placed(write, context)).intersect(found.placed(read, context))
    return not same.is_empty()


def prove_copied_before(program: Program, number: int, one: CopiedIn) -> None:
    """PlanError where loops right before planned loop `number` do not copy all of the array."""
    if not any(_is_made(block, program, number, one) for block in _blocks(program.steps)):
        span = program.nests[number].span
        raise PlanError(f"{span}: {one.copy} is no copy of {one.array} made right before the loop")


def _blocks(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    yield steps
    for step in steps:
        for block in blocks_of(step):
            yield from _blocks(block)


def _is_made(steps: Sequence[Step], program: Program, number: int, one: CopiedIn) -> bool:
    place = next((at for at, step in enumerate(steps) if step == RunLoop(number)), 0)
    for step in reversed(steps[:place]):
        if not isinstance(step, RunLoop) or not isinstance(program.nests[step.number].form, OfFilling):
            return False
        if _copies(program.nests[step.number], one, program):
            return True
    return False


def _copies(nest: LoopNest, one: CopiedIn, program: Program) -> bool:
    """Whether a nest copies all elements."""
    made = next((made for made in program.function.local_arrays if made.name == one.copy), None)
    match nest.body:
        case (Assign(Subscript(Var(target), to), Subscript(Var(source), of)),) if made is not None:
            index = tuple(part.name for part in to if isinstance(part, Var))
            ends = tuple((*_values(space.start, space.step), without_spans(space.stop)) for space in nest.ranges)
            known = {one.name: one.lengths for one in program.function.local_arrays}
            lengths = known.get(one.array) or tuple(Dim(one.array, axis, NOWHERE) for axis in range(len(made.lengths)))
            own = tuple(map(without_spans, lengths)) == tuple(map(without_spans, made.lengths))
            whole = own and ends == tuple((0, 1, without_spans(length)) for length in lengths)
            return (target, source) == (one.copy, one.array) and to == of and index == nest.dims and whole
        case _:
            return False


def _values(*parts: Expr) -> Iterator[object]:
    return (part.value if isinstance(part, Const) else None for part in parts)


def assigned_arrays(body: Sequence[Stmt]) -> frozenset[str]:
    """The arrays that statements assign elements of."""
    targets = (statement.target for statement in every(Assign, *body))
    return frozenset(target.base.name for target in targets if isinstance(target, Subscript))
