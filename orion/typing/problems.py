"""What keeps an expression from having a type."""

from __future__ import annotations

from collections.abc import Callable

from orion.source import Replacement, SourceText, Span


class TypeProblem(Exception):  # noqa: N818  (becomes an UnsupportedLoopError where the place is known)
    """Why an expression has no type. `replaced_by` does the same as the expression: the hint tells it.
    `rewritten` makes a replacement of what the source has there."""

    def __init__(
        self,
        what: str,
        why: str = "",
        hint: str = "",
        *,
        is_for_numba: bool = False,
        replaced_by: str | None = None,
        rewritten: Callable[[Span, SourceText], Replacement | None] | None = None,
    ) -> None:
        super().__init__(what)
        self.what, self.why, self.hint, self.is_for_numba = what, why, hint, is_for_numba
        self.replaced_by, self.rewritten = replaced_by, rewritten
