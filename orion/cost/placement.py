"""Placement of arrays during a loop, and the bytes that this moves between workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from orion.cost.candidate import Candidate
from orion.dataclass import dataclass
from orion.dependence.access import Access
from orion.ir.program import LoopNest, OfNewOrder
from orion.ir.types import ArrayType, Shapes, Types
from orion.sets.maps import Maps
from orion.sets.names import number_of

if TYPE_CHECKING:
    import islpy as isl


class PlacementKind(StrEnum):
    """Place of an array: whole with every worker, in parts of one worker each, in parts that rotate among workers, or
    in one place. The nearest to its worker comes first."""

    REPLICATED = "replicated"
    PARTITIONED = "partitioned"
    ROTATED = "rotated"
    SERVED = "served"

    def __repr__(self) -> str:
        return repr(self.value)  # at a prompt it is the string


@dataclass(frozen=True, slots=True)
class Placement:
    """Placement of an array during a loop, and the bytes that it moves.

    - `array`, `is_written`: its name, and whether the loop writes it.
    - `kind`: "partitioned" (each worker has its blocks), "rotated" (blocks go from worker to worker), "replicated" (all
      read it) or "served" (it stays in one place).
    - `dim`: the axis of the array that is cut into blocks, or None.
    - `loop_dim`: the loop dimension whose blocks cut it, or None.
    - `halo`: iteration x of that dimension accesses elements x + halo[0] … x + halo[1] of `dim`.
    - `bytes_moved`: predicted bytes that one run of the loop moves between workers; None where sizes are unknown.
    """

    array: str
    kind: PlacementKind
    dim: int | None
    loop_dim: int | None
    is_written: bool
    bytes_moved: int | None
    halo: tuple[int, int] = (0, 0)

    def __repr__(self) -> str:
        along = "" if self.dim is None else f" along axis {self.dim}"
        moved = "" if self.bytes_moved is None else f", {self.bytes_moved:,} bytes moved"
        return f"<Placement: {self.array} {self.kind}{along}{moved}>"


@dataclass(frozen=True, slots=True)
class Follow:
    """Axis `axis` of an array follows loop dimension `dim`: iteration x touches x + low … x + high of it."""

    axis: int
    dim: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ArrayUse:
    """Use of an array by a loop: the axes that follow a loop dimension in every access, and whether it is written."""

    array: str
    follows: tuple[Follow, ...]
    is_written: bool


def array_uses(accesses: tuple[Access, ...], dims: int, maps: Maps) -> tuple[ArrayUse, ...]:
    """The uses of all arrays that the loop accesses, in order of first access; what follows the first `dims` of its
    dimensions."""
    uses = []
    for array in dict.fromkeys(access.array for access in accesses):
        own = [access for access in accesses if access.array == array]
        texts = dict.fromkeys(access.relation for access in own) if dims else {}
        follows = _follows([maps.once(("spans", text, dims), partial(_spans, text, dims, maps)) for text in texts])
        uses.append(ArrayUse(array, follows, any(access.is_write for access in own)))
    return tuple(uses)


Spans = Mapping[tuple[int, int], tuple[int, int] | None]
"""The least and the greatest difference of an axis and a dimension, by the two; None where it has no limits. There are
none of a relation that is empty."""


def _follows(relations: Sequence[Spans]) -> tuple[Follow, ...]:
    found = []
    for axis, dim in sorted({pair for one in relations for pair in one}):
        spans = [one[axis, dim] for one in relations if one]
        known = [span for span in spans if span is not None]
        if len(known) == len(spans):
            found.append(Follow(axis, dim, min(low for low, _ in known), max(high for _, high in known)))
    return tuple(found)


def _spans(text: str, dims: int, maps: Maps) -> Spans:
    import islpy as isl

    relation, found = maps.map(text), {}
    relation = relation.project_out(isl.dim_type.param, 0, relation.dim(isl.dim_type.param))
    for axis in range(0 if relation.is_empty() else relation.dim(isl.dim_type.out)):
        along = _only(relation, isl.dim_type.out, axis)
        for dim in range(dims):
            difference = _only(along, isl.dim_type.in_, dim).deltas()
            low, high = difference.dim_min_val(0), difference.dim_max_val(0)
            is_known = low.is_int() and high.is_int()
            found[axis, dim] = (number_of(low), number_of(high)) if is_known else None
    return found


def _only(relation: isl.Map, side: isl.dim_type, position: int) -> isl.Map:
    """The relation with one dimension of one of its sides, which has no name then."""
    count = relation.dim(side)
    relation = relation.project_out(side, position + 1, count - position - 1).project_out(side, 0, position)
    return relation.reset_tuple_id(side) if relation.has_tuple_name(side) else relation


# ---------------------------------------------------------------- placements


def placements(
    uses: tuple[ArrayUse, ...], candidate: Candidate | None, nest: LoopNest, types: Types, shapes: Shapes, workers: int
) -> tuple[Placement, ...]:
    """The placement of every array under a candidate (None: serial), the sparse array of the loop first.

    With w workers one run of the loop moves: nothing for a partitioned array but the elements that neighbouring blocks
    share; w times a rotated array (each block visits every worker and returns); w − 1 times a replicated one; 2 (w − 1)
    times one that is served (to each worker and back). A loop in another order than the written one runs on workers
    that share their memory: it moves nothing.
    """
    found = []
    if nest.elements is not None:
        dim = candidate.space if candidate else None
        found.append(Placement(nest.elements.array, PlacementKind.PARTITIONED, dim, dim, bool(nest.stored), 0))
    for use in uses:
        if isinstance(types.get(use.array), ArrayType):
            found.append(_placement(use, candidate, nest, types, shapes, workers))
    return tuple(found)


def _placement(
    use: ArrayUse, candidate: Candidate | None, nest: LoopNest, types: Types, shapes: Shapes, workers: int
) -> Placement:
    if isinstance(nest.form, OfNewOrder):
        kind = PlacementKind.SERVED if use.is_written else PlacementKind.REPLICATED
        return Placement(use.array, kind, None, None, use.is_written, 0)
    size = array_bytes(use.array, types, shapes)
    others = workers - 1

    def moved(times: int) -> int | None:
        return None if size is None else size * times

    if candidate is None:
        return Placement(use.array, PlacementKind.REPLICATED, None, None, use.is_written, moved(0))
    for follow in use.follows:
        if follow.dim == candidate.space:
            halo = (follow.low, follow.high)
            shared = None if size is None else _row_bytes(size, shapes[use.array], follow.axis)
            cost = None if shared is None else shared * (follow.high - follow.low) * others
            kind = PlacementKind.PARTITIONED
            return Placement(use.array, kind, follow.axis, follow.dim, use.is_written, cost, halo)
    for follow in use.follows:
        if follow.dim in candidate.time and follow.low == follow.high == 0:
            cost = moved(workers if workers > 1 else 0)
            return Placement(use.array, PlacementKind.ROTATED, follow.axis, follow.dim, use.is_written, cost)
    if use.is_written:
        return Placement(use.array, PlacementKind.SERVED, None, None, True, moved(2 * others))
    return Placement(use.array, PlacementKind.REPLICATED, None, None, False, moved(others))


def array_bytes(array: str, types: Types, shapes: Shapes) -> int | None:
    """The size of an array in bytes, or None where its shape is not known."""
    kind = types.get(array)
    if not isinstance(kind, ArrayType) or array not in shapes:
        return None
    return prod(shapes[array]) * np.dtype(kind.dtype).itemsize


def _row_bytes(size: int, shape: tuple[int, ...], axis: int) -> int:
    return size // max(1, shape[axis])


def cheapest(
    options: Mapping[Candidate, tuple[Placement, ...]],
    elements: bool = True,
    beside: Callable[[tuple[Placement, ...]], float] = lambda _: 0,
) -> Candidate:
    """Return the candidate that moves the fewest bytes; the first of equals. Unknown sizes count as one byte.

    `beside` gives the bytes that move before and after the loop. In a nest of ranges (not `elements`), candidates up to
    twice the fewest bytes count as equal. Of these, the one that cuts the outermost loop is best, since the innermost
    loop then stays long.
    """

    def cost(candidate: Candidate) -> float:
        inside = sum(1 if p.bytes_moved is None else p.bytes_moved for p in options[candidate])
        return inside + beside(options[candidate])

    fewest = min(map(cost, options))
    if elements:
        return next(candidate for candidate in options if cost(candidate) == fewest)
    return min((c for c in options if cost(c) <= 2 * fewest), key=lambda candidate: candidate.space)
