"""When each tile has an array of its own: where a loop is then parallel without tiles that wait."""

from __future__ import annotations

from dataclasses import replace

from orion.analysis.analyse_nest import candidates_of, changing_names
from orion.analysis.one_loop import AnalysedLoop, is_without_waits
from orion.cost.placement import array_uses
from orion.dependence.inspector import inspectable
from orion.ir.program import Program
from orion.ir.types import Types
from orion.rewrites.privatize.find import with_private_arrays
from orion.rewrites.rewrite import OfArrays
from orion.sets.maps import Maps


def take(loop: AnalysedLoop, program: Program, types: Types, maps: Maps) -> AnalysedLoop:
    """The loop with arrays that are private to its iterations, where these are all that keeps it from strategies
    without tiles that wait, or from tiles that an inspection finds."""
    nest = loop.nest
    if is_without_waits(loop):
        return loop
    freed = with_private_arrays(loop.analysis, nest, types, changing_names(program, nest.number), maps)
    if not freed.private:
        return loop
    candidates = tuple(candidates_of(nest, freed, maps))
    found = None
    if all(candidate.time for candidate in candidates):
        found = None if loop.candidates else inspectable(nest, types, freed)[0]
        if found is None:
            return loop
        candidates = ()
    uses = array_uses(freed.accesses, len(nest.dims) if candidates else 0, maps)
    names = (*loop.rewrites, "privatize")
    return replace(loop, analysis=freed, candidates=candidates, uses=uses, inspectable=found, rewrites=names)


PRIVATIZE = OfArrays("privatize", "each tile has an array of its own", take)
