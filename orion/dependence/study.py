"""A nest of affine ranges, statement by statement: what it does, what depends on what, and which loop carries it."""

from __future__ import annotations

from collections.abc import Iterator

from orion.dataclass import dataclass
from orion.dependence.access import Dependence
from orion.dependence.carried import Carried, carried_by_loops, over_common
from orion.dependence.conflicts import KINDS, CapReached, capped, described
from orion.dependence.model import NOTHING, Known, Model, model_loop
from orion.dependence.reads import Held
from orion.dependence.region import Region, find_region
from orion.dependence.relations import Pair, Relations, kept_apart, prepare_maps, relations_of
from orion.ir.assumed import held_by
from orion.ir.program import LoopNest, OfFilling, OfSource, Program
from orion.ir.types import Types
from orion.sets.maps import Maps

MAX_OPERATIONS = 2_000_000
"""isl operations that the study of a nest may cost: about a second. Past it the nest is analysed as a whole."""

MAX_WHOLE = 2_000_000
"""The same for what statements have in common as iterations of the nest."""


@dataclass(frozen=True, slots=True)
class Study:
    """A nest of ranges as statements, with the dependences between them, and what each of its `for`s carries."""

    region: Region
    relations: Relations
    carried: tuple[Carried, ...]


def study_loop(
    program: Program, number: int, types: Types, model: Model | None = None, maps: Maps | None = None
) -> Study | None:
    """Planned loop `number` statement by statement; `model` is its model, where that is known already, and `maps` what
    was made of it in isl.

    None where it is no ordered nest of affine ranges, or where its analysis would take too long.
    """
    nest = program.nests[number]
    if nest.elements is not None or not nest.ordered or not isinstance(nest.form, OfSource | OfFilling):
        return None
    model = model or model_loop(program, number, types)
    return study_nest(nest, types, model.live_after, model.known, maps)


def study_nest(
    nest: LoopNest, types: Types, after: frozenset[str], known: Known = NOTHING, maps: Maps | None = None
) -> Study | None:
    """A nest of ranges statement by statement; `after` are the scalars whose values are needed after it, and `known`
    what holds of its parameters."""
    import islpy as isl

    maps = maps or Maps()
    region = find_region(nest, types, after, known, maps)
    if region is None or any(len(statement.loops) < len(nest.dims) for statement in region.statements):
        return None
    prepare_maps(region, maps)
    try:
        with capped(maps.context, MAX_OPERATIONS):
            relations = relations_of(region, maps)
            return Study(region, relations, carried_by_loops(region, relations))
    except (CapReached, isl.Error):
        maps.give_up("which statement depends on which was not found out; the loop is looked at as a whole")
        return None


def dependences_of(study: Study, maps: Maps) -> tuple[Dependence, ...] | None:
    """The dependences between iterations of the nest as a whole, over arrays: in the dimensions that all statements
    have. None where finding them would take too long."""
    import islpy as isl

    dims, scalars = len(study.region.nest.dims), study.region.scalars
    pairs = [pair for pair in study.relations.pairs if pair.array not in scalars]
    held = held_by(study.region.nest.function.assumed)
    try:
        with capped(maps.context, MAX_WHOLE):
            found = [dependence for pair in pairs for dependence in _over_nest(pair, dims, held, maps)]
    except (CapReached, isl.Error):
        maps.give_up("what statements have in common was not found out; the loop is looked at as a whole")
        return None
    return tuple(sorted(found, key=lambda d: (d.source.span, d.sink.span)))


def _over_nest(pair: Pair, dims: int, held: Held, maps: Maps) -> Iterator[Dependence]:
    found = maps.once(("over nest", pair.made_with(held), dims), lambda: _described_over_nest(pair, dims, held, maps))
    if found is None:
        return
    for source, sink in pair.accesses:
        kind = KINDS[source.is_write, sink.is_write]
        yield Dependence(source.array, kind, source, sink, *found, source.exact and sink.exact)


def _described_over_nest(
    pair: Pair, dims: int, held: Held, maps: Maps
) -> tuple[str, tuple[int | None, ...], tuple[str, ...]] | None:
    """What the dependences of a pair are between iterations of a nest; None where there are none."""
    import islpy as isl

    relation: isl.Map | None = None
    parts: list[isl.Map] = []
    pair.instances.foreach_map(parts.append)
    for part in parts:
        here = over_common(kept_apart(pair, part, held, maps), dims)
        relation = here if relation is None else relation.union(here)
    assert relation is not None
    relation = relation.subtract(isl.Map.identity(relation.get_space()))
    return None if relation.is_empty() else described(relation, dims, maps)
