"""Mends of refused functions: what an error says to write, put in the place of what was refused."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator

from orion.cli.mends.inlining import inlined
from orion.cli.mends.items import is_only_read, with_items, with_other_name
from orion.cli.mends.outside import moved_out
from orion.cli.mends.text import Edit, Source, applied
from orion.source import Replacement, Span, Way

STEP = "    "
"""How much deeper a block is in the text of a replacement."""

KNOWN = frozenset({"np", "math"})
"""Modules by the names that hints give them."""


def edits_of(text: str, wanted: Replacement) -> list[Edit] | None:
    """Return the changes of a file's text that make a replacement; None where this does not stand for one expression
    or statement there, or has names that it does not have."""
    try:
        return next(filter(None, _edits(Source(text), wanted)), None)
    except SyntaxError:  # a hint that is no code
        return None


def fixes_of(text: str, wanted: Replacement) -> tuple[Replacement, ...]:
    """Return the replacement as texts for regions, with the parentheses and line ends that they need."""
    source, found = Source(text), list[Replacement]()
    for edit in edits_of(text, wanted) or ():
        (line, column), (end_line, end_column) = map(source.place, (edit.start, edit.end))
        found.append(Replacement(Span(wanted.span.file, line, column, end_line, end_column), edit.text))
    return tuple(found)


def shown(text: str, wanted: Replacement) -> str:
    """Return the words for a replacement in the text of a file."""
    source = Source(text)
    start, end = _bounds(source, wanted.span)
    before = " ".join(text[start:end].split())
    after = "; ".join(line.strip() for line in wanted.text.splitlines())
    if wanted.way in (Way.ITEMS, Way.OTHER):
        (line,) = source.rows(wanted.span.line, wanted.span.line)
        return f"`{line.partition('#')[0].strip()}` has `{after}` for `{before}`"
    if wanted.way is Way.OUTSIDE:
        return f"`{before}` is written before the function"
    if wanted.way is Way.NAMED:
        return f"`{before}` is written in place of its name"
    return f"`{before}` becomes `{after}`" if after else f"`{before}` is left out"


def _edits(source: Source, wanted: Replacement) -> Iterator[list[Edit] | None]:
    bounds = _bounds(source, wanted.span)
    if any(comment not in wanted.text for comment in re.findall(r"#[^\r\n]*", source.text[slice(*bounds)])):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.For | ast.If) and source.start(node) == bounds[0]:
            yield _with_head(source, node, bounds[1], wanted.text)
        if not isinstance(node, ast.expr | ast.stmt) or (source.start(node), source.end(node)) != bounds:
            continue
        if wanted.way is not Way.HERE:
            yield _elsewhere(source, node, wanted)
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.Expr):
            yield _with_statements(source, node, wanted.text)
        elif isinstance(node, ast.Expr):
            yield _with_statements(source, node, wanted.text) if not _is_expression(wanted.text) else None
        elif _is_expression(wanted.text):
            yield _with_expression(source, node, wanted.text)


def _elsewhere(source: Source, node: ast.expr | ast.stmt, wanted: Replacement) -> list[Edit] | None:
    match wanted.way, node:
        case Way.NAMED, ast.expr():
            return inlined(source, node)
        case Way.ITEMS, ast.Name():
            return with_items(source, node, wanted.text)
        case Way.OTHER, ast.Name():
            return with_other_name(source, node, wanted.text)
        case Way.OUTSIDE, ast.stmt():
            return moved_out(source, node, wanted.text)
        case Way.COPY, ast.expr() if is_only_read(source, node):
            return _with_expression(source, node, wanted.text)
        case _:
            return None


def _bounds(source: Source, span: Span) -> tuple[int, int]:
    return source.line_start(span.line) + span.column, source.line_start(span.end_line) + span.end_column


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _with_expression(source: Source, node: ast.expr, text: str) -> list[Edit] | None:
    """The change to another expression, in parentheses where the code around would tear it apart."""
    new = ast.parse(text, mode="eval").body
    if not _has_names(new, node):
        return None
    wanted = ast.dump(_Exchange(node, new).visit(ast.parse(source.text)))
    for written in (text, f"({text})"):
        edit = Edit(source.start(node), source.end(node), written)
        if _dumped(applied(source.text, [edit])) == wanted:
            return [edit]
    return None


def _with_statements(source: Source, node: ast.stmt, text: str) -> list[Edit] | None:
    """The change to other statements, which have lines of their own; one that is alone in its block becomes `pass`."""
    if not source.stands_alone(node) or not _has_names(ast.parse(text), node, _taken(source, node)):
        return None
    if not text and not _is_only(source.tree, node):
        first, last = source.line_start(node.lineno), source.line_end(node.end_lineno or node.lineno)
        return [Edit(first, last, "")]
    return [Edit(source.start(node), source.end(node), _indented(source, node, text or "pass"))]


def _with_head(source: Source, node: ast.For | ast.If, end: int, text: str) -> list[Edit] | None:
    """The change of the line that a loop or a branch begins with to others, of which the last one begins it."""
    first = node.body[0].lineno
    is_head = source.place(end)[0] < first and text.endswith(":") and not source.indentation(node).strip()
    has_more = source.text[end : source.line_start(first)].partition("#")[0].strip()
    if not is_head or has_more or not _has_names(ast.parse(f"{text} pass"), node, _taken(source, node)):
        return None
    return [Edit(source.start(node), end, _indented(source, node, text))]


def _indented(source: Source, node: ast.stmt, text: str) -> str:
    """Lines in the place of a statement: the blocks among them as deep as the file has them."""
    indentation = source.indentation(node)
    step = "\t" if indentation.endswith("\t") else STEP
    lines = (_stepped(line, step) for line in text.splitlines())
    return f"{source.newline}{indentation}".join(lines)


def _stepped(line: str, step: str) -> str:
    code = line.lstrip(" ")
    depth = (len(line) - len(code)) // len(STEP)
    return step * depth + line[depth * len(STEP) :]


def _taken(source: Source, node: ast.stmt) -> set[str]:
    """The words of the function that a statement is in."""
    functions = (one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and node in ast.walk(one))
    return {word for function in functions for word in re.findall(r"\w+", source.of(function))}


def _is_only(tree: ast.Module, node: ast.stmt) -> bool:
    blocks = (value for one in ast.walk(tree) for _, value in ast.iter_fields(one) if isinstance(value, list))
    return any(block == [node] for block in blocks)


def _has_names(new: ast.AST, old: ast.AST, taken: Collection[str] | None = None) -> bool:
    """Whether the names of a replacement are those of what it replaces, known everywhere, or given by it and not taken:
    another name that Orion gave means nothing in the file, or something else."""
    given = {one.id for one in ast.walk(new) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    own = set() if taken is None else given - set(taken)
    return _names(new) <= _names(old) | KNOWN | {*dir(builtins)} | own


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _dumped(text: str) -> str:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return ""


class _Exchange(ast.NodeTransformer):
    """One expression in the place of another, by where that stands in the text."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        if type(node) is type(self.old) and isinstance(node, ast.expr) and _place(node) == _place(self.old):
            return self.new
        found = self.generic_visit(node)
        assert isinstance(found, ast.AST)
        return found


def _place(node: ast.expr) -> tuple[int | None, ...]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
