"""How large the tiles are that the loops of a band are run in, from the sizes of caches and of what a tile uses.

An access with subscripts of coefficients v_rk in the coordinates k of a band, in tiles of T_k, goes to

    Π_r (1 + Σ_k |v_rk| (T_k − 1))

elements, r being the axes of the array: it does not grow with a coordinate that no subscript has. Accesses to one array
with the same coefficients go to the same elements, but for a few at the edges. A tile's footprint is the bytes of all
that; loops further in than the band are not counted, as their trips are not known. (Wolf and Lam 1991, *A data locality
optimizing algorithm*, section 4.)

The innermost loop of a tile makes ROW bytes of trips, the others all the same power of two, the largest with which the
footprint is at most SHARE of the second-level cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from orion.cost.caches import Caches
from orion.cost.strides import Matrix, order_matrix
from orion.dataclass import dataclass
from orion.dependence.region import Region
from orion.ir.types import ArrayType, Types

if TYPE_CHECKING:
    import islpy as isl

ROW = 4096
"""Bytes along the innermost loop of a tile: a page, at whose end the processor stops fetching ahead."""

SHARE = 0.75
"""The part of the second-level cache that a tile may use: the rest is for what lies between its elements, and for the
tiles before and after it."""

FEWEST, MOST = 8, 128
"""Trips of the loops of a tile, but for the innermost."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What tile sizes depend on: the caches, and the bytes of an element of each array."""

    caches: Caches
    itemsizes: tuple[tuple[str, int], ...]

    def itemsize(self, array: str) -> int:
        return dict(self.itemsizes).get(array, 8)


def memory_of(types: Types, caches: Caches) -> Memory:
    """The memory that arrays of these types are in."""
    found = [(name, np.dtype(kind.dtype).itemsize) for name, kind in types.items() if isinstance(kind, ArrayType)]
    return Memory(caches, tuple(found))


def tile_sizes(node: isl.ScheduleNode, region: Region, memory: Memory) -> tuple[int, ...]:
    """The trips per tile of each member of a band, from the outermost on."""
    dims = node.band_n_member()
    moves: dict[str, list[Matrix]] = {}
    for statement in region.statements:
        order = order_matrix(node, statement)
        if order is not None:
            inverse = np.linalg.pinv(order)[:, order.shape[0] - dims :]
            for array, _, subscripts in statement.subscripts:
                found = np.round(subscripts @ inverse, 6)
                if not any(np.array_equal(found, other) for other in moves.setdefault(array, [])):
                    moves[array].append(found)
    accesses = [(matrix, memory.itemsize(array)) for array, matrices in moves.items() for matrix in matrices]
    return fitted_sizes(accesses, dims, memory.caches)


def fitted_sizes(accesses: Iterable[tuple[Matrix, int]], dims: int, caches: Caches) -> tuple[int, ...]:
    """The trips per tile of each of `dims` loops. `accesses` have the coefficients of their subscripts in the loops,
    and the bytes of an element.

    >>> C, A, B = (np.eye(3)[[0, 2]], np.eye(3)[[0, 1]], np.eye(3)[[1, 2]])  # C[i, j] += A[i, k] * B[k, j]
    >>> fitted_sizes([(C, 8), (A, 8), (B, 8)], 3, Caches(second=2**20))
    (64, 64, 512)
    """
    accesses = tuple(accesses)
    along = [size for matrix, size in accesses if matrix[:, -1].any()]
    row = ROW // max(along, default=8)
    while True:
        trips = MOST
        while trips > FEWEST and footprint(accesses, (*[trips] * (dims - 1), row)) > SHARE * caches.second:
            trips //= 2
        sizes = (*[trips] * (dims - 1), row)
        if row <= FEWEST or footprint(accesses, sizes) <= SHARE * caches.second:
            return sizes
        row //= 2


def footprint(accesses: Iterable[tuple[Matrix, int]], sizes: Sequence[int]) -> float:
    """The bytes that a tile of these sizes uses.

    >>> footprint([(np.eye(2), 8), (np.eye(2)[:1], 4)], (16, 32))
    4160.0
    """
    steps = np.array(sizes, np.float64) - 1
    return float(sum(size * prod((1 + np.abs(matrix) @ steps).tolist()) for matrix, size in accesses))
