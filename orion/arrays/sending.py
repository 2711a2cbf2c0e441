"""What nodes send each other of updates that may be late (`orion.pacing`)."""

from __future__ import annotations

from orion.dataclass import dataclass

ORDERS = ("magnitude", "round_robin", "random", "fifo")
"""Which rows go first while the link has time: those whose updates change them most; each in its turn; any; those that
have waited longest."""

BATCH = 100_000
"""The bytes of a message, where the user does not say."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How updates of an array go to other nodes. `order`: which go first between the messages that the bound asks for;
    "" where none go then. A message has at most `batch` bytes, or one row. `bandwidth`: how many bytes a node sends per
    second at most, of those that the bound does not ask for; 0 for as many as the link takes."""

    order: str
    batch: int
    bandwidth: float

    def __repr__(self) -> str:
        bandwidth = f"{8 * self.bandwidth:g} bits per second" if self.bandwidth else "as measured"
        return f"<orion.pacing: {self.order or 'nothing'} first, {self.batch:,} bytes a message, {bandwidth}>"


AT_THE_BOUND = Sending("", BATCH, 0.0)
"""Nothing is sent but what the bound asks for."""
