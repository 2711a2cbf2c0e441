"""The skeleton of a program: the Python function that every worker runs from top to bottom.

It is the user's function with each planned loop replaced by a call of the worker's part of it. The statements
between loops work on scalars only, and every worker runs them on its own copies. For the second loop of
`orion.ir.program`:

    def rmse(worker, ratings, W, H):
        total = 0.0
        (total,) = worker.loop(0, total)
        return np.sqrt(total / len(ratings))

An error that such a statement raises is told with the line of the user's that it comes from.
"""

from __future__ import annotations

import builtins
import linecache
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orion.arrays.accumulator import Returned
from orion.errors import of_user
from orion.ir.exposed import exposed_reads
from orion.ir.nodes import Elements, Range, Stmt, names_in
from orion.ir.printer import function_lines, print_expr, statement_lines
from orion.ir.program import Branch, Program, Repeat, RunLoop, Scalars, Step
from orion.runtime.bars import Bars
from orion.runtime.prepared import PreparedProgram
from orion.runtime.rounds import Rounds
from orion.runtime.worker import AbortedError, FinishedError
from orion.source import SourceText, Span

Skeleton = Callable[..., Any]
Line = tuple[str, tuple[Span, SourceText] | None]
"""A line of the skeleton, and the place in the user's source that it comes from."""


def make_skeleton(prepared: PreparedProgram, compiled: Sequence[Rounds] = (), bars: Bars | None = None) -> Skeleton:
    """The compiled skeleton: a function of the worker, then of the arguments of the user's function.

    The serial loops in `compiled` are calls of the worker too. `bars` are shown, if there are any.
    """
    function = prepared.program.function
    lines = skeleton_lines(prepared, compiled, with_bars=bars is not None)
    text = _joined(lines)
    file = f"<orion skeleton of {function.name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"np": np, "math": math, "__builtins__": builtins, **dict(function.constants)}
    names[_free_name("bars", prepared.program)] = bars
    accumulated = function.accumulated
    exec(compile(text, file, "exec"), names)
    made = names[function.name]

    def skeleton(*arguments: Any) -> Any:
        try:
            if not accumulated:
                return made(*arguments)
            numbers: list[tuple[Any, ...]] = []
            returned = made(*arguments, numbers)
            return Returned(returned, dict(zip((one.source for one in accumulated), numbers, strict=True)))
        except (AbortedError, FinishedError):  # every call ends so on workers other than 0: no place is looked for
            raise
        except Exception as error:
            place = _place(error, file, lines)
            if place is None:
                raise
            raise of_user(error, *place) from error

    return skeleton


def _place(error: Exception, file: str, lines: Sequence[Line]) -> tuple[Span, SourceText] | None:
    """The line of the user's that an error was raised in; None where it was not in one of them."""
    inside = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file and frame.lineno]
    return lines[inside[-1].lineno - 1][1] if inside and inside[-1].lineno else None


def skeleton_source(prepared: PreparedProgram, compiled: Sequence[Rounds] = ()) -> str:
    """The skeleton as Python text, helper functions first."""
    return _joined(skeleton_lines(prepared, compiled))


def _joined(lines: Sequence[Line]) -> str:
    return "\n".join(text for text, _ in lines) + "\n"


def skeleton_lines(
    prepared: PreparedProgram, compiled: Sequence[Rounds] = (), *, with_bars: bool = False
) -> list[Line]:
    """The lines of the skeleton, those of the user's with their places."""
    function = prepared.program.function
    found = {bar.line: number for number, bar in reversed([*enumerate(function.bars)])} if with_bars else {}
    names = _free_name("worker", prepared.program), _free_name("bars", prepared.program)
    writer = _Writer(prepared, compiled, *names, found)
    lines: list[Line] = []
    for helper in function.helpers:
        lines += [(text, (span, helper.source)) for text, span in function_lines(helper)]
        lines += [("", None), ("", None)]
    kept = [_free_name("kept", prepared.program)] if function.accumulated else []
    lines.append((f"def {function.name}({', '.join((writer.worker, *function.params, *kept))}):", None))
    lines += [(text, None) for text in _first_values(prepared, "    ")]
    if not kept:
        return lines + writer.block(prepared.program.steps, "    ")
    numbers = (f"({', '.join(one.names)},)" for one in function.accumulated)
    lines.append(("    try:", None))
    lines += writer.block(prepared.program.steps, "        ")
    return [*lines, ("    finally:", None), (f"        {kept[0]}[:] = [{', '.join(numbers)}]", None)]


