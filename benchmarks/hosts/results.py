"""What programs took on hosts, as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.hosts.parts import Parts
from benchmarks.written import markdown

TOLERANCE = 0.05
"""How far what links carry may be from what was counted."""

PLACE = ("", "size", "Mbit/s")
TIMES = (
    *PLACE,
    "ms, one worker",
    "ms",
    "ms predicted",
    "ms, busiest link",
    "computing",
    "both",
    "moving",
    "neither",
    "hidden",
)
BYTES = (
    *PLACE, "MB predicted", "MB sent", "MB, driver", "MB by `tc -s`", "/ counted", "with headers", "with / counted",
    "packets again",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A program of a size at a rate. Bytes of a call: that its plan predicts (None where it can't), that nodes have
    sent each other and that went between the driver and nodes, as the runtime counts them; all that links carried
    without and with the headers of packets, and what the busiest one did with them. `again` are packets that TCP has
    sent again.

    Seconds of a call: `alone` on one worker of one host, `seconds` on all hosts, `expected` those that its plan
    predicts by tiles measured on threads and by the rate of links (None where it can't), the last four as in
    `benchmarks.hosts.parts`. `why` says which of its loops are on one host.
    """

    name: str
    about: str
    scale: float
    megabits: int
    alone: float
    seconds: float
    expected: float | None
    predicted: int | None
    sent: int
    moved: int
    contents: float
    carried: float
    busiest: float
    again: int
    computing: float
    both: float
    moving: float
    neither: float
    why: list[str]

    @property
    def counted(self) -> int:
        """All bytes that the runtime counts."""
        return self.sent + self.moved

    @property
    def link_seconds(self) -> float:
        """What the bytes of the busiest link need at its rate."""
        return self.busiest * 8 / (self.megabits * 1e6)

    @property
    def hidden(self) -> float:
        """The part of the time of messages in which workers compute."""
        return Parts(self.computing, self.both, self.moving, self.neither).hidden

    def times(self) -> tuple[str, ...]:
        """What stands in the table of times."""
        calls = (self.alone, self.seconds, self.expected, self.link_seconds)
        parts = (self.computing, self.both, self.moving, self.neither)
        told = ("?" if time is None else f"{time * 1e3:.1f}" for time in (*calls, *parts))
        return *self._cells(), *told, f"{self.hidden:.0%}"

    def bytes(self) -> tuple[str, ...]:
        """What stands in the table of bytes."""
        predicted = "?" if self.predicted is None else _megabytes(self.predicted)
        counted = (predicted, _megabytes(self.sent), _megabytes(self.moved))
        by_tc = (_megabytes(self.contents), self._ratio(self.contents))
        with_headers = (_megabytes(self.carried), self._ratio(self.carried))
        return *self._cells(), *counted, *by_tc, *with_headers, str(self.again)

    def _cells(self) -> tuple[str, str, str]:
        return self.name, self.about, str(self.megabits)

    def _ratio(self, carried: float) -> str:
        return f"{carried / self.counted:.3f}" if self.counted else "–"

    @property
    def place(self) -> str:
        """Which row it is, in words."""
        return f"{self.name}, {self.about}, {self.megabits} Mbit/s"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.3f}"


def documented(rows: Sequence[Row]) -> str:
    """The tables of the documentation, as Markdown: of scale 1 where that was run. The figures have all sizes."""
    shown = [row for row in rows if row.scale == 1] or rows
    return f"{markdown(TIMES, [row.times() for row in shown])}\n{markdown(BYTES, [row.bytes() for row in shown])}"


def agreement(rows: Sequence[Row]) -> Iterator[str]:
    """Whether the bytes that were predicted, those that were counted and those that links carried agree; and how far
    predicted times are from those of calls."""
    errors = [abs(row.expected / row.seconds - 1) for row in rows if row.expected is not None]
    if errors:
        told = f"{mean(errors):.1%} in the mean of {len(errors)} rows, {median(errors):.1%} in the median"
        yield f"Times: predicted ones are off by {told}, {max(errors):.1%} at most"
    known = [row for row in rows if row.predicted is not None]
    yield _told("predicted and sent are equal", known, [row for row in known if row.predicted != row.sent])
    moved = [row for row in rows if row.counted]
    off = [row for row in moved if abs(row.contents / row.counted - 1) > TOLERANCE]
    yield _told(f"`tc -s` without headers of packets is within {TOLERANCE:.0%} of what was counted", moved, off)
    if ratios := sorted(row.carried / row.counted for row in moved):
        yield f"Bytes: `tc -s` with them is {ratios[0]:.3f} to {ratios[-1]:.3f} times what was counted"


def _told(what: str, rows: Sequence[Row], off: Sequence[Row]) -> str:
    said = f"Bytes: {what} in {len(rows) - len(off)} of {len(rows)} rows"
    return f"{said}; not in: {'; '.join(row.place for row in off)}" if off else said
