"""What a kernel raised as it ran, told about the user's source."""

from __future__ import annotations

import re

from orion.errors import ArgumentError, OutOfBoundsError, describe, too_wide
from orion.kernel.build.slice_errors import SliceError
from orion.kernel.calling import KernelSource
from orion.kernel.emit.draws import NO_SITE
from orion.keyed_random import nothing_between
from orion.source import Span

SHAPE = r"\(\d+(?:, \d+)*,?\)"
PARTS = re.compile(r"\[[^\[\]]*:")
STEPS = re.compile(r"trip_count\(|\brange\([^()]*,[^()]*,")
LENGTHS = "a slice ends where its array does: write slices of one length"

WORDS = (
    (
        rf"cannot assign slice of shape ({SHAPE}) from input of shape ({SHAPE})",
        r"could not broadcast input array from shape \2 into shape \1", PARTS, LENGTHS,
    ),
    (r"cannot assign slice .*|a row is assigned to a part .*", "could not broadcast input array", PARTS, LENGTHS),
    (r"unable to broadcast argument .*", "operands could not be broadcast together", PARTS, LENGTHS),
    (r"(the rows of a product differ in length)", r"\1", PARTS, LENGTHS),
    (r"(range\(\) arg 3 must not be zero)", r"\1", STEPS, ""),
)  # fmt: skip
"""What Numba's errors say, what NumPy's and Python's do, the code that may be meant, and what to write instead."""


def told(error: Exception, source: KernelSource) -> Exception:
    """An error that Numba raised, told about the user's source where more is known about it."""
    if isinstance(error, SliceError):
        return _of_lengths(error, source)
    if isinstance(error, ZeroDivisionError) and error.args and isinstance(error.args[0], int):
        place = source.sites[error.args[0]].span
        hint = "test the divisor first; NumPy's numbers, such as elements of arrays, give inf, nan or 0 instead"
        return ZeroDivisionError(describe("division by zero", span=place, source=source.user, hint=hint))
    if isinstance(error, OverflowError) and error.args and isinstance(error.args[0], int):
        site, *bounds = error.args
        place = source.sites[site].span
        if len(bounds) == 2:
            return OverflowError(too_wide(int(bounds[0]), int(bounds[1]), place, source.user))
        dtype, number = source.sites[site].array, ", ".join(str(int(bound)) for bound in bounds)
        what, why = f"{number} does not fit {dtype}", f"a Python integer becomes one of {dtype} where it meets such"
        hint = "use a smaller number, or make the other a Python integer: `int(x)`"
        return OverflowError(describe(what, span=place, source=source.user, why=why, hint=hint))
    if isinstance(error, ValueError) and len(error.args) == 2:
        site, power = error.args
        what, hint = f"an integer to the power {power} is no integer", "write `2.0 ** k` for `2 ** k`"
        return ValueError(describe(what, span=source.sites[site].span, source=source.user, hint=hint))
    if isinstance(error, ValueError) and len(error.args) == 3:
        site, low, high = error.args
        what, hint = nothing_between(int(low), int(high)), "`high` itself is never drawn"
        return ArgumentError(describe(what, span=_place(source, site), source=source.user, hint=hint))
    if isinstance(error, ValueError):
        return _of_lengths(error, source)
    if not isinstance(error, IndexError):
        return error
    if error.args and isinstance(error.args[0], int):
        place = source.sites[error.args[0]].span
        what, hint = "an array has no elements here", "test its length first"
        return IndexError(describe(what, span=place, source=source.user, hint=hint))
    helpers = [(match[1], match.start()) for match in re.finditer(r"^@helper_function\ndef (\w+)", source.text, re.M)]
    if not helpers:
        return error
    names = ", ".join(f"`{name}`" for name, _ in helpers)
    span = source.lines[source.text.count("\n", 0, helpers[0][1])] if len(helpers) == 1 else None
    span = span if span is not None and span.file == source.user.file else None
    what = f"a subscript leaves its array in {names}"
    hint = "test the subscript before it is used; in a helper without an early `return` the place would be known"
    return OutOfBoundsError(describe(what, span=span, source=source.user, hint=hint))


def _place(source: KernelSource, site: int) -> Span | None:
    return None if site == NO_SITE else source.sites[site].span


def _of_lengths(error: ValueError, source: KernelSource) -> Exception:
    """Return an error of Numba's that has no place in NumPy's words, with the statements that may be meant."""
    for pattern, words, code, hint in WORDS:
        found = re.fullmatch(pattern, str(error), re.DOTALL)
        if found:
            what, places = found.expand(words), _places(code, source)
            only = places[0] if len(places) == 1 else None
            why = f"in line {' or '.join(str(span.line) for span in places)}" if len(places) > 1 else ""
            return ValueError(describe(what, span=only, source=source.user, why=why, hint=hint))
    return error


def _places(code: re.Pattern[str], source: KernelSource) -> list[Span]:
    """Return the places of the statements that such code was generated from."""
    lines = zip(source.text.splitlines(), source.lines, strict=False)
    return sorted({span.in_source for line, span in lines if span is not None and _is_code(line) and code.search(line)})


def _is_code(line: str) -> bool:
    return not line.lstrip().startswith("#")
