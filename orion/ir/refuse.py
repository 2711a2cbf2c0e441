"""How code that cannot be compiled is refused."""

from __future__ import annotations

import re

from orion.errors import UnsupportedLoopError, describe
from orion.ir.function import Function
from orion.source import SourceText, Span


def unsupported(
    what: str, span: Span, source: SourceText, *, why: str = "", hint: str = "", is_for_numba: bool = False
) -> UnsupportedLoopError:
    """The error to raise for a piece of the user's source: what, where, why, and what to write instead. `is_for_numba`:
    nothing is wrong with it, and Numba does with it what Python does, if it compiles it at all."""
    error = UnsupportedLoopError(describe(what, span=span, source=source, why=why, hint=hint))
    error.is_for_numba = is_for_numba
    return error


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
