"""Every error and warning that Orion raises on purpose.

Each message says what is wrong, where, why, and what to write instead; `describe` puts it in that order.
"""

from __future__ import annotations

from collections.abc import Sequence

from orion.loop.source import SourceText, Span


class OrionError(Exception):
    """The root of all errors raised by Orion."""


class UnsupportedLoopError(OrionError):
    """The loop holds something that Orion cannot compile."""


class NotParallelError(OrionError):
    """`require_parallel=True` was asked for, and the plan is serial."""


class AliasError(OrionError):
    """Two arguments share memory, and the loop writes at least one of them."""


class OutOfBoundsError(OrionError, IndexError):
    """A subscript leaves its array; found before anything ran wherever the subscript is affine."""


class ArgumentError(OrionError, TypeError):
    """An argument is of a kind, type or layout that the loop cannot work on."""


class DataFormatError(OrionError, ValueError):
    """Data to be read is not of the form it should have."""


class PlanError(OrionError):
    """A schedule does not keep every dependence, or a plan was asked for what it cannot answer."""


class WorkerLostError(OrionError):
    """A worker died, or stopped answering, while it ran a loop."""


class SerialLoopWarning(UserWarning):
    """The plan of a loop is serial: it runs compiled, on one worker."""


class UnprovedWarning(UserWarning):
    """`plan.check()` found nothing wrong, but could not prove all that it is to prove."""


def describe(
    what: str,
    *,
    span: Span | None = None,
    source: SourceText | None = None,
    quotes: Sequence[Span] = (),
    why: str = "",
    hint: str = "",
) -> str:
    """An error message in Orion's order: what, where (with the source line), why, what to write instead.

    >>> print(describe("cannot compile this", why="it opens a file", hint="read the file before the loop"))
    cannot compile this
      why:  it opens a file
      help: read the file before the loop
    """
    parts = [f"{span}: {what}" if span is not None else what]
    for place in [span, *quotes] if span is not None else quotes:
        if source is not None and place is not None and source.line(place.line):
            parts.append(source.quote(place))
    if why:
        parts.append(f"  why:  {why}")
    if hint:
        parts.append(f"  help: {hint}")
    return "\n".join(parts)
