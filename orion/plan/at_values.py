"""What is found of loops for any sizes and integers, at those of a call: dependences that are not there go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orion.analysis.analyse_nest import candidates_of
from orion.analysis.one_loop import AnalysedLoop, NewOrder, Origin
from orion.cost.placement import array_uses
from orion.dependence.access import Dependence
from orion.dependence.bounds import fix_parameters
from orion.dependence.conflicts import CapReached, capped
from orion.plan.plan import Verdict
from orion.plan.variants import Variant
from orion.sets.maps import Maps


def at_values(analysed: Variant, values: Mapping[str, int], maps: Maps) -> Variant:
    """A variant with the dependences that there are at these values of isl's parameters. Loops that are serial for
    others may be parallel."""
    origins: dict[int, Origin] = {}  # parts of one loop of the source have the same
    loops = tuple(_loop_at(loop, origins, values, maps) for loop in analysed.loops)
    verdicts = tuple(_verdict_at(verdict, values, maps) for verdict in analysed.verdicts)
    return replace(analysed, loops=loops, verdicts=verdicts)


def at_call(analysed: Variant, values: Mapping[str, int], maps: Maps) -> Variant:
    """The same where a serial loop has a dependence that is not there at these values; else the variant as it is."""
    serial = (loop.analysis.dependences for loop in analysed.loops if not (loop.candidates or loop.summed))
    is_same = all(len(_there(dependences, values, maps)) == len(dependences) for dependences in serial)
    return analysed if is_same else at_values(analysed, values, maps)


def _verdict_at(verdict: Verdict, values: Mapping[str, int], maps: Maps) -> Verdict:
    return replace(verdict, carried=_there(verdict.carried, values, maps))


def _loop_at(loop: AnalysedLoop, origins: dict[int, Origin], values: Mapping[str, int], maps: Maps) -> AnalysedLoop:
    if isinstance(loop.form, NewOrder):
        origin = loop.form.origin
        if id(origin) not in origins:
            there = replace(origin.analysis, dependences=_there(origin.analysis.dependences, values, maps))
            origins[id(origin)] = replace(origin, analysis=there)
        return replace(loop, form=replace(loop.form, origin=origins[id(origin)]))
    analysis = replace(loop.analysis, dependences=_there(loop.analysis.dependences, values, maps))
    if loop.candidates or loop.summed or analysis.dependences:
        return replace(loop, analysis=analysis)
    candidates = tuple(candidates_of(loop.nest, analysis, maps))
    uses = array_uses(analysis.accesses, len(loop.nest.dims) if candidates else 0, maps)
    return replace(loop, analysis=analysis, candidates=candidates, uses=uses)


def _there(dependences: Iterable[Dependence], values: Mapping[str, int], maps: Maps) -> tuple[Dependence, ...]:
    """The dependences between iterations that there are, each with those iterations alone; as it is, where finding out
    would take too long."""
    found = []
    for dependence in dependences:
        relation = maps.map(dependence.relation)
        try:
            with capped(maps.context):
                relation = fix_parameters(relation, values)
                if relation.is_empty():
                    continue
        except CapReached:
            found.append(dependence)
        else:
            found.append(replace(dependence, relation=maps.text(relation)))
    return tuple(found)
