"""Takes the times of a call: on the driver, and on each worker while a profile is on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from time import perf_counter_ns, time_ns
from typing import Any

import numpy as np

from orion.dataclass import dataclass, field, replace
from orion.runtime.parts import LoopPart
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.records import (
    BARRIER,
    CallRecord,
    LoopLabel,
    Message,
    Part,
    TileTimes,
    Wait,
    WorkerRecord,
)

KEPT = 4_000
"""How many parts and how many waits of one worker in one call are kept one by one; sums go on."""

SHORT_WAIT = 2_000
"""Waits of fewer nanoseconds are in the sums alone."""


@dataclass(slots=True)
class TileSums:
    """The times of one worker's tiles in one loop, by their place in its order."""

    tiles: Any
    work: Any
    overhead: tuple[int, int]
    compute: list[int]
    cpu: list[int]
    rounds: int = 0
    alone: int = 0
    together: int = 0


@dataclass(slots=True)
class Recorder:
    """Collects what one worker does in one call. `number` counts the calls of the program that were measured: which
    rounds are samples depends on it, for all workers alike."""

    worker: int
    number: int = 0
    node: str = ""
    start: int = field(default_factory=perf_counter_ns)
    _clocks: tuple[int, int] = field(default_factory=lambda: (perf_counter_ns(), time_ns()))
    sums: dict[int, TileSums] = field(default_factory=dict)
    totals: dict[int, list[int]] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    arrived: list[Message] = field(default_factory=list)
    waited: int = 0
    sends: int = 0
    messages: int = 0
    bytes: int = 0
    last: int = BARRIER

    def of_loop(self, part: LoopPart) -> TileSums:
        """The sums for the tiles of a loop."""
        found = self.sums.get(part.number)
        if found is None:
            count = int(part.tiles.size)
            found = TileSums(part.tiles, _work(part), (0, 0), [0] * count, [0] * count)
            self.sums[part.number] = found
        return found

    def wait(self, loop: int, start: int, end: int) -> None:
        """The worker waited."""
        self.waited += end - start
        if end - start >= SHORT_WAIT and len(self.waits) < KEPT:
            self.waits.append(Wait(loop, start, end))

    def send(self, node: str, number: int, size: int, start: int) -> None:
        """Since `start` the worker has handed over a message to another node."""
        self.sends += perf_counter_ns() - start
        if len(self.sent) < KEPT:
            self.sent.append(Message(start, self.worker, node, number, size))
        self.messages += 1
        self.bytes += size

    def arrive(self, sender: int, number: int, size: int) -> None:
        """A message of a worker of another node has come."""
        if len(self.arrived) < KEPT:
            self.arrived.append(Message(perf_counter_ns(), sender, self.node, number, size))

    def part(self, found: Part) -> None:
        """The worker is through with its part of a round."""
        self.last = found.loop
        total = self.totals.setdefault(found.loop, [0] * 7)
        length = found.end - found.start
        numbers = (1, length, found.tiles, found.compute, found.cpu, found.wait, found.sent)
        for place, value in enumerate(numbers):
            total[place] += value
        if len(self.parts) < KEPT:
            self.parts.append(found)

    def record(self) -> WorkerRecord:
        """What was collected, with times of this process's clock."""
        totals = tuple(
            Part(loop, rounds, 0, length, tiles, compute, cpu, wait, sent)
            for loop, (rounds, length, tiles, compute, cpu, wait, sent) in self.totals.items()
        )
        tiles = tuple(
            TileTimes(
                loop, one.rounds, np.array(one.tiles), np.array(one.work), np.array(one.compute, np.int64),
                np.array(one.cpu, np.int64), one.alone, one.together,
            )
            for loop, one in self.sums.items()
        )  # fmt: skip
        return WorkerRecord(
            self.worker, self.node, self.start, perf_counter_ns(), totals, tiles, tuple(self.parts), tuple(self.waits),
            self.waited, self.sends, self.messages, self.bytes, self.last, tuple(self.sent), tuple(self.arrived),
        )  # fmt: skip

    def sendable(self) -> tuple[WorkerRecord, tuple[int, int]]:
        """The record, and one moment on this process's clock and on the clock that all machines have."""
        return self.record(), self._clocks


