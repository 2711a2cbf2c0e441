"""Which loop carries which dependence: one verdict per `for` of a region.

A dependence x → y is carried by the loop at depth d around both statements where x and y agree in the loops further
out and x comes first in it (Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, section 2.2.3):

    x_0 = y_0, …, x_{d-1} = y_{d-1}, x_d < y_d.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.dependence.access import Dependence
from orion.dependence.conflicts import KINDS, described
from orion.dependence.reads import Held
from orion.dependence.region import Region, Statement
from orion.dependence.relations import Pair, Relations, kept_apart
from orion.dependence.scalars import carries
from orion.ir.assumed import held_by
from orion.ir.nodes import For
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Carried:
    """A `for` and the dependences that it carries; their relations are over the variables of the loops around both
    ends."""

    loop: For
    dependences: tuple[Dependence, ...]


def carried_by_loops(region: Region, relations: Relations) -> tuple[Carried, ...]:
    """What each `for` of a region carries, in textual order. Scalars that pass no value from one iteration of the loop
    to another are no dependences: see `orion.dependence.scalars`."""
    statements = {statement.name: statement for statement in region.statements}
    loops = {loop.index: loop for statement in region.statements for loop in statement.loops}
    found: dict[int, list[Dependence]] = {index: [] for index in sorted(loops)}
    function = region.nest.function
    held = held_by(function.assumed)
    for pair in relations.pairs:
        for index, dependence in _carried(pair, statements, held, relations.maps):
            if pair.array not in region.scalars or carries(pair.array, loops[index].body, function):
                found[index].append(dependence)
    return tuple(Carried(loops[index], tuple(dependences)) for index, dependences in found.items())


def _carried(pair: Pair, statements: dict[str, Statement], held: Held, known: Maps) -> Iterator[tuple[int, Dependence]]:
    import islpy as isl

    maps: list[isl.Map] = []
    pair.instances.foreach_map(maps.append)
    for instances in maps:
        names = [instances.get_tuple_name(side) for side in (isl.dim_type.in_, isl.dim_type.out)]
        together = _common(statements[names[0]], statements[names[1]])
        key = "carried", pair.made_with(held), *names, len(together)
        by_depth = known.once(key, partial(_by_depth, pair, instances, len(together), held, known))
        for depth, text, distance, direction in by_depth:
            for one, other in pair.accesses:
                kind = KINDS[one.is_write, other.is_write]
                exact = one.exact and other.exact
                yield together[depth].index, Dependence(pair.array, kind, one, other, text, distance, direction, exact)


def _by_depth(
    pair: Pair, instances: isl.Map, loops: int, held: Held, maps: Maps
) -> list[tuple[int, str, tuple[int | None, ...], tuple[str, ...]]]:
    """The depths of those of so many loops that carry a dependence, with what they carry."""
    relation = over_common(kept_apart(pair, instances, held, maps), loops)
    parts = [(depth, relation.intersect(_first_apart(relation, depth))) for depth in range(loops)]
    return [(depth, *described(part, loops, maps)) for depth, part in parts if not part.is_empty()]


def _common(source: Statement, sink: Statement) -> tuple[For, ...]:
    """The loops around both statements, outermost first."""
    found = []
    for one, other in zip(source.loops, sink.loops, strict=False):
        if one.index != other.index:
            break
        found.append(one)
    return tuple(found)


def over_common(instances: isl.Map, depth: int) -> isl.Map:
    """The relation between the first `depth` coordinates of both ends."""
    import islpy as isl

    for side in (isl.dim_type.in_, isl.dim_type.out):
        instances = instances.project_out(side, depth, instances.dim(side) - depth).reset_tuple_id(side)
    return instances


def _first_apart(relation: isl.Map, depth: int) -> isl.Map:
    """{x → y : x and y agree before `depth`, and x_depth < y_depth}."""
    import islpy as isl

    pairs = isl.Map.universe(relation.get_space())
    for dim in range(depth):
        pairs = pairs.equate(isl.dim_type.in_, dim, isl.dim_type.out, dim)
    return pairs.order_lt(isl.dim_type.in_, depth, isl.dim_type.out, depth)
