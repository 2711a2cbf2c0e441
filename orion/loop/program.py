"""A function taken apart into planned loops, the scalar statements between them, and serial loops around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from orion.errors import PlanError
from orion.loop.between import SYNTHETIC, array_names, is_repeat, separate, touches
from orion.loop.dimensions import leaves_loop, perfect_loops
from orion.loop.ir import Elements, For, Function, Range, Stmt
from orion.loop.nest import LoopNest, Program, Repeat, RunLoop, Scalars, Step
from orion.loop.types import Types


def split_program(function: Function, types: Types, ordered: bool | None = None) -> Program:
    """The planned loops of a function, and the steps that run them.

    A loop over the elements of a sparse array is planned by itself (unordered unless `ordered` is True). A perfect
    nest of ranges is planned as a whole (ordered unless `ordered` is False). A loop over a range around loops over
    elements is a `Repeat`. Statements between loops that touch no array are `Scalars`; those that do are a planned
    loop of one trip, whose `For.index` is `SYNTHETIC`, so that they run once and on one worker.
    """
    function = separate(function, types)
    splitter = _Splitter(function, ordered)
    steps = splitter.steps(function.body)
    return Program(function, tuple(splitter.nests), steps)


def open_outer_loop(program: Program, number: int, types: Types) -> Program:
    """The program with planned loop `number` made into a serial loop around the loops in its body.

    PlanError where `is_openable` says that the loop has no such form.
    """
    nest = program.nests[number]
    if not is_openable(nest, types):
        raise PlanError(f"loop {number} is not a serial loop around other loops and scalar statements")
    splitter = _Splitter(program.function, nest.ordered)
    steps = splitter.opened(program, program.steps, number)
    return Program(program.function, tuple(splitter.nests), steps, program.variables)


def is_openable(nest: LoopNest, types: Types) -> bool:
    """Whether the body of the outermost loop consists of loops over ranges and of scalar statements only."""
    outer = nest.loops[0]
    if outer.index == SYNTHETIC or isinstance(outer.space, Elements):
        return False
    others = [statement for statement in outer.body if not isinstance(statement, For)]
    arrays = array_names(types)
    return (
        len(others) < len(outer.body)
        and not touches(outer.space, arrays)
        and not any(touches(statement, arrays) or leaves_loop(statement) for statement in others)
    )


@dataclass(slots=True)
class _Splitter:
    function: Function
    ordered: bool | None
    nests: list[LoopNest] = field(default_factory=list)

    def steps(self, body: Iterable[Stmt]) -> tuple[Step, ...]:
        found: list[Step] = []
        for is_loop, group in groupby(body, lambda statement: isinstance(statement, For)):
            if is_loop:
                found += [self.loop(loop) for loop in group if isinstance(loop, For)]
            else:
                found.append(Scalars(tuple(group)))
        return tuple(found)

    def loop(self, loop: For) -> Step:
        return self.repeat(loop) if is_repeat(loop) else self.nest(loop)

    def repeat(self, loop: For) -> Repeat:
        return Repeat(loop, self.steps(loop.body))

    def nest(self, loop: For) -> RunLoop:
        loops = perfect_loops(loop)
        space = loop.space
        dims = space.keys if isinstance(space, Elements) else tuple(_variable(inner) for inner in loops)
        number = len(self.nests)
        self.nests.append(LoopNest(number, loops, dims, loops[-1].body, self.is_ordered(loop), self.function))
        return RunLoop(number)

    def is_ordered(self, loop: For) -> bool:
        by_default = isinstance(loop.space, Range)
        return by_default if self.ordered is None else self.ordered

    # ------------------------------------------------------------ opening a nest

    def opened(self, program: Program, steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
        """The steps with loop `number` opened; all loops are numbered anew."""
        return tuple(self.renumbered(program, step, number) for step in steps)

    def renumbered(self, program: Program, step: Step, number: int) -> Step:
        match step:
            case RunLoop(found) if found == number:
                return self.repeat(program.nests[number].loops[0])
            case RunLoop(found):
                self.nests.append(replace(program.nests[found], number=len(self.nests)))
                return RunLoop(len(self.nests) - 1)
            case Repeat(loop, inner):
                return Repeat(loop, self.opened(program, inner, number))
            case _:
                return step


def _variable(loop: For) -> str:
    assert isinstance(loop.space, Range)
    return loop.space.var
