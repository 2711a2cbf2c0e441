"""Two iterations and an element at which accesses meet, at the smallest sizes that show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.sets.names import isl_value, number_of

if TYPE_CHECKING:
    import islpy as isl

LOWEST = -64


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two iterations that touch an element, at these sizes."""

    first: int
    second: int
    element: tuple[int, ...]
    sizes: Mapping[str, int]

    def at(self, relation: isl.Map, iteration: int) -> isl.Set:
        """Return what a map gives for an iteration and the element."""
        import islpy as isl

        found = _fixed(relation, self.sizes)
        for position, value in enumerate((iteration, *self.element)):
            found = found.fix_val(isl.dim_type.in_, position, isl_value(value, found.get_ctx()))
        return found.range()


def meeting_of(first: isl.Map, second: isl.Map, pairs: isl.Map, sizes: isl.Set) -> Meeting | None:
    """Return a meeting among `pairs` of iterations, whose accesses are `first` and `second`, at some of the sizes."""
    chosen = smallest_sizes(pairs.params().intersect(sizes))
    if chosen is None:
        return None
    points = _coordinates(_fixed(pairs, chosen).wrap())
    if points is None:
        return None
    one, other = points
    elements = _image(_fixed(first, chosen), one).intersect(_image(_fixed(second, chosen), other))
    element = _coordinates(elements)
    return None if element is None else Meeting(one, other, tuple(element), chosen)


def smallest_sizes(sizes: isl.Set) -> dict[str, int] | None:
    """Return values of parameters in a set, small ones that are not negative where there are such."""
    import islpy as isl

    count = sizes.dim(isl.dim_type.param)
    names = [sizes.get_dim_name(isl.dim_type.param, position) for position in range(count)]
    for lowest in (0, LOWEST):
        bounded = sizes
        for position in range(count):
            bounded = bounded.lower_bound_val(
                isl.dim_type.param, position, isl.Val.int_from_si(sizes.get_ctx(), lowest)
            )
        if not bounded.is_empty():
            break
    else:
        return None
    moved = isl.Set.from_params(bounded).insert_dims(isl.dim_type.set, 0, 0)
    moved = moved.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, count)
    values = _coordinates(moved)
    return None if values is None else dict(zip(map(str, names), values, strict=True))


def _coordinates(points: isl.Set) -> list[int] | None:
    """Return the coordinates of the least point of a set; of any point where there is no least one."""
    import islpy as isl

    if points.is_empty():
        return None
    least = points.lexmin() if _is_bounded(points) else points
    point = least.sample_point()
    count = points.dim(isl.dim_type.set)
    return [number_of(point.get_coordinate_val(isl.dim_type.set, position)) for position in range(count)]


def _is_bounded(points: isl.Set) -> bool:
    import islpy as isl

    return all(points.dim_has_any_lower_bound(isl.dim_type.set, d) for d in range(points.dim(isl.dim_type.set)))


def _image(relation: isl.Map, iteration: int) -> isl.Set:
    import islpy as isl

    return relation.fix_val(isl.dim_type.in_, 0, isl_value(iteration, relation.get_ctx())).range()


def _fixed(relation: isl.Map, sizes: Mapping[str, int]) -> isl.Map:
    """Return a map at these sizes, without parameters; those without a size are left to be any."""
    import islpy as isl

    for position in reversed(range(relation.dim(isl.dim_type.param))):
        name = relation.get_dim_name(isl.dim_type.param, position)
        if name in sizes:
            relation = relation.fix_val(isl.dim_type.param, position, isl_value(sizes[name], relation.get_ctx()))
        relation = relation.project_out(isl.dim_type.param, position, 1)
    return relation
