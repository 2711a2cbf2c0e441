"""The sizes and integers of a call at which a loop carries no dependence, where there are some.

    { p : no dependence is left }  =  complement of the parameters of the relations of all dependences

`a[i + m] = a[i]` in `range(n)` carries one unless m is 0, or at least n, or at most -n; a range that may begin below 0
writes elements twice only where it is longer than the array. The loop may be run in parallel where that holds, and is
then analysed under this condition (Doerfert, Grosser & Hack, "Optimistic loop optimization", CGO 2017). A condition
under which the loop is short, as any recurrence has one, is none: there must be calls with any number of iterations
that fulfil it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from orion.dependence.access import Dependence
from orion.dependence.bounds import fix_parameters
from orion.dependence.conflicts import CapReached, capped
from orion.ir.assumed import OfSizes
from orion.sets.coalesced import coalesced
from orion.sets.maps import Maps
from orion.sets.names import isl_name, number_text

if TYPE_CHECKING:
    import islpy as isl

MAX_PARTS = 12
"""More cases than that are no condition that a reader could follow."""

MAX_RAW_PARTS = 40
"""The same before they are made simpler."""

MAX_CONSTRAINTS = 100
"""Of the sizes at which there are dependences. isl multiplies them out to find all others, and counts no operations
meanwhile: 640 took ten seconds. Conditions that a reader can follow come from fewer than thirty."""


MAX_INTEGERS = 2
"""Integers of its own ("there is an e such that") that a case may have, remainders and quotients among them. Three of
them with coefficients of 10¹² took isl longer than a minute, in one call that no signal ends."""


def free_of(dependences: Iterable[Dependence], depth: int, known: Collection[str], maps: Maps) -> isl.Set | None:
    """Where the loop at `depth` carries none of the dependences; None where there are no such sizes at which it goes
    through any number of iterations with these accesses.

    `known` are the parameters whose values a call gives; others, such as the variables of loops around, have any.
    """
    import islpy as isl

    dependences = tuple(dependences)
    if any(one.reason is not None or one.distance[depth : depth + 1] != (None,) for one in dependences):
        return None  # one is not known exactly, or is there in every loop that is long enough
    accesses = {one.relation: one for dependence in dependences for one in (dependence.source, dependence.sink)}
    relations = [maps.map(one.relation) for one in dependences]
    reached = [maps.map(relation).domain() for relation in accesses]
    try:
        with capped(maps.context):
            met = _union([_over(relation.params(), known) for relation in relations])
            if met is None or not _is_simple(met):
                return None
            return _simplest(met.complement(), [_pairs(one, depth) for one in reached], depth)
    except (CapReached, isl.Error):
        return None


def free_of_all(sets: Iterable[str], domain: str, known: Collection[str], maps: Maps) -> isl.Set | None:
    """Where none of some sets, given as text, has a member, whatever the parameters are that are not `known`; None
    where there are no such sizes at which a loop, which has this domain, makes any number of trips, or none that a
    reader could follow.

    >>> outside = "[n, a__0] -> { [i] : 0 <= i < n and i >= a__0 }"
    >>> free = free_of_all([outside], "[n] -> { [i] : 0 <= i < n }", {"n", "a__0"}, Maps())
    >>> as_assumed(0, free).constraint
    '(a__0 >= n)'
    """
    import islpy as isl

    try:
        with capped(maps.context):
            met = _union([_over(maps.set(one).params(), known) for one in sets])
            if met is None or met.is_empty():
                return isl.Set("{ : }", maps.context)
            return _simplest(met.complement(), [_pairs(maps.set(domain), 0)], 0) if _is_simple(met) else None
    except (CapReached, isl.Error):
        return None


def _is_simple(met: isl.Set) -> bool:
    """Whether isl finds all other sizes than these soon, and a reader could follow what they are."""
    import islpy as isl

    parts = _basic_sets(met)
    integers = max((part.dim(isl.dim_type.div) for part in parts), default=0)
    return integers <= MAX_INTEGERS and sum(len(part.get_constraints()) for part in parts) <= MAX_CONSTRAINTS


def _simplest(free: isl.Set, accessed: Sequence[isl.Map], depth: int) -> isl.Set | None:
    """The cases of a condition with as few constraints as they need, without those that only short loops fulfil, or
    that others have already in calls in which all accesses are made in several iterations; `accessed` are pairs of
    iterations with one of them."""
    parts = _parts(coalesced(free))
    if len(parts) > MAX_RAW_PARTS:
        return None
    useful = [part for part in parts if all(_is_any_length(pairs.intersect_params(part), depth) for pairs in accessed)]
    relaxed = {str(part): part for part in (_relaxed(part, free) for part in useful)}
    found: list[isl.Set] = []
    for part in sorted(relaxed.values(), key=lambda part: len(str(part))):  # those that are simpler come first
        others = _union(found)
        here = part
        for pairs in accessed:
            here = here.intersect(pairs.params())
        if others is None or not here.is_subset(others):
            found.append(part)
    return _union(found) if len(found) <= MAX_PARTS else None


def _relaxed(part: isl.Set, free: isl.Set) -> isl.Set:
    """A convex part of a set without constraints that it can do without there."""
    import islpy as isl

    (basic,) = _basic_sets(part)
    if basic.dim(isl.dim_type.div):
        return part
    constraints = list(basic.get_constraints())
    for constraint in tuple(constraints):
        rest = [one for one in constraints if one is not constraint]
        if _of_constraints(basic, rest).is_subset(free):
            constraints = rest
    return _of_constraints(basic, constraints)


def _of_constraints(like: isl.BasicSet, constraints: Iterable[isl.Constraint]) -> isl.Set:
    import islpy as isl

    found = isl.BasicSet.universe(like.get_space())
    for constraint in constraints:
        found = found.add_constraint(constraint)
    return isl.Set(found)


def _basic_sets(values: isl.Set) -> list[isl.BasicSet]:
    found: list[isl.BasicSet] = []
    values.foreach_basic_set(found.append)
    return found


def _parts(values: isl.Set) -> list[isl.Set]:
    import islpy as isl

    return [isl.Set(part) for part in _basic_sets(values)]


def _union(parts: Iterable[isl.Set]) -> isl.Set | None:
    found: isl.Set | None = None
    for part in parts:
        found = part if found is None else found.union(part)
    return found


def _over(parameters: isl.Set, known: Collection[str]) -> isl.Set:
    """The values of known parameters for which there are some of the others."""
    import islpy as isl

    for position in reversed(range(parameters.dim(isl.dim_type.param))):
        if parameters.get_dim_name(isl.dim_type.param, position) not in known:
            parameters = parameters.project_out(isl.dim_type.param, position, 1)
    return parameters


def _pairs(domain: isl.Set, depth: int) -> isl.Map:
    """The pairs of iterations that agree in the loops outside of the one at `depth`; in it the first comes first."""
    import islpy as isl

    outer = domain.project_out(isl.dim_type.set, depth + 1, domain.dim(isl.dim_type.set) - depth - 1).reset_tuple_id()
    pairs = isl.Map.from_domain_and_range(outer, outer)
    for dim in range(depth):
        pairs = pairs.equate(isl.dim_type.in_, dim, isl.dim_type.out, dim)
    return pairs.order_lt(isl.dim_type.in_, depth, isl.dim_type.out, depth)


def _is_any_length(pairs: isl.Map, depth: int) -> bool:
    """Whether two iterations may be as far apart as one likes."""
    if pairs.is_empty():
        return False
    return bool(pairs.deltas().dim_max_val(depth).is_infty())


# ---------------------------------------------------------------- conditions as values


def as_assumed(index: int, condition: isl.Set) -> OfSizes:
    """A set of parameters as the condition of a `for`."""
    import islpy as isl

    used = [
        position
        for position in range(condition.dim(isl.dim_type.param))
        if condition.involves_dims(isl.dim_type.param, position, 1)
    ]
    names = tuple(str(condition.get_dim_name(isl.dim_type.param, position)) for position in used)
    constraint = str(condition).partition("{")[2].rpartition("}")[0].strip().removeprefix(":").strip()
    return OfSizes(index, f"({constraint or 'true'})", names)


def equals(index: int, name: str, value: int) -> OfSizes:
    """That an integer argument has a value, as the condition of a `for`."""
    return OfSizes(index, f"({isl_name(name)} = {number_text(value)})", (isl_name(name),))


def as_set(assumed: OfSizes, context: isl.Context | None = None) -> isl.Set:
    """A condition as a set of parameters."""
    import islpy as isl

    return isl.Set(f"[{', '.join(assumed.names)}] -> {{ : {assumed.constraint} }}", context)


def holds(assumed: OfSizes, values: Mapping[str, int]) -> bool:
    """Whether a condition holds whatever parameters without a value are.

    >>> condition = OfSizes(0, "(lo >= 0 or hi <= lo + a__0)", ("lo", "hi", "a__0"))
    >>> holds(condition, {"lo": -3, "hi": 5, "a__0": 8}), holds(condition, {"lo": -3, "hi": 6, "a__0": 8})
    (True, False)
    """
    return bool(fix_parameters(as_set(assumed).complement(), values).is_empty())


def is_possible(assumed: OfSizes, values: Mapping[str, int]) -> bool:
    """Whether a condition may hold for parameters without a value."""
    return not fix_parameters(as_set(assumed), values).is_empty()
