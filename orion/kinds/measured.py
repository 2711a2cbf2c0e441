"""What was measured of a call with its arrays on each kind of memory, and what that says of any placement.

A window is a tile in a round. With all arrays on kind k it takes t_k. What an array brings in is counted by the blocks
of memory that the window is the first to touch, each by what it costs there to read; where n_k of n seconds are of
arrays on kind k, the window takes Σ t_k n_k / n. A window that brings nothing in costs what it computes.

What is left to be written to files at the end was measured array by array. What has been written the system may write
to files before: that is what is missing there. It is spread over the windows that take more than reading their blocks
costs, and shared out by what was written up to then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from orion.dataclass import dataclass, replace
from orion.inspect.text.words import bytes_in_words, counted, time_in_words
from orion.kinds.blocks import Accesses, FolderCost, Windows
from orion.measured import LoopName, LoopSpeeds, Measurement
from orion.printable import printable
from orion.schedule.schedule import Ints
from orion.simulate import RoundTimes, Seconds


def placed_seconds(seconds: Sequence[Seconds], parts: Sequence[Any]) -> Seconds:
    """The seconds of windows which take `seconds[k]` with all of their accesses to kind k, where `parts[k]` of them
    are; what is missing to 1 is to the first kind.

    >>> fast, slow = np.array([1.0, 1.0, 1.0]), np.array([5.0, 3.0, 9.0])
    >>> placed_seconds([fast, slow], [np.array([0.75, 0.0, 1.0]), np.array([0.25, 1.0, 0.0])]).tolist()
    [2.0, 3.0, 1.0]
    """
    found = np.array(seconds[0], np.float64)
    for time, part in zip(seconds[1:], parts[1:], strict=True):
        found += (time - seconds[0]) * part
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What windows cost on a kind of memory: seconds for blocks that they bring in, and for all that were written up to
    their end; float64 (samples, tiles)."""

    reads: Any
    writes: Any


def part_of(more: Seconds, own: Costs, all_arrays: Costs, written: float) -> Seconds:
    """Which part of the accesses of windows is to a kind of memory, with which they take so many seconds `more`: some
    arrays on it cost its `own`, and all would cost that of `all_arrays`. What windows take more is reading, but for the
    part `written` of what is more than that costs.

    >>> own = Costs(np.array([1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0]))
    >>> all_arrays = Costs(np.array([4.0, 0.0, 4.0]), np.array([0.0, 0.0, 2.0]))
    >>> part_of(np.array([4.0, 8.0, 10.0]), own, all_arrays, 1.0).tolist()
    [0.25, 0.0, 0.4]
    """
    writing = written * beyond(more, all_arrays)
    found = (more - writing) * _ratio(own.reads, all_arrays.reads) + writing * _ratio(own.writes, all_arrays.writes)
    return np.asarray(np.where(more > 0, found / np.where(more > 0, more, 1.0), 0.0), np.float64)


def beyond(more: Seconds, all_arrays: Costs) -> Seconds:
    """What windows take more than it costs to read their blocks, if anything was written before their end."""
    return np.asarray(np.where(all_arrays.writes > 0, np.maximum(0.0, more - all_arrays.reads), 0.0), np.float64)


