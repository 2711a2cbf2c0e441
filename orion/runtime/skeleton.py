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
from collections.abc import Callable
from typing import Any

import numpy as np

from orion.loop.ir import For, Stmt, Var, walk
from orion.loop.nest import Program, Repeat, RunLoop, Scalars, Step
from orion.loop.printer import print_function, print_stmt
from orion.runtime.prepared import PreparedProgram

Skeleton = Callable[..., Any]


def make_skeleton(prepared: PreparedProgram) -> Skeleton:
    """The compiled skeleton: a function of the worker, then of the arguments of the user's function."""
    program = prepared.program
    text = skeleton_source(prepared)
    file = f"<orion skeleton of {program.function.name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"np": np, "math": math, "__builtins__": builtins, **dict(program.function.constants)}
    exec(compile(text, file, "exec"), names)
    return names[program.function.name]  # type: ignore[no-any-return]


def skeleton_source(prepared: PreparedProgram) -> str:
    """The skeleton as Python text, helper functions first."""
    function = prepared.program.function
    worker = _free_name("worker", prepared.program)
    helpers = [print_function(helper) for helper in function.helpers]
    header = f"def {function.name}({', '.join((worker, *function.params))}):"
    body = [*_first_values(prepared, "    "), *_block(prepared.program.steps, prepared, worker, "    ")]
    return "\n\n\n".join([*helpers, "\n".join([header, *body])]) + "\n"


def _first_values(prepared: PreparedProgram, indent: str) -> list[str]:
    """Values for the locals that a loop hands out but need not have one before it (`last` of `last = a[i]`)."""
    names = {name for loop in prepared.loops for name in loop.outputs} - set(prepared.program.function.params)
    return [f"{indent}{name} = 0" for name in sorted(names)]


def _block(steps: tuple[Step, ...], prepared: PreparedProgram, worker: str, indent: str) -> list[str]:
    lines: list[str] = []
    for step in steps:
        match step:
            case Scalars(body):
                lines += [print_stmt(statement, indent) for statement in body]
            case RunLoop(number):
                lines.append(indent + _call(number, prepared, worker))
            case Repeat(loop, inner):
                lines.append(indent + _header(loop))
                lines += _block(inner, prepared, worker, indent + "    ")
    return lines or [f"{indent}pass"]


def _call(number: int, prepared: PreparedProgram, worker: str) -> str:
    loop = prepared.loops[number]
    call = f"{worker}.loop({', '.join((str(number), *loop.inputs))})"
    return f"({', '.join(loop.outputs)},) = {call}" if loop.outputs else call


def _header(loop: For) -> str:
    empty = For(loop.space, (), loop.index, loop.span)
    return print_stmt(empty).partition("\n")[0]


def _free_name(wanted: str, program: Program) -> str:
    """`wanted`, with underscores added until no name of the function is the same."""
    function = program.function
    taken = {*function.params, *dict(function.constants), *(helper.name for helper in function.helpers)}
    taken |= {name for statement in function.body for name in _names(statement)}
    while wanted in taken:
        wanted += "_"
    return wanted


def _names(statement: Stmt) -> set[str]:
    return {node.name for node in walk(statement) if isinstance(node, Var)}
