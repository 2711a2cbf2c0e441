"""What must keep its order in a loop of the source, at the coordinates that its parts are cut along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from orion.sets.names import number_text, parameter_list
from orion.verify.conflicts import Conflict, any_parameters, named
from orion.verify.statements import Source, met

if TYPE_CHECKING:
    import islpy as isl


def moved(source: Source, places: str, values: Mapping[str, int]) -> isl.Map | None:
    """x → y at the places of x and y, where both have one in a planned loop: (rounds, coordinates) each. None where
    there is no such pair."""
    import islpy as isl

    context = source.context
    at = isl.UnionMap(places, context).intersect_params(known_values(values, context))
    found = source.union().apply_domain(at).apply_range(at)
    return None if found.is_empty() else isl.Map.from_union_map(found)


def coordinates(source: Source, places: str, values: Mapping[str, int], rounds: int) -> isl.Set | None:
    """The coordinates of all instances that have a place in a planned loop, in any round; None where there are none."""
    import islpy as isl

    at = isl.UnionMap(places, source.context).intersect_params(known_values(values, source.context))
    domain = isl.UnionSet("{ }", source.context)
    for one in source.statements:
        domain = domain.union(isl.UnionSet.from_set(one.domain))
    places_of = at.intersect_domain(domain).range()
    if places_of.is_empty():
        return None
    found = isl.Set.from_union_set(places_of)
    return any_parameters(found.project_out(isl.dim_type.set, 0, rounds))


def in_round(pairs: isl.Map, rounds: int, is_exact: bool) -> Iterator[Conflict]:
    """The pairs in one round of the serial loops that the order has around a loop."""
    import islpy as isl

    for level in range(rounds):
        pairs = pairs.equate(isl.dim_type.in_, level, isl.dim_type.out, level)
    space = pairs.get_space()
    pairs = pairs.subtract(isl.Map.identity(space))
    yield Conflict("", _own(pairs, rounds), is_exact)


def between_rounds(pairs: isl.Map, rounds: int, is_exact: bool) -> Iterator[Conflict]:
    """The pairs in different rounds of these loops."""
    import islpy as isl

    if rounds:
        space = pairs.get_space()
        same = isl.Map.universe(space)
        for level in range(rounds):
            same = same.equate(isl.dim_type.in_, level, isl.dim_type.out, level)
        yield Conflict("", _own(pairs.subtract(same), rounds), is_exact)


def between_outer_rounds(source: Source, places: str, values: Mapping[str, int], rounds: int) -> Iterator[Conflict]:
    """The pairs in different rounds of serial loops around the loop of the source, which is run anew in each."""
    import islpy as isl

    context = source.context
    known = known_values(values, context)
    at: dict[str, isl.Map] = {}

    def note(one: isl.Map) -> None:
        at[one.get_tuple_name(isl.dim_type.in_)] = one.intersect_params(known).set_tuple_name(isl.dim_type.in_, "")

    isl.UnionMap(places, context).foreach_map(note)
    uses = {one.name: one.uses for one in source.statements if one.name in at}
    for first, mine in uses.items():
        for second, others in uses.items():
            for array in mine.keys() & others.keys():
                left = any_parameters(_placed(mine[array].written, at[first], known))
                right = any_parameters(_placed(others[array].touched, at[second], known))
                pairs = left.apply_range(right.reverse())
                yield Conflict(array, _own(pairs.union(pairs.reverse()), rounds), source.is_exact)


def moved_accesses(
    source: Source, places: str, values: Mapping[str, int], rounds: int, conflict: Conflict, pairs: isl.Map
) -> str:
    """The two accesses that meet for pairs of coordinates, in words."""
    import islpy as isl

    known, at = known_values(values, source.context), isl.UnionMap(places, source.context)
    for first, second, relation in met(source):
        map_ = isl.UnionMap.from_map(relation.intersect_params(known)).apply_domain(at).apply_range(at)
        if not map_.is_empty():
            here = _own(isl.Map.from_union_map(map_), rounds)
            if not here.union(here.reverse()).intersect(pairs).is_empty():
                return f"{named(first)} and {named(second)}"
    return f"accesses to `{conflict.array}`"


def _placed(uses: isl.Map, at: isl.Map, known: isl.Set) -> isl.Map:
    """place → e of x → e."""
    return uses.intersect_params(known).apply_domain(at)


def _own(pairs: isl.Map, rounds: int) -> isl.Map:
    """Pairs of (rounds, coordinates) as pairs of coordinates, for any values of parameters."""
    import islpy as isl

    for side in (isl.dim_type.in_, isl.dim_type.out):
        pairs = pairs.project_out(side, 0, rounds)
    return any_parameters(pairs)


def known_values(values: Mapping[str, int], context: isl.Context) -> isl.Set:
    """That parameters have these values."""
    import islpy as isl

    text = " and ".join(f"{name} = {number_text(value)}" for name, value in values.items()) or "true"
    return isl.Set(f"{parameter_list(values)}{{ : {text} }}", context)
