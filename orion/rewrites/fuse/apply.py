"""Neighbouring planned loops of a program made into one: their outer loops once, and both bodies inside.

    for i in range(n):                    for i in range(n):
        B[i] = 2 * A[i]                       B[i] = 2 * A[i]
    for j in range(n):            →           C[i] = A[i] + B[i]
        C[j] = A[j] + B[j]

Whether that may be done is for others to say (`orion.rewrites.fuse.find`).
"""

from __future__ import annotations

from collections.abc import Iterator

from orion.dataclass import dataclass, replace
from orion.ir.nodes import Range, Stmt, Var, walk
from orion.ir.program import (
    LoopNest,
    OfFilling,
    OfSource,
    Program,
    RunLoop,
    Step,
    blocks_of,
    with_loops,
)
from orion.ir.renaming import renamed


@dataclass(frozen=True, slots=True)
class Group:
    """Planned loops `first` … `first + count` - 1, which run directly after one another; their `depth` outermost loops
    are to be one."""

    first: int
    count: int
    depth: int

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.count)


def neighbours(program: Program) -> Iterator[tuple[int, ...]]:
    """The runs of two or more planned loops over ranges, as written, with nothing between them."""
    yield from _neighbours(program, program.steps)


def _neighbours(program: Program, steps: tuple[Step, ...]) -> Iterator[tuple[int, ...]]:
    run: list[int] = []
    for step in (*steps, None):
        if isinstance(step, RunLoop) and _is_plain(program.nests[step.number]):
            run.append(step.number)
            continue
        if len(run) > 1:
            yield tuple(run)
        run = []
        for block in blocks_of(step) if step is not None else ():
            yield from _neighbours(program, block)


def _is_plain(nest: LoopNest) -> bool:
    return nest.ordered and nest.elements is None and isinstance(nest.form, OfSource | OfFilling)


def matched_body(first: LoopNest, second: LoopNest, depth: int) -> tuple[Stmt, ...] | None:
    """What `second` has inside of its `depth` outermost loops, in the variables of those of `first`.

    A loop further in that has a variable of `first` gets one of `second` instead. None where the body uses a variable
    of `first` for something else.
    """
    body = second.loops[depth - 1].body
    mine, others = ([space.var for space in nest.ranges[:depth]] for nest in (first, second))
    new = [name for name in mine if name not in others]
    names: dict[str, str] = dict(zip(others, mine, strict=True))
    names |= dict(zip(new, [name for name in others if name not in mine], strict=True))
    nodes = [node for statement in body for node in walk(statement)]
    inner = {node.var for node in nodes if isinstance(node, Range)}
    if any(isinstance(node, Var) and node.name in new and node.name not in inner for node in nodes):
        return None
    return tuple(renamed(statement, dict(names)) for statement in body)


def fuse_loops(program: Program, groups: tuple[Group, ...]) -> Program | None:
    """The program with each group made into one planned loop; all are numbered anew. None where one has no such form.

    The groups are in textual order and have no loop in common.
    """
    nests: list[LoopNest] = []
    numbers: dict[int, int] = {}
    first_of = {group.first: group for group in groups}
    rest = {number for group in groups for number in group.numbers[1:]}
    for nest in program.nests:
        group = first_of.get(nest.number)
        found = nest if group is None else _fused([program.nests[number] for number in group.numbers], group.depth)
        if found is None:
            return None
        if nest.number not in rest:
            numbers[nest.number] = len(nests)
            nests.append(replace(found, number=len(nests)))
    return replace(
        program,
        nests=tuple(nests),
        steps=with_loops(program.steps, lambda old: [RunLoop(numbers[old])] if old in numbers else []),
    )


def _fused(nests: list[LoopNest], depth: int) -> LoopNest | None:
    first, *others = nests
    body = first.loops[depth - 1].body
    for other in others:
        more = matched_body(first, other, depth)
        if more is None:
            return None
        body += more
    loops = [replace(first.loops[depth - 1], body=body)]
    for loop in reversed(first.loops[: depth - 1]):
        loops.insert(0, replace(loop, body=(loops[0],)))
    return replace(first, loops=tuple(loops), dims=first.dims[:depth], body=body)
