"""Assignments whose values nothing reads, which can be left out: for hints of values that are not compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from orion.ir.as_statements import METHODS, place_of
from orion.source import Replacement, SourceText, Span

PLAIN = ast.Constant | ast.Name | ast.Lambda | ast.Tuple | ast.List | ast.Dict | ast.Set | ast.expr_context
UNKNOWN = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.Match | ast.Global | ast.Nonlocal


def left_out(span: Span, source: SourceText) -> Replacement | None:
    """The assignment that has its value there, as nothing; None where something reads the name, or making the value may
    do something else."""
    place = place_of(span, source)
    match place and place.statement:
        case ast.Assign([ast.Name(name)], value) as made if place is not None and place.node is value:
            pass
        case _:
            return None
    if not _is_plain(value) or name in _words_of_unknown(place.function, value):
        return None
    reads = [path for path in _paths(place.function, ()) if _reads(path[-1], name)]
    if any(not _is_given(path, name, made) for path in reads):
        return None
    return place.replaced("")


def told(found: Replacement, hint: str, source: SourceText) -> str:
    """The hint with the line that can be left out."""
    line = source.line(found.span.line)[found.span.column : found.span.end_column]
    return f"{hint}: here `{line}` can be left out, as nothing reads that"


def _is_plain(value: ast.expr) -> bool:
    match value:
        case ast.Lambda():
            return all(isinstance(one, ast.Constant) for one in (*value.args.defaults, *value.args.kw_defaults))
        case ast.Call(ast.Attribute(ast.Name(), method), [], []):
            return method in METHODS
        case _:
            return all(isinstance(part, PLAIN) for part in ast.walk(value))


def _words_of_unknown(function: ast.AST, value: ast.expr) -> set[str]:
    """The names in what may bind or read names in ways that are not followed."""
    inner = (part for child in ast.iter_child_nodes(function) for part in ast.walk(child))
    nodes = [part for part in inner if isinstance(part, UNKNOWN) and part is not value]
    names = {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {name for node in nodes for name in getattr(node, "names", ())}


def _reads(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id == name
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Store)


def _is_given(path: tuple[ast.AST, ...], name: str, made: ast.stmt) -> bool:
    """Whether the name has another value than the made one wherever the last of these nodes reads it."""
    for above, below in pairwise(path):
        for block in _blocks(above):
            if below not in block:
                continue
            if isinstance(above, ast.For) and block is above.body and _stores(above.target, name):
                return not _holds(above.body, made)
            at = block.index(below)
            given = [number for number, one in enumerate(block[:at]) if one is not made and _gives(one, name)]
            if given and not _holds(block[given[-1] + 1 : at + 1], made):
                return True
    return False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value


def _gives(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and any(_stores(target, name) for target in statement.targets)


def _stores(target: ast.expr, name: str) -> bool:
    return any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store) for one in ast.walk(target)
    )


def _holds(block: list[ast.stmt], statement: ast.stmt) -> bool:
    return any(one is statement for each in block for one in ast.walk(each))


def _paths(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, ...]]:
    path = (*above, node)
    yield path
    for child in ast.iter_child_nodes(node):
        yield from _paths(child, path)
