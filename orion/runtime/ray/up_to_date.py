"""What other nodes have of the driver's dense arrays after a run: before the next one they are sent what they lack.

A node's copy of an array is written in runs alone. The driver's array is also written by whoever holds it, so that it
is compared with what it was at the end of the last run: rows that differ are out of date on all nodes
(write-invalidate, as between caches; Hennessy and Patterson, *Computer Architecture*, chapter 5). To compare costs one
pass over the array and its image, in memory; to send it again costs a pass over the network.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.shuffled import move_rows
from orion.dataclass import dataclass
from orion.runtime.ray.cells import Cells
from orion.runtime.ray.regions import Mask, Section
from orion.runtime.ray.segments import Block
from orion.schedule.schedule import Ints

PIECE_BYTES = 1 << 18
"""Rows are compared so many bytes at a time: few enough for a core's own cache."""

MOST = 0.125
"""The part of the machine's memory that images may take."""

PARTS = 4
"""For so many programs that cut an array into different cells it is known what a node has."""

Rows = Callable[[int, int], None]
"""Is told of rows, from the first one to the one after the last."""

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def bring_up_to_date(target: NDArray[Any], source: NDArray[Any], told: Rows) -> None:
    """Copy the rows of `source` that differ from those of `target`, which is C-contiguous and of the same shape and
    dtype. `told` hears of rows before they are copied. Signal handlers have their chance in between.

    >>> a = np.arange(6.0).reshape(3, 2)
    >>> bring_up_to_date(np.zeros((3, 2)), a, lambda low, high: print(low, high))
    0 3
    >>> bring_up_to_date(a, a.copy(), lambda low, high: print(low, high))
    """
    if not source.size:
        return
    to, of = np.atleast_1d(target), np.atleast_1d(source)
    rows, size = max(1, PIECE_BYTES * len(of) // source.nbytes), source.nbytes // len(of)
    place, is_whole = to.ctypes.data, of.flags.c_contiguous
    begin = of.ctypes.data
    for low in range(0, len(of), rows):
        high = min(low + rows, len(of))
        part = of[low:high] if is_whole else np.ascontiguousarray(of[low:high])
        address = begin + low * size if is_whole else part.ctypes.data
        if _memcmp(address, place + low * size, part.nbytes):
            told(low, high)
            to[low:high] = part


@dataclass(slots=True, eq=False)
class Part:
    """The cells that a node has as they are."""

    cells: Cells
    has: Mask

    def drop_rows(self, low: int, high: int) -> None:
        """Rows are not what they were."""
        self.has.reshape(-1)[self.cells.in_rows(low, high)] = False

    def whole_rows(self, count: int) -> Mask:
        """The rows, of so many, of which the node has all cells, bool (count,); none of cells along skews."""
        cuts = self._row_cuts(count)
        whole = self.has.reshape(len(cuts) - 1, -1).all(axis=1) if len(cuts) else np.zeros(1, np.bool_)
        return np.repeat(whole, np.diff(cuts) if len(cuts) else count)

    def keep_rows(self, rows: Mask) -> None:
        """The node has these rows, bool (rows,), and no others; of cells along skews nothing is known any more."""
        cuts = self._row_cuts(len(rows))
        self.has[...] = False
        if len(cuts):
            self.has[np.logical_and.reduceat(rows, cuts[:-1])] = True

    def _row_cuts(self, count: int) -> Ints:
        """Where so many rows are cut, if they are by themselves."""
        cuts = self.cells.cuts[0] if self.cells.rank and not self.cells.skews else np.empty(0, np.int64)
        return cuts if len(cuts) > 1 and (cuts[0], cuts[-1]) == (0, count) else cuts[:0]

    def covers(self, cells: Cells) -> Mask:
        """Which of other cells of the array lie in cells that the node has, bool (*cells); of cells along skews perhaps
        not all."""
        if cells is self.cells:
            return self.has
        other, own = self.cells.inside(*cells.bounds(self.cells.skews))
        found = np.ones(cells.shape, np.bool_)
        found.reshape(-1)[other[~self.has.reshape(-1)[own]]] = False
        return found


class UpToDate:
    """The parts of blocks that nodes have, and images of arrays that somebody may write to between runs."""

    def __init__(self) -> None:
        self._parts: dict[Block, dict[str, list[Part]]] = {}
        self._images: dict[Block, NDArray[Any]] = {}
        self._changes: Counter[Block] = Counter()
        self._most = MOST * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def lacking(self, node: str, block: Block, cells: Cells, needed: Mask) -> Mask:
        """The cells, of those that a node needs, which it does not have as they are."""
        found = needed
        for part in self._parts.get(block, {}).get(node, ()):
            found = found & ~part.covers(cells)
        return found

    def look(self, block: Block, array: NDArray[Any]) -> None:
        """Before nodes are filled: compare an array of the driver's with its image. The first time an image is made,
        where there is room for it: what changes while nodes are filled and a run is under way differs from it later."""
        image = self._images.get(block)
        if image is not None:
            bring_up_to_date(image, array, lambda low, high: self.differs(block, low, high))
        elif sum(one.nbytes for one in self._images.values()) + array.nbytes <= self._most:
            self._images[block] = array.copy()

    def image(self, block: Block) -> NDArray[Any] | None:
        """An array as nodes have it, in the shape of its storage; None where there is no image."""
        return self._images.get(block)

    def changes(self, block: Block) -> int:
        """How often the image of an array has become another one, at least, or may have."""
        return self._changes[block]

    def rows_of(self, node: str, block: Block, count: int) -> Mask:
        """The rows, of so many, that a node has as they are, bool (count,)."""
        return _rows_of(self._parts.get(block, {}).get(node, ()), count)

    def shuffled(self, block: Block, order: Ints, nodes: Iterable[str]) -> dict[str, Mask]:
        """Before `look`: the rows of an array were put into another order since the last run, and its image is put
        into it here. Given back are, for each of these nodes that has some, the rows that it had, bool (rows,): of the
        same ones it is known to be up to date from now on, once it has put them in order (`Reordered`) and been sent
        those that it did not have. Nothing is known of any other node, nor of any where there is no image."""
        image, known = self._images.pop(block, None), self._parts.pop(block, {})  # half-way there is neither
        self._changes[block] += 1
        if image is None:
            return {}
        move_rows(image, order, 0)
        parts = {node: known[node] for node in nodes if node in known}
        had = {node: _rows_of(own, len(image)) for node, own in parts.items()}
        had = {node: rows for node, rows in had.items() if rows.any()}
        for node, rows in had.items():
            for part in parts[node]:
                part.keep_rows(rows)
        self._parts[block] = {node: parts[node] for node in had}
        self._images[block] = image
        return had

    def differs(self, block: Block, low: int, high: int) -> None:
        """Rows of a block are no longer what they were at the end of the last run."""
        self._changes[block] += 1
        for parts in self._parts.get(block, {}).values():
            for part in parts:
                part.drop_rows(low, high)

    def written(self, block: Block) -> None:
        """A run begins that writes a block: should it fail, nobody knows what nodes have."""
        self._parts.pop(block, None)
        self._changes[block] += 1

    def keep(self, block: Block, cells: Cells, has: Mapping[str, Mask]) -> None:
        """A run has ended well, after which nodes have these cells, as the driver does. What is known of an array that
        nobody but the runtime writes to needs no more than this; for others see `keep_image`."""
        known = self._parts.setdefault(block, {})
        for node, mask in has.items():
            parts = known.setdefault(node, [])
            parts[:] = [Part(cells, np.array(mask)), *(part for part in parts if part.cells is not cells)][:PARTS]

    def keep_image(self, block: Block, array: NDArray[Any], written: Iterable[Section]) -> bool:
        """After a run: bring the image of an array up to date where the run wrote, and nowhere else, as somebody else
        may have written there meanwhile. False where there is no image: nothing is known of the array then."""
        image = self._images.get(block)
        if image is None:
            self._parts.pop(block, None)
            return False
        for section in written:
            section.put(image, section.of(array))
        return True

    def forget(self, segments: Iterable[int]) -> None:
        """Segments that are gone."""
        gone = set(segments)
        for block in [block for block in {*self._parts, *self._images} if block.segment in gone]:
            self._parts.pop(block, None)
            self._images.pop(block, None)
            self._changes.pop(block, None)


def _rows_of(parts: Iterable[Part], count: int) -> Mask:
    """The rows, of so many, of which all cells are in one of some parts, bool (count,)."""
    found = np.zeros(count, np.bool_)
    for part in parts:
        found |= part.whole_rows(count)
    return found
