"""Scalars with several values in an iteration as several names (scalar renaming: Allen and Kennedy, *Optimizing
Compilers for Modern Architectures*, section 5.4).

    for i in range(1, n):                  for i in range(1, n):
        t = a[i] + b[i]                        t_1 = a[i] + b[i]
        a[i] = t + c[i - 1]                    a[i] = t_1 + c[i - 1]
        t = c[i] * d[i]                        t = c[i] * d[i]
        c[i] = t                               c[i] = t

An assignment at the top level of a loop's body that gives a name a value ends what the name had before: reads up to the
next one see this value, and no others do. The last value keeps the name, which the next iteration and what stands after
the loop may read. It needs that every iteration goes through the whole body. What stood in the way is that two
statements seem to need one another because both use the name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from orion.ir.assigned import leaves_loop
from orion.ir.function import Function
from orion.ir.nodes import Assign, For, Return, Stmt, Var, holds
from orion.ir.renaming import fresh, renamed
from orion.ir.rewriting import expand, with_new
from orion.typing.expression_types import Typing


def apply(function: Function, typing: Typing) -> tuple[Function, tuple[int, ...]]:
    """The function with a name for each value of such scalars, and the lines of the loops that it is another for."""
    taken, lines = {*typing.names}, list[int]()

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(statement, For) or any(leaves_loop(s) or holds(Return, s) for s in statement.body):
            return (statement,)
        body = _with_a_name_each(statement.body, typing, taken)
        if body == statement.body:
            return (statement,)
        lines.append(statement.span.line)
        return (replace(statement, body=body),)

    return with_new(function, body=expand(function.body, change)), tuple(lines)


def _with_a_name_each(body: tuple[Stmt, ...], typing: Typing, taken: set[str]) -> tuple[Stmt, ...]:
    left = Counter(name for statement in body if (name := _given(statement, typing)))
    now: dict[str, str] = {}
    done: list[Stmt] = []
    for statement in body:
        name = _given(statement, typing)
        if not name or not isinstance(statement, Assign):
            done.append(renamed(statement, now))
            continue
        value = renamed(statement.value, now)
        left[name] -= 1
        now.pop(name, None)
        if left[name]:
            now[name] = fresh(f"{name}_{left[name]}", taken)
        done.append(Assign(renamed(statement.target, now), value, statement.span))
    return tuple(done)


def _given(statement: Stmt, typing: Typing) -> str:
    """The scalar that a statement gives a value; nothing where it is no such statement."""
    match statement:
        case Assign(Var(name)) if (kind := typing.names.get(name)) is not None and kind.rank == 0:
            return name
        case _:
            return ""
