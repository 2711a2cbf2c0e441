"""When blocks add to copies of an array: where a serial loop is then parallel.

Whether it pays is decided when sizes are known (`orion.plan.copies`).
"""

from __future__ import annotations

from dataclasses import replace

from orion.analysis.analyse_nest import candidates_of, changing_names
from orion.analysis.one_loop import AnalysedLoop, Summed, is_single
from orion.cost.placement import array_uses
from orion.ir.program import Program
from orion.ir.types import Types
from orion.rewrites.array_sums.find import with_element_sums
from orion.rewrites.privatize.find import with_private_arrays
from orion.rewrites.rewrite import OfArrays
from orion.sets.maps import Maps


def take(loop: AnalysedLoop, program: Program, types: Types, maps: Maps) -> AnalysedLoop:
    """A serial loop with how it is parallel with copies of the arrays whose elements it adds to, beside arrays that are
    private to its iterations."""
    nest = loop.nest
    if loop.candidates or is_single(nest) or not with_element_sums(loop.analysis, nest, types).sums:
        return loop
    analysis = loop.analysis
    if "privatize" not in nest.function.without:
        analysis = with_private_arrays(analysis, nest, types, changing_names(program, nest.number), maps)
    analysis = with_element_sums(analysis, nest, types)
    candidates = tuple(candidates_of(nest, analysis, maps)) if analysis.sums else ()
    if not candidates:
        return loop
    return replace(loop, summed=Summed(analysis, candidates, array_uses(analysis.accesses, len(nest.dims), maps)))


ARRAY_SUMS = OfArrays("array_sums", "blocks add to copies of an array, which are combined", take)
