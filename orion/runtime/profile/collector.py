"""Adds up the calls of a session while a profile is on."""

from __future__ import annotations

from array import array
from collections import Counter
from threading import RLock
from time import perf_counter_ns
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.records import CallRecord, LoopLabel, TileTimes, WorkerRecord, loop_labels
from orion.runtime.profile.under_way import under_way

KEPT_PARTS = 200_000
"""Calls are kept one by one until they have so many parts; sums go on."""


@dataclass(slots=True, eq=False)
class WorkerSums:
    """The sums of one worker: in one loop, or in all calls. `length` is the time from beginning to end, of which
    `transfer` went to other nodes or came from them."""

    rounds: int = 0
    length: int = 0
    tiles: int = 0
    compute: int = 0
    cpu: int = 0
    wait: int = 0
    transfer: int = 0


@dataclass(slots=True, eq=False)
class TilesOfWorker:
    """The tiles of one worker in a loop: how much is in each, and sums of times."""

    rounds: int
    work: NDArray[np.int64]
    compute: NDArray[np.int64]
    cpu: NDArray[np.int64]


@dataclass(slots=True, eq=False)
class LoopSums:
    """The sums of one loop by worker, the times of its tiles, and the samples of one tile."""

    calls: int = 0
    workers: dict[int, WorkerSums] = field(default_factory=dict)
    tiles: dict[int, TilesOfWorker] = field(default_factory=dict)
    alone: int = 0
    together: int = 0


@dataclass(slots=True, eq=False)
class CallSums:
    """The sums of all calls: times of the driver, bytes, and how many raised."""

    calls: int = 0
    failed: int = 0
    planning: int = 0
    queueing: int = 0
    preparing: int = 0
    running: int = 0
    unplanned: int = 0
    copying: int = 0
    copied: int = 0
    messages: int = 0
    sent: int = 0


class Collector:
    """What a profile has collected so far. All threads that call loops add to it."""

    def __init__(self) -> None:
        self.start = self.end = 0
        self.sums = CallSums()
        self.workers: dict[int, WorkerSums] = {}
        self.loops: dict[LoopLabel, LoopSums] = {}
        self.unplanned: Counter[str] = Counter()
        self.calls: list[CallRecord] = []
        self.left_out = 0
        self._parts = 0
        self._spans = array("q"), array("q")
        self._numbers: WeakKeyDictionary[PreparedProgram, int] = WeakKeyDictionary()
        self._labels: WeakKeyDictionary[PreparedProgram, dict[tuple[int, ...], tuple[LoopLabel, ...]]] = (
            WeakKeyDictionary()
        )
        self.own = 0
        self.lock = RLock()

    def known(self, prepared: PreparedProgram, touched: tuple[int, ...]) -> tuple[int, tuple[LoopLabel, ...]]:
        """How many calls of a program came before this one, and the labels of its loops, which touch so many bytes."""
        with self.lock:
            number = self._numbers.get(prepared, 0)
            self._numbers[prepared] = number + 1
            labels = self._labels.setdefault(prepared, {})
            if touched not in labels:
                labels[touched] = loop_labels(prepared, touched)
            return number, labels[touched]

    def keep(self, record: CallRecord) -> None:
        """Add a call. One that another thread ends when this profile is over is not in it."""
        with self.lock:
            if self.end:
                return
            self._parts += 1 + sum(len(one.parts) + len(one.waits) for one in record.workers)
            if self._parts <= KEPT_PARTS:
                self.calls.append(record)
            else:
                self.left_out += 1
            self._add(record)
            self.own += perf_counter_ns() - record.end

    def wall(self) -> int:
        """Nanoseconds from the beginning of the profile to its end, or to now."""
        return (self.end or perf_counter_ns()) - self.start

    def inside(self) -> int:
        """Nanoseconds in which at least one call was under way."""
        with self.lock:
            starts, ends = (np.array(times, np.int64) for times in self._spans)
        order = np.argsort(starts, kind="stable")
        starts, ends = np.maximum(starts[order], self.start), ends[order]
        if not starts.size:
            return 0
        before = np.concatenate([starts[:1], np.maximum.accumulate(ends)[:-1]])
        return int(np.maximum(0, ends - np.maximum(starts, before)).sum())

    def _add(self, record: CallRecord) -> None:
        sums = self.sums
        sums.calls += 1
        sums.failed += bool(record.error)
        self._spans[0].append(record.start)
        self._spans[1].append(record.end)
        if not record.is_planned and not record.error:
            sums.unplanned += record.end - record.start
            self.unplanned[record.function] += record.end - record.start
            return
        sums.planning += record.planned - record.start
        sums.queueing += record.entered - record.planned
        running = record.ended - record.begun
        sums.preparing += record.end - record.entered - record.copying - running
        sums.running += running
        sums.copying += record.copying
        sums.copied += record.copied
        for one in record.workers:
            self._add_worker(record, one)
        for label in record.loops:
            self.loops.setdefault(label, LoopSums()).calls += 1

    def _add_worker(self, record: CallRecord, one: WorkerRecord) -> None:
        total = self.workers.setdefault(one.worker, WorkerSums())
        moving = under_way(record, one)
        tail = record.ended - one.end  # until the others are through
        total.rounds += 1
        total.length += one.end - one.start + tail
        total.wait += one.waited - moving + tail
        total.transfer += one.sends + moving
        self.sums.messages += one.messages
        self.sums.sent += one.bytes
        share = moving / one.waited if one.waited else 0.0
        for part in one.totals:
            loop = self.loops.setdefault(record.loops[part.loop], LoopSums())
            own = loop.workers.setdefault(one.worker, WorkerSums())
            moved = int(part.wait * share)
            rest = tail if part.loop == one.last else 0
            own.rounds += part.round
            own.length += part.end + rest
            own.tiles += part.tiles
            own.compute += part.compute
            own.cpu += part.cpu
            own.wait += part.wait - moved + rest
            own.transfer += part.sent + moved
            total.tiles += part.tiles
            total.compute += part.compute
            total.cpu += part.cpu
        for tiles in one.tiles:
            _add_tiles(self.loops[record.loops[tiles.loop]], one.worker, tiles)


def _add_tiles(loop: LoopSums, worker: int, found: TileTimes) -> None:
    own = loop.tiles.get(worker)
    if own is None or own.compute.size != found.compute.size:
        loop.tiles[worker] = TilesOfWorker(found.rounds, found.work, found.compute, found.cpu)
    else:
        own.rounds += found.rounds
        own.compute = own.compute + found.compute
        own.cpu = own.cpu + found.cpu
    if found.alone:
        loop.alone = min(loop.alone or found.alone, found.alone)
    if found.together:
        loop.together = min(loop.together or found.together, found.together)


def of_call(record: CallRecord) -> Collector:
    """A collector that has one call alone."""
    found = Collector()
    found.start = record.start
    found.keep(record)
    found.end, found.own = record.end, 0  # adding it up comes after the call
    return found
