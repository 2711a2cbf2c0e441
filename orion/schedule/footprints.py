"""Which elements of its arrays each tile of a loop touches, as boxes: what must be where it runs.

A tile is a box of iterations. For an access x → e the elements of a tile lie between the least and greatest values of
affine forms over the box (`orion.sets.box_forms`). Where a coordinate appears in the forms of two axes, as that of
rounds does in tiles of rounds and space, the tile lies aslant, between two values of a skew of the axes from which that
coordinate is gone: of j - i where i and j are s - t and u - t. With bounds of these that is what a projection along the
coordinate leaves (Fourier and Motzkin; exact where factors are 1 or -1). Boxes have all elements that a tile touches,
and may have more: what is not affine, or depends on numbers that are not known, has the whole array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, product
from math import gcd, prod
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from orion.dataclass import dataclass, replace
from orion.dependence.conflicts import CapReached, capped
from orion.ir.nodes import Subscript, every
from orion.ir.types import Shapes
from orion.plan.plan import Fill as Filling
from orion.plan.plan import Fused, Inspected, LoopPlan, Member, Reordered, Single, Tiles, Written
from orion.schedule.distinct import distinct
from orion.schedule.schedule import Ints, Schedule
from orion.sets.box_forms import AxisForms, BoxForms, LinearForm, box_forms
from orion.sets.names import extent_name

if TYPE_CHECKING:
    import islpy as isl

Skew = tuple[int, ...]
"""The factors f of a number Σ f_k · e_k of an element e of an array."""

FAR = 1 << 40
"""Bounds of blocks that are farther from 0 say nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """What tiles touch of an array, in boxes: tile t nothing but the elements e with `low[k]` ≤ (e, skews of e) <
    `high[k]` for some k with `tile[k]` = t. Shapes: `tile`, ascending, int64 (boxes,), `low` and `high` (boxes, axes
    and skews). An empty box has a `high` that is not above its `low`."""

    array: str
    is_write: bool
    tile: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True, slots=True)
class Accessed:
    """One access of a loop to an array, as boxes over the coordinates of an iteration and, after these, the scalars
    that are given to the loop; None: all of the array."""

    array: str
    is_write: bool
    forms: BoxForms | None


@dataclass(frozen=True, slots=True)
class LoopAccesses:
    """All accesses of a loop that is cut into `tiles`, to the arrays of `shapes`: those that it adds to by copies are
    not among them, nor those whose accesses an inspector has listed.

    `given` are the names, in isl, of scalars that it is given when it begins. Arrays that are `private` are those of
    which each tile has its own, but for the last one, which has the array itself. `read` is what tiles read of arrays
    of which that was listed (`orion.runtime.ray.announced`).
    """

    accesses: tuple[Accessed, ...]
    given: tuple[str, ...]
    private: frozenset[str]
    shapes: Shapes
    tiles: Tiles
    read: tuple[Footprint, ...]

    def varying(self, dims: int) -> frozenset[tuple[str, int]]:
        """The axes, (array, axis), along which what is touched depends on the scalars; `dims` is the number of the
        loop's dimensions. Of an inspected loop none: its tiles are taken to touch in one round what they do in all."""
        if isinstance(self.tiles, Inspected):
            return frozenset()
        return frozenset(
            (one.array, axis)
            for one in self.accesses
            for axis, forms in enumerate(one.forms or ())
            if any(max(form.dims, default=0) >= dims for form in (*forms.low, *forms.high))
        )

    def skews(self, schedule: Schedule) -> Mapping[str, frozenset[Skew]]:
        """The skews of each array that tell more of what tiles touch than its axes do."""
        if isinstance(self.tiles, Inspected):
            return {}
        first, end = boxes(schedule)
        several = frozenset(np.flatnonzero((end - first > 1).any(axis=0)).tolist())
        cut = frozenset(dim for dim, count in enumerate(schedule.grid) if count > 1)
        found: dict[str, frozenset[Skew]] = {}
        for one in self.accesses:
            found[one.array] = found.get(one.array, frozenset()).union(_skews(one.forms or (), several, cut))
        return found

    def at(
        self, schedule: Schedule, values: Mapping[str, object], skews: Mapping[str, tuple[Skew, ...]]
    ) -> tuple[Footprint, ...]:
        """The footprints for values of the scalars; those that are no integers, or not among `values`, may have any."""
        found = [_of_last_tile(name, schedule, self.shapes[name], skews[name]) for name in sorted(self.private)]
        tile, first, end = _iterations(self.tiles, schedule)
        known = [values.get(name) for name in self.given]
        low = [int(one) if isinstance(one, int | np.integer) else -FAR for one in known]
        high = [int(one) + 1 if isinstance(one, int | np.integer) else FAR for one in known]
        box = (_with_columns(first, low), _with_columns(end, high))
        for one in self.accesses:
            bounds = _bounds(one, box, self.shapes[one.array], skews[one.array])
            found.append(_without_repeats(Footprint(one.array, one.is_write, tile, *bounds)))
        if isinstance(self.tiles, Inspected):
            found += _listed(self.tiles, self.shapes, skews)
        for one_read in self.read:
            first_last = with_skews(one_read.low, one_read.high, skews[one_read.array])
            found.append(Footprint(one_read.array, False, one_read.tile, *first_last))
        return tuple(found)


