"""Deliveries as bytes: a few integers, then the contents of arrays as they lie in memory. Nothing is pickled.

What integers say is which flags, which boxes of which arrays, which results: the types and places of all of them are
those of the run, which both ends know. So a receiver knows where each byte belongs before it reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.runtime.ray.inbox import Landing
from orion.runtime.ray.orders import CopiedParts, Delivery, Flag, Results
from orion.runtime.ray.regions import part_of
from orion.schedule.schedule import Ints

HEADER_WORDS = 5
"""Run, sender, number, words of the table of contents, bytes of the contents."""

RESULTS, COPIED_PARTS = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where the contents of an array go: they are read into `data`, which is the part of `array` itself where that is
    contiguous, and else memory of its own, from which they are then copied to `array[index]`."""

    array: NDArray[Any]
    index: Any
    data: NDArray[Any]

    def fill(self) -> None:
        """Copy what was read to where it belongs, where it is not there."""
        if self.data is not self.array:
            self.array[self.index] = self.data


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a delivery brings, and where it goes."""

    places: tuple[Place, ...]
    flags: tuple[Flag, ...]

    @property
    def nbytes(self) -> int:
        """The bytes to be read."""
        return sum(place.data.nbytes for place in self.places)


def as_bytes(array: NDArray[Any]) -> memoryview:
    """The memory of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def packed(delivery: Delivery, arrays: Sequence[str]) -> list[memoryview]:
    """A delivery as parts of memory to be sent one after the other. Contents that are contiguous are not copied: they
    must not change until they are sent. `arrays` are the arrays of the run, in an order that the other end knows."""
    flags = [(flag.loop, flag.tile, flag.round) for flag in delivery.flags]
    boxes = [
        (arrays.index(piece.region.array), len(piece.region.box), *chain.from_iterable(piece.region.box))
        for piece in delivery.pieces
    ]
    results = [_words(found) for found in delivery.results]
    counts = len(flags), len(boxes), len(results)
    table = [*counts, *chain.from_iterable(chain(flags, boxes, results))]
    contents = [piece.data for piece in delivery.pieces] + [found.values for found in delivery.results]
    views = [as_bytes(np.ascontiguousarray(one)) for one in contents if one.nbytes]
    size = sum(len(view) for view in views)
    words = np.array([delivery.run, delivery.sender, delivery.number, len(table), size, *table], np.int64)
    return [as_bytes(words), *views]


def _words(found: Results | CopiedParts) -> list[int]:
    match found:
        case Results(loop, output, turn, tiles, _):
            return [RESULTS, loop, output, turn, len(tiles), *tiles.tolist()]
        case CopiedParts(loop, copy, turn, blocks, first, values):
            return [COPIED_PARTS, loop, copy, turn, len(blocks), *blocks.tolist(), first, values.shape[1]]


class _Words:
    """Integers that are taken one after the other."""

    def __init__(self, words: Ints) -> None:
        self._words, self._at = words.tolist(), 0

    def take(self, count: int) -> list[int]:
        """The next ones."""
        self._at += count
        return list(self._words[self._at - count : self._at])


def unpacked(table: Ints, landing: Landing) -> Contents:
    """What a table of contents says."""
    words = _Words(table)
    flags, pieces, results = words.take(3)
    found = tuple(Flag(*words.take(3)) for _ in range(flags))
    names = sorted(landing.arrays)
    places = [_box(words, landing, names) for _ in range(pieces)]
    places += [_results(words, landing) for _ in range(results)]
    return Contents(tuple(places), found)


def _box(words: _Words, landing: Landing, names: Sequence[str]) -> Place:
    array, axes = words.take(2)
    bounds = words.take(2 * axes)
    part = part_of(landing.arrays[names[array]], tuple(zip(bounds[::2], bounds[1::2], strict=True)))
    return Place(part, ..., part if part.flags.c_contiguous else np.empty(part.shape, part.dtype))


def _results(words: _Words, landing: Landing) -> Place:
    kind, loop, number, turn, count = words.take(5)
    chosen = np.array(words.take(count), np.int64)
    if kind == RESULTS:
        array = landing.memory.outputs[loop][number][turn]
        return Place(array, chosen, np.empty(count, array.dtype))
    first, length = words.take(2)
    copies = landing.memory.copies[loop][number][turn]
    part = copies[:, first : first + length]
    return Place(part, chosen, np.empty((count, *part.shape[1:]), part.dtype))
