"""Mends of refused values that have a name: the value is written where the name is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orion.cli.mends.aliases import UNKNOWN
from orion.cli.mends.facts import loaded
from orion.cli.mends.text import Edit, Source

ONCE = ("enumerate", "zip")
"""What gives its items once: another loop over it finds none."""

PARTS = ast.Call | ast.Attribute | ast.Name | ast.Constant | ast.expr_context | ast.keyword
"""What a value may be made of: nothing that the statements between can change but names, which are looked at."""


def inlined(source: Source, value: ast.expr) -> list[Edit] | None:
    """Return the changes that write a value in the place of its name, and leave its assignment out; None where it has
    none, or what it is made of may be another then."""
    for function in (node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef)):
        for block in _blocks(function):
            for statement in block:
                match statement:
                    case ast.Assign([ast.Name(name)], found) if found is value:
                        uses = _uses(function, block, statement, name)
                        return None if uses is None else _edits(source, statement, uses, is_alone=len(block) == 1)
                    case _:
                        pass
    return None


def _uses(function: ast.FunctionDef, block: list[ast.stmt], made: ast.Assign, name: str) -> list[ast.Name] | None:
    """The places that read the name; None where not all of them are known to mean this value."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    stored = [node.id for node in names if not isinstance(node.ctx, ast.Load)]
    uses = [node for node in names if node.id == name and isinstance(node.ctx, ast.Load)]
    if any(isinstance(node, UNKNOWN) for statement in function.body for node in ast.walk(statement)):
        return None
    is_fixed = stored.count(name) == 1 and not loaded(made.value) & set(stored)
    is_made_of_names = all(isinstance(node, PARTS) for node in ast.walk(made.value))
    follow = all(node.lineno > (made.end_lineno or made.lineno) for node in uses)
    is_argument = name in {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    if is_argument or not (is_fixed and is_made_of_names and follow and uses):
        return None
    match made.value:
        case ast.Call(ast.Name(called)) if called in ONCE:
            spaces = [statement.iter for statement in block if isinstance(statement, ast.For)]
            return uses if len(uses) == 1 and uses[0] in spaces else None
        case _:
            return uses


def _edits(source: Source, made: ast.Assign, uses: list[ast.Name], *, is_alone: bool) -> list[Edit] | None:
    if is_alone or not source.stands_alone(made) or "#" in source.of(made):
        return None
    first, last = source.line_start(made.lineno), source.line_end(made.end_lineno or made.lineno)
    text = source.of(made.value)
    return [Edit(first, last, ""), *(Edit(source.start(use), source.end(use), text) for use in uses)]


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block