def loop_accesses(
    plan: LoopPlan, known: Mapping[str, int], shapes: Shapes, read: Sequence[Footprint] = ()
) -> LoopAccesses:
    """The accesses of a loop to those of its arrays that are among `shapes`. `known` are the values of parameters. What
    is written is also handed on where it is not: whether a statement under a condition runs is not asked. `read` is
    what tiles read of arrays of which that was listed."""
    values = {**known, **{extent_name(a, axis): n for a, shape in shapes.items() for axis, n in enumerate(shape)}}
    copied = {copies.array for copies in plan.copies}
    private = frozenset(one.name for one in plan.private_arrays) & shapes.keys()
    in_bounds = {one.base.name for one in every(Subscript, *(loop.space for loop in plan.nest.loops))}
    read_only = {placement.array for placement in plan.placements if not placement.is_written}
    touched = ({placement.array for placement in plan.placements} | in_bounds) - copied - private
    of_tiles = plan.tiles.inspectable.arrays if isinstance(plan.tiles, Inspected) else ()
    listed = {*of_tiles, *(one.array for one in read)}
    own = [array for array in shapes if array in touched and array not in listed]
    given = tuple(sorted(_parameters(plan, own) - values.keys()))
    found: list[Accessed] = []
    for array in own:
        accesses = _accesses(plan, array, values, given)
        if accesses is None:
            accesses = [(array not in read_only, None)]
        if array in in_bounds:
            accesses = [*accesses, (False, None)]
        found += [Accessed(array, is_write, forms) for is_write, forms in accesses]
    return LoopAccesses(tuple(found), given, private, shapes, plan.tiles, tuple(read))


def _parameters(plan: LoopPlan, arrays: Sequence[str]) -> set[str]:
    """The names of the parameters of accesses."""
    import islpy as isl

    context, found = isl.Context(), set[str]()
    with suppress(CapReached, _UnknownError, isl.Error), capped(context):
        for array in arrays:
            for _, one in _relations(plan, array, context):
                found |= {one.get_dim_name(isl.dim_type.param, k) for k in range(one.dim(isl.dim_type.param))}
    return found


def _accesses(
    plan: LoopPlan, array: str, values: Mapping[str, int], given: Sequence[str]
) -> list[tuple[bool, BoxForms | None]] | None:
    """Whether it writes, and the boxes, of each access to an array; None where they are not known."""
    import islpy as isl

    context = isl.Context()
    found: dict[tuple[bool, BoxForms | None], None] = {}
    try:
        with capped(context):
            for is_write, relation in _relations(plan, array, context):
                for forms in box_forms(relation, values, len(plan.nest.dims), given):
                    found[is_write, forms] = None
    except (CapReached, _UnknownError, isl.Error):
        return None
    return list(found)


class _UnknownError(Exception):
    """What a tile touches is not known."""


def _relations(plan: LoopPlan, array: str, context: isl.Context) -> Iterator[tuple[bool, isl.Map]]:
    """Whether it writes, and x → e, of each access to an array; x are the coordinates of tiles, first of all."""
    import islpy as isl

    match plan.form:
        case Written() | Fused() | Filling() | Member() | Single():
            for access in plan.analysis.accesses:
                if access.array == array:
                    yield access.is_write, isl.Map(access.relation, context)
        case Reordered(origin=origin, places=places):
            own = {one.get_tuple_name(isl.dim_type.in_): one for one in _maps(places, context)}
            for statement in origin.statements:
                if statement.name not in own:
                    continue
                place = own[statement.name]
                around = place.dim(isl.dim_type.out) - len(plan.nest.dims)
                for access in statement.accesses:
                    if access.array == array:
                        relation = isl.Map(access.relation, context).apply_domain(place)
                        yield access.is_write, relation.project_out(isl.dim_type.in_, 0, around)
        case _:
            raise _UnknownError


