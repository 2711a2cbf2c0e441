"""Deliveries as bytes: a few integers, then the contents of arrays as they lie in memory. Nothing is pickled.

What integers say is which flags, which regions of which arrays, which results: the types and places of all of them are
those of the run, which both ends know. So a receiver knows where each byte belongs before it reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.runtime.ray.inbox import Landing
from orion.runtime.ray.orders import Brought, CopiedParts, Delivery, FedRows, Flag, LateRows, Results
from orion.runtime.ray.regions import Region, Scattered, Section
from orion.schedule.schedule import Ints

HEADER_WORDS = 5
"""Run, sender, number, words of the table of contents, bytes of the contents."""

RESULTS, COPIED_PARTS, LATE_ROWS, FED_ROWS, BROUGHT = 0, 1, 2, 3, 4

SCATTERED = -1
"""In place of the number of integers that say how a region leans."""

ALIGNMENT = 64


class Scratch:
    """Memory that is used again and again: as much as the most that was asked for at once."""

    def __init__(self) -> None:
        self._memory = np.zeros(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A C-contiguous array, whose contents are anything, in place of the last one."""
        size = prod(shape) * dtype.itemsize
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size].view(dtype).reshape(shape)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where the contents of an array of this shape go: to `array[index]`."""

    array: NDArray[Any]
    index: Any
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The bytes to be read."""
        return prod(self.shape) * self.array.dtype.itemsize

    def memory(self, scratch: Scratch) -> NDArray[Any]:
        """Where they are read: in the array itself if they are contiguous there."""
        if self.index is ... and self.array.flags.c_contiguous:
            return self.array
        return scratch.array(self.shape, self.array.dtype)

    def fill(self, read: NDArray[Any]) -> None:
        """Copy what was read to where it belongs, if it is not there."""
        if read is not self.array:
            self.array[self.index] = read


@dataclass(frozen=True, slots=True, eq=False)
class LatePlace:
    """Where rows go that are added to an array: `add` does that."""

    add: Callable[[NDArray[Any]], None]
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """The bytes to be read."""
        return prod(self.shape) * self.dtype.itemsize

    def memory(self, scratch: Scratch) -> NDArray[Any]:
        """Where they are read."""
        return scratch.array(self.shape, self.dtype)

    def fill(self, read: NDArray[Any]) -> None:
        """Add them."""
        self.add(read)


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a delivery brings, and where it goes."""

    places: tuple[Place | LatePlace, ...]
    flags: tuple[Flag, ...]

    @property
    def nbytes(self) -> int:
        """The bytes to be read."""
        return sum(place.nbytes for place in self.places)


def as_bytes(array: NDArray[Any]) -> memoryview:
    """The memory of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def packed(delivery: Delivery, arrays: Sequence[str], scratch: Scratch) -> list[memoryview]:
    """A delivery as parts of memory to be sent one after the other: contents that are contiguous as they lie there,
    the others gathered in `scratch`. Neither may change until they are sent. `arrays` are the arrays of the run, in an
    order that the other end knows."""
    flags = [(flag.loop, flag.tile, flag.round) for flag in delivery.flags]
    regions = [_section_words(piece.region, arrays) for piece in delivery.pieces]
    results = [_words(found) for found in delivery.results]
    counts = len(flags), len(regions), len(results)
    table = np.concatenate([np.array(part, np.int64) for part in (counts, *flags, *chain(*regions, *results))])
    contents = [piece.data for piece in delivery.pieces] + [found.values for found in delivery.results]
    views = _gathered([one for one in contents if one.nbytes], scratch)
    size = sum(len(view) for view in views)
    header = np.array([delivery.run, delivery.sender, delivery.number, len(table), size], np.int64)
    return [as_bytes(np.concatenate([header, table])), *views]


def _section_words(section: Section, arrays: Sequence[str]) -> Sequence[Sequence[int] | NDArray[Any]]:
    array = arrays.index(section.array)
    if isinstance(section, Scattered):
        return [(array, len(section.places), SCATTERED, len(section.places[0])), *section.places]
    lean = section.lean or ()
    return [(array, len(section.box), len(lean)), [*chain.from_iterable(section.box)], lean]


