"""The loops of a new order as planning knows loops: what is known of a band stands for an analysis of its text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orion.analysis.analyse_nest import candidates_of
from orion.analysis.one_loop import AnalysedLoop, AsWritten, InBand, InTimeTiles, NewOrder, Origin, OutsideBands
from orion.cost.placement import ArrayUse
from orion.cost.worth import work_of_statements
from orion.dependence.access import Access, LoopDependences
from orion.dependence.bounds import bounds_checks
from orion.dependence.model import own_space
from orion.dependence.references import collect_references
from orion.dependence.region import Statement
from orion.dependence.scalars import scalar_roles
from orion.dependence.study import Study
from orion.ir.nodes import walk
from orion.ir.program import LoopNest
from orion.rewrites.band import Band
from orion.rewrites.reorder.apply import Rewritten
from orion.rewrites.rewrite import Site


def analyse_parts(found: Rewritten, site: Site, study: Study) -> tuple[AnalysedLoop, ...]:
    """The loops that stand for the one of a site in a new order of the statements in `study`."""
    loop = site.loop
    assert isinstance(loop.form, AsWritten)
    checks = bounds_checks(site.program, site.number, site.types, loop.form.model)
    origin = Origin(loop.nest, loop.analysis, checks, found.dependences, found.order, study.region.statements)
    parts = zip(found.program.nests[found.first :], found.bands, found.live, strict=False)
    return tuple(_analyse_part(nest, band, live, origin, study, site) for nest, band, live in parts)


def _analyse_part(
    nest: LoopNest, band: Band | None, live: frozenset[str], origin: Origin, study: Study, site: Site
) -> AnalysedLoop:
    types = site.types
    scalars = scalar_roles(nest, types, live)
    domain = band.domain if band else own_space(nest, types).text()
    analysis = LoopDependences(domain, (), band.dependences if band else (), scalars, ())
    candidates = candidates_of(nest, analysis, site.maps) if band else []
    if band and band.time_tiles:  # blocks of space are shared out, those of rounds follow one another
        candidates = [one for one in candidates if (one.space, one.time) == (1, (0,))]
    touched: dict[str, bool] = {}
    for access in collect_references(nest, types) if band is None else _accesses_of(nest, band, study):
        touched[access.array] = touched.get(access.array, False) or access.is_write
    return AnalysedLoop(
        nest=nest,
        form=_form(nest, band, origin, study),
        analysis=analysis,
        candidates=tuple(candidates),
        uses=tuple(ArrayUse(array, (), is_written) for array, is_written in touched.items()),
        rounds_overlap=False,
        work=(),
        summed=None,
        inspectable=None,
        announcers=(),
        uninspected=(),
        capped=(),
        round_ns=0.0,
        middle_round=(),
        rewrites=() if band is None else band.rewrites,
    )


def _form(nest: LoopNest, band: Band | None, origin: Origin, study: Study) -> NewOrder:
    told = work_of_statements(study, _statements_of(nest, band, study))
    if band is None:
        return OutsideBands(origin, told)
    if band.time_tiles:
        return InTimeTiles(origin, told, band.places, band.time_tiles)
    return InBand(origin, told, band.places)


def _statements_of(nest: LoopNest, band: Band | None, study: Study) -> Iterator[Statement]:
    """The statements of the source that a loop of a new order runs."""
    if band is not None:
        names = set(re.findall(r"\b(\w+)\[", band.places))
        yield from (statement for statement in study.region.statements if statement.name in names)
        return
    spans = {node.span for part in nest.body for node in walk(part)}
    yield from (statement for statement in study.region.statements if statement.body[0].span in spans)


def _accesses_of(nest: LoopNest, band: Band, study: Study) -> Iterator[Access]:
    """The accesses to arrays of the statements in a band."""
    for statement in _statements_of(nest, band, study):
        yield from (access for access in statement.accesses if access.array not in study.region.scalars)
