"""Dense arrays cut into cells: the parts of an array that are told apart when it is worked out what goes where.

Boxes of elements have ranges along the axes of an array and, as the tiles of rounds and space have slanting sides,
along skews of these: the numbers Σ f_k · e_k of elements e for some whole factors f, such as j - i. An array is cut
where any such range begins or ends, so that each box is made of whole cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.runtime.ray.regions import Mask, Region, Scattered, Section, boxes_of, joined
from orion.schedule.distinct import distinct
from orion.schedule.footprints import Skew, with_skews
from orion.schedule.schedule import Ints

CUT_AT_EACH = 1 << 18
"""Arrays are not cut at each element where they would have more cells than this."""

MOST_BOXES, SMALL = 16, 64
"""More boxes than that, which have fewer elements on average (of rows, where the array is not cut along its last axes),
are sent element by element: what a box takes beside its contents is much more than what an element does."""


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Cells that have the same ranges along a skew and along all axes but the last that the skew depends on.

    `of` is the number of the column of each cell, `size` how many cells a column has; -1 for one of which a part would
    be outside of the array."""

    of: Ints
    size: Ints


@dataclass(frozen=True)
class Cells:
    """An array cut along each axis, and along each of some skews: `cuts[k]` are the cuts along axis k, those along
    skews after these. No box that matters begins or ends inside of a cell.

    Cells are numbered. Where there are no skews that is the order of C, and masks of cells have the shape of the grid
    of the cuts; otherwise they have one axis, as most corners of such a grid have no elements.
    """

    array: str
    cuts: tuple[Ints, ...]
    skews: tuple[Skew, ...]

    @staticmethod
    def around(
        array: str,
        shape: tuple[int, ...],
        boxes: Iterable[tuple[Ints, Ints]],
        varying: Iterable[int],
        skews: tuple[Skew, ...],
    ) -> Cells:
        """The cells of an array for boxes: (low, high), each int64 (…, axes and skews). Along axes that are `varying`
        the array is cut at each element, as far as there are not more than `CUT_AT_EACH` then."""
        edges = [*with_skews(np.zeros((1, len(shape)), np.int64), np.array([shape], np.int64), skews)]
        edges += [edge for low, high in boxes for edge in (low[(low < high).all(-1)], high[(low < high).all(-1)])]
        joined_edges = np.concatenate(edges)
        cuts = [distinct(own) for own in joined_edges.T]
        for axis in sorted(varying):
            others = prod(len(own) for other, own in enumerate(cuts[: len(shape)]) if other != axis)
            if others * shape[axis] <= CUT_AT_EACH:
                cuts[axis] = np.arange(shape[axis] + 1)
        return Cells(array, tuple(cuts), skews)

    @property
    def rank(self) -> int:
        """The number of axes of the array."""
        return len(self.cuts) - len(self.skews)

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """The number of ranges along each axis and each skew."""
        return tuple(max(0, len(cuts) - 1) for cuts in self.cuts)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """That of masks of cells."""
        return (len(self._columns),) if self.skews else self.grid

    @property
    def count(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    def is_more_than(self, most: int) -> bool:
        """Whether there are more cells than that."""
        boxes = prod(self.grid[: self.rank])
        if boxes > most or not self.skews:
            return boxes > most
        found, count = self._grid_of_axes(), np.ones(boxes, np.int64)
        for number in range(len(self.skews)):
            first, end = self._ranges(number, found)
            count *= end - first
        return int(count.sum()) > most

    def none(self, *leading: int) -> Mask:
        """No cell of the array."""
        return np.zeros((*leading, *self.shape), np.bool_)

    def in_rows(self, low: int, high: int) -> Ints:
        """The numbers of the cells that have elements in rows of the array; an array without axes is one row."""
        if not self.rank:
            return np.arange(self.count)
        first, end = np.searchsorted(self.cuts[0], low, "right") - 1, np.searchsorted(self.cuts[0], high)
        return np.flatnonzero((self._columns[:, 0] >= first) & (self._columns[:, 0] < end))

    def bounds(self, skews: Sequence[Skew]) -> tuple[Ints, Ints]:
        """All cells as boxes along the axes and some skews, (cells, axes and skews) each."""
        low, high = with_skews(*self._of_axes(self._columns), skews)
        for place, skew in enumerate(skews, start=self.rank):
            if skew in self.skews:
                own = self.rank + self.skews.index(skew)
                at = self._columns[:, own]
                low[:, place] = np.maximum(low[:, place], self.cuts[own][at])
                high[:, place] = np.minimum(high[:, place], self.cuts[own][at + 1])
        return low, high

    # ------------------------------------------------------------ boxes as cells

    def places(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """First and one past last range of boxes along each axis and skew, for boxes as in `around`; all that a box has
        a part of."""
        first, end = np.empty_like(low), np.empty_like(high)
        for axis, cuts in enumerate(self.cuts):
            first[..., axis] = np.searchsorted(cuts, low[..., axis], "right") - 1
            end[..., axis] = np.searchsorted(cuts, high[..., axis])
        return first, end

    def inside(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """(boxes, cells): which cells are in which of some boxes, (boxes, axes and skews) each, in the order of the
        boxes."""
        first, end = self.places(low, high)
        order = self._order
        if not order:  # an array without axes is one cell
            return np.arange(len(low)), np.zeros(len(low), np.int64)
        end[(low >= high).any(axis=1)] = 0
        lead, inner = (order[0], order[1]) if len(order) > 1 else (None, order[0])
        box = np.arange(len(first))
        if lead is None:
            key = np.zeros(len(first), np.int64)
        else:
            box, key = ramps(first[:, lead], end[:, lead])
            key *= self.grid[inner]
        box_again, cell = ramps(
            self._starts[key + first[box, inner]], self._starts[key + np.maximum(first[box, inner], end[box, inner])]
        )
        box = box[box_again]
        for axis in order[2:]:
            place = self._columns[cell, axis]
            keep = (place >= first[box, axis]) & (place < end[box, axis])
            box, cell = box[keep], cell[keep]
        return box, cell

    def window(self, low: Ints, high: Ints) -> tuple[slice | Ints, ...]:
        """The cells of one box, as an index of masks."""
        if self.skews:
            return (self.inside(low[None], high[None])[1],)
        first, end = self.places(low, high)
        return tuple(map(slice, first.tolist(), end.tolist()))

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The axes and skews in the order by which cells are numbered: skews first, as the cells of a tile along one
        value of a skew lie in a row."""
        return (*range(self.rank, len(self.cuts)), *range(self.rank))

    @cached_property
    def _columns(self) -> NDArray[np.int32]:
        """The ranges, along each axis and each skew, that each cell is in."""
        found = self._grid_of_axes()
        for number in range(len(self.skews)):
            first, end = self._ranges(number, found)
            cell, place = ramps(first, end)
            found = np.hstack([found[cell], place[:, None].astype(np.int32)])
        return found[np.lexsort([found[:, axis] for axis in reversed(self._order)])] if self.skews else found

    @cached_property
    def _starts(self) -> Ints:
        """The number of the first cell for each pair of ranges of the first two in the order, one after the other."""
        lead, inner = self._order[0], self._order[1 % len(self._order)]
        key = self._columns[:, inner].astype(np.int64)
        if lead != inner:
            key += self._columns[:, lead] * np.int64(self.grid[inner])
        count = self.grid[inner] * (self.grid[lead] if lead != inner else 1)
        return np.searchsorted(key, np.arange(count + 1)).astype(np.int64)

    def _grid_of_axes(self) -> NDArray[np.int32]:
        grid = self.grid[: self.rank]
        return np.indices(grid, np.int32).reshape(self.rank, prod(grid)).T

    def _ranges(self, number: int, columns: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """First and one past last range along a skew of the boxes in some ranges along axes."""
        low, high = self._of_axes(columns)
        least, greatest = (one[:, -1] for one in with_skews(low, high, (self.skews[number],)))
        cuts = self.cuts[self.rank + number]
        return np.searchsorted(cuts, least, "right") - 1, np.searchsorted(cuts, greatest)

    def _of_axes(self, columns: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """The boxes of elements in some ranges along axes."""
        low, high = np.empty((2, len(columns), self.rank), np.int64)
        for axis, (cuts, place) in enumerate(zip(self.cuts, columns.T[: self.rank], strict=False)):
            low[:, axis], high[:, axis] = cuts[place], cuts[place + 1]
        return low, high

    # ------------------------------------------------------------ cells as sections

    def regions(self, mask: Mask) -> tuple[Section, ...]:
        """Cells as sections of the array, none of which overlap."""
        return self.regions_of(np.flatnonzero(mask))

    def regions_of(self, cells: Ints) -> tuple[Section, ...]:
        """As `regions`, for the numbers of cells."""
        if not cells.size:
            return ()
        if self.skews:
            leaning, others = self._leaning(cells)
            return (*leaning, *self._rows(others))
        boxes = np.stack(self._of_axes(self._columns[cells]), axis=2)
        for axis in reversed(range(self.rank)):
            boxes = joined(boxes, axis)
        if len(boxes) > MOST_BOXES and (boxes[:, :, 1] - boxes[:, :, 0])[:, self._cut].prod(axis=1).mean() < SMALL:
            return (self._scattered(boxes),)
        return tuple(Region(self.array, tuple(map(tuple, box))) for box in boxes.tolist())

    @cached_property
    def _cut(self) -> list[int]:
        """The axes up to the last one along which the array is cut."""
        return [*range(max((axis + 1 for axis in range(self.rank) if self.grid[axis] > 1), default=0))]

    def _scattered(self, boxes: Ints) -> Scattered:
        """The elements of boxes, one by one."""
        for axis in self._cut:
            box, place = ramps(boxes[:, axis, 0], boxes[:, axis, 1])
            boxes = boxes[box]
            boxes[:, axis, 0] = place
        return Scattered(self.array, tuple(boxes[:, axis, 0].astype(np.int32) for axis in self._cut))

    def _box(self, axes: Sequence[int], box: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        return tuple((int(self.cuts[axis][a]), int(self.cuts[axis][b])) for axis, (a, b) in zip(axes, box, strict=True))

    def _leaning(self, cells: Ints) -> tuple[list[Region], Ints]:
        """Regions that lean, for columns of cells that are there from one end to the other, and the other cells."""
        if len(self.skews) > 1 or self._last_factor != 1:
            return [], cells
        (skew,), columns = self.skews, self._columns_along
        along, last = (axis for axis, factor in enumerate(skew) if factor)
        number = columns.of[cells]
        taken = (columns.size == np.bincount(number, minlength=len(columns.size)))[number]
        axes = [self.rank, *(axis for axis in range(self.rank) if axis != last)]
        regions = []
        for box in _boxes_among(self._columns[cells[taken]][:, axes]):
            of_skew, *others = self._box(axes, box)
            others.insert(last, of_skew)
            regions.append(Region(self.array, tuple(others), (last, along, -skew[along])))
        return regions, cells[~taken]

    @property
    def _last_factor(self) -> int:
        return [factor for factor in self.skews[0] if factor][-1]

    @cached_property
    def _columns_along(self) -> _Columns:
        """The columns of cells of an array with one skew."""
        (skew,) = self.skews
        along, last = (axis for axis, factor in enumerate(skew) if factor)
        axes = [axis for axis in range(len(self.cuts)) if axis != last]
        of = np.ravel_multi_index(tuple(self._columns[:, axes].T), [self.grid[axis] for axis in axes])
        _, first, of, size = np.unique(of, return_index=True, return_inverse=True, return_counts=True)
        column = self._columns[first]
        rows, values = (
            (self.cuts[axis][column[:, axis]], self.cuts[axis][column[:, axis] + 1] - 1) for axis in (along, self.rank)
        )
        corners = [value - skew[along] * row for row in rows for value in values]
        outside = (np.minimum.reduce(corners) < 0) | (np.maximum.reduce(corners) >= self.cuts[last][-1])
        return _Columns(of, np.where(outside, -1, size))

    def _rows(self, cells: Ints) -> Iterator[Region]:
        """Cells as boxes, row by row."""
        columns = self._columns[cells]
        boxes = np.stack(self._of_axes(columns), axis=2)
        *stepped, last = sorted({axis for skew in self.skews for axis, factor in enumerate(skew) if factor})
        for axis in stepped:
            row, index = ramps(boxes[:, axis, 0], boxes[:, axis, 1])
            boxes, columns = boxes[row], columns[row]
            boxes[:, axis] = index[:, None] + np.array([0, 1])
        for number, skew in enumerate(self.skews, start=self.rank):
            cuts, place = self.cuts[number], columns[:, number]
            rest = boxes[:, :, 0] @ np.where(np.arange(self.rank) == last, 0, skew)
            low, high = cuts[place] - rest, cuts[place + 1] - rest
            if skew[last]:
                low, high = -(-low // skew[last]), -(-high // skew[last])
                boxes[:, last, 0] = np.maximum(boxes[:, last, 0], low)
                boxes[:, last, 1] = np.minimum(boxes[:, last, 1], high)
            else:
                boxes[(low > 0) | (high <= 0), last, 1] = boxes[(low > 0) | (high <= 0), last, 0]
        boxes = boxes[boxes[:, last, 0] < boxes[:, last, 1]]
        for axis in (last, *reversed(stepped)) if len(boxes) else ():
            boxes = joined(boxes, axis)
        for box in boxes.tolist():
            yield Region(self.array, tuple(map(tuple, box)))


def ramps(first: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All numbers from `first[k]` to `end[k]` - 1, for one k after the other: (k of each, the numbers).

    >>> [part.tolist() for part in ramps(np.array([3, 0, 7]), np.array([5, 0, 8]))]
    [[0, 0, 2], [3, 4, 7]]
    """
    counts = np.maximum(end - first, 0)
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - (np.cumsum(counts) - counts - first)[which]


def _boxes_among(places: NDArray[np.int32]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Places of a grid as boxes."""
    if not len(places):
        return
    base = places.min(axis=0)
    mask = np.zeros(places.max(axis=0) - base + 1, np.bool_)
    mask[tuple((places - base).T)] = True
    for box in boxes_of(mask):
        yield tuple((int(low + start), int(high + start)) for (low, high), start in zip(box, base, strict=True))
