"""Subscripts of an inner loop that are the same in all its trips: checked once, before it, they do not keep the loop
from being run in vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.ir.assigned import assigned_names
from orion.ir.nodes import (
    Assign,
    Break,
    Choose,
    Compare,
    Continue,
    Evaluate,
    Logic,
    Node,
    Return,
    Stmt,
    Subscript,
    Update,
    Var,
    children,
    holds,
)  # fmt: skip

LEAVING = (Break, Continue, Return)


def invariant_subscripts(body: tuple[Stmt, ...], variable: str) -> Iterator[tuple[Subscript, int, Var]]:
    """The subscripts (of which element or row, axis, name) of a loop that are names which it does not assign, used for
    sure in each of its trips."""
    changed = assigned_names(body) | {variable}
    for subscript in _sure_subscripts(body):
        for axis, part in enumerate(subscript.index):
            if isinstance(part, Var) and part.name not in changed:
                yield subscript, axis, part


def _sure_subscripts(body: Iterable[Stmt]) -> Iterator[Subscript]:
    for statement in body:
        if isinstance(statement, Assign | Update | Evaluate):
            yield from _evaluated(statement)
        if holds(LEAVING, statement):
            return


def _evaluated(node: Node) -> Iterator[Subscript]:
    """The subscripts in a node that are used whenever it is evaluated."""
    if isinstance(node, Subscript):
        yield node
    match node:
        case Logic(_, (first, *_)):
            parts: Iterable[Node] = (first,)
        case Compare(_, (first, second, *_)):
            parts = (first, second)
        case Choose(test):
            parts = (test,)
        case _:
            parts = children(node)
    for part in parts:
        yield from _evaluated(part)
