"""Which elements of its arrays each tile of a loop touches, as boxes: what must be where it runs.

A tile is a box of iterations. For an access x → e the elements of a tile lie between the least and greatest values of
affine forms over the box (`orion.sets.box_forms`); where several coordinates appear in one form, as in tiles of rounds
and space, a tile is looked at slice by slice, so that forms of one coordinate are left. The boxes have all elements
that a tile touches, and may have more: what is not affine, or depends on numbers that are not known, has the whole
array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from orion.dependence.conflicts import CapReached, capped
from orion.ir.nodes import Subscript, every
from orion.ir.types import Shapes
from orion.plan.plan import Fill as Filling
from orion.plan.plan import Fused, Inspected, LoopPlan, Member, Reordered, Single, Written
from orion.schedule.schedule import Ints, Schedule
from orion.sets.box_forms import AxisForms, BoxForms, LinearForm, box_forms
from orion.sets.names import extent_name

if TYPE_CHECKING:
    import islpy as isl

MOST_SLICES = 1 << 17
"""Tiles are not looked at by slices where there would be more of them than this, all tiles together."""

FAR = 1 << 40
"""Bounds of blocks that are farther from 0 say nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """What tiles touch of an array by one access: tile t nothing but the elements e with `low[t, s]` ≤ e < `high[t, s]`
    for one of the slices s. Shapes: int64 (tiles, slices, axes) each. An empty box has a `high` that is not above its
    `low`."""

    array: str
    is_write: bool
    low: Ints
    high: Ints


def footprints(plan: LoopPlan, schedule: Schedule, known: Mapping[str, int], shapes: Shapes) -> tuple[Footprint, ...]:
    """The footprints of all accesses of a loop to the arrays of `shapes`, those that it adds to by copies not among
    them. `known` are the values of parameters. What is written is also handed on where it is not: whether a statement
    under a condition runs is not asked."""
    values = {**known, **{extent_name(a, axis): n for a, shape in shapes.items() for axis, n in enumerate(shape)}}
    copied = {copies.array for copies in plan.copies}
    private = {one.name for one in plan.private_arrays}
    in_bounds = {one.base.name for one in every(Subscript, *(loop.space for loop in plan.nest.loops))}
    read_only = {placement.array for placement in plan.placements if not placement.is_written}
    found = []
    for array in shapes.keys() - copied:
        if array in private:
            found.append(_of_last_tile(array, schedule, shapes[array]))
            continue
        accesses = _accesses(plan, array, values, schedule)
        if accesses is None:
            accesses = [(array not in read_only, None)]
        if array in in_bounds:
            accesses = [*accesses, (False, None)]
        for is_write, forms in accesses:
            found.append(_footprint(array, is_write, forms, schedule, shapes[array]))
    return tuple(found)


def _accesses(
    plan: LoopPlan, array: str, values: Mapping[str, int], schedule: Schedule
) -> list[tuple[bool, BoxForms | None]] | None:
    """Whether it writes, and the boxes, of each access to an array; None where they are not known."""
    import islpy as isl

    context, dims = isl.Context(), len(schedule.grid)
    found: dict[tuple[bool, BoxForms | None], None] = {}
    try:
        with capped(context):
            relations = [*_relations(plan, array, context)]
            for is_write, relation in relations:
                for forms in box_forms(relation, values, dims):
                    found[is_write, forms] = None
    except (CapReached, _UnknownError, isl.Error):
        return None
    return list(found)


class _UnknownError(Exception):
    """What a tile touches is not known."""


def _relations(plan: LoopPlan, array: str, context: isl.Context) -> Iterator[tuple[bool, isl.Map]]:
    """Whether it writes, and x → e, of each access to an array; x are the coordinates of tiles, first of all."""
    import islpy as isl

    if isinstance(plan.tiles, Inspected):
        raise _UnknownError
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


def _footprint(
    array: str, is_write: bool, forms: BoxForms | None, schedule: Schedule, shape: tuple[int, ...]
) -> Footprint:
    if forms is None or len(forms) != len(shape):
        low = np.zeros((schedule.tiles, 1, len(shape)), np.int64)
        return Footprint(array, is_write, low, low + np.array(shape, np.int64))
    first, end = _sliced(*boxes(schedule), _sliced_dims(forms))
    low, high = np.empty((2, *first.shape[:2], len(shape)), np.int64)
    for axis, (one, length) in enumerate(zip(forms, shape, strict=True)):
        low[..., axis], high[..., axis] = _along(one, first, end, length)
    high[(first >= end).any(axis=-1)] = 0
    return Footprint(array, is_write, low, high)


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


def _negated(form: LinearForm) -> LinearForm:
    return LinearForm(-form.constant, tuple(-factor for factor in form.factors))


def boxes(schedule: Schedule) -> tuple[Ints, Ints]:
    """First and one past last coordinate of every tile, int64 (tiles, dims) each."""
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)
    low = np.stack([bounds[b] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    high = np.stack([bounds[b + 1] for bounds, b in zip(schedule.bounds, blocks, strict=True)], axis=1)
    return np.clip(low, -FAR, FAR), np.clip(high, -FAR, FAR)


def _sliced_dims(forms: BoxForms) -> tuple[int, ...]:
    """The coordinates whose values are looked at one by one, so that no form depends on two others: those that appear
    in the most forms first."""
    left = [form.dims for axis in forms for form in (*axis.low, *axis.high)]
    sliced: list[int] = []
    while any(len(dims) > 1 for dims in left):
        several = [dim for dims in left if len(dims) > 1 for dim in dims]
        sliced.append(min(dict.fromkeys(several), key=lambda dim: (-several.count(dim), dim)))
        left = [dims - {sliced[-1]} for dims in left]
    return tuple(sliced)


def _sliced(low: Ints, high: Ints, dims: Sequence[int]) -> tuple[Ints, Ints]:
    """Boxes cut into slices of one value of each of some coordinates: int64 (tiles, slices, dims)."""
    lengths = [max(1, int((high[:, dim] - low[:, dim]).max(initial=1))) for dim in dims]
    if not dims or len(low) * prod(lengths) > MOST_SLICES:
        return low[:, None], high[:, None]
    steps = np.indices(lengths).reshape(len(dims), -1)
    first, end = (np.repeat(edge[:, None], steps.shape[1], axis=1) for edge in (low, high))
    for dim, step in zip(dims, steps, strict=True):
        value = low[:, None, dim] + step
        first[..., dim], end[..., dim] = value, np.minimum(value + 1, high[:, None, dim])
    return first, end


def _of_last_tile(array: str, schedule: Schedule, shape: tuple[int, ...]) -> Footprint:
    """That of an array of which each tile has its own, but for the last, which has the array itself."""
    low = np.zeros((schedule.tiles, 1, len(shape)), np.int64)
    high = np.zeros_like(low)
    high[-1:] = shape
    return Footprint(array, True, low, high)
