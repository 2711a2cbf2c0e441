"""The sizes at which no subscript leaves its array: a dependence that there is at other sizes only is none.

A subscript f in an access that is sure to happen for every x in a domain D(p), with p the sizes, on an axis of extent
e(p), raises an error at all other sizes:

    P = {p : ∀ x ∈ D(p): -e(p) <= f(x, p) < e(p)}.

That matters where a subscript may be negative and then counts from the end: two such elements can only meet in arrays
that are too small for the rest of the loop. So P is asked for where an array of a dependence has such a subscript.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from orion.dependence.conflicts import CapReached, capped
from orion.dependence.model import Space, inner_constraints
from orion.dependence.references import Reference
from orion.sets.affine import Affine, itself
from orion.sets.coalesced import coalesced
from orion.sets.maps import Maps
from orion.sets.names import extent_name, parameter_list

if TYPE_CHECKING:
    import islpy as isl

MAX_OPERATIONS = 100_000
"""isl operations that finding the sizes may cost; past it no size is left out."""

MAX_PIECES = 8
"""A condition on the sizes that would make the set fall into more pieces is left out."""

Accesses = Sequence[tuple[Reference, Space]]


def sizes_within(accesses: Accesses, arrays: frozenset[str], maps: Maps) -> str | None:
    """P as the text of an isl set without dimensions, or None where nothing follows from it: no subscript of these
    arrays may be negative, or it takes too long, which is noted in `maps`. `accesses` have the space of the statement
    that they are in."""
    import islpy as isl

    read = Maps()
    context = read.context
    own = [(reference, space) for reference, space in accesses if reference.array in arrays]
    sure = [one for one in accesses if not one[0].is_may]
    try:
        negative = _members(own, lambda form, _: isl.Set.from_basic_set(form.neg_basic_set()), read)
        with capped(context, MAX_OPERATIONS):
            if all(found.is_empty() for found in negative):
                return None
        leaving = _members(sure, lambda form, extent: form.ge_set(extent).union(form.lt_set(extent.neg())), read)
        with capped(context, MAX_OPERATIONS):
            return str(_none_of(leaving, context))
    except (CapReached, isl.Error):
        maps.give_up("at which sizes all subscripts stay in their arrays was not found out; any size counts")
        return None


def at_sizes(instances: isl.UnionMap, sizes: isl.Set) -> isl.UnionMap | None:
    """The pieces of a relation that are not empty at all these sizes; each piece as it was. None where there are
    none."""
    import islpy as isl

    if sizes.plain_is_universe():
        return instances
    maps: list[isl.Map] = []
    instances.foreach_map(maps.append)
    pieces = [isl.Map.from_basic_map(piece) for one in maps for piece in one.get_basic_maps()]
    possible = [isl.Set.from_basic_set(one) for one in sizes.get_basic_sets()]
    found = isl.UnionMap("{ }", instances.get_ctx())
    for piece in pieces:
        where = next((k for k, one in enumerate(possible) if not piece.intersect_params(one).is_empty()), None)
        if where is not None:
            possible.insert(0, possible.pop(where))  # most pieces are at sizes of one kind
            found = found.union(isl.UnionMap.from_map(piece))
    return None if found.is_empty() else found


def _none_of(leaving: Sequence[isl.Set], context: isl.Context) -> isl.Set:
    """The sizes at which all these sets are empty."""
    import islpy as isl

    sizes = isl.Set("{ : }", context)
    for found in leaving:
        fewer = coalesced(sizes.subtract(found.params()))
        if fewer.n_basic_set() <= MAX_PIECES:
            sizes = fewer
    return sizes


def _members(accesses: Accesses, condition: Callable[[isl.Aff, isl.Aff], isl.Set], maps: Maps) -> list[isl.Set]:
    """For every affine subscript of these accesses the iterations for which a condition on it and on the extent of its
    axis holds, each set once."""
    found: dict[tuple[str, str, str], isl.Set] = {}
    for reference, space in accesses:
        if reference.blur is not None or not _has_known_trips(reference):
            continue
        dims = (*space.dims, *space.values, *(loop.var for loop in reference.inner))
        inside = _iterations(reference, space, dims)
        for axis, form in enumerate(reference.axes):
            if isinstance(form, Affine):
                extent = extent_name(reference.array, axis)
                key = inside, form.text, extent
                if key not in found:
                    sides = maps.functions("", dims, "", (form, itself(extent)))
                    found[key] = maps.set(inside).intersect(condition(sides.get_at(0), sides.get_at(1)))
    return list(found.values())


def _has_known_trips(reference: Reference) -> bool:
    bounds = [form for loop in reference.inner for form in (loop.start, loop.stop, loop.step)]
    return all(isinstance(form, Affine) for form in bounds)


def _iterations(reference: Reference, space: Space, dims: Sequence[str]) -> str:
    """The iterations that make an access, in these dimensions, as the text of an isl set."""
    inner = chain.from_iterable(inner_constraints(loop) for loop in reference.inner)
    constraints = [*space.constraints, *space.equations, *inner, *(guard.text for guard in reference.guards)]
    bounds = [bound for loop in reference.inner for bound in (loop.start, loop.stop, loop.step)]
    names = space.names.union(*(guard.names for guard in reference.guards))
    names = names.union(*(bound.names for bound in bounds if isinstance(bound, Affine)))
    head, inside = parameter_list(names.difference(dims)), " and ".join(constraints) or "true"
    return f"{head}{{ [{', '.join(dims)}] : {inside} }}"
