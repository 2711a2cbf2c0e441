"""What programs took on hosts, as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

TOLERANCE = 0.05
"""How far what links carry may be from what was counted."""

HEADS = (
    "", "", "Mbit/s", "ms, one worker", "ms", "ms, busiest link", "MB predicted", "MB sent", "MB, driver",
    "MB by tc", "/ counted", "with headers", "/ counted", "packets again", "ms computing", "both", "moving", "neither",
    "hidden",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A program of a size at a rate. Bytes of a call: that its plan predicts (None where it can't), that nodes have
    sent each other and that went between the driver and nodes, as the runtime counts them; all that links carried
    without and with the headers of packets, and what the busiest one did with them. `again` are packets that TCP has
    sent again.

    Seconds of a call: `alone` on one worker of one host, `seconds` on all hosts, the last four as in
    `benchmarks.hosts.parts`. `why` says which of its loops are on one host.
    """

    name: str
    about: str
    scale: float
    megabits: int
    alone: float
    seconds: float
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
    hidden: float
    why: list[str]

    @property
    def counted(self) -> int:
        """All bytes that the runtime counts."""
        return self.sent + self.moved

    @property
    def link_seconds(self) -> float:
        """What the bytes of the busiest link need at its rate."""
        return self.busiest * 8 / (self.megabits * 1e6)

    def cells(self) -> tuple[str, ...]:
        """What stands in the table."""
        times = (f"{time * 1e3:.1f}" for time in (self.alone, self.seconds, self.link_seconds))
        predicted = "?" if self.predicted is None else f"{self.predicted / 1e6:.3f}"
        sizes = predicted, f"{self.sent / 1e6:.3f}", f"{self.moved / 1e6:.3f}"
        by_tc = (f"{self.contents / 1e6:.3f}", self._ratio(self.contents))
        with_headers = (f"{self.carried / 1e6:.3f}", self._ratio(self.carried))
        parts = (f"{time * 1e3:.1f}" for time in (self.computing, self.both, self.moving, self.neither))
        sizes = (*sizes, *by_tc, *with_headers, str(self.again))
        return self.name, self.about, str(self.megabits), *times, *sizes, *parts, f"{self.hidden:.0%}"

    def _ratio(self, carried: float) -> str:
        return f"{carried / self.counted:.3f}" if self.counted else "–"

    @property
    def place(self) -> str:
        """Which row it is, in words."""
        return f"{self.name}, {self.about}, {self.megabits} Mbit/s"


def agreement(rows: Sequence[Row]) -> Iterator[str]:
    """Whether the bytes that were predicted, those that were counted and those that links carried agree."""
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
