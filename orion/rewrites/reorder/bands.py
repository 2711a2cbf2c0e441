"""What planning needs to know of a band of loops: its iterations, and the dependences between them.

The coordinates of an iteration are the values of the band's schedule. Loops around the band are fixed: their
variables are parameters, and only dependences within one round of them count. Several instances of statements may
have the same coordinates; they run on one worker in their new order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orion.dependence.access import Dependence
from orion.dependence.conflicts import KINDS, described
from orion.dependence.relations import Relations
from orion.rewrites.band import Band
from orion.sets.coalesced import coalesced

if TYPE_CHECKING:
    import islpy as isl


def describe_band(node: isl.ScheduleNode, relations: Relations, variables: Sequence[str], number: int) -> Band:
    """The band of a node. `variables` are the names of new loops by depth: the first are those around the band."""
    around, dims = node.get_schedule_depth(), node.band_n_member()
    places = node.child(0).get_prefix_schedule_union_map().intersect_domain(node.get_domain())
    band = band_of(places, relations, variables, around, dims, number)
    return replace(band, formulas=_formulas(node.band_get_partial_schedule()))


def band_of(
    places: isl.UnionMap, relations: Relations, variables: Sequence[str], around: int, dims: int, number: int = 0
) -> Band:
    """The band of instances that `places` gives the coordinates of, `around` of the loops around it and `dims`
    of the band."""
    import islpy as isl

    names = list(variables[:around])
    domain = isl.Set.from_union_set(places.range())
    if around:
        domain = domain.intersect(isl.Set(_fixed(names, dims, "{ [A] : a }"), domain.get_ctx()))
        domain = domain.project_out(isl.dim_type.set, 0, around)
    found: list[Dependence] = []
    seen: dict[str, None] = {}
    for pair in relations.pairs:
        moved = pair.instances.apply_domain(places).apply_range(places)  # of the instances that have places
        if moved.is_empty():
            continue
        relation = isl.Map.from_union_map(moved)
        if around:
            fixed = isl.Map(_fixed(names, dims, "{ [A] -> [B] : a and b }"), relation.get_ctx())
            relation = relation.intersect(fixed)
            relation = relation.project_out(isl.dim_type.in_, 0, around).project_out(isl.dim_type.out, 0, around)
        relation = relation.subtract(isl.Map.identity(relation.get_space()))
        if relation.is_empty():
            continue
        text, distance, direction = described(relation, dims, relations.maps)
        if text in seen:
            continue
        seen[text] = None
        source, sink = pair.accesses[0]
        kind, exact = KINDS[source.is_write, sink.is_write], source.exact and sink.exact
        found.append(Dependence(pair.array, kind, source, sink, text, distance, direction, exact))
    own = tuple(variables[around : around + dims])
    limits = tuple((f"{name}_first{number}", f"{name}_end{number}") for name in own)
    return Band(around, str(places), own, limits, relations.maps.text_of_set(coalesced(domain)), tuple(found))


def _formulas(schedule: isl.MultiUnionPwAff) -> tuple[str, ...]:
    """Each member of a band in the variables of the statement with the most loops.

    The member of `{ S0[t, i] -> [(2t + i)]; S1[t] -> [(t)] }` is "2t + i".
    """
    import islpy as isl

    found = []
    for member in range(schedule.dim(isl.dim_type.out)):
        parts: list[isl.PwAff] = []
        schedule.get_at(member).foreach_pw_aff(parts.append)
        deepest = max(parts, key=lambda part: part.dim(isl.dim_type.in_))
        found.append(str(deepest).partition("[(")[2].partition(")]")[0])
    return tuple(found)


def _fixed(names: Sequence[str], dims: int, pattern: str) -> str:
    """An isl set or map over coordinates whose first ones are equal to parameters of these names."""
    found = pattern
    for letter in "ab":
        inputs = [f"{letter}{k}" for k in range(len(names) + dims)]
        equal = " and ".join(f"{letter}{k} = {name}" for k, name in enumerate(names)) or "true"
        found = found.replace(letter.upper(), ", ".join(inputs))
        found = found.replace(f": {letter} ", f": {equal} ").replace(f"and {letter} ", f"and {equal} ")
    return f"[{', '.join(names)}] -> {found}"
