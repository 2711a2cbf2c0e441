"""What the text of a loop says of scalars that it may take from one trip to the next without becoming serial.

Written on Python's `ast`, and without a look at Orion's analysis.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def chosen_names(loop: ast.For) -> set[str]:
    """The scalars that the loop sets in one kind of statement only, and uses nowhere else: `if x > best: best = x`,
    with assignments of other names below the `if` that depend on none of them."""
    found: set[str] = set()
    for first in ast.walk(loop):
        own = _choice(first)
        if own is None:
            continue
        same = [node for node in ast.walk(loop) if _choice(node) == own]
        names = set(own[1:])
        if sum(_mentions(node, names) for node in same) == _mentions(loop, names):
            found |= names
    return found


def _choice(node: ast.AST) -> tuple[str, ...] | None:
    """The comparison, the name that it is about and the others, sorted; None where a statement is no such `if`."""
    match node:
        case ast.If(test=ast.Compare(left, [op], [right]), body=body, orelse=[]):
            values = dict(_plain_assignments(body))
            larger = isinstance(op, ast.Gt | ast.GtE)
            strict = isinstance(op, ast.Gt | ast.Lt)
            if len(values) != len(body) or not isinstance(op, ast.Gt | ast.GtE | ast.Lt | ast.LtE):
                return None
            for best, new, is_max in ((right, left, larger), (left, right, not larger)):
                if isinstance(best, ast.Name) and best.id in values and _text(values[best.id]) == _text(new):
                    parts = [*values.values(), new]
                    if any(_mentions(part, set(values)) for part in parts):
                        return None
                    return (f"{is_max} {strict}", best.id, *sorted(values.keys() - {best.id}))
    return None


def _plain_assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)], value):
                yield name, value


def growing_names(loop: ast.For) -> set[str]:
    """The integers that every trip increases by one and the same constant, which is all that the loop does to them:
    their values are known from the number of the trip. Loops inside with a number for their trips may do it too."""
    grown: dict[str, int] = {}
    if not _is_left_early(loop):
        _collect(loop.body, grown)
    assigned = [node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {name for name, count in grown.items() if count == assigned.count(name)}


def _collect(body: Sequence[ast.stmt], grown: dict[str, int]) -> None:
    for statement in body:
        match statement:
            case ast.AugAssign(ast.Name(name), ast.Add() | ast.Sub(), ast.Constant(int())):
                grown[name] = grown.get(name, 0) + 1
            case ast.For(iter=ast.Call(ast.Name("range"), [ast.Constant(int())]), body=inner):
                if not _is_left_early(statement):
                    _collect(inner, grown)
            case _:
                pass


def _is_left_early(loop: ast.For) -> bool:
    """Whether a `break` or `continue` of the loop itself, not of one in it, may skip some of its statements."""
    waiting: list[ast.AST] = [*loop.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Break | ast.Continue):
            return True
        if not isinstance(node, ast.For | ast.While):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def _text(expression: ast.expr) -> str:
    return ast.unparse(expression)


def _mentions(node: ast.AST, names: set[str]) -> int:
    return sum(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))
