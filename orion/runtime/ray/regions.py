"""Parts of dense arrays: boxes, boxes that lean, and scattered elements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from orion.dataclass import dataclass

Mask = NDArray[np.bool_]

Box = tuple[tuple[int, int], ...]
"""The elements whose index along axis k is in `box[k][0]` … `box[k][1]` - 1; all of further axes."""

Lean = tuple[int, int, int]
"""(axis, along, factor): the range of a box along `axis` is that for index 0 along `along`, and is moved by `factor`
with each step there."""


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """The part of a dense array in a box, which may lean.

    >>> band = Region("A", ((1, 4), (-1, 1)), (1, 0, 1))  # rows 1 to 3, in row i the columns i - 1 and i
    >>> band.of(np.arange(20).reshape(4, 5)).tolist()
    [[5, 6], [11, 12], [17, 18]]
    """

    array: str
    box: Box = ()
    lean: Lean | None = None

    def of(self, memory: NDArray[Any]) -> NDArray[Any]:
        """This part of the array, as a view."""
        if self.lean is None:
            inside: tuple[Any, ...] = tuple(slice(low, high) for low, high in self.box)
            return memory[(*inside, ...)]  # of an array without axes too a view
        axis, along, factor = self.lean
        begin = [low for low, _ in self.box]
        begin[axis] += factor * begin[along]
        strides = list(memory.strides)
        strides[along] += factor * strides[axis]
        shape = [high - low for low, high in self.box] + list(memory.shape[len(self.box) :])
        return as_strided(memory[tuple(slice(low, None) for low in begin)], shape, strides)

    def put(self, memory: NDArray[Any], data: NDArray[Any]) -> None:
        """Give this part of the array other contents."""
        self.of(memory)[...] = data

    def elements(self, shape: tuple[int, ...]) -> int:
        """The number of elements of an array of this shape that are in it."""
        lengths = [high - low for low, high in self.box]
        return int(np.prod([*lengths, *shape[len(lengths) :]], dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Scattered:
    """The elements of a dense array at `places`, indices along its first axes; all of further axes.

    >>> some = Scattered("A", (np.array([3, 0]),))
    >>> some.of(np.arange(12).reshape(4, 3)).tolist()
    [[9, 10, 11], [0, 1, 2]]
    """

    array: str
    places: tuple[NDArray[np.int32], ...]

    def of(self, memory: NDArray[Any]) -> NDArray[Any]:
        """These elements of the array, copied."""
        return memory[self.places]

    def put(self, memory: NDArray[Any], data: NDArray[Any]) -> None:
        """Give these elements other contents."""
        memory[self.places] = data

    def elements(self, shape: tuple[int, ...]) -> int:
        """The number of elements of an array of this shape that they are."""
        return int(np.prod([len(self.places[0]), *shape[len(self.places) :]], dtype=np.int64))


Section = Region | Scattered
"""A part of a dense array."""


def boxes_of(mask: Mask) -> Iterator[Box]:
    """The true places of a mask as boxes: along the first axis, places with the same further ones are joined.

    >>> list(boxes_of(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], bool)))
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
        for box in boxes_of(mask[start]):
            yield ((start, end), *box)
        start = end


def joined(boxes: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    """Boxes, int64 (boxes, axes, 2), at least one, with those joined that go on from each other along an axis.

    >>> joined(np.array([[[4, 6], [0, 2]], [[1, 4], [0, 2]], [[6, 7], [0, 3]]]), 0).tolist()
    [[[1, 6], [0, 2]], [[6, 7], [0, 3]]]
    """
    others = np.delete(boxes, axis, axis=1).reshape(len(boxes), -1)
    order = np.lexsort((boxes[:, axis, 0], *others.T))
    boxes, others = boxes[order], others[order]
    goes_on = (others[1:] == others[:-1]).all(axis=1) & (boxes[1:, axis, 0] == boxes[:-1, axis, 1])
    starts = np.flatnonzero(np.append(True, ~goes_on))
    found = boxes[starts]
    found[:, axis, 1] = boxes[np.append(starts[1:], len(boxes)) - 1, axis, 1]
    return found
