"""How code that cannot be compiled is refused."""

from __future__ import annotations

import ast
import re

from orion.errors import UnsupportedLoopError, describe
from orion.ir.function import Function
from orion.ir.nodes import Expr
from orion.ir.printer import print_expr
from orion.source import Replacement, SourceText, Span


def unsupported(
    what: str,
    span: Span,
    source: SourceText,
    *,
    why: str = "",
    hint: str = "",
    is_for_numba: bool = False,
    replacement: Replacement | None = None,
) -> UnsupportedLoopError:
    """The error to raise for a piece of the user's source: what, where, why, and what to write instead. `is_for_numba`:
    nothing is wrong with it, and Numba does with it what Python does, if it compiles it at all. `replacement` is what
    to write, where that does the same: the hint tells it."""
    hint = hint if replacement is None else replacement.told(hint)
    error = UnsupportedLoopError(describe(what, span=span, source=source, why=why, hint=hint))
    error.is_for_numba = is_for_numba
    error.replacement = replacement
    return error


def is_as_written(expr: Expr, source: SourceText) -> bool:
    """Whether the source has an expression as it is printed: one that was made of what is written there has its span,
    and does not stand for all of it."""
    node = written(expr.span, source)
    try:
        return node is not None and ast.dump(node) == ast.dump(ast.parse(print_expr(expr), mode="eval").body)
    except SyntaxError:
        return False


def written(span: Span, source: SourceText) -> ast.expr | None:
    """The expression that the source has there, on one line; None where it is none, or a helper's that stands for all
    its calls."""
    if span.line != span.end_line or span.inlined:
        return None
    try:
        return ast.parse(source.line(span.line)[span.column : span.end_column], mode="eval").body
    except SyntaxError:
        return None


def as_said(name: str, span: Span, function: Function) -> str:
    """What the user calls an array of this name: that name, or the one that stands for it; of an array that has none in
    the source, what is written where it is made."""
    name = next((one.name for one in function.stands if one.array == name), name)
    name = next((one.local for one in function.helper_locals if one.name == name), name)
    line = function.source.line(span.line)
    lines = (line for text in (function.source, *function.source.others) for line in text.lines)
    if span.line != span.end_line or re.search(rf"\b{re.escape(name)}\b", "\n".join(lines)):
        return name
    return line[span.column : span.end_column] or name
