"""When each tile has an array of its own: where a loop is then parallel without tiles that wait."""

from __future__ import annotations

from dataclasses import replace

from orion.analysis.analyse_nest import candidates_of, changing_names
from orion.analysis.one_loop import AnalysedLoop, is_without_waits
from orion.cost.placement import array_uses
from orion.ir.program import Program
from orion.ir.types import Types
from orion.rewrites.privatize.find import with_private_arrays
from orion.rewrites.rewrite import OfArrays
from orion.sets.maps import Maps


def take(loop: AnalysedLoop, program: Program, types: Types, maps: Maps) -> AnalysedLoop:
    """The loop with arrays that are private to its iterations, where these are all that keeps it from strategies
    without tiles that wait."""
    nest = loop.nest
    if is_without_waits(loop):
        return loop
    freed = with_private_arrays(loop.analysis, nest, types, changing_names(program, nest.number), maps)
    candidates = tuple(candidates_of(nest, freed, maps)) if freed.private else ()
    if all(candidate.time for candidate in candidates):
        return loop
    uses = array_uses(freed.accesses, len(nest.dims), maps)
    return replace(loop, analysis=freed, candidates=candidates, uses=uses, rewrites=(*loop.rewrites, "privatize"))


PRIVATIZE = OfArrays("privatize", "each tile has an array of its own", take)
