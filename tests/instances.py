"""Which instances of statements a call runs, on which worker and in which tile: noted by the kernels as they run.

The text of each loop gets a call of `note` before every assignment that the function has at that place, with the values
of the variables of the loops around it there. The interpreter runs the kernels of these texts; the function itself,
with the same notes, is run as Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import numpy as np

import orion
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Call,
    Const,
    Elements,
    Evaluate,
    Expr,
    For,
    If,
    Pass,
    Stmt,
    Update,
    Var,
    While,
    every,
    names_in,
)
from orion.ir.printer import print_function
from orion.ir.program import LoopNest, Scalars, Step, blocks_of
from orion.ir.rewriting import expand
from orion.ir.signature import argument_types
from orion.kernel.calling import KernelSource, Walk
from orion.pipeline import executed, kernels_of, local_specs, make_plan
from orion.planned import Plan
from orion.runtime.local_arrays import LocalArrays
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.source import Span
from orion.typing.value_type import INT
from tests.oracles.interpreted import Order, Turns, kernel_code, run_with

DEPTH = 6
"""The most loops around a statement."""


@dataclass(frozen=True)
class Noted:
    """An instance of a statement: its number, the values of the variables around it; the planned loop, the worker and
    the tile that it was run in."""

    statement: int
    values: tuple[int, ...]
    loop: int
    worker: int
    tile: int


@dataclass(frozen=True)
class Ran:
    """A call of a function: its plan, its loops with their schedules, and all instances that were run."""

    plan: Plan
    program: PreparedProgram
    statements: tuple[Placed, ...]
    noted: tuple[Noted, ...]
    expected: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Placed:
    """An assignment of the function, and the variables of the loops around it, outermost first: "" for those of serial
    loops around the planned one that this does not get."""

    statement: Assign | Update
    variables: tuple[str, ...]


def ran(function: Any, arguments: Sequence[Any], workers: int, seed: int = 0) -> Ran:
    """Run a function on so many workers, in the interpreter."""
    preparation = orion.parallel_for(function)._preparations.plain
    names = function.__code__.co_varnames[: len(arguments)]
    given = dict(zip(names, arguments, strict=True))
    types, shapes = argument_types(given)
    typed, shapes = preparation.typed_for(types, shapes, given)
    plan = make_plan(typed, given, shapes, workers, True)
    made = executed(typed, plan)
    inside = {part.span: seen_in(loop.nest) for loop in made.loops for part in every((Assign, Update), *loop.nest.body)}
    statements = tuple(
        replace(one, variables=tuple(name if name in inside[one.statement.span] else "" for name in one.variables))
        for one in placed(made.program.function.body, ())
        if one.statement.span in inside
    )
    between = {part.span for step in scalars_of(made.program.steps) for part in every((Assign, Update), *step.body)}
    assert all(one.statement.span in inside.keys() | between for one in placed(made.program.function.body, ()))
    helper = note_function(made.program.function)
    loops = tuple(replace(loop, nest=with_notes(loop.nest, statements, helper)) for loop in made.loops)
    variants = tuple(
        replace(one, typing=replace(one.typing, helper_type=lambda name, kinds: INT)) for one in typed.variants
    )
    kernels = kernels_of(replace(typed, variants=variants), plan, replace(made, loops=loops), False)
    scheduled = (plan.schedule_of(loop, loop.runs_on) for loop in made.loops)
    program = PreparedProgram(made.program, tuple(map(PreparedLoop, loops, scheduled, kernels)), {})
    turns = NotingTurns(Order(seed))
    codes = [kernel_code(loop.kernel.text) for loop in program.loops]
    local = dict(LocalArrays(local_specs(plan)).take())
    run_with(turns, program, codes, {**copied(given), **local})
    own = dict(LocalArrays(local_specs(plan)).take())
    expected = tuple(as_python(made.program.function, statements, {**given, **own}))
    return Ran(plan, program, statements, tuple(turns.noted), expected)


def seen_in(nest: LoopNest) -> set[str]:
    """The names that the text of a nest has or sets."""
    spaces = [loop.space for loop in every(For, nest.loops[0])]
    keys = {key for space in spaces if isinstance(space, Elements) for key in space.keys}
    return keys | names_in(nest.loops[0]) | assigned_names(nest.loops)


def scalars_of(steps: Sequence[Step]) -> Iterator[Scalars]:
    """What every worker runs between the loops."""
    for step in steps:
        if isinstance(step, Scalars):
            yield step
        for block in blocks_of(step):
            yield from scalars_of(block)


def copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}


def placed(body: Sequence[Stmt], around: tuple[str, ...]) -> Iterator[Placed]:
    """The assignments of a body, each with the variables of the loops around it."""
    for statement in body:
        match statement:
            case Assign() | Update():
                yield Placed(statement, around)
            case For(Elements(_, keys), inner):
                yield from placed(inner, (*around, *keys))
            case For(space, inner):
                yield from placed(inner, (*around, space.var))
            case If(_, then, orelse):
                yield from placed((*then, *orelse), around)
            case While(_, inner):
                yield from placed(inner, around)
            case _:
                pass


# ---------------------------------------------------------------- notes


def note_function(function: Function) -> Function:
    params = ("statement", *(f"value{k}" for k in range(DEPTH)))
    return Function("note", params, (Pass(function.span),), (), (), function.source, function.span)


def with_notes(nest: LoopNest, statements: Sequence[Placed], helper: Function) -> LoopNest:
    """A nest whose text notes the statements of the function: those that are at the same place in the source."""
    numbers = {one.statement.span: (number, one) for number, one in enumerate(statements)}

    def noted(statement: Stmt) -> tuple[Stmt, ...]:
        if isinstance(statement, Assign | Update) and statement.span in numbers:
            number, one = numbers[statement.span]
            return (note(number, one, statement.span), statement)
        return (statement,)

    body = expand(nest.body, noted)
    loops = [replace(nest.loops[-1], body=body)]
    for loop in reversed(nest.loops[:-1]):
        loops.insert(0, replace(loop, body=(loops[0],)))
    function = replace(nest.function, helpers=(*nest.function.helpers, helper))
    return replace(nest, loops=tuple(loops), body=body, function=function)


def note(number: int, one: Placed, span: Span) -> Stmt:
    values: list[Expr] = [Const(number, span), *(Var(name, span) if name else Const(0, span) for name in one.variables)]
    values += [Const(0, span)] * (DEPTH + 1 - len(values))
    return Evaluate(Call("helper:note", tuple(values), span), span)


class NotingTurns(Turns):
    """Keeps the notes of each worker until the tile that they are of is done."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.noted: list[Noted] = []
        self.open: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self.loops = -1

    def walk(self, code: CodeType, kernel: KernelSource) -> Walk:
        self.loops += 1
        loop = self.loops

        def noting(statement: int, *values: int) -> int:
            self.open.setdefault(self.running, []).append((statement, tuple(map(int, values))))
            return 0

        def finish(tile: int, round: int, done: Any) -> None:
            for statement, values in self.open.pop(self.running, []):
                self.noted.append(Noted(statement, values, loop, self.running, tile))
            self.finish(tile, round, done)

        return self.walk_with(code, kernel, {"finish": finish, "prefetch_row": lambda *_: None}, {"note": noting})


def as_python(
    function: Function, statements: Sequence[Placed], arguments: Mapping[str, Any]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The instances that the function runs as Python."""
    numbers = {one.statement.span: (number, one) for number, one in enumerate(statements)}

    def noted(statement: Stmt) -> tuple[Stmt, ...]:
        if isinstance(statement, Assign | Update) and statement.span in numbers:
            return (note(*numbers[statement.span], statement.span), statement)
        return (statement,)

    text = print_function(replace(function, body=expand(function.body, noted))).replace("helper:note", "note")
    found: list[tuple[int, tuple[int, ...]]] = []
    scope: dict[str, Any] = {"np": np, "note": lambda k, *values: found.append((k, tuple(map(int, values))))}
    scope |= dict(function.constants)
    exec(text, scope)
    with np.errstate(all="ignore"):
        scope[function.name](**copied(arguments))
    return iter(found)