def _work(part: LoopPart) -> Any:
    """How many elements, or iterations at most, there are in each of the tiles of a worker."""
    extents = part.extents
    if extents.ndim == 1:
        return np.diff(extents)[part.tiles]
    return np.prod(extents[part.tiles, :, 1] - extents[part.tiles, :, 0], axis=1)


def on_drivers_clock(record: WorkerRecord, clocks: tuple[int, int], bounds: tuple[int, int]) -> WorkerRecord:
    """A record of another process, with times of this one's clock. `bounds` are the times on the driver between which
    the worker ran: what the machines' clocks differ by beyond these is taken out."""
    here = perf_counter_ns() - time_ns()
    shift = clocks[1] - clocks[0] + here
    early, late = bounds[0] - (record.start + shift), record.end + shift - bounds[1]
    if early > 0:
        shift += early
    elif late > 0:
        shift -= late
    if not shift:
        return record

    def message(one: Message) -> Message:
        return replace(one, time=one.time + shift)

    return replace(
        record,
        start=record.start + shift,
        end=record.end + shift,
        parts=tuple(replace(one, start=one.start + shift, end=one.end + shift) for one in record.parts),
        waits=tuple(replace(one, start=one.start + shift, end=one.end + shift) for one in record.waits),
        sent=tuple(map(message, record.sent)),
        arrived=tuple(map(message, record.arrived)),
    )


# ---------------------------------------------------------------- the driver


@dataclass(slots=True)
class Recording:
    """Collects the times of one call, on the driver. `keep` takes the record when it is over; `known` counts the calls
    of a program, and has the labels of its loops, given the bytes that each touches."""

    function: str
    keep: Callable[[CallRecord], None]
    known: Callable[[PreparedProgram, tuple[int, ...]], tuple[int, tuple[LoopLabel, ...]]]
    start: int = field(default_factory=perf_counter_ns)
    number: int = 0
    is_planned: bool = False
    _planned: int = 0
    _entered: int = 0
    _copying: int = 0
    _copied: int = 0
    _loops: tuple[LoopLabel, ...] = ()
    _workers: list[WorkerRecord] = field(default_factory=list)
    record: CallRecord | None = None

    def planned(self) -> None:
        """What is to be run is known."""
        self._planned = perf_counter_ns()
        self.is_planned = True

    def enter(self, prepared: PreparedProgram, arguments: Mapping[str, object]) -> None:
        """It is this call's turn."""
        self._entered = perf_counter_ns()
        self._workers.clear()
        touched = tuple([_touched(prepared, number, arguments) for number in range(len(prepared.loops))])
        self.number, self._loops = self.known(prepared, touched)

    def copied(self, start: int, size: int) -> None:
        """Since `start` so many bytes of arguments were copied or sent."""
        self._copying += perf_counter_ns() - start
        self._copied += size

    def worker(self, found: WorkerRecord) -> None:
        """A worker is through."""
        self._workers.append(found)

    def finish(self, error: BaseException | None = None) -> None:
        """The call is over; what comes after the first time changes nothing."""
        if self.record is not None:
            return
        end = perf_counter_ns()
        planned = self._planned or end
        entered = self._entered or end
        self.record = CallRecord(
            self.function, get_ident(), self.start, planned, entered, end, self._copying, self._copied,
            self._loops, tuple(sorted(self._workers, key=lambda one: one.worker)), self.is_planned,
            "" if error is None else type(error).__name__,
        )  # fmt: skip
        self.keep(self.record)


@contextmanager
def measured_run(recording: Recording | None) -> Iterator[list[tuple[WorkerRecord, tuple[int, int]]]]:
    """Around the run of workers in other processes. What they have measured is to be put into the list."""
    found: list[tuple[WorkerRecord, tuple[int, int]]] = []
    if recording is None:
        yield found
        return
    start = perf_counter_ns()
    try:
        yield found
    finally:
        bounds = start, perf_counter_ns()
        for record, clocks in found:
            recording.worker(on_drivers_clock(record, clocks, bounds))


def _touched(prepared: PreparedProgram, number: int, arguments: Mapping[str, object]) -> int:
    """The bytes of the arrays that a loop touches."""
    return sum(int(getattr(arguments.get(name), "nbytes", 0)) for name in sorted(prepared.loops[number].reads))
