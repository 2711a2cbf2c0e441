"""The properties of arrays of integers under which a loop carries no dependence, where there are some.

The weakest that does is looked for, by trying: which of them hold for an array is shown in each call, and an array that
is in order more often than not is one by which something else is in parts (`ptr[i]`, `ptr[i + 1]`), one without equal
elements one that puts things elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orion.dependence.access import Dependence
from orion.dependence.carried import over_common
from orion.dependence.conflicts import CapReached, capped
from orion.dependence.reads import Held, has_common_reads, meeting, prepare_reads
from orion.ir.assumed import Property
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl

TRIED = (
    frozenset({Property.NOT_NEGATIVE}),
    frozenset({Property.SORTED, Property.NOT_NEGATIVE}),
    frozenset({Property.DISTINCT, Property.NOT_NEGATIVE}),
    frozenset({Property.SORTED, Property.DISTINCT, Property.NOT_NEGATIVE}),
)
"""What all arrays may be asked for, weakest first; then what one of them can do without is left out."""

MAX_OPERATIONS = 650_000
"""isl operations that one pair of accesses may cost. Of the loops measured, none needs more than 500,000; past them isl
takes a second for a million."""

Wanted = tuple[tuple[str, Property], ...]


def properties_without(dependences: Iterable[Dependence], maps: Maps) -> Wanted:
    """The properties of arrays where none of the dependences is there; none where there are no such."""
    import islpy as isl

    dependences = tuple(dependences)
    if not all(has_common_reads(one.source, one.sink) for one in dependences):
        return ()
    arrays = sorted({array for one in dependences for end in (one.source, one.sink) for array, _ in end.by_reads.reads})
    try:
        for properties in TRIED:
            held = dict.fromkeys(arrays, properties)
            if _is_free(dependences, held, maps):
                return _needed(dependences, held, maps)
    except (CapReached, isl.Error):
        pass
    return ()


def _is_free(dependences: Iterable[Dependence], held: Held, maps: Maps) -> bool:
    for one in dependences:
        relation = maps.map(one.relation)
        for end in (one.source, one.sink):
            prepare_reads(end, held, maps)
        with capped(maps.context, MAX_OPERATIONS):
            met = over_common(meeting(one.source, one.sink, held, maps), _dims(relation))
            if not relation.intersect(met).is_empty():
                return False
    return True


def _dims(relation: isl.Map) -> int:
    import islpy as isl

    return int(relation.dim(isl.dim_type.in_))


def _needed(dependences: tuple[Dependence, ...], held: Held, maps: Maps) -> Wanted:
    """Of properties that suffice those that are needed."""
    wanted = [(array, one) for array, properties in held.items() for one in sorted(properties)]
    for pair in tuple(wanted):
        rest = [one for one in wanted if one is not pair]
        if _is_free(dependences, _as_held(rest), maps):
            wanted = rest
    return tuple(wanted)


def _as_held(wanted: Iterable[tuple[str, Property]]) -> Held:
    found: dict[str, frozenset[Property]] = {}
    for array, one in wanted:
        found[array] = found.get(array, frozenset()) | {one}
    return found
