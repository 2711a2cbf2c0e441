"""Blocks of memory that windows bring in and write, by the trace of a loop, and what that costs on a kind of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, replace
from orion.kinds.trace import Touched, Traced
from orion.schedule.schedule import Ints
from orion.simulate import Seconds


@dataclass(frozen=True, slots=True)
class BlockCost:
    """The seconds that a block takes: `each`, whatever its length, and `byte` for each of its bytes."""

    each: float
    byte: float

    @classmethod
    def through(cls, small: tuple[int, float], large: tuple[int, float]) -> BlockCost:
        """What costs so by a small and a large block, (bytes, seconds) of both.

        >>> BlockCost.through((1000, 3.0), (5000, 7.0))
        BlockCost(each=2.0, byte=0.001)
        """
        byte = max(0.0, (large[1] - small[1]) / (large[0] - small[0]))
        return cls(max(0.0, large[1] - byte * large[0]), byte)


@dataclass(frozen=True, slots=True)
class FolderCost:
    """What a block of a file in a folder costs to read and to write; both 0 of what is no folder."""

    read: BlockCost
    write: BlockCost

    def times(self, factor: float) -> FolderCost:
        """Such that all costs so many times as much."""
        return FolderCost(*(BlockCost(factor * one.each, factor * one.byte) for one in (self.read, self.write)))


NOTHING = FolderCost(BlockCost(0.0, 0.0), BlockCost(0.0, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks by window: how many, and their bytes; numbers of one shape."""

    count: NDArray[Any]
    bytes: NDArray[Any]

    @classmethod
    def of_bytes(cls, size: NDArray[Any], block: int) -> Blocks:
        """As many blocks as so many bytes are."""
        return cls(-(-size // block), size)

    def times(self, factor: float) -> Blocks:
        return Blocks(factor * self.count, factor * self.bytes)

    def seconds(self, cost: BlockCost) -> Seconds:
        return cost.each * self.count + cost.byte * self.bytes


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """What windows do with an array: the blocks that each is the first of all to touch, so that it brings them in, and
    those that were written until its end."""

    brought: Blocks
    dirty: Blocks

    def as_counted(self, brought: NDArray[Any], block: int, seen: float) -> Windows:
        """The same where so many bytes were counted to be brought in, and a trace has seen one of `seen` blocks that
        are written."""
        return Windows(Blocks.of_bytes(brought, block), self.dirty.times(seen))


@dataclass(frozen=True, slots=True)
class Accesses:
    """What one array was seen to be touched, in all traced rounds: reads and writes of elements, times `every`; blocks
    of memory that were read or written, and those that were written, with the bytes of both."""

    reads: int
    writes: int
    blocks: int
    bytes: int
    written: int
    written_bytes: int

    def as_counted(self, size: int, block: int) -> Accesses:
        """The same where so many bytes were brought in, which a trace of few iterations has not seen all of: as large a
        part of them is written."""
        factor = size / self.bytes if self.bytes else 1.0
        written, written_bytes = (round(factor * seen) for seen in (self.written, self.written_bytes))
        return replace(self, blocks=-(-size // block), bytes=size, written=written, written_bytes=written_bytes)

    def seconds(self, cost: FolderCost) -> tuple[float, float]:
        """What it costs to bring these blocks in, and to write those that were written."""
        read = cost.read.each * self.blocks + cost.read.byte * self.bytes
        return read, cost.write.each * self.written + cost.write.byte * self.written_bytes


def in_rounds(rounds: Sequence[Windows], tiles: int) -> Windows:
    """The windows of several rounds of a loop of so many tiles as one value, of shape (rounds, tiles)."""

    def stacked(blocks: Sequence[Blocks]) -> Blocks:
        none = np.zeros((0, tiles), np.int64)
        return Blocks(
            *(np.array([getattr(one, name) for one in blocks]) if blocks else none for name in Blocks.__slots__)
        )

    return Windows(stacked([one.brought for one in rounds]), stacked([one.dirty for one in rounds]))


class _Seen:
    """The blocks of an array of `size` bytes that were seen up to now."""

    def __init__(self, size: int, block: int) -> None:
        self.bytes = np.minimum(block, size - block * np.arange(-(-size // block)))
        self.seen = np.zeros(self.bytes.size, np.bool_)

    def add(self, blocks: Ints) -> tuple[int, int]:
        """How many of these were not seen, and their bytes."""
        fresh = blocks[~self.seen[blocks]]
        self.seen[fresh] = True
        return fresh.size, int(self.bytes[fresh].sum())

    @property
    def total(self) -> tuple[int, int]:
        return int(self.seen.sum()), int(self.bytes[self.seen].sum())


def windows_of(
    traces: Sequence[Traced], sizes: Mapping[str, int], block: int, tiles: Mapping[int, int], every: Sequence[int]
) -> tuple[list[dict[str, Windows]], dict[str, Accesses]]:
    """Of each trace, in the order of the run, what its windows do with each array, arrays of shape (tiles,), and of
    each array what was seen in all of them. `sizes` are the bytes from the first to the last element of an array,
    `tiles[loop]` is the number of those of a loop, of which one of `every[loop]` iterations was traced."""
    touched = {name: _Seen(size, block) for name, size in sizes.items()}
    written = {name: _Seen(size, block) for name, size in sizes.items()}
    elements = {name: np.zeros(2, np.int64) for name in sizes}
    found = list[dict[str, Windows]]()
    for trace in traces:
        own = {name: np.zeros((2, 2, tiles[trace.loop]), np.int64) for name in sizes}
        for tile, seen in trace.tiles.items():
            for name, one in seen.items():
                own[name][0, :, tile] = touched[name].add(_blocks_of(one))
                written[name].add(one.writes[:, 0])
                elements[name] += every[trace.loop] * np.array([one.reads[:, 1].sum(), one.writes[:, 1].sum()])
            for name, counts in own.items():
                counts[1, :, tile] = written[name].total
        found.append({name: Windows(*(Blocks(*part) for part in counts)) for name, counts in own.items()})
    accesses = {}
    for name, (reads, writes) in elements.items():
        accesses[name] = Accesses(int(reads), int(writes), *touched[name].total, *written[name].total)
    return found, accesses


def _blocks_of(touched: Touched) -> Ints:
    return np.union1d(touched.reads[:, 0], touched.writes[:, 0])
