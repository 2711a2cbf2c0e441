"""One planned loop analysed by itself, before sizes are known."""

from __future__ import annotations

from dataclasses import replace

from orion.analysis.one_loop import AnalysedLoop, AsWritten
from orion.analysis.rules import legal_candidates
from orion.analysis.strategies.tiling import Question, difference_sets
from orion.cost.candidate import Candidate
from orion.cost.extents import bounded_dims
from orion.cost.placement import array_uses
from orion.cost.worth import work_of
from orion.dependence.access import LoopDependences
from orion.dependence.analyse import analyse_loop
from orion.dependence.announcer import announcers
from orion.dependence.early_exits import ends_early
from orion.dependence.inspector import inspectable
from orion.dependence.model import Model, used_names
from orion.dependence.repeated import counted_dim, repeated_dims
from orion.dependence.scalars import is_combined_in_order, why_in_order
from orion.dependence.study import Study
from orion.ir.assigned import assigned_places
from orion.ir.program import LoopNest, Program, Repeat, RunLoop, Step, blocks_of
from orion.ir.types import Types
from orion.reasons import Reason
from orion.sets.maps import Maps
from orion.sets.names import isl_name


def analyse_nest(
    program: Program, number: int, types: Types, study: Study | None, model: Model, maps: Maps
) -> AnalysedLoop:
    """Analyse one loop: its dependences, the legal candidates of the strongest strategy, and how it uses its arrays."""
    nest = program.nests[number]
    analysis = analyse_loop(program, number, types, study, model, maps)
    candidates = candidates_of(nest, analysis, maps)
    if any(one.time for one in candidates) and (why := _why_in_turn(nest)):
        candidates, analysis = [], replace(analysis, reasons=(*analysis.reasons, why))
    uses = array_uses(analysis.accesses, len(nest.dims) if candidates else 0, maps)
    overlap = _rounds_overlap(program, number, model) and not nest.late
    why_none = () if candidates else _why_in_order(nest, analysis, maps)
    inspector = None
    if not candidates and not why_none:
        inspector, why_none = inspectable(nest, types, analysis)
    return AnalysedLoop(
        nest=nest,
        form=AsWritten(model),
        analysis=analysis,
        candidates=tuple(candidates),
        uses=uses,
        rounds_overlap=overlap,
        work=work_of(study),
        summed=None,
        inspectable=inspector,
        uninspected=why_none,
        announcers=announcers(nest, types, analysis),
        capped=(),
        round_ns=0.0,
        middle_round=(),
        rewrites=(),
    )


def candidates_of(nest: LoopNest, analysis: LoopDependences, maps: Maps) -> list[Candidate]:
    """The legal candidates of the strongest strategy."""
    return _candidates(nest, analysis, maps, in_order=is_combined_in_order(nest, analysis.scalars))


def _candidates(nest: LoopNest, analysis: LoopDependences, maps: Maps, in_order: bool) -> list[Candidate]:
    """The same. `in_order`: tiles are to follow one another, so that nothing but the first dimension is cut."""
    if analysis.reasons or analysis.scalars.carried:
        return []
    dims = len(nest.dims)
    deltas = difference_sets(analysis.dependences, dims, maps)
    repeated = repeated_dims(nest)
    cuttable = tuple(d for d in bounded_dims(analysis.domain, dims, maps) if d not in repeated and not (in_order and d))
    if nest.replicas and ends_early(nest.body):
        return []
    if nest.replicas and nest.elements is None:
        cuttable = tuple(d for d in cuttable if d == counted_dim(nest))
    return legal_candidates(Question(deltas, dims, cuttable, nest.ordered, bool(nest.late), maps))


def _why_in_order(nest: LoopNest, analysis: LoopDependences, maps: Maps) -> tuple[Reason, ...]:
    """Why a loop without candidates is not shared out in tiles that do not follow one another, where it could be."""
    why = why_in_order(nest, analysis.scalars)
    return why if why and _candidates(nest, analysis, maps, in_order=False) else ()


def _why_in_turn(nest: LoopNest) -> Reason | None:
    """Why tiles of a loop may not wait for each other, where they may not."""
    for one in nest.buffered:
        if one.deterministic:
            told = f"updates of `{one.array}` are to be applied in a fixed order, and tiles would wait for each other"
            return Reason.of("ORN133", told, one.span)
    for copied in nest.replicas:
        if copied.policy.waits:
            told = f"workers wait for each other to pull copies `{copied.name}`, and tiles would wait for each other"
            return Reason.of("ORN133", told, copied.span)
    return None


def _rounds_overlap(program: Program, number: int, model: Model) -> bool:
    """Whether no subscript or bound depends on a name that changes from round to round of a loop around it."""
    return changing_names(program, number).isdisjoint(used_names(model))


def changing_names(program: Program, number: int) -> frozenset[str]:
    """The isl names of what has other values in other rounds of the serial loops around a planned loop."""
    return frozenset(isl_name(name) for name in _changing_names(program.steps, number, frozenset()))


def _changing_names(steps: tuple[Step, ...], number: int, around: frozenset[str]) -> frozenset[str]:
    for step in steps:
        if isinstance(step, RunLoop) and step.number == number:
            return around
        inside = around
        if isinstance(step, Repeat):
            inside |= {step.space.var} if step.space else set()
            inside |= set(assigned_places(step.loop.body))
        for block in blocks_of(step):
            found = _changing_names(block, number, inside)
            if found:
                return found
    return frozenset()