def _first_values(prepared: PreparedProgram, indent: str) -> list[str]:
    """Values for the locals that a loop hands out, or may need, but need not have one before it (`last` of `last =
    a[i]`)."""
    function = prepared.program.function
    names = {name for loop in prepared.loops for name in loop.outputs}
    names |= exposed_reads(function.body, function.params).keys() & {n for loop in prepared.loops for n in loop.inputs}
    names -= {*function.params, *dict(function.constants)}
    return [f"{indent}{name} = 0" for name in sorted(names)]


@dataclass(frozen=True)
class _Writer:
    prepared: PreparedProgram
    compiled: Sequence[Rounds]
    worker: str
    bars: str
    shown: Mapping[int, int]
    """Line of a loop → the number of its bar."""

    @property
    def source(self) -> SourceText:
        return self.prepared.program.function.source

    def block(self, steps: tuple[Step, ...], indent: str) -> list[Line]:
        """The lines of some steps."""
        lines: list[Line] = []
        for step in steps:
            match step:
                case Scalars(body):
                    lines += [line for statement in body for line in self.statement(statement, indent)]
                case RunLoop(number):
                    lines += self.run(number, indent)
                case Repeat():
                    lines += self.repeat(step, indent)
                case Branch():
                    lines += self.branch(step, indent)
        return lines or [(f"{indent}pass", None)]

    def statement(self, statement: Stmt, indent: str) -> list[Line]:
        return [(text, (span, self.source)) for text, span in statement_lines(statement, indent)]

    def repeat(self, step: Repeat, indent: str) -> list[Line]:
        """A serial loop: as it is, or as one call where it is compiled."""
        number = next((k for k, rounds in enumerate(self.compiled) if rounds.repeat is step), None)
        space = step.space
        if number is None or space is None:
            header = self.statement(replace(step.loop, body=()), indent)[0]
            bar = self.shown.get(step.loop.span.line)
            if bar is not None and space is not None:
                through = f"{self.bars}.around({self.worker}, {bar}, {_trips(space)}, {self.total(bar)})"
                header = (f"{indent}for {space.var} in {through}:", header[1])
            return [header, *self.block(step.steps, indent + "    ")]
        trips = _trips(space)
        values = [text for text, _ in self.compiled[number].values]
        return [(f"{indent}{self.worker}.rounds({', '.join((str(number), trips, *values))})", None)]

    def branch(self, step: Branch, indent: str) -> list[Line]:
        first, second = step.sides
        test = step.statement.test
        head: Line = (f"{indent}if {print_expr(test)}:", (test.span, self.source))
        lines = [head, *self.block(first, indent + "    ")]
        return [*lines, (f"{indent}else:", None), *self.block(second, indent + "    ")] if second else lines

    def run(self, number: int, indent: str) -> list[Line]:
        """A planned loop, with its bar around it."""
        loop = self.prepared.program.nests[number]
        bar = self.shown.get(loop.span.line)
        if bar is None:
            return [(indent + self.call(number), None)]
        head = f"{indent}with {self.bars}.whole({self.worker}, {bar}, {self.total(bar)}):"
        return [(head, None), (f"{indent}    {self.call(number)}", None)]

    def total(self, number: int) -> str:
        """The number of iterations of a loop of the source with a bar."""
        space = self.prepared.program.function.bars[number].trips
        if space is None:
            return "None"
        return f"len({space.array})" if isinstance(space, Elements) else f"len({_trips(space)})"

    def call(self, number: int) -> str:
        loop = self.prepared.loops[number]
        call = f"{self.worker}.loop({', '.join((str(number), *loop.inputs))})"
        return f"({', '.join(loop.outputs)},) = {call}" if loop.outputs else call


def _trips(space: Range) -> str:
    return f"range({', '.join(map(print_expr, (space.start, space.stop, space.step)))})"


def _free_name(wanted: str, program: Program) -> str:
    """`wanted`, with underscores added until no name of the function is the same."""
    function = program.function
    taken = {*function.params, *dict(function.constants), *(helper.name for helper in function.helpers)}
    taken |= names_in(*function.body)
    while wanted in taken:
        wanted += "_"
    return wanted
