"""How code that cannot be compiled is refused."""

from __future__ import annotations

from orion.errors import UnsupportedLoopError, describe
from orion.source import SourceText, Span


def unsupported(what: str, span: Span, source: SourceText, *, why: str = "", hint: str = "") -> UnsupportedLoopError:
    """The error to raise for a piece of the user's source: what, where, why, and what to write instead."""
    return UnsupportedLoopError(describe(what, span=span, source=source, why=why, hint=hint))
