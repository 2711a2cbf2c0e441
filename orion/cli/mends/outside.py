"""Mends that move a function out of the function that it is defined in."""

from __future__ import annotations

import ast
import builtins
import re

from orion.cli.mends.aliases import UNKNOWN
from orion.cli.mends.facts import has_long_text
from orion.cli.mends.text import Edit, Source


def moved_out(source: Source, node: ast.stmt, text: str) -> list[Edit] | None:
    """Return the changes that leave a statement out, and write a function's text before the one that it is in; None
    where that uses names of it, or its own name has another meaning."""
    function = next((one for one in source.tree.body if isinstance(one, ast.FunctionDef) and node in one.body), None)
    (moved,) = ast.parse(text).body
    if function is None or not isinstance(moved, ast.FunctionDef) or not source.stands_alone(node):
        return None
    if len(function.body) == 1 or has_long_text(moved) or not _is_alone(source, function, node, moved):
        return None
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    while first > 1 and source.rows(first - 1, first - 1)[0].startswith("#"):
        first -= 1
    at, end = source.line_start(first), node.end_lineno or node.lineno
    lines = [*text.splitlines(), "", "", ""]
    return [
        Edit(at, at, source.newline.join(lines)),
        Edit(source.line_start(node.lineno), source.line_end(end), ""),
    ]


def _is_alone(source: Source, function: ast.FunctionDef, node: ast.stmt, moved: ast.FunctionDef) -> bool:
    """Whether the moved function has no names of the other one, and its name nothing else than its calls after it."""
    own = {one.arg for one in ast.walk(moved.args) if isinstance(one, ast.arg)} | _stored(moved)
    free = {one.id for one in ast.walk(moved) if isinstance(one, ast.Name)} - own - {moved.name}
    local = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)} | _stored(function)
    inside = {id(one) for one in ast.walk(node)}
    uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == moved.name]
    uses = [one for one in uses if id(one) not in inside]
    called = {id(one.func) for one in ast.walk(function) if isinstance(one, ast.Call)}
    around = source.text[: source.start(function)] + source.text[source.end(function) :]
    return (
        not free & local
        and not re.search(rf"\b{moved.name}\b", around)
        and moved.name not in dir(builtins)
        and not any(isinstance(one, UNKNOWN) for part in moved.body for one in ast.walk(part))
        and all(isinstance(one, ast.Constant) for one in (*moved.args.defaults, *moved.args.kw_defaults))
        and not moved.decorator_list
        and all(id(one) in called and one.lineno > (node.end_lineno or node.lineno) for one in uses)
    )


def _stored(node: ast.AST) -> set[str]:
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in names if not isinstance(one.ctx, ast.Load)}