def _maps(places: str, context: isl.Context) -> Sequence[isl.Map]:
    import islpy as isl

    found: list[isl.Map] = []
    isl.UnionMap(places, context).foreach_map(found.append)
    return found


# ---------------------------------------------------------------- numbers


def with_skews(low: Ints, high: Ints, skews: Sequence[Skew]) -> tuple[Ints, Ints]:
    """Boxes of elements, (…, axes) each, with the least and one past the greatest of each skew.

    >>> with_skews(np.array([2, 5]), np.array([4, 9]), [(-1, 1)])
    (array([2, 5, 2]), array([4, 9, 7]))
    """
    factors = np.array(skews, np.int64).reshape(len(skews), low.shape[-1]).T
    up, down = np.maximum(factors, 0), np.minimum(factors, 0)
    least, greatest = low @ up + (high - 1) @ down, (high - 1) @ up + low @ down
    return np.concatenate([low, least], axis=-1), np.concatenate([high, greatest + 1], axis=-1)


def _bounds(one: Accessed, box: tuple[Ints, Ints], shape: tuple[int, ...], skews: Sequence[Skew]) -> tuple[Ints, Ints]:
    """`low` and `high` of the footprint of an access; `box` has the first and one past last values of its coordinates,
    for each box of iterations."""
    first, end = box
    if one.forms is None or len(one.forms) != len(shape):
        none = np.zeros((len(first), len(shape)), np.int64)
        return with_skews(none, none + np.array(shape, np.int64), skews)
    pairs = [_along(forms, first, end, length) for forms, length in zip(one.forms, shape, strict=True)]
    low, high = (np.stack([pair[edge] for pair in pairs], axis=1) for edge in (0, 1))
    low, high = with_skews(low, high, skews)
    for place, skew in enumerate(skews, start=len(shape)):
        least, negated = _skewed(one.forms, skew), _skewed(one.forms, tuple(-factor for factor in skew))
        if least:
            low[:, place] = np.maximum(low[:, place], _least_of(least, first, end))
        if negated:
            high[:, place] = np.minimum(high[:, place], 1 - _least_of(negated, first, end))
    high[(first >= end).any(axis=-1)] = low[(first >= end).any(axis=-1)]
    return low, high


def _skewed(axes: BoxForms, skew: Skew) -> list[LinearForm]:
    """Forms of which one is no greater than a skew of the elements of an iteration; none where that is not known."""
    parts = [axis.low if factor > 0 else axis.high for axis, factor in zip(axes, skew, strict=True) if factor]
    factors = [factor for factor in skew if factor]
    found = []
    for forms in product(*parts):
        weighed = [(form.constant, *form.factors) for form in forms]
        constant, *own = (sum(map(mul, factors, column)) for column in zip(*weighed, strict=True))
        found.append(LinearForm(constant, tuple(own)))
    return found


