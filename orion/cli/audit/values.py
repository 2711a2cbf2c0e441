"""What an audit finds: loops, verdicts on them, and races with the two iterations that show them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from enum import StrEnum

from orion.dataclass import dataclass, field
from orion.source import Span


class Verdict(StrEnum):
    """What is known of the iterations of a loop, run at the same time."""

    PARALLEL = "parallel"
    CONDITIONAL = "conditional"
    RACE = "race"
    UNKNOWN = "unknown"


CODES = {
    "AUD101": "two iterations touch one element, and one of them writes it",
    "AUD102": "a scalar carries a value from one iteration to the next",
    "AUD103": "a scalar that is read after the loop is set by its last iteration",
    "AUD110": "the sizes and integers of a call decide",
    "AUD111": "the contents of an index array decide",
    "AUD112": "a condition in the loop decides which iterations set a scalar",
    "AUD113": "a condition in the loop decides which iterations touch an element",
    "AUD114": "the loop stands inside another loop over `prange`, which Numba runs in parallel instead",
    "AUD115": "the function has its loops run by one thread",
    "AUD120": "the loop calls a function whose source is not found",
    "AUD121": "the loop holds code that is not analysed",
    "AUD122": "two names may stand for the same memory",
    "AUD123": "several iterations write one element, perhaps with the same value",
    "AUD124": "the audit reached its limit of work",
    "AUD125": "Numba refuses the loop",
    "AUD126": "the analysis failed",
    "AUD130": "which elements an access touches is not known",
}
"""The codes of verdicts that are not `parallel`, with what they stand for."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two iterations that meet: the value of the loop variable as text, what it does, where, and the text of the
    access."""

    iteration: str
    is_write: bool
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Race:
    """Two iterations that touch one element or scalar, at sizes that show it.

    `effect` is "lost update", "stale read" or "overwritten value".
    """

    name: str
    element: str
    effect: str
    first: Side
    second: Side
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on a loop. `reason` is a sentence; `condition` is under which a conditional loop is parallel."""

    verdict: Verdict
    code: str = ""
    reason: str = ""
    condition: str = ""
    hint: str = ""
    race: Race | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A loop over `prange` in a file.

    `parallel` is what the decorator of its function says: None where that is not known. `around` are the functions that
    it stands in, outermost first; `is_inner` where another such loop stands around it.
    """

    file: str
    loop: ast.For
    around: tuple[ast.FunctionDef, ...]
    parallel: bool | None
    is_inner: bool

    @property
    def function(self) -> str:
        return ".".join(one.name for one in self.around) or "<module>"

    @property
    def line(self) -> int:
        return self.loop.lineno


@dataclass(frozen=True, slots=True)
class Audited:
    """A loop with its verdict, the text of its first line, and the seconds that the analysis took."""

    site: Site
    finding: Finding
    text: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that could not be read or parsed, and why."""

    file: str
    reason: str
