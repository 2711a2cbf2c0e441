"""The skeleton of a program: the Python function that every worker runs from top to bottom.

It is the user's function with each planned loop replaced by a call of the worker's part of it. The statements
between loops work on scalars only, and every worker runs them on its own copies. For the second loop of
`orion.loop.nest`:

    def rmse(worker, ratings, W, H):
        total = 0.0
        (total,) = worker.loop(0, total)
        return np.sqrt(total / len(ratings))
"""

from __future__ import annotations

import builtins
import linecache
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orion.loop.definite import unsure_reads
from orion.loop.ir import names_in
from orion.loop.nest import Branch, Program, Repeat, RunLoop, Scalars, Step
from orion.loop.printer import print_expr, print_function, print_stmt
from orion.runtime.prepared import PreparedProgram
from orion.runtime.rounds import Rounds

Skeleton = Callable[..., Any]


def make_skeleton(prepared: PreparedProgram, compiled: Sequence[Rounds] = ()) -> Skeleton:
    """The compiled skeleton: a function of the worker, then of the arguments of the user's function.

    The serial loops in `compiled` are calls of the worker too.
    """
    program = prepared.program
    text = skeleton_source(prepared, compiled)
    file = f"<orion skeleton of {program.function.name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"np": np, "math": math, "__builtins__": builtins, **dict(program.function.constants)}
    exec(compile(text, file, "exec"), names)
    return names[program.function.name]  # type: ignore[no-any-return]


def skeleton_source(prepared: PreparedProgram, compiled: Sequence[Rounds] = ()) -> str:
    """The skeleton as Python text, helper functions first."""
    function = prepared.program.function
    writer = _Writer(prepared, compiled, _free_name("worker", prepared.program))
    helpers = [print_function(helper) for helper in function.helpers]
    header = f"def {function.name}({', '.join((writer.worker, *function.params))}):"
    body = [*_first_values(prepared, "    "), *writer.block(prepared.program.steps, "    ")]
    return "\n\n\n".join([*helpers, "\n".join([header, *body])]) + "\n"


def _first_values(prepared: PreparedProgram, indent: str) -> list[str]:
    """Values for the locals that a loop hands out, or may need, but need not have one before it (`last` of `last =
    a[i]`)."""
    function = prepared.program.function
    names = {name for loop in prepared.loops for name in loop.outputs}
    names |= unsure_reads(function.body, function.params).keys() & {n for loop in prepared.loops for n in loop.inputs}
    names -= {*function.params, *dict(function.constants)}
    return [f"{indent}{name} = 0" for name in sorted(names)]


@dataclass(frozen=True)
class _Writer:
    prepared: PreparedProgram
    compiled: Sequence[Rounds]
    worker: str

    def block(self, steps: tuple[Step, ...], indent: str) -> list[str]:
        """The lines of some steps."""
        lines: list[str] = []
        for step in steps:
            match step:
                case Scalars(body):
                    lines += [print_stmt(statement, indent) for statement in body]
                case RunLoop(number):
                    lines.append(indent + self.call(number))
                case Repeat():
                    lines += self.repeat(step, indent)
                case Branch():
                    lines += self.branch(step, indent)
        return lines or [f"{indent}pass"]

    def repeat(self, step: Repeat, indent: str) -> list[str]:
        """A serial loop: as it is, or as one call where it is compiled."""
        number = next((k for k, rounds in enumerate(self.compiled) if rounds.repeat is step), None)
        space = step.space
        if number is None or space is None:
            header = print_stmt(replace(step.loop, body=())).partition("\n")[0]
            return [indent + header, *self.block(step.steps, indent + "    ")]
        trips = f"range({', '.join(map(print_expr, (space.start, space.stop, space.step)))})"
        values = [text for text, _ in self.compiled[number].values]
        return [f"{indent}{self.worker}.rounds({', '.join((str(number), trips, *values))})"]

    def branch(self, step: Branch, indent: str) -> list[str]:
        first, second = step.sides
        lines = [f"{indent}if {print_expr(step.statement.test)}:", *self.block(first, indent + "    ")]
        return [*lines, f"{indent}else:", *self.block(second, indent + "    ")] if second else lines

    def call(self, number: int) -> str:
        loop = self.prepared.loops[number]
        call = f"{self.worker}.loop({', '.join((str(number), *loop.inputs))})"
        return f"({', '.join(loop.outputs)},) = {call}" if loop.outputs else call


def _free_name(wanted: str, program: Program) -> str:
    """`wanted`, with underscores added until no name of the function is the same."""
    function = program.function
    taken = {*function.params, *dict(function.constants), *(helper.name for helper in function.helpers)}
    taken |= names_in(*function.body)
    while wanted in taken:
        wanted += "_"
    return wanted
