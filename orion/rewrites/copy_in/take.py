"""When reads see copies of arrays made before their loop: where that makes a serial loop parallel."""

from __future__ import annotations

from dataclasses import replace

from orion.analysis.analyses import Analyses
from orion.analysis.one_loop import AnalysedLoop, is_single, origin_of
from orion.ir.program import Program
from orion.ir.types import Types
from orion.rewrites.compare import count_serial
from orion.rewrites.copy_in.apply import with_copies_before
from orion.rewrites.peel.apply import peeled
from orion.rewrites.rewrite import OfLoop, Replacement, Site, Tried
from orion.typing.infer import with_local_arrays


def take(site: Site, best: Tried) -> Tried:
    """What is better than a loop as it is: with copies made before it, or before loops in it that are serial by
    themselves where it is peeled."""
    if best is None:
        return _alone(site)
    serial = count_serial(best)
    if serial and not any(origin_of(inner) for inner in best.loops):
        for distributes in (False, True)[: 1 + ("distribute" not in site.without)]:
            other = peeled(site, distributes=distributes, inside=_before)
            if other is not None:
                return other if count_serial(other) < serial else best
    return best


def _alone(site: Site) -> Tried:
    """The program with copies made before a serial loop, or one in it where that is peeled, so that it is parallel."""
    loop = site.loop
    if loop.candidates or is_single(loop.nest):
        return None
    found = _before(site.program, loop, site.types, site.analyses)
    return found or peeled(site, distributes=False, inside=_before)


def _before(program: Program, loop: AnalysedLoop, types: Types, analyses: Analyses) -> Tried:
    """The program with copies made before a serial loop that is then parallel."""
    if loop.candidates or is_single(loop.nest):
        return None
    changed = with_copies_before(program, loop.nest.number, types, loop.analysis)
    if changed is None:
        return None
    types = with_local_arrays(types, changed.function)
    last = loop.nest.number + len(changed.nests) - len(program.nests)
    freed = analyses.of(changed, last, types).loop
    if not freed.candidates:
        return None
    copies = (analyses.of(changed, number, types).loop for number in range(loop.nest.number, last))
    freed = replace(freed, rewrites=(*freed.rewrites, "copy_in"))
    return Replacement(changed, (*copies, freed), (), ("copy_in",))


COPY_IN = OfLoop("copy_in", "reads see a copy of their array made before the loop", take, may_not_pay=True)
