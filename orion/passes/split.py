"""A function taken apart into planned loops, the scalar statements between them, and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from orion.ir.nodes import Elements, For, Function, If, Range, Stmt, While
from orion.ir.program import Branch, LoopNest, Program, Repeat, RunLoop, Scalars, Step, form_of
from orion.ir.types import Types
from orion.passes.between import Opened, is_repeat, is_split, separate
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
    splitter = _Splitter(function, ordered)
    steps = splitter.steps(function.body)
    return Program(function, tuple(splitter.nests), steps)


def open_outer_loop(program: Program, number: int, opened: Opened | None, *, plainly: bool = False) -> Program | None:
    """The program with planned loop `number` made into a serial loop around the loops in its body; statements that run
    once, into the planned loops in them and what stands between these. `opened` is what `open_loop` makes of it. None
    where it has no such form.

    `plainly`: only where that gives no statements that run once, and no branches or `while`s around loops.
    """
    nest = program.nests[number]
    if opened is None or (plainly and not opened.is_plain):
        return None
    splitter = _Splitter(program.function, nest.ordered)
    steps = splitter.opened(program, program.steps, number, opened)
    variables = (*program.variables, *(name for name, kind in opened.names if kind.dtype != "bool"))
    tests = (*program.tests, *(name for name, kind in opened.names if kind.dtype == "bool"))
    unique = tuple(dict.fromkeys(variables)), tuple(dict.fromkeys(tests))
    return Program(program.function, tuple(splitter.nests), steps, *unique)


@dataclass(slots=True)
class _Splitter:
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
        return by_default if self.ordered is None else self.ordered

    # ------------------------------------------------------------ opening a nest

    def opened(self, program: Program, steps: tuple[Step, ...], number: int, opened: Opened) -> tuple[Step, ...]:
        """The steps with loop `number` opened; all loops are numbered anew."""
        found: list[Step] = []
        for step in steps:
            match step:
                case RunLoop(old) if old == number:
                    found += self.steps(opened.before)
                    inside = self.steps(opened.body)
                    found += inside if opened.loop is None else [Repeat(opened.loop, inside)]
                case RunLoop(old):
                    self.nests.append(replace(program.nests[old], number=len(self.nests)))
                    found.append(RunLoop(len(self.nests) - 1))
                case Repeat(loop, inner):
                    found.append(Repeat(loop, self.opened(program, inner, number, opened)))
                case Branch(statement, (first, second)):
                    sides = (self.opened(program, side, number, opened) for side in (first, second))
                    found.append(Branch(statement, tuple(sides)))  # type: ignore[arg-type]
                case _:
                    found.append(step)
        return tuple(found)


def _variable(loop: For) -> str:
    assert isinstance(loop.space, Range)
    return loop.space.var
