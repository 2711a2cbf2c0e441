"""What Numba says of code that it does not compile: in one line, with the user's names and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orion.kernel.build.canonical import Canonical
from orion.kernel.calling import KernelSource
from orion.kernel.emit.names import MODULES
from orion.source import SourceText, Span

NAMED = re.compile(r"Function\(<(?:built-in )?\w+ '?(\w+)'?(?: at 0x[0-9a-f]+)?>\)")
"""How Numba writes a function; the group is what it is called."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NO_REASON = ("Failed in", "During", "- ", "File ", "There are ", "<source")
VERSION = re.compile(r"(?<=\w)(?:\.\d+)+(?=')")
"""What follows a name where Numba gives each of its values a name."""

UNNAMED = re.compile(r"'\$[\w.]+'|\$[\w.]+")
"""A name of Numba's for a value that has none."""

QUOTED = re.compile(r"'([^\W\d]\w*)'")
PLACE = re.compile(r"\S*orion_kernel_\w+\.py(?:\"?, line |\s\()(\d+)\)?")
"""A line of generated source."""

OWN = "|".join(name for module, names in MODULES if module != "numba" for name in names)
OWN_FUNCTION = re.compile(rf"\b(?:function )?(?:{OWN})(?=\(| found)")
"""A function of Orion's that generated source calls."""


def in_one_line(text: str) -> str:
    """The first sentence of what Numba says of a function, which may go on to the line of a signature.

    >>> in_one_line("Failed in nopython\\nNo Function(<function get at 0x7f00>) found for:\\n \\n >>> get(int64)")
    'No get found for: get(int64)'
    >>> in_one_line("Cannot unify int64 and float64 for 'k.2'")
    "Cannot unify int64 and float64 for 'k'"
    """
    lines = [line.strip() for line in COLOUR.sub("", text).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(NO_REASON)] or lines
    first = " ".join(told[: 2 if told and told[0].endswith(":") else 1])
    plain = ADDRESS.sub("", NAMED.sub(r"\1", first)).replace(": >>> ", ": ")
    return VERSION.sub("", UNNAMED.sub("a value", plain))


def of_kernel(error: Exception, source: KernelSource, shared: Canonical) -> str:
    """What Numba says of a kernel, whose text it has in canonical form, told of the source that this was generated
    from."""
    written = {*re.findall(r"\w+", "\n".join(_lines(source.user)))}
    generated, users = dict(shared.names), dict(source.names)

    def said(found: re.Match[str]) -> str:
        name = generated.get(found[1], found[1])
        name = users.get(name, name)
        return f"`{name}`" if written.issuperset(re.findall(r"\w+", name)) else "a value"

    def place(found: re.Match[str]) -> str:
        span = _span(int(found[1]), source)
        return str(span) if span else "a line of its own"

    text = OWN_FUNCTION.sub("this operation", in_one_line(str(error)))
    return PLACE.sub(place, QUOTED.sub(said, text))


def place_in_source(error: Exception, source: KernelSource) -> Span | None:
    """The place in the user's source behind the last line of the generated source that Numba names."""
    numbers = [int(found) for found in PLACE.findall(COLOUR.sub("", str(error)))]
    location = getattr(error, "loc", None)
    if location is not None:
        numbers.append(location.line)
    spans = (_span(line, source) for line in reversed(numbers))
    return next((span for span in spans if span is not None), None)


def _span(line: int, source: KernelSource) -> Span | None:
    return source.lines[line - 1] if 0 < line <= len(source.lines) else None


def _lines(source: SourceText) -> Iterator[str]:
    yield from source.lines
    for other in source.others:
        yield from _lines(other)
