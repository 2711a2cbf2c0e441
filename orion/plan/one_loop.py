"""One planned loop by itself, before sizes are known: its dependences, its legal strategies, how it uses its arrays."""

from __future__ import annotations

from dataclasses import dataclass

from orion.cost.candidate import Candidate
from orion.cost.extents import bounded_dims
from orion.cost.placement import ArrayUse, array_uses
from orion.cost.worth import Work, work_of
from orion.dependence.access import LoopDependences
from orion.dependence.analyse import analyse_loop
from orion.dependence.model import Model, used_names
from orion.dependence.study import Study
from orion.ir.assigned import assigned_places
from orion.ir.program import LoopNest, OfStatements, Program, Repeat, RunLoop, Step, blocks_of
from orion.ir.types import Types
from orion.plan.copies import Summed
from orion.plan.plan import Origin
from orion.plan.rules import legal_candidates
from orion.plan.strategies.tiling import Question, difference_sets
from orion.reasons import Reason
from orion.rewrites.array_sums.find import with_element_sums
from orion.rewrites.privatize.find import with_private_arrays
from orion.rewrites.time_tiles.find import Sweeps
from orion.sets.maps import Maps
from orion.sets.names import isl_name


@dataclass(frozen=True, slots=True)
class AnalysedLoop:
    """What planning a loop needs that does not depend on shapes or workers: computed once per types.

    `form` says what the loop is to the source. `summed` is how it is parallel with copies of arrays that it adds to;
    None where it needs none, or they would not make it so. `capped` are what was not found out because it would have
    taken too long. `round_ns` is the predicted time of the longest loop in the compiled serial loop around it; 0 where
    there is none. `rewrites` are those that put it in another order.
    """

    nest: LoopNest
    form: AnalysedForm
    analysis: LoopDependences
    candidates: tuple[Candidate, ...]
    uses: tuple[ArrayUse, ...]
    rounds_overlap: bool
    work: tuple[Work, ...]
    summed: Summed | None
    capped: tuple[Reason, ...]
    round_ns: float
    rewrites: tuple[str, ...]

    @property
    def parameters(self) -> frozenset[str]:
        """The isl names of the parameters that the domain and the relations of the loop have."""
        relations = [self.analysis.domain, *(access.relation for access in self.analysis.accesses)]
        return frozenset(name for relation in relations for name in _parameters(relation))


@dataclass(frozen=True, slots=True)
class AsWritten:
    """A loop of the source, the one trip around statements that run once, or a loop that fills an array."""

    model: Model


@dataclass(frozen=True, slots=True)
class AsOne:
    """The loop that neighbours, its `members`, are run as (`orion.plan.fusing`)."""

    model: Model
    members: tuple[AnalysedLoop, ...]


@dataclass(frozen=True, slots=True)
class InBand:
    """A loop of a new order, over a band of it.

    `origin` is the loop of the source that this one, among others, stands for. `told` is the work of the statements of
    the source that it runs: for what is said of it, not for choosing. `places` is the isl union map, as text, from the
    instances of its statements to the coordinates of the serial loops around it and its own.
    """

    origin: Origin
    told: tuple[Work, ...]
    places: str


@dataclass(frozen=True, slots=True)
class InTimeTiles:
    """The same of tiles of rounds and space, `sweeps`."""

    origin: Origin
    told: tuple[Work, ...]
    places: str
    sweeps: Sweeps


@dataclass(frozen=True, slots=True)
class OutsideBands:
    """Statements of a new order that one worker runs, once in each round of the serial loops around them."""

    origin: Origin
    told: tuple[Work, ...]


NewOrder = InBand | InTimeTiles | OutsideBands
AnalysedForm = AsWritten | AsOne | NewOrder


def origin_of(loop: AnalysedLoop) -> Origin | None:
    """The loop of the source that a loop of a new order stands for; None for any other loop."""
    match loop.form:
        case InBand(origin=origin) | InTimeTiles(origin=origin) | OutsideBands(origin=origin):
            return origin
        case AsWritten() | AsOne():
            return None


def members_of(loop: AnalysedLoop) -> tuple[AnalysedLoop, ...]:
    """The neighbours that are run as this loop; none for any other."""
    return loop.form.members if isinstance(loop.form, AsOne) else ()


def is_once(nest: LoopNest) -> bool:
    """Whether it stands for statements between loops, which one worker runs."""
    return isinstance(nest.form, OfStatements)


def analyse_nest(
    program: Program, number: int, types: Types, study: Study | None, model: Model, maps: Maps
) -> AnalysedLoop:
    """Analyse one loop: its dependences, the legal candidates of the strongest strategy, and how it uses its arrays."""
    nest = program.nests[number]
    analysis = analyse_loop(program, number, types, study, model, maps)
    candidates = candidates_of(nest, analysis, maps)
    summed: Summed | None = None
    if all(candidate.time for candidate in candidates):  # none, or tiles that wait
        is_out = "privatize" in nest.function.without
        freed = (
            analysis if is_out else with_private_arrays(analysis, nest, types, changing_names(program, number), maps)
        )
        better = candidates_of(nest, freed, maps) if freed.private else []
        if any(not candidate.time for candidate in better):
            analysis, candidates = freed, better
        elif not candidates:
            summed = _summed(nest, freed, types, maps)
    uses = array_uses(analysis.accesses, len(nest.dims) if candidates else 0, maps)
    overlap = _rounds_overlap(program, number, model)
    return AnalysedLoop(
        nest=nest,
        form=AsWritten(model),
        analysis=analysis,
        candidates=tuple(candidates),
        uses=uses,
        rounds_overlap=overlap,
        work=work_of(study),
        summed=summed,
        capped=(),
        round_ns=0.0,
        rewrites=(),
    )


def _summed(nest: LoopNest, private: LoopDependences, types: Types, maps: Maps) -> Summed | None:
    """A serial loop with copies of the arrays whose elements it adds to, where it is parallel with them; `private` is
    its analysis without the arrays that are private to its iterations."""
    if is_once(nest) or "array_sums" in nest.function.without:
        return None
    analysis = with_element_sums(private, nest, types)
    candidates = candidates_of(nest, analysis, maps) if analysis.sums else []
    if not candidates:
        return None
    return Summed(analysis, tuple(candidates), array_uses(analysis.accesses, len(nest.dims), maps))


def candidates_of(nest: LoopNest, analysis: LoopDependences, maps: Maps) -> list[Candidate]:
    """The legal candidates of the strongest strategy."""
    if analysis.reasons or analysis.scalars.carried:
        return []
    dims = len(nest.dims)
    deltas = difference_sets(analysis.dependences, dims, maps)
    return legal_candidates(Question(deltas, dims, bounded_dims(analysis.domain, dims, maps), nest.ordered, maps))


def _rounds_overlap(program: Program, number: int, model: Model) -> bool:
    """Whether no subscript or bound depends on a name that changes from round to round of a loop around it."""
    return changing_names(program, number).isdisjoint(used_names(model))


def _parameters(relation: str) -> set[str]:
    head = relation.partition("->")[0].strip()
    return {name.strip() for name in head.strip("[]").split(",")} if head.startswith("[") else set()


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
