"""Of the time of a call: how much of it workers compute, how much of it messages are on their way, and both at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orion.runtime.profile.records import CallRecord, WorkerRecord
from orion.runtime.profile.under_way import Span, flights, joined, overlap


@dataclass(frozen=True)
class Parts:
    """The seconds of a call, as means over its workers: in which a worker computes and no message between any two nodes
    is on its way, in which it computes and one is, in which one is and it does not compute, and in which neither is so:
    the driver prepares the call, workers begin, or one waits for what another one computes. In the third are also the
    driver's copies of arguments and results."""

    computing: float
    both: float
    moving: float
    neither: float

    @property
    def hidden(self) -> float:
        """The part of the time of messages in which workers compute; 1 where there are no messages."""
        moving = self.both + self.moving
        return self.both / moving if moving else 1.0


def parts_of(record: CallRecord) -> Parts:
    """The parts of a call that was profiled."""
    nodes = {worker.node for worker in record.workers}
    under_way = list(joined(sorted(flight for node in nodes for flight in flights(record, node))))
    moving = sum(end - start for start, end in under_way) + record.copying
    wall, count = record.end - record.start, len(record.workers)
    computing = sum(part.compute for worker in record.workers for part in worker.totals) / count
    both = sum(_computing_during(worker, under_way) for worker in record.workers) / count
    neither = wall - computing - moving + both
    return Parts(*(max(0.0, time) / 1e9 for time in (computing - both, both, moving - both, neither)))


def _computing_during(worker: WorkerRecord, spans: Sequence[Span]) -> float:
    """The nanoseconds that a worker computes in spans of time, which do not overlap. It is known how long it computes
    in each of its parts of a loop, and when it waits there: what it computes is taken to be spread evenly over the
    rest. Sending, which is in the rest too, is always during a message."""
    waits = sorted((wait.start, wait.end) for wait in worker.waits)
    found = 0.0
    for part in worker.parts:
        free = _without((part.start, part.end), waits)
        length = sum(end - start for start, end in free) - part.sent
        during = sum(overlap(spans, one) for one in free) - part.sent
        if length > 0 and during > 0:
            found += part.compute * min(1.0, during / length)
    return found


def _without(span: Span, holes: Sequence[Span]) -> list[Span]:
    """What is left of a span without holes in it, which are in order.

    >>> _without((0, 10), [(2, 3), (5, 12)])
    [(0, 2), (3, 5)]
    """
    left, start = [], span[0]
    for low, high in holes:
        if low < span[1] and high > start:
            if low > start:
                left.append((start, low))
            start = high
    return [*left, (start, span[1])] if start < span[1] else left
