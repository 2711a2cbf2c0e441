"""Names that stand for tuples: `at = (i, j)`, `best, at = a[i, j], (i, j)`, `shape = 3, 4`.

A name that is only ever given tuples of one length, as they stand in the source, is as many names: `at_0` and `at_1`.
`at[0]` is the first of them, and `at` alone all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from orion.ir.nodes import Expr, Subscript, Tuple, Var

Target = Var | Subscript | Tuple


def tuple_names(nodes: Iterable[ast.AST], params: tuple[str, ...]) -> dict[str, int]:
    """The names that are given tuples alone, with the lengths of these."""
    given: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        for name, value in _given(node):
            given.setdefault(name, []).append(value)
    values = {name: own for name, own in given.items() if name not in params}
    found = {name: length for name, own in values.items() for value in own if (length := _length(value, {}))}
    while True:  # what is given another of these names has its length, for as long as that is one
        further = {name: found[other] for name, own in values.items() for other in _names(own) if other in found}
        if further.keys() <= found.keys():
            wrong = [name for name in found if {_length(value, found) for value in values[name]} != {found[name]}]
            if not wrong:
                return found
            values = {name: own for name, own in values.items() if name not in wrong}
            further, found = {}, {name: length for name, length in found.items() if name not in wrong}
        found = further | found


def _names(values: list[ast.expr | None]) -> Iterator[str]:
    yield from (value.id for value in values if isinstance(value, ast.Name))


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a node gives values to, with the values as far as they are written there."""
    match node:
        case ast.Assign(targets, value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target, _, value):
            yield from _pairs(target, value)
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.NamedExpr(target=target):
            yield from _pairs(target, None)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    match target, value:
        case ast.Name(name), _:
            yield name, value
        case ((ast.Tuple(parts) | ast.List(parts)), (ast.Tuple(values) | ast.List(values))) if len(parts) == len(
            values
        ):
            for part, own in zip(parts, values, strict=True):
                yield from _pairs(part, own)
        case ((ast.Tuple(parts) | ast.List(parts)), _):
            for part in parts:
                yield from _pairs(part, None)


def _length(value: ast.expr | None, known: dict[str, int]) -> int:
    """The length of a tuple; 0 for what is none, or has none that is known."""
    match value:
        case ast.Tuple(items) if not any(isinstance(item, ast.Starred | ast.Tuple) for item in items):
            return len(items)
        case ast.Name(name):
            return known.get(name, 0)
        case _:
            return 0


def flattened(target: Target, value: Expr) -> tuple[Target, Expr] | None:
    """Nested targets and values side by side, one for each name or element; None where they do not go together."""
    if not isinstance(target, Tuple) or not _holds_tuple(target):
        return target, value
    found = [*_leaves(target, value)]
    if any(isinstance(one, Tuple) for one, _ in found):
        return None
    targets = tuple(one for one, _ in found if not isinstance(one, Tuple))
    return Tuple(targets, target.span), Tuple(tuple(own for _, own in found), value.span)


def _holds_tuple(target: Tuple) -> bool:
    return any(isinstance(item, Tuple) for item in target.items)


def _leaves(target: Expr, value: Expr) -> Iterator[tuple[Expr, Expr]]:
    match target, value:
        case Tuple(targets), Tuple(values) if len(targets) == len(values):
            for one, own in zip(targets, values, strict=True):
                yield from _leaves(one, own)
        case _:
            yield target, value
