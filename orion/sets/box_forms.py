"""The boxes of elements that an access relation touches, as functions of where the iterations are.

For each part of a relation x → e without a disjunction, and each axis of e, the least and the greatest e of one x are
affine in x, piece by piece (parametric integer programming, Feautrier 1988, by isl's `dim_min` and `dim_max`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.sets.coalesced import coalesced
from orion.sets.names import number_of

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class LinearForm:
    """The number `constant` + Σ `factors[d]` · x_d."""

    constant: int
    factors: tuple[int, ...]

    @property
    def dims(self) -> frozenset[int]:
        """The coordinates that it depends on."""
        return frozenset(dim for dim, factor in enumerate(self.factors) if factor)


@dataclass(frozen=True, slots=True)
class AxisForms:
    """Along one axis: the elements of one iteration are no less than the least of `low`, no greater than the greatest
    of `high`; of all iterations together between `least` and `greatest`. None: not bounded."""

    low: tuple[LinearForm, ...]
    high: tuple[LinearForm, ...]
    least: int | None
    greatest: int | None


BoxForms = tuple[AxisForms, ...]


def box_forms(
    relation: isl.Map, values: Mapping[str, int], dims: int, given: Sequence[str] = ()
) -> tuple[BoxForms, ...]:
    """The boxes of a relation whose first `dims` inputs are coordinates of iterations; together they have all elements
    that an iteration touches. Parameters without a value may have any, and inputs after the first `dims` too; those
    whose names are `given` are further coordinates, after the others.

    >>> import islpy as isl
    >>> relation = isl.Map("[n, k] -> { [t, i] -> A[i - t, j] : 0 <= t < 4 and t < i < n and 0 <= j <= k }")
    >>> ((first, second),) = box_forms(relation, {"n": 9, "k": 6}, 2)
    >>> first.low, first.least, first.greatest
    ((LinearForm(constant=0, factors=(-1, 1)),), 1, 8)
    >>> second.low, second.high
    ((LinearForm(constant=0, factors=(0, 0)),), (LinearForm(constant=6, factors=(0, 0)),))
    """
    import islpy as isl

    extra = relation.dim(isl.dim_type.in_) - dims
    relation = relation.project_out(isl.dim_type.in_, dims, extra)
    for name in given:
        relation = _with_coordinate(relation, name)
    relation = coalesced(_at_values(relation, values))
    axes = range(relation.dim(isl.dim_type.out))
    parts = [isl.Map.from_basic_map(part) for part in relation.get_basic_maps() if not part.is_empty()]
    return tuple(tuple(_axis(part, axis, dims + len(given)) for axis in axes) for part in parts)


def _with_coordinate(relation: isl.Map, name: str) -> isl.Map:
    """The relation with a parameter as its last input; with an input that means nothing where it has none of the
    name."""
    import islpy as isl

    last = relation.dim(isl.dim_type.in_)
    place = relation.find_dim_by_name(isl.dim_type.param, name)
    if place < 0:
        return relation.add_dims(isl.dim_type.in_, 1)
    return relation.move_dims(isl.dim_type.in_, last, isl.dim_type.param, place, 1)


def _at_values(relation: isl.Map, values: Mapping[str, int]) -> isl.Map:
    """The relation with known parameters fixed and any values of others."""
    import islpy as isl

    count = relation.dim(isl.dim_type.param)
    for place in range(count):
        name = relation.get_dim_name(isl.dim_type.param, place)
        if name in values:
            relation = relation.fix_val(isl.dim_type.param, place, isl.Val(values[name], relation.get_ctx()))
    return relation.project_out(isl.dim_type.param, 0, count)


def _axis(part: isl.Map, axis: int, dims: int) -> AxisForms:
    touched = part.range()
    least, greatest = _whole(touched.dim_min_val(axis)), _whole(touched.dim_max_val(axis))
    low = () if least is None else _forms(part.dim_min(axis), dims)
    high = () if greatest is None else _forms(part.dim_max(axis), dims)
    return AxisForms(low, high, least, greatest)


def _whole(value: isl.Val) -> int | None:
    return number_of(value) if value.is_int() else None


def _forms(function: isl.PwAff, dims: int) -> tuple[LinearForm, ...]:
    """The pieces of a function; none where one is not linear with whole factors."""
    import islpy as isl

    found = []
    for _, piece in function.get_pieces():
        if not piece.get_denominator_val().is_one():
            return ()
        if any(
            not piece.get_coefficient_val(isl.dim_type.div, k).is_zero() for k in range(piece.dim(isl.dim_type.div))
        ):
            return ()
        factors = tuple(number_of(piece.get_coefficient_val(isl.dim_type.in_, d)) for d in range(dims))
        found.append(LinearForm(number_of(piece.get_constant_val()), factors))
    return tuple(dict.fromkeys(found))
