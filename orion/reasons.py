"""Why a loop is not run by a stronger strategy: reasons with stable codes.

Codes are part of the public interface: they are never given a new meaning. `docs/reasons.md` has a section for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from orion.loop.source import Span

CODES = {
    "ORN101": "iterations of the loop depend on each other",
    "ORN102": "a subscript is read from an array",
    "ORN103": "a subscript is not affine in the loop variables",
    "ORN104": "a scalar carries a value from one iteration to the next",
    "ORN105": "a name may be a view of more than one row",
    "ORN107": "the bounds of an inner loop depend on data",
    "ORN108": "the iterations cannot be counted before the loop runs",
    "ORN109": "the analysis reached its cost limit",
    "ORN110": "the loop can be left early",
    "ORN111": "a scalar needed after the loop is set by its last iteration",
    "ORN120": "more workers would not make it faster",
    "ORN121": "there is less to share out than there are workers",
    "ORN122": "copies of an array that the iterations add to would cost more than they gain",
    "ORN123": "neighbouring loops that use the same arrays are not run together",
    "ORN124": "a copy of an array, made before the loop, would cost more than it gains",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, with the accesses or statements it is about.

    `code` is a key of `CODES`; `message` is one sentence about this loop; `spans` are the places in the source, both
    accesses of a conflicting pair; `hint` says what to write instead, or is empty.

    >>> Reason("ORN102", "the subscript perm[i] is read from an array", (), "").title
    'a subscript is read from an array'
    """

    code: str
    message: str
    spans: tuple[Span, ...]
    hint: str

    @property
    def title(self) -> str:
        return CODES[self.code]
