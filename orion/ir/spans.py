"""Code with other places in the source, or none: to compare it by what it says, or to let it stand elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from orion.ir.nodes import IS_NODE, NODE_CLASSES, Node
from orion.source import Span

NOWHERE = Span("", 0, 0, 0, 0)

N = TypeVar("N", bound=Node)

FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in NODE_CLASSES}
"""Node class → all its fields, in their order."""


def with_span(node: N, span: Span) -> N:
    """The node with every span in it replaced."""
    return relocated(node, lambda _: span)


def relocated(node: N, place: Callable[[Span], Span]) -> N:
    """Return the node with every span in it mapped."""
    kind: Any = type(node)
    return kind(*[_placed(getattr(node, name), place) for name in FIELDS[kind]])  # type: ignore[no-any-return]


def without_spans(node: N) -> N:
    """The node without places: equal for code that reads the same.

    >>> from orion.ir.nodes import Var
    >>> without_spans(Var("i", Span("a.py", 1, 0, 1, 1))) == without_spans(Var("i", Span("b.py", 7, 3, 7, 4)))
    True
    """
    return with_span(node, NOWHERE)


def _placed(value: Any, place: Callable[[Span], Span]) -> Any:
    kind = type(value)
    if kind in IS_NODE:
        return relocated(value, place)
    if kind is tuple:
        return tuple([_placed(item, place) for item in value])
    return place(value) if kind is Span else value