def _skews(axes: BoxForms, several: frozenset[int], cut: frozenset[int]) -> Iterator[Skew]:
    """The skews from which a coordinate is gone of which a tile has `several` values; others of theirs are `cut`."""
    for (a, one), (b, other) in combinations(enumerate(axes), 2):
        for first, second in product(one.low, other.low):
            for dim in first.dims & second.dims & several:
                x, y = second.factors[dim], -first.factors[dim]
                left = [d for d, (f, g) in enumerate(zip(first.factors, second.factors, strict=True)) if x * f + y * g]
                if left and cut.issuperset(left):
                    divisor = gcd(x, y) * (1 if y > 0 else -1)
                    yield tuple({a: x // divisor, b: y // divisor}.get(axis, 0) for axis in range(len(axes)))


def _with_columns(edges: Ints, values: Sequence[int]) -> Ints:
    """Edges of boxes with the same further coordinates for all of them."""
    return np.hstack([edges, np.broadcast_to(np.array(values, np.int64), (len(edges), len(values)))])


def _along(axis: AxisForms, first: Ints, end: Ints, length: int) -> tuple[Ints, Ints]:
    """The range of elements along one axis for boxes of iterations, inside of the array."""
    low, high = max(0, axis.least or 0), length if axis.greatest is None else min(length, axis.greatest + 1)
    lowest = [_least(form, first, end - 1) for form in axis.low]
    highest = [-_least(_negated(form), first, end - 1) + 1 for form in axis.high]
    found_low = np.minimum.reduce(lowest) if lowest else np.full(first.shape[:-1], low)
    found_high = np.maximum.reduce(highest) if highest else np.full(first.shape[:-1], high)
    return np.clip(found_low, low, high), np.clip(found_high, low, high)


def _least(form: LinearForm, first: Ints, last: Ints) -> Ints:
    """The least value of a form over boxes from `first` to `last`."""
    total = np.full(first.shape[:-1], form.constant, np.int64)
    for dim, factor in enumerate(form.factors):
        if factor:
            total += factor * (first if factor > 0 else last)[..., dim]
    return total


def _least_of(forms: Sequence[LinearForm], first: Ints, end: Ints) -> Ints:
    least: Ints = np.minimum.reduce([_least(form, first, end - 1) for form in forms])
    return least


def _negated(form: LinearForm) -> LinearForm:
    return LinearForm(-form.constant, tuple(-factor for factor in form.factors))


def boxes(schedule: Schedule) -> tuple[Ints, Ints]:
    """First and one past last coordinate of every tile, int64 (tiles, dims) each."""
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)
    low = np.stack([bounds[b] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    high = np.stack([bounds[b + 1] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    return np.clip(low, -FAR, FAR), np.clip(high, -FAR, FAR)


def _iterations(tiles: Tiles, schedule: Schedule) -> tuple[Ints, Ints, Ints]:
    """The iterations of tiles as boxes: the tile of each, int64 (boxes,), first and one past last coordinates, int64
    (boxes, dims) each. Tiles that are lists of iterations have a box for each of these."""
    first, end = boxes(schedule)
    tile = np.arange(schedule.tiles)
    if not isinstance(tiles, Inspected) or not tiles.inspection.is_listed:
        return tile, first, end
    tile = np.repeat(tile, np.diff(tiles.inspection.offsets))
    first, end = first[tile], end[tile]
    first[:, 0] = tiles.inspection.order
    end[:, 0] = first[:, 0] + 1
    return tile, first, end


def _without_repeats(one: Footprint) -> Footprint:
    """A footprint without boxes that are those before them, of the same tile."""
    is_other = np.append(True, one.tile[1:] != one.tile[:-1])[: len(one.tile)]
    for edge in (one.low, one.high):
        is_other[1:] |= (edge[1:] != edge[:-1]).any(axis=1)
    return replace(one, tile=one.tile[is_other], low=one.low[is_other], high=one.high[is_other])


def _listed(tiles: Inspected, shapes: Shapes, skews: Mapping[str, Sequence[Skew]]) -> Iterator[Footprint]:
    """The footprints of the accesses that an inspector has listed: a box for each element that a tile touches."""
    found, (ends, places) = tiles.inspection, tiles.inspection.accesses
    tile_of = np.repeat(np.arange(found.tiles), np.diff(found.offsets))[np.argsort(found.order)]  # by iteration
    tile, base = np.repeat(tile_of, np.diff(ends, prepend=0)), 0
    for array, keyed in zip(tiles.inspectable.arrays, tiles.inspectable.keyed, strict=True):
        shape = shapes[array]
        extents = [shape[axis] for axis in keyed]
        size = prod(extents)
        for is_write in (True, False):
            own = (places >= 2 * base) & (places < 2 * (base + size)) & (places % 2 == is_write)
            touched = distinct(tile[own] * size + (places[own] // 2 - base))
            by, element = np.divmod(touched, max(1, size))
            low, high = np.zeros((2, len(by), len(shape)), np.int64)
            high[:] = shape
            for axis, at in zip(keyed, np.unravel_index(element, extents), strict=True):
                low[:, axis], high[:, axis] = at, at + 1
            yield Footprint(array, is_write, by, *with_skews(low, high, skews[array]))
        base += size


def _of_last_tile(array: str, schedule: Schedule, shape: tuple[int, ...], skews: Sequence[Skew]) -> Footprint:
    """That of an array of which each tile has its own, but for the last, which has the array itself."""
    low, high = np.zeros((2, schedule.tiles, len(shape)), np.int64)
    high[-1:] = shape
    return Footprint(array, True, np.arange(schedule.tiles), *with_skews(low, high, skews))
