"""What was measured of a call with its arrays on each kind of memory, and what that says of any placement.

A window is a tile in a round. With all arrays on kind k it takes t_k. What an array brings in is counted by the blocks
of memory that the window is the first to touch; where n_k of n blocks are of arrays on kind k, it takes Σ t_k n_k / n.
A window that brings nothing in costs what it computes.

Blocks that are written first in a window count for more, as the system may write them to their file before the call
ends: by how much is known from what a block costs to read and to write (`write_weight`). What is left to be written at
the end is of the arrays that were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orion.inspect.text.words import bytes_in_words, counted, time_in_words
from orion.kinds.trace import Traced
from orion.measured import LoopName, LoopSpeeds, Measurement
from orion.schedule.schedule import Ints
from orion.simulate import Seconds


def placed_seconds(seconds: Sequence[Seconds], counts: Sequence[Any], totals: Sequence[Any]) -> Seconds:
    """The seconds of windows of which `counts[k]` of `totals[k]` accesses, as kind k weighs them, are to kind k, where
    they take `seconds[k]` with all of them to it. A window without accesses takes what it does with the first kind.

    >>> fast, slow = np.array([1.0, 1.0, 1.0]), np.array([5.0, 3.0, 9.0])
    >>> fast_counts, slow_counts, all_counts = np.array([3, 0, 0]), np.array([1, 4, 0]), np.array([4, 4, 0])
    >>> placed_seconds([fast, slow], [fast_counts, slow_counts], [all_counts, all_counts]).tolist()
    [2.0, 3.0, 1.0]
    """
    found = np.array(seconds[0], np.float64)
    for time, count, total in zip(seconds[1:], counts[1:], totals[1:], strict=True):
        found += (time - seconds[0]) * count / np.where(total > 0, total, 1)
    return found


def write_weight(relative: float, slower: float, flush: float, brought: float, written: float) -> float:
    """How much more than a block that is read a block counts that a window writes first, so that a call of windows that
    are `slower` by so many seconds, of writing at its end that takes `flush`, and of so many blocks brought in and
    written adds up. `relative` is what writing a block costs by that of reading one.

    >>> write_weight(1.0, 6.0, 2.0, 6, 2)  # a block is read in a second, and written in another: at the end
    0.0
    >>> write_weight(1.0, 8.0, 0.0, 6, 2)  # before the end
    1.0
    """
    if not written or slower + flush <= 0:
        return 0.0
    each = (slower + flush) / (brought + relative * written)
    return max(0.0, relative - flush / (each * written))


@dataclass(frozen=True, slots=True, eq=False)
class LoopOnKinds:
    """The windows of one loop: `seconds[kind]`, float64 (samples, tiles), with all arrays on that kind, in the rounds
    `sampled` of `rounds`; `beside[kind]` as in `LoopSpeeds`; `brought[array]` and
    `written[array]`, int64 (samples, tiles), the blocks that a window is the first to touch, and to write."""

    name: LoopName
    rounds: int
    bounds: tuple[Ints, ...]
    sampled: Ints
    seconds: Mapping[str, Seconds]
    beside: Mapping[str, float | None]
    brought: Mapping[str, Ints]
    written: Mapping[str, Ints]
    elements: int

    def placed(self, placement: Mapping[str, str], weights: Mapping[str, float]) -> LoopSpeeds:
        """The times of the loop with each array on a kind; a written block counts by so much more on each kind."""
        kinds = [*self.seconds]
        none = np.zeros_like(self.seconds[kinds[0]])

        def count(kind: str, arrays: Iterable[str]) -> Any:
            return sum((self.brought[name] + weights[kind] * self.written[name] for name in arrays), none)

        counts = [count(kind, [name for name in self.brought if placement[name] == kind]) for kind in kinds]
        totals = [count(kind, self.brought) for kind in kinds]
        times = [self.seconds[kind] for kind in kinds]
        found = placed_seconds(times, counts, totals)
        beside: float | None = None
        factors = [self.beside[kind] for kind in kinds]
        if found.size and found.sum() and all(one is not None for one in factors):
            slower = [time * (factor or 1.0) for time, factor in zip(times, factors, strict=True)]
            beside = float(placed_seconds(slower, counts, totals).sum() / found.sum())
        return LoopSpeeds(self.name, self.rounds, self.bounds, self.sampled, found, beside, self.elements)


@dataclass(frozen=True, slots=True)
class Accesses:
    """What one array was seen to be touched, in all traced rounds: reads and writes of elements, times `every`; blocks
    of memory that were read or written, and those that were written."""

    reads: int
    writes: int
    blocks: int
    written: int


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredKinds:
    """A call measured on several kinds of memory. `base` is the measurement of the first kind, with what calls and
    meetings take; `arrays` are those that have a place, with their bytes; `flush[kind]` are the seconds until what a
    call wrote is in files, and `weights[kind]` by how much more a written block counts. One of `every[k]` iterations of
    loop k was traced; a block has `block` bytes."""

    base: Measurement
    kinds: tuple[str, ...]
    loops: tuple[LoopOnKinds, ...]
    arrays: Mapping[str, int]
    accesses: Mapping[str, Accesses]
    flush: Mapping[str, float]
    weights: Mapping[str, float]
    every: tuple[int, ...]
    block: int
    run: float

    def placed(self, placement: Mapping[str, str]) -> Measurement:
        """What would have been measured with each array on a kind of memory."""
        loops = tuple(loop.placed(placement, self.weights) for loop in self.loops)
        return replace(self.base, loops=loops, call=self.base.call + self._flush(placement))

    def _flush(self, placement: Mapping[str, str]) -> float:
        total = sum(one.written for one in self.accesses.values())
        shares = ((kind, self.accesses[name].written) for name, kind in placement.items())
        return sum(self.flush[kind] * written / total for kind, written in shares if total)

    def seconds_on_one(self, placement: Mapping[str, str]) -> float:
        """The seconds of a call on one worker in the rounds and sizes that were measured: it is a sum over arrays of
        what each costs where it is, and what stays."""
        found = self.placed(placement)
        return found.call + sum(loop.rounds * loop.seconds_per_round for loop in found.loops)

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
            lines.append(f"  all on {kind}: {taken}, of it {time_in_words(self.flush[kind] * 1e9)} writing to files")
        for name, size in self.arrays.items():
            one = self.accesses[name]
            what = f"{one.reads:,} reads, {one.writes:,} writes, {one.blocks:,} blocks touched, {one.written:,} written"
            lines.append(f"  {name}, {bytes_in_words(size)}: about {what}")
        return "\n".join(lines)


# ---------------------------------------------------------------- from traces


def first_touches(
    traces: Sequence[Traced], arrays: Sequence[str], tiles: Mapping[int, int]
) -> list[dict[str, tuple[Ints, Ints]]]:
    """Of each trace, in the order of the run, the blocks that its tiles are the first of all to touch, and to write:
    int64 (tiles,) by array. `tiles[loop]` is the number of those of a loop."""
    seen: dict[str, tuple[set[int], set[int]]] = {name: (set(), set()) for name in arrays}
    found = list[dict[str, tuple[Ints, Ints]]]()
    for trace in traces:
        number = tiles[trace.loop]
        counts = {name: (np.zeros(number, np.int64), np.zeros(number, np.int64)) for name in arrays}
        for tile, touched in trace.tiles.items():
            for name, one in touched.items():
                reads, writes = ({*part[:, 0].tolist()} for part in (one.reads, one.writes))
                for blocks, before, count in zip((reads | writes, writes), seen[name], counts[name], strict=True):
                    count[tile] = len(blocks - before)
                    before |= blocks
        found.append(counts)
    return found


def accesses_of(traces: Sequence[Traced], name: str, every: Sequence[int]) -> Accesses:
    """What was seen of one array."""
    reads = writes = 0
    touched, written = set[int](), set[int]()
    for trace in traces:
        for one in (found[name] for found in trace.tiles.values() if name in found):
            reads += int(one.reads[:, 1].sum()) * every[trace.loop]
            writes += int(one.writes[:, 1].sum()) * every[trace.loop]
            written.update(one.writes[:, 0].tolist())
            touched.update(one.reads[:, 0].tolist(), one.writes[:, 0].tolist())
    return Accesses(reads, writes, len(touched), len(written))
