"""A function taken apart into planned loops, the scalar statements between them, and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from orion.dataclass import dataclass, field
from orion.ir.assigned import own_level
from orion.ir.function import Function
from orion.ir.nodes import Break, Elements, For, If, Range, Stmt, While
from orion.ir.program import Branch, LoopNest, Program, Repeat, RunLoop, Scalars, Step, form_of
from orion.ir.types import Types
from orion.passes.between import is_repeat, is_split, separate
from orion.passes.dimensions import perfect_loops


def split_program(function: Function, types: Types, ordered: bool | None = None) -> Program:
    """The planned loops of a function, and the steps that run them.

    A loop over the elements of a sparse array is planned by itself (unordered unless `ordered` is True). A perfect
    nest of ranges is planned as a whole (ordered unless `ordered` is False). A loop over a range, or a `while`, around
    loops over elements is a `Repeat`, an `if` around them a `Branch`. Statements between loops that touch no array and
    have no loops are `Scalars`; others are a planned loop of one trip, whose `For.index` is `SYNTHETIC`, so that they
    run once and on one worker.
    """
    function = separate(function, types)
    splitter = Splitter(function, ordered)
    steps = splitter.steps(function.body)
    return Program(function, tuple(splitter.nests), steps)


@dataclass(slots=True)
class Splitter:
    """Makes steps of statements, and planned loops, `nests`, of the loops in them."""

    function: Function
    ordered: bool | None
    nests: list[LoopNest] = field(default_factory=list)

    def steps(self, body: Iterable[Stmt]) -> tuple[Step, ...]:
        found: list[Step] = []
        for is_step, group in groupby(body, lambda statement: isinstance(statement, For) or is_split(statement)):
            members = tuple(group)
            found += [self.step(member) for member in members] if is_step else [Scalars(members)]
        return tuple(found)

    def step(self, statement: Stmt) -> Step:
        match statement:
            case If(_, body, orelse):
                return Branch(statement, (self.steps(body), self.steps(orelse)))
            case While(_, body):
                return Repeat(statement, self.steps(body))
            case For(_, body) if is_repeat(statement):
                return Repeat(statement, self.steps(body))
            case _:
                assert isinstance(statement, For)
                return self.nest(statement)

    def nest(self, loop: For) -> RunLoop:
        loops = perfect_loops(loop)
        space = loop.space
        dims = space.keys if isinstance(space, Elements) else tuple(_variable(inner) for inner in loops)
        number = len(self.nests)
        self.nests.append(
            LoopNest(number, form_of(loop), loops, dims, loops[-1].body, self.is_ordered(loop), self.function)
        )
        return RunLoop(number)

    def is_ordered(self, loop: For) -> bool:
        by_default = isinstance(loop.space, Range)
        if isinstance(loop.space, Elements) and any(isinstance(one, Break) for one in own_level(loop.body)):
            return True  # what comes first ends it: that is to be the same on any number of workers
        return by_default if self.ordered is None else self.ordered


def _variable(loop: For) -> str:
    assert isinstance(loop.space, Range)
    return loop.space.var
