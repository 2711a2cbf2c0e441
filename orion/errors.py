"""Every error and warning that Orion raises on purpose.

Each message says what is wrong, where, why, and what to write instead; `describe` puts it in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType

from orion.printable import printable
from orion.source import Replacement, SourceText, Span

AS_IT_IS = "a call runs it as it is, on one worker, if Numba compiles it"
"""What is added to the error of a plan, where that is so."""


class OrionError(Exception):
    """Base class of all errors that Orion raises on purpose. Each says what is wrong, where, why, and what to write
    instead.

    - `is_for_numba`: the analysis does not cover the code, and nothing need be wrong with it. A call runs it as it is,
      if Numba compiles it.
    - `is_of_sizes`: calls with other sizes may succeed.
    - `replacement`: the text that the help proposes, where it means the same as the refused code.
    """

    is_for_numba = False
    is_of_sizes = False
    replacement: Replacement | None = None

    def __str__(self) -> str:
        return printable(super().__str__())


class UnsupportedLoopError(OrionError):
    """A loop has code that Orion cannot compile. `read_only` is the argument that it writes and must not."""

    read_only = ""


class NotParallelError(OrionError):
    """The plan is serial, and `require_parallel=True` forbids that."""


class AliasError(OrionError):
    """Two arguments share memory, and the loop writes at least one of them."""


class OutOfBoundsError(OrionError, IndexError):
    """A subscript leaves its array. Orion finds it before a loop runs if the subscript is affine.

    `read_from` has the index array of the subscript and the value read from it, if a run has met it; else None.
    """

    read_from: tuple[str, int] | None = None


class UpdateError(OrionError, ValueError):
    """An update of a buffer is not a number."""


class MissingKeyError(OrionError, KeyError):
    """A sparse array has no element with a key, or more than one."""

    def __str__(self) -> str:
        return printable(str(self.args[0])) if self.args else ""


class ArgumentError(OrionError, TypeError):
    """An argument has a type, value or layout that the function or the loop does not take."""


class MissingExtraError(OrionError, ImportError):
    """A package that the call needs is not installed, or too old; the message says which extra of Orion brings it."""


class DataFormatError(OrionError, ValueError):
    """Data has another form than expected: a file, columns, or keys and values."""


class PlanError(OrionError):
    """A schedule does not keep every dependence, or a plan cannot answer a question."""


class WorkerLostError(OrionError):
    """A worker died, or stopped answering, while it ran a loop.

    `lost` are the names of the arguments that hold only a part of the results; all others are whole.
    """

    lost: tuple[str, ...] = ()


class RescaledError(PlanError):
    """A session has another number of workers than a program is scheduled for, as some are gone for good or another
    thread has scaled it: it is to be scheduled anew. Arrays are as they were before the run. No user sees it."""


class StorageError(OrionError, OSError):
    """A file could not be written or opened. No part of it is left behind."""


class CheckpointWarning(UserWarning):
    """An automatic checkpoint could not be written; the program goes on."""


class StandstillWarning(UserWarning):
    """A worker has done nothing for a long time in the middle of a loop."""


class WorkerReplacedWarning(UserWarning):
    """A worker died while it ran a loop. Other workers ran the loop again from the beginning, with the same results."""


class SerialLoopWarning(UserWarning):
    """The plan of a loop is serial: it runs compiled, on one worker."""


class UnprovedWarning(UserWarning):
    """`plan.check()` found nothing wrong, but could not prove everything."""


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


def too_wide(start: int, stop: int, span: Span, source: SourceText) -> str:
    """Return the message for a range that does not fit 64 bits."""
    return describe(
        f"the range from {start} to {stop} is too wide",
        span=span,
        source=source,
        why="its bounds, and how far they are apart, must fit 64 bits with a sign",
        hint="count its trips, `for trip in range(trips):`, and compute the value from that, `start + trip * step`",
    )


def leaves_64_bits(text: str, span: Span, source: SourceText) -> str:
    """Return the message for an integer operation whose result may not fit 64 bits."""
    return describe(
        f"`{text}` may not fit 64 bits with this call's integers",
        span=span,
        source=source,
        why="subscripts, bounds and tests of integers are computed in 64 bits; Python's integers have no such limit",
        hint="pass numbers that are farther from 2**63, or take a remainder before it is so large",
    )


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint for a misspelt word: the most similar known one, or else `otherwise`.

    >>> did_you_mean("shap", ["shape", "size"])
    'did you mean `shape`?'
    >>> did_you_mean("rate", ["shape", "size"], "make it an argument of the function")
    'make it an argument of the function'
    """
    from difflib import get_close_matches

    found = get_close_matches(word, sorted(set(known) - {word}), n=5, cutoff=0.7)
    if not found:
        return otherwise
    best = next((one for one in found if one[:1] == word[:1]), found[0])  # few misspell the first letter
    return f"did you mean `{best}`?{f' Otherwise {otherwise}' if otherwise else ''}"


# ---------------------------------------------------------------- errors that the user's code raises

PLAIN_ERRORS = (ZeroDivisionError, OverflowError, FloatingPointError, ArithmeticError, ValueError, TypeError)
"""Errors of Python's own that are made from a text alone."""


def of_user(
    error: Exception,
    span: Span | None = None,
    source: SourceText | None = None,
    traceback: TracebackType | None = None,
    *,
    is_raised: bool = False,
) -> Exception:
    """Return an error that the user's code raised, of the same class, with its place if known, and marked as the
    user's.

    `traceback` has the entries for the user's own code. `is_raised`: a `raise` statement made it, so its text stays.
    """
    if span is not None and type(error) in PLAIN_ERRORS and not is_raised:
        error = type(error)(describe(str(error), span=span, source=source))
    elif span is not None:
        error.add_note(describe("raised here", span=span, source=source))
    error._orion_of_user = True  # type: ignore[attr-defined]
    if traceback is not None:
        error._orion_traceback = traceback  # type: ignore[attr-defined]
    return error


def is_of_user(error: BaseException) -> bool:
    """Whether `of_user` has marked the error; errors that came from another process keep the mark."""
    return getattr(error, "_orion_of_user", False)


def traceback_of_user(error: BaseException) -> TracebackType | None:
    """The entries of a traceback that `of_user` was given."""
    return getattr(error, "_orion_traceback", None)
