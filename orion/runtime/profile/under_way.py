"""How much of a worker's waiting was for messages of other nodes that were under way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.runtime.profile.records import CallRecord, Message, WorkerRecord

Span = tuple[int, int]


def under_way(record: CallRecord, worker: WorkerRecord) -> int:
    """The nanoseconds that a worker waited while something was on its way to its node."""
    spans = list(joined(sorted(flights(record, worker.node))))
    return sum(overlap(spans, (wait.start, wait.end)) for wait in worker.waits) if spans else 0


def flights(record: CallRecord, node: str) -> Iterator[Span]:
    """When each message to a node was sent, and when it was there."""
    arrived: dict[tuple[int, int], Message] = {
        (one.worker, one.number): one for other in record.workers if other.node == node for one in other.arrived
    }
    for sender in record.workers:
        for sent in sender.sent:
            found = arrived.get((sender.worker, sent.number)) if sent.node == node else None
            if found is not None and found.time > sent.time:
                yield sent.time, found.time


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in their order, those that overlap as one.

    >>> list(joined([(0, 2), (1, 5), (7, 8)]))
    [(0, 5), (7, 8)]
    """
    last: Span | None = None
    for low, high in spans:
        if last is not None and low <= last[1]:
            last = last[0], max(last[1], high)
            continue
        if last is not None:
            yield last
        last = low, high
    if last is not None:
        yield last


def overlap(spans: Iterable[Span], one: Span) -> int:
    """How much of a span lies in others, which do not overlap.

    >>> overlap([(0, 5), (7, 8)], (4, 10))
    2
    """
    return sum(max(0, min(high, one[1]) - max(low, one[0])) for low, high in spans)
