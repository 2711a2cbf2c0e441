"""Assignments of several rows at once, one by one: only then are rows computed with element by element.

    a, b = W[i].copy(), H[j].copy()         a = W[i].copy()
                                            b = H[j].copy()

    W[i], H[j] = W[i] + H[j], H[j] - W[i]   row_4_0 = W[i] + H[j]
                                            row_4_1 = H[j] - W[i]
                                            W[i] = row_4_0
                                            H[j] = row_4_1

As in Python, all values are there before the first target has its own; a value that is a part of an array is that part.
"""

from __future__ import annotations

from collections.abc import Iterator

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import Assign, Expr, Stmt, Subscript, Tuple, Var, names_in
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, with_new
from orion.typing.expression_types import Typing

Pair = tuple[Expr, Expr]


def with_rows_one_by_one(function: Function, typing: Typing) -> Function:
    """The function without assignments to several targets of which one is a row."""
    taken = {*function.params, *assigned_names(function.body)}

    def changed(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Tuple(targets), Tuple(values), span) if len(targets) == len(values) and any(
                typing.of(value).rank for value in values
            ):
                pairs = [*zip(targets, values, strict=True)]
                if not _needs_names(pairs):
                    return tuple(_one(target, value) for target, value in pairs)
                names = [Var(fresh(f"row_{span.line}_{k}", taken), span) for k in range(len(pairs))]
                first = [Assign(name, value, value.span) for name, value in zip(names, values, strict=True)]
                return (*first, *(_one(target, name) for target, name in zip(targets, names, strict=True)))
        return (statement,)

    return with_new(function, body=expand(function.body, changed))


def _one(target: Expr, value: Expr) -> Assign:
    assert isinstance(target, Var | Subscript)
    return Assign(target, value, target.span)


def _needs_names(pairs: list[Pair]) -> bool:
    """Whether a target would change what a value behind it is made of, or where a target behind it lies."""
    for before, (target, value) in enumerate(pairs):
        read = names_in(value) | {name for part in _index(target) for name in names_in(part)}
        given = {_name(one) for one, _ in pairs[:before]}
        writes = any(isinstance(one, Subscript) for one, _ in pairs[:before])
        if not given.isdisjoint(read) or (writes and read):
            return True
    return False


def _index(target: Expr) -> Iterator[Expr]:
    if isinstance(target, Subscript):
        yield from target.index


def _name(target: Expr) -> str:
    match target:
        case Var(name) | Subscript(Var(name)):
            return name
        case _:
            return ""
