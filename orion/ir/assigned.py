"""Which names some code assigns and mentions, and which statements belong to a loop itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.ir.kept import kept
from orion.ir.nodes import (
    Assign,
    Bind,
    Break,
    Continue,
    Elements,
    For,
    Node,
    Range,
    Stmt,
    Tuple,
    Update,
    Var,
    Walked,
    While,
    children,
    every,
    names_in,
)  # fmt: skip
from orion.source import Span


def mentions(node: Node, names: set[str]) -> bool:
    """Whether any of the names is read or written in the code."""
    return not names.isdisjoint(names_in(node))


def assigned_names(body: Iterable[Stmt]) -> set[str]:
    """The names that the statements bind: by assignment, as a view, or as a loop variable."""
    return {name for statement in body for name, _ in assignments(statement)}


def assigned_places(body: Iterable[Stmt]) -> dict[str, Span]:
    """The names that the statements may assign (loop variables too), each with the last place that does."""
    return {name: span for statement in body for name, span in assignments(statement)}


@kept
def assignments(code: Node) -> tuple[tuple[str, Span], ...]:
    """The names that the code assigns, with the places, once for each place that does."""
    below = (found for part in children(code) if isinstance(part, Walked) for found in assignments(part))
    return (*((name, code.span) for name in assigned_by(code)), *below)


ASSIGNING = (Assign, Update, Bind, For)
"""The nodes that assign names."""


def assigned_by(node: Node) -> Iterator[str]:
    """The names that this node itself assigns, not those inside it."""
    match node:
        case Assign(Var(name)) | Update(Var(name)) | Bind(name):
            yield name
        case Assign(Tuple(items)):
            yield from (item.name for item in items if isinstance(item, Var))
        case For(Range(var)):
            yield var
        case For(Elements(_, keys, values)):
            yield from (*keys, *values)
        case _:
            pass


def bound_rows(body: Iterable[Stmt]) -> dict[str, set[str]]:
    """Return the names of rows that stay names (`Bind`), each with all names that it may be a part of: `w = v[1:]`
    after `v = A[i]` is a part of `v` and of `A`."""
    bases: dict[str, set[str]] = {}
    for bound in every(Bind, *body):
        bases.setdefault(bound.name, set()).add(bound.row.base.name)
    for found in bases.values():
        waiting = [*found]
        while waiting:
            others = bases.get(waiting.pop(), set()) - found
            found |= others
            waiting += others
    return bases


def holds_break(body: Iterable[Stmt]) -> bool:
    """Whether a `break` in the statements belongs to the loop whose body they are."""
    return any(isinstance(statement, Break) for statement in own_level(body))


def leaves_loop(statement: Stmt) -> bool:
    """Whether a `break` or `continue` in the statement belongs to a loop around it."""
    return any(isinstance(inner, Break | Continue) for inner in own_level((statement,)))


def own_level(body: Iterable[Stmt]) -> list[Stmt]:
    """The statements, and those inside their branches, that are not inside a further loop."""
    found: list[Stmt] = []
    for statement in body:
        found.append(statement)
        if not isinstance(statement, For | While):
            for block in (getattr(statement, "body", ()), getattr(statement, "orelse", ())):
                found += own_level(block)
    return found
