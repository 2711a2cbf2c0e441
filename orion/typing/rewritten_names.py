"""Names for items of tuples and for later values of names, and loops that write elements one by one: for hints."""

from __future__ import annotations

import ast

from orion.ir.as_statements import STEP, has_effects
from orion.ir.nodes import Assign, Const, Expr, Stmt, Update, Var
from orion.ir.printer import print_expr
from orion.source import Replacement, SourceText, Span, Way
from orion.typing.value_type import ValueType


def names_of_items(target: Span, name: str, count: int, source: SourceText) -> Replacement | None:
    """Names for the items of a tuple that has a name there."""
    if not _is_there(target, name, source) or count < 2:
        return None
    names = [source.fresh(f"{name}_{number}") for number in range(count)]
    return Replacement(target, ", ".join(names), Way.ITEMS)


def items_of(statement: Stmt, name: str, kind: ValueType, source: SourceText) -> Replacement | None:
    """Names for the items of a tuple that a statement assigns."""
    match statement:
        case Assign(Var(found, span)) if found == name and not any(one.items for one in kind.items):
            return names_of_items(span, name, len(kind.items), source)
        case _:
            return None


def other_name(statement: Stmt, name: str, source: SourceText) -> Replacement | None:
    """Another name for what a statement assigns."""
    match statement:
        case Assign(Var(found, span)) if found == name and _is_there(span, name, source):
            return Replacement(span, source.fresh(name), Way.OTHER)
        case _:
            return None


def copy_of_part(made: Span, source: SourceText) -> Replacement | None:
    """A copy of the part of an array that a statement gives a name."""
    line = source.line(made.line)
    try:
        (found,) = ast.parse(line[made.column : made.end_column]).body
    except (SyntaxError, ValueError):
        return None
    match found:
        case ast.Assign([ast.Name()], ast.Subscript() as part) if made.line == made.end_line and not made.inlined:
            first = made.column + len(line[made.column :].encode()[: part.col_offset].decode())
            text = f"{ast.unparse(part)}.copy()"
            return Replacement(Span(made.file, made.line, first, made.line, made.end_column), text, Way.COPY)
        case _:
            return None


def _is_there(span: Span, name: str, source: SourceText) -> bool:
    return not span.inlined and source.line(span.line)[span.column : span.end_column] == name


def stored_one_by_one(
    statement: Assign | Update, part: Expr, source: SourceText, *, is_mask: bool
) -> Replacement | None:
    """`x[picks] = c` and `x[mask] = c` as loops: None where the subscripts or the value may change on the way."""
    span = statement.span
    match statement.value:
        case Const() | Var():
            pass
        case _:
            return None
    try:
        (found,) = ast.parse(source.line(span.line)[span.column : span.end_column]).body
    except (SyntaxError, ValueError):
        return None
    match found:
        case ast.Assign([ast.Subscript() as target]) | ast.AugAssign(ast.Subscript() as target):
            pass
        case _:
            return None
    if span.inlined or span.line != span.end_line or (isinstance(statement, Update) and not is_mask):
        return None
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    picks = [one for one in parts if ast.unparse(one) == ast.unparse(ast.parse(print_expr(part), mode="eval"))]
    root = target.value
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    names = {one.id for pick in picks for one in ast.walk(pick) if isinstance(one, ast.Name)}
    if len(picks) != 1 or not isinstance(root, ast.Name) or root.id in names or has_effects(target):
        return None
    return Replacement(span, _loop(found, target, parts, picks[0], source, is_mask=is_mask))


def _loop(
    statement: ast.Assign | ast.AugAssign,
    target: ast.Subscript,
    parts: list[ast.expr],
    picks: ast.expr,
    source: SourceText,
    *,
    is_mask: bool,
) -> str:
    place = source.fresh("j")
    others = [ast.Name(place, ast.Load()) if one is picks else one for one in parts]
    target.slice = ast.Tuple(others, ast.Load()) if len(others) > 1 else others[0]
    stored = ast.unparse(statement)
    if not is_mask:
        return f"for {place} in {ast.unparse(picks)}:\n{STEP}{stored}"
    mask = picks.id if isinstance(picks, ast.Name) else source.fresh("mask")
    given = "" if isinstance(picks, ast.Name) else f"{mask} = {ast.unparse(picks)}\n"
    return f"{given}for {place} in range(len({mask})):\n{STEP}if {mask}[{place}]:\n{STEP}{STEP}{stored}"
