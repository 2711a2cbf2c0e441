"""What statements assign."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.loop.ir import (
    Assign,
    Bind,
    Elements,
    For,
    Node,
    Range,
    Stmt,
    Tuple,
    Update,
    Var,
    walk,
)  # fmt: skip
from orion.loop.source import Span


def assigned_names(statements: Iterable[Stmt]) -> dict[str, Span]:
    """The names that the statements may assign (loop variables too), each with the last place that does."""
    nodes = (node for statement in statements for node in walk(statement) if type(node) in ASSIGNING)
    return {name: node.span for node in nodes for name in assigned_by(node)}


ASSIGNING = frozenset({Assign, Update, Bind, For})
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


def used_names(statements: Iterable[Node]) -> set[str]:
    """The names that the statements mention."""
    return {node.name for statement in statements for node in walk(statement) if isinstance(node, Var)}


