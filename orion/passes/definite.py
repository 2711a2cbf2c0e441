"""Definite assignment: which uses of a name come where it is not sure that the name has a value."""

from __future__ import annotations

from collections.abc import Iterable

from orion.ir.nodes import Assign, Bind, For, If, Node, Range, Tuple, Var, While, walk
from orion.ir.source import Span


def unsure_reads(code: Iterable[Node], defined: Iterable[str]) -> dict[str, Span]:
    """The names that may be read before they have a value, each with the first such place. `defined` have one.

    The rules are simple: after a branch, what both sides assign has a value; the body of a loop may not run at all, so
    that what only it assigns has none after the loop.
    """
    unsure: dict[str, Span] = {}
    _block(code, frozenset(defined), unsure)
    return unsure


def _block(code: Iterable[Node], defined: frozenset[str], unsure: dict[str, Span]) -> frozenset[str]:
    """Go through the code; the names that have a value after it."""
    for node in code:
        defined = _step(node, defined, unsure)
    return defined


def _step(node: Node, defined: frozenset[str], unsure: dict[str, Span]) -> frozenset[str]:
    match node:
        case Assign(target, value):
            _reads(value, defined, unsure)
            return _assigned(target, defined, unsure)
        case Bind(name, row):
            _reads(row, defined, unsure)
            return defined | {name}
        case If(test, body, orelse):
            _reads(test, defined, unsure)
            return _block(body, defined, unsure) & _block(orelse, defined, unsure)
        case While(test, body):
            _reads(test, defined, unsure)
            _block(body, defined, unsure)
            return defined
        case For(space, body):
            _reads(space, defined, unsure)
            own = {space.var} if isinstance(space, Range) else {*space.keys, *space.values}
            _block(body, defined | own, unsure)
            return defined
        case _:
            _reads(node, defined, unsure)
            return defined


def _assigned(target: Node, defined: frozenset[str], unsure: dict[str, Span]) -> frozenset[str]:
    match target:
        case Var(name):
            return defined | {name}
        case Tuple(items):
            for item in items:
                defined = _assigned(item, defined, unsure)
            return defined
        case _:
            _reads(target, defined, unsure)
            return defined


def _reads(node: Node, defined: frozenset[str], unsure: dict[str, Span]) -> None:
    for part in walk(node):
        if isinstance(part, Var) and part.name not in defined:
            unsure.setdefault(part.name, part.span)
