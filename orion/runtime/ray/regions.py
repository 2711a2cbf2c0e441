"""Parts of dense arrays, as boxes and as cells between cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.schedule.schedule import Ints

Mask = NDArray[np.bool_]

CUT_AT_EACH = 1 << 18
"""Arrays are not cut at each element where they would have more cells than this."""

Box = tuple[tuple[int, int], ...]
"""The elements whose index along axis k is in `box[k][0]` … `box[k][1]` - 1; all of further axes."""


def part_of(array: NDArray[Any], box: Box) -> NDArray[Any]:
    """The part of an array in a box, as a view.

    >>> part_of(np.arange(12).reshape(3, 4), ((1, 3), (0, 2))).tolist()
    [[4, 5], [8, 9]]
    """
    inside: tuple[Any, ...] = tuple(slice(low, high) for low, high in box)
    return array[(*inside, ...)]  # of an array without axes too a view


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """The part of a dense array in a box."""

    array: str
    box: Box = ()

    def of(self, memory: NDArray[Any]) -> NDArray[Any]:
        """This part of the array, as a view."""
        return part_of(memory, self.box)

    def elements(self, shape: tuple[int, ...]) -> int:
        """The number of elements of an array of this shape that are in it."""
        lengths = [high - low for low, high in self.box]
        return int(np.prod([*lengths, *shape[len(lengths) :]], dtype=np.int64))


@dataclass(frozen=True)
class Cells:
    """An array cut along each axis: cell (c0, c1, …) has the elements from `cuts[k][ck]` to `cuts[k][ck + 1]` of axis
    k. No box that matters begins or ends inside of a cell."""

    array: str
    cuts: tuple[Ints, ...]

    @staticmethod
    def around(
        array: str, shape: tuple[int, ...], boxes: Iterable[tuple[Ints, Ints]], varying: Iterable[int] = ()
    ) -> Cells:
        """The cells of an array for boxes: (low, high), each int64 (…, axes). Along axes that are `varying` the array
        is cut at each element, as far as there are not more than `CUT_AT_EACH` then."""
        edges = [np.array([[0] * len(shape), shape], np.int64)]
        edges += [edge.reshape(-1, len(shape)) for pair in boxes for edge in pair]
        joined = np.concatenate(edges)
        cuts = [np.unique(joined[:, axis]) for axis in range(len(shape))]
        for axis in sorted(varying):
            others = prod(len(own) for other, own in enumerate(cuts) if other != axis)
            if others * shape[axis] <= CUT_AT_EACH:
                cuts[axis] = np.arange(shape[axis] + 1)
        return Cells(array, tuple(cuts))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(max(0, len(cuts) - 1) for cuts in self.cuts)

    def none(self, *leading: int) -> Mask:
        """No cell of the array."""
        return np.zeros((*leading, *self.shape), np.bool_)

    def places(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """First and one past last cell of boxes along each axis, for boxes as in `around`; all cells that a box has a
        part of."""
        first, end = np.empty_like(low), np.empty_like(high)
        for axis, cuts in enumerate(self.cuts):
            first[..., axis] = np.searchsorted(cuts, low[..., axis], "right") - 1
            end[..., axis] = np.searchsorted(cuts, high[..., axis])
        return first, end

    def regions(self, mask: Mask) -> tuple[Region, ...]:
        """Cells as regions, none of which overlap."""
        return tuple(
            Region(self.array, tuple((int(cuts[a]), int(cuts[b])) for cuts, (a, b) in zip(self.cuts, box, strict=True)))
            for box in _boxes(mask)
        )


def _boxes(mask: Mask) -> Iterator[Box]:
    """The true places of a mask as boxes: along the first axis, places with the same further ones are joined.

    >>> list(_boxes(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)))
    [((0, 2), (0, 2)), ((2, 3), (2, 3))]
    """
    if not mask.any():
        return
    if mask.ndim == 0:
        yield ()
        return
    start = 0
    for _, alike in groupby(mask, key=lambda part: part.tobytes()):
        end = start + sum(1 for _ in alike)
        for box in _boxes(mask[start]):
            yield ((start, end), *box)
        start = end