def _gathered(contents: Sequence[NDArray[Any]], scratch: Scratch) -> list[memoryview]:
    """Arrays as memory, those that are not contiguous copied one after the other."""
    starts = [0]
    for one in contents:
        length = 0 if one.flags.c_contiguous else -(-one.nbytes // ALIGNMENT) * ALIGNMENT
        starts.append(starts[-1] + length)
    copies = scratch.array((starts[-1],), np.dtype(np.uint8))
    views = []
    for one, start in zip(contents, starts, strict=False):
        if not one.flags.c_contiguous:
            copy = copies[start : start + one.nbytes].view(one.dtype).reshape(one.shape)
            copy[...] = one
            one = copy
        views.append(as_bytes(one))
    return views


def _words(found: Results | CopiedParts | LateRows | FedRows | Brought) -> Sequence[Sequence[int] | NDArray[Any]]:
    match found:
        case Results(loop, output, turn, tiles, _):
            return [(RESULTS, loop, output, turn, len(tiles)), tiles]
        case CopiedParts(loop, copy, turn, blocks, first, values):
            return [(COPIED_PARTS, loop, copy, turn, len(blocks)), blocks, (first, values.shape[1])]
        case LateRows(loop, array, rows, values):
            return [(LATE_ROWS, loop, array, values.shape[1], len(rows)), rows]
        case FedRows(loop, array, first, values):
            return [(FED_ROWS, loop, array, len(values), 1), (first,)]
        case Brought(loop, replica, meeting, workers, _):
            return [(BROUGHT, loop, replica, meeting, len(workers)), workers]


class _Words:
    """Integers that are taken one after the other."""

    def __init__(self, words: Ints) -> None:
        self._words, self._at = words, 0

    def take(self, count: int) -> list[int]:
        """The next ones."""
        found: list[int] = self.array(count).tolist()
        return found

    def array(self, count: int) -> Ints:
        """The next ones, as an array of its own."""
        self._at += count
        return self._words[self._at - count : self._at].copy()


def unpacked(table: Ints, landing: Landing) -> Contents:
    """What a table of contents says."""
    words = _Words(table)
    flags, pieces, results = words.take(3)
    found = tuple(Flag(*words.take(3)) for _ in range(flags))
    names = sorted(landing.arrays)
    places: list[Place | LatePlace] = [_piece(words, landing, names) for _ in range(pieces)]
    places += [_results(words, landing) for _ in range(results)]
    return Contents(tuple(places), found)


def _piece(words: _Words, landing: Landing, names: Sequence[str]) -> Place:
    number, axes, leans = words.take(3)
    array = landing.arrays[names[number]]
    if leans == SCATTERED:
        (count,) = words.take(1)
        places = tuple(words.array(count) for _ in range(axes))
        return Place(array, places, (count, *array.shape[axes:]))
    bounds = words.take(2 * axes)
    box = tuple(zip(bounds[::2], bounds[1::2], strict=True))
    lean = words.take(leans)
    region = Region(names[number], box, (lean[0], lean[1], lean[2]) if lean else None)
    part = region.of(array)
    return Place(part, ..., part.shape)


def _results(words: _Words, landing: Landing) -> Place | LatePlace:
    kind, loop, number, turn, count = words.take(5)
    chosen = words.array(count)
    if kind == RESULTS:
        return Place(landing.memory.outputs[loop][number][turn], chosen, (count,))
    if kind == LATE_ROWS:
        one = landing.between.carrier.like(loop, number)
        return LatePlace(
            partial(landing.between.carrier.add, loop, number, chosen), (count, one.sent_width), one.sent_dtype
        )
    if kind == FED_ROWS:
        one, add = (
            landing.between.carrier.like(loop, number),
            partial(landing.between.carrier.add_fed, loop, number, int(chosen[0])),
        )
        return LatePlace(add, (turn, one.width), one.now.dtype)
    if kind == BROUGHT:
        array, index = landing.between.pulling(loop).room(loop, number, turn, chosen)
        return Place(array, index, (count, array.shape[1]))
    first, length = words.take(2)
    part = landing.memory.copies[loop][number][turn][:, first : first + length]
    return Place(part, chosen, (count, *part.shape[1:]))
