"""How much of the work of a loop is at each index of one of its dimensions: what triangles are cut by.

    for i in range(n):
        for j in range(i):

A domain is a union of basic sets { x : a·x + b ≥ 0 }. With the dimension that is cut first and the others after it,
one after the other, projection gives each of them a range between affine bounds in those before it (Ancourt & Irigoin,
"Scanning polyhedra with DO loops", 1991), and the number of points is the sum over these ranges. The sums of all but
the innermost one are taken by Simpson's rule: the number of points in them is a polynomial, of degree 1 for two further
dimensions and 2 for three, wherever the same bounds hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.cost.extents import coordinate_ranges
from orion.cost.sizes import Sizes
from orion.cost.worth import Work
from orion.dataclass import dataclass
from orion.dependence.bounds import fix_parameters
from orion.sets.coalesced import coalesced
from orion.sets.maps import Maps
from orion.sets.names import isl_name, number_of

if TYPE_CHECKING:
    import islpy as isl

Floats = NDArray[np.float64]

SAMPLES = 257
"""At how many indices of the dimension the work is counted; between them it is taken to change linearly."""

NODES = np.linspace(0.0, 1.0, 9)
SIMPSON = np.array([1, 4, 2, 4, 2, 4, 2, 4, 1]) / 24
"""Simpson's rule over four intervals: at its nodes, with these weights."""

MAX_DIMS = 5
"""Counting takes `SAMPLES · 9^(dims - 2)` steps."""


def work_along(
    domain: str, works: Sequence[Work], dim: int, span: tuple[int, int], sizes: Sizes, values: Mapping[str, int]
) -> Floats | None:
    """The relative work at so many indices, evenly spaced from the first to the last of `span`, a half-open range of
    dimension `dim`; None where it is the same at each, or not known.

    `domain` has the iterations as text of isl. `works` are the statements with the loops further in, whose first
    dimensions are those of `domain`; without any, each iteration counts as one.
    """
    maps = Maps()
    at = np.linspace(span[0], span[1] - 1, min(SAMPLES, span[1] - span[0]))
    total = np.zeros(at.size)
    for text, each in _weighed(domain, works, sizes, values, maps):
        found = points_along(fix_parameters(maps.set(text), values), dim, at)
        if found is None:
            return None
        total += each * found
    return None if np.allclose(total, total[:1]) else total


def _weighed(
    domain: str, works: Sequence[Work], sizes: Sizes, values: Mapping[str, int], maps: Maps
) -> Iterator[tuple[str, float]]:
    """The sets of instances, each with the predicted time of one."""
    if not works:
        yield domain, 1.0
    for work in works:
        ranges = coordinate_ranges(work.domain, len(work.variables), values, maps)
        known = zip(work.variables, ranges, strict=True)
        middle = {isl_name(name): sum(span) // 2 for name, span in known if span is not None}
        yield work.domain, work.nanoseconds({**values, **middle}, sizes)


def points_along(points: isl.Set, dim: int, at: Floats) -> Floats | None:
    """The number of points of a set at these values of one of its dimensions, nearly; None where there is no end to
    them, or too many dimensions. Of parameters that are not fixed, points count once for all values.

    >>> import islpy as isl
    >>> triangle = isl.Set("{ [i, j, k] : 0 <= i < 100 and 0 <= j <= i and 0 <= k < 10 }")
    >>> points_along(triangle, 0, np.array([0.0, 9.0, 99.0]))
    array([  10.,  100., 1000.])
    """
    import islpy as isl

    dims = points.dim(isl.dim_type.set)
    if dims > MAX_DIMS:
        return None
    points = points.project_out(isl.dim_type.param, 0, points.dim(isl.dim_type.param))
    total = np.zeros(at.size)
    parts: list[isl.BasicSet] = []
    coalesced(points).make_disjoint().foreach_basic_set(parts.append)
    for part in parts:
        levels = [*_levels(part, [dim, *(other for other in range(dims) if other != dim)])]
        if not all(level.lower and level.upper for level in levels):
            return None
        low, high = levels[0].range([])
        inside = (at >= low) & (at <= high)
        total += np.where(inside, _count(levels[1:], [at]), 0.0)
    return total


@dataclass(frozen=True, slots=True)
class _Level:
    """The bounds of one dimension by those before it: its value is at least each of `lower` and at most each of
    `upper`, which have a constant and a factor for each dimension before."""

    lower: tuple[tuple[float, ...], ...]
    upper: tuple[tuple[float, ...], ...]

    def range(self, before: Sequence[Floats]) -> tuple[Floats, Floats]:
        low = [sum((f * x for f, x in zip(rest, before, strict=True)), np.float64(c)) for c, *rest in self.lower]
        high = [sum((f * x for f, x in zip(rest, before, strict=True)), np.float64(c)) for c, *rest in self.upper]
        return np.maximum.reduce(np.broadcast_arrays(*low)), np.minimum.reduce(np.broadcast_arrays(*high))


def _levels(part: isl.BasicSet, order: Sequence[int]) -> Iterator[_Level]:
    """The bounds of the dimensions of a basic set, each by those before it in this order."""
    import islpy as isl

    for count in range(1, len(order) + 1):
        kept, inner = sorted(order[:count]), part
        for other in sorted(order[count:], reverse=True):
            inner = inner.project_out(isl.dim_type.set, other, 1)
        bounds: tuple[list[tuple[float, ...]], list[tuple[float, ...]]] = [], []
        for constraint in inner.remove_divs().get_constraints():
            factors = [
                float(number_of(constraint.get_coefficient_val(isl.dim_type.set, kept.index(one))))
                for one in order[:count]
            ]
            *before, own = [float(number_of(constraint.get_constant_val())), *factors]
            if own:
                bound = tuple(-one / own for one in before)
                for side in (0, 1) if constraint.is_equality() else (int(own < 0),):
                    bounds[side].append(bound)
        yield _Level(tuple(bounds[0]), tuple(bounds[1]))


def _count(levels: Sequence[_Level], before: Sequence[Floats]) -> Floats:
    """The points of the dimensions of `levels`, given those before them."""
    if not levels:
        return np.ones(before[0].shape)
    low, high = levels[0].range(before)
    size = np.maximum(high - low + 1.0, 0.0)
    if len(levels) == 1:
        return np.broadcast_to(size, before[0].shape)
    nodes = np.broadcast_to(low, before[0].shape)[..., None] + NODES * np.maximum(high - low, 0.0)[..., None]
    inside = _count(levels[1:], [*(np.broadcast_to(one[..., None], nodes.shape) for one in before), nodes])
    return size * (inside @ SIMPSON)