def _ratio(part: Any, whole: Any) -> Any:
    return part / np.where(whole > 0, whole, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class LoopOnKinds:
    """The windows of one loop: `seconds[kind]`, float64 (samples, tiles), with all arrays on that kind, in the rounds
    `sampled` of `rounds`; `beside[kind]` as in `LoopSpeeds`; `windows[kind][array]` is what they bring in and
    write."""

    name: LoopName
    rounds: int
    bounds: tuple[Ints, ...]
    sampled: Ints
    seconds: Mapping[str, Seconds]
    beside: Mapping[str, float | None]
    windows: Mapping[str, Mapping[str, Windows]]
    elements: int

    def placed(self, placement: Mapping[str, str], costs: Mapping[str, tuple[FolderCost, float]]) -> LoopSpeeds:
        """The times of the loop with each array on a kind, given what blocks cost on each kind, and which part of what
        windows take more than that is writing."""
        kinds = [*self.seconds]
        times = [self.seconds[kind] for kind in kinds]
        parts = [self._part(placement, kind, *costs[kind]) for kind in kinds]
        found = placed_seconds(times, parts)
        beside: float | None = None
        factors = [self.beside[kind] for kind in kinds]
        if found.size and found.sum() and all(one is not None for one in factors):
            slower = [time * (factor or 1.0) for time, factor in zip(times, factors, strict=True)]
            beside = float(placed_seconds(slower, parts).sum() / found.sum())
        return LoopSpeeds(self.name, self.rounds, self.bounds, self.sampled, found, beside, self.elements)

    def more(self, kind: str) -> Seconds:
        """The seconds that windows take more with all arrays on a kind than with all on the first."""
        return self.seconds[kind] - next(iter(self.seconds.values()))

    def costs(self, kind: str, cost: FolderCost) -> Costs:
        """What windows cost with all arrays on a kind."""
        return self._costs(self.windows[kind].values(), cost)

    def _part(self, placement: Mapping[str, str], kind: str, cost: FolderCost, written: float) -> Seconds:
        """Which part of the accesses of windows is to a kind."""
        windows = self.windows[kind]
        own = self._costs((windows[name] for name in windows if placement[name] == kind), cost)
        return part_of(self.more(kind), own, self.costs(kind, cost), written)

    def _costs(self, windows: Iterable[Windows], cost: FolderCost) -> Costs:
        none = np.zeros(next(iter(self.seconds.values())).shape)
        found = Costs(none, none)
        for one in windows:
            found = Costs(found.reads + one.brought.seconds(cost.read), found.writes + one.dirty.seconds(cost.write))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredKinds:
    """A call measured on several kinds of memory. `base` is the measurement of the first kind, with what meetings take,
    and `call` are the seconds beside loops; `arrays` are those that have a place, with their bytes.

    `accesses[kind][array]` is what was seen of it there, that of the first kind by the trace alone;
    `flush[kind][array]` are the seconds until what a call wrote to it is in its file, and `tried[kind]` what a few
    blocks took. One of `every[k]` iterations of loop k was traced; a block has `block` bytes."""

    base: Measurement
    kinds: tuple[str, ...]
    loops: tuple[LoopOnKinds, ...]
    arrays: Mapping[str, int]
    accesses: Mapping[str, Mapping[str, Accesses]]
    call: float
    flush: Mapping[str, Mapping[str, float]]
    tried: Mapping[str, FolderCost]
    every: tuple[int, ...]
    block: int
    run: float

    def placed(self, placement: Mapping[str, str]) -> Measurement:
        """What would have been measured with each array on a kind of memory."""
        costs = {kind: self._cost(kind) for kind in self.kinds}
        loops = tuple(loop.placed(placement, costs) for loop in self.loops)
        flush = sum(self.flush[kind][name] for name, kind in placement.items())
        return replace(self.base, loops=loops, call=self.call + flush)

    def _cost(self, kind: str) -> tuple[FolderCost, float]:
        """What blocks cost on a kind: as those that were tried, but so that all that were brought in and written add up
        to what the call took more than on the first kind. And which part of what windows take more than reading is
        writing: as much as is missing at the end."""
        cost, accesses, flush = self.tried[kind], self.accesses[kind], self.flush[kind]
        expected = sum(sum(one.seconds(cost)) for one in accesses.values())
        slower = sum(flush.values()) + sum(float(loop.more(kind).sum()) for loop in self.loops)
        cost = cost.times(slower / expected) if slower > 0 < expected else cost
        missing = sum(max(0.0, one.seconds(cost)[1] - flush[name]) for name, one in accesses.items())
        found = sum(float(beyond(loop.more(kind), loop.costs(kind, cost)).sum()) for loop in self.loops)
        return cost, min(1.0, missing / found) if found else 0.0

    def seconds_on_one(self, placement: Mapping[str, str]) -> float:
        """The seconds of a call on one worker in the rounds and sizes that were measured: it is a sum over arrays of
        what each costs where it is, and what stays."""
        found = self.placed(placement)
        return found.call + sum(_of_rounds(loop) for loop in found.loops)

    def __repr__(self) -> str:
        return f"<orion.MeasuredKinds of {self.base.function}: {', '.join(self.kinds)}, {self.run:.3g} s>"

    def __str__(self) -> str:
        every = ", ".join(map(str, self.every))
        lines = [
            f"{self.base.function}: measured in {self.run:.3g} s on {counted(len(self.kinds), 'kind')} of memory; "
            f"one of {every} iterations traced, blocks of {bytes_in_words(self.block)}.",
        ]
        for kind in self.kinds:
            taken = time_in_words(self.seconds_on_one(dict.fromkeys(self.arrays, kind)) * 1e9)
            writing = time_in_words(sum(self.flush[kind].values()) * 1e9)
            lines.append(f"  all on {kind}: {taken}, of it {writing} writing to files at the end")
        for name, size in self.arrays.items():
            one = self.accesses[self.kinds[0]][name]
            what = f"{one.reads:,} reads, {one.writes:,} writes, {one.blocks:,} blocks touched, {one.written:,} written"
            lines.append(f"  {name}, {bytes_in_words(size)}: about {what}")
        return printable("\n".join(lines))


def _of_rounds(loop: LoopSpeeds) -> float:
    """The seconds of all rounds of a loop: between two that were measured they are taken to change evenly."""
    if not loop.seconds.size:
        return 0.0
    rounds = RoundTimes(loop.seconds, loop.sampled, loop.rounds, loop.rounds, overlap=False)
    return rounds.over_all(loop.seconds.sum(axis=1), loop.rounds)
