"""What statements assign."""

from __future__ import annotations

from collections.abc import Iterable

from orion.ir.assigned import ASSIGNING, assigned_by
from orion.ir.nodes import Stmt, walk
from orion.ir.source import Span


def assigned_names(statements: Iterable[Stmt]) -> dict[str, Span]:
    """The names that the statements may assign (loop variables too), each with the last place that does."""
    nodes = (node for statement in statements for node in walk(statement) if type(node) in ASSIGNING)
    return {name: node.span for node in nodes for name in assigned_by(node)}
