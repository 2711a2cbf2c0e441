"""The plan stage: dependences, types, shapes and a number of workers in, a strategy for each loop out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from orion.dependence.access import LoopDependences
from orion.dependence.analyse import analyse_loop
from orion.dependence.bounds import bounds_checks
from orion.dependence.effects import assigned_names
from orion.dependence.model import own_space, used_names
from orion.dependence.names import isl_name
from orion.dependence.references import collect_references
from orion.dependence.scalars import live_after, scalar_roles
from orion.dependence.study import Study, study_loop
from orion.loop.ir import Range
from orion.loop.nest import LoopNest, Program, Repeat, RunLoop, Step
from orion.loop.program import is_openable, open_outer_loop
from orion.loop.types import Shapes, Types
from orion.plan.explain import blocking_reasons, not_stronger
from orion.plan.extents import bounded_dims, coordinate_ranges, parameter_values
from orion.plan.grid import DISPATCH_NS, cuts, predicted_ns
from orion.plan.placement import ArrayUse, array_uses, cheapest, placements
from orion.plan.plan import FunctionPlan, LoopPlan, Origin, Verdict
from orion.plan.rules import Candidate, Question, difference_sets, legal_candidates
from orion.plan.verdicts import verdicts
from orion.plan.worth import Work, depth_of, is_worthwhile, meetings_of, work_ns, work_of
from orion.reasons import Reason
from orion.transform.apply import Rewritten, rewrite_loop
from orion.transform.bands import Band


@dataclass(frozen=True, slots=True)
class AnalysedLoop:
    """What planning a loop needs that does not depend on shapes or workers: computed once per types.

    `origin` is the loop of the source that this one, among others, stands for in another order. `places` is then
    the isl union map, as text, from the instances of its statements to the coordinates of the serial loops around it
    and its own.
    """

    nest: LoopNest
    analysis: LoopDependences
    candidates: tuple[Candidate, ...]
    uses: tuple[ArrayUse, ...]
    rounds_overlap: bool
    origin: Origin | None = None
    places: str = ""
    work: tuple[Work, ...] = ()

    @property
    def parameters(self) -> frozenset[str]:
        """The isl names of the parameters that the domain and the relations of the loop have."""
        relations = [self.analysis.domain, *(access.relation for access in self.analysis.accesses)]
        return frozenset(name for relation in relations for name in _parameters(relation))


@dataclass(frozen=True, slots=True)
class AnalysedProgram:
    """A program with its analysed loops; serial loops that hold parallel ones are opened into `Repeat`s, others are in
    another order. `changed` are those loops, and `as_written` the program without any of that, where there are any."""

    program: Program
    loops: tuple[AnalysedLoop, ...]
    verdicts: tuple[Verdict, ...]
    changed: tuple[Changed, ...] = ()
    as_written: AnalysedProgram | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """The loops that stand for one loop of the source, and what that one has to do: see `orion.plan.worth`."""

    numbers: range
    around: int
    work: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of one call: shapes, integer arguments, element counts of sparse arrays, workers.

    `symbolic`: there is no call, and unknown sizes stand for any.
    """

    shapes: Shapes = field(default_factory=dict)
    integers: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    workers: int = 1
    force_parallel: bool = False
    symbolic: bool = False


def analyse_program(program: Program, types: Types) -> AnalysedProgram:
    """Analyse every loop. Where a nest is serial as a whole but its outer loop can be taken as a serial loop around
    planned ones, and one of those is parallel, that is done."""
    number, source = 0, program
    loops: list[AnalysedLoop] = []
    written: list[AnalysedLoop] = []
    judged: list[Verdict] = []
    changed: list[Changed] = []
    while number < len(program.nests):
        study = study_loop(program, number, types)
        loop = analyse_nest(program, number, types, study)
        judged += verdicts(program, loop.nest, loop.analysis, study, types)
        written.append(replace(loop, nest=source.nests[len(written)]))
        better = _better(program, loop, study, types)
        if better is None:
            loops.append(loop)
            number += 1
            continue
        around = depth_of(program, number)
        program, found = better
        changed.append(Changed(range(number, number + len(found)), around, work_of(study)))
        loops += found
        number += len(found)
    plain = AnalysedProgram(source, tuple(written), tuple(judged)) if changed else None
    return AnalysedProgram(program, tuple(loops), tuple(judged), tuple(changed), plain)


def _better(
    program: Program, loop: AnalysedLoop, study: Study | None, types: Types
) -> tuple[Program, list[AnalysedLoop]] | None:
    """The program with a loop opened or in another order, and its loops, where that is better than the loop as it is.

    Loops without tiles that wait, in a serial one, are preferred to a new order of the whole, if nothing else is in it.
    """
    opened = None if loop.candidates else _opened(program, loop.nest.number, types)
    if opened is not None and all(_is_simple(inner) for inner in opened[1]):
        return opened
    is_fine = bool(loop.candidates) or (opened is not None and all(inner.candidates for inner in opened[1]))
    return _rewritten(program, loop, study, types, must_gain=is_fine) or opened


def _is_simple(loop: AnalysedLoop) -> bool:
    """Whether a loop is parallel without tiles that wait for each other."""
    return any(not candidate.time for candidate in loop.candidates)


def _rewritten(
    program: Program, loop: AnalysedLoop, study: Study | None, types: Types, must_gain: bool
) -> tuple[Program, list[AnalysedLoop]] | None:
    """The program with a nest of ranges in a better order, and its new loops: where one of those is parallel and, if
    the nest is parallel without it (`must_gain`), the new order is faster on one worker too."""
    found = None if study is None else rewrite_loop(program, study, types)
    if found is None or (must_gain and not _is_faster(found)):
        return None
    nest = loop.nest
    origin = Origin(nest, loop.analysis, bounds_checks(program, nest.number, types), found.dependences, found.order)
    loops = [
        _analyse_rewritten(found.program, found.first + position, band, types, origin)
        for position, band in enumerate(found.bands)
    ]
    return (found.program, loops) if any(new.candidates for new in loops) else None


def _is_faster(found: Rewritten) -> bool:
    """Whether a new order is better than a parallel loop as written: its innermost loops go through memory in smaller
    steps, or their chains of dependent trips are run several at a time."""
    return found.trips[1] < found.trips[0] or any(band is not None and band.in_lockstep for band in found.bands)


def _analyse_rewritten(
    program: Program, number: int, band: Band | None, types: Types, origin: Origin
) -> AnalysedLoop:
    """A loop of a new order: what is known of its band stands for an analysis of its text."""
    nest = program.nests[number]
    scalars = scalar_roles(nest, types, live_after(program, number))
    domain = band.domain if band else own_space(nest, types).text()
    analysis = LoopDependences(domain, (), band.dependences if band else (), scalars, ())
    candidates = _candidates(nest, analysis) if band else []
    touched: dict[str, bool] = {}
    for reference in collect_references(nest, types):
        touched[reference.array] = touched.get(reference.array, False) or reference.is_write
    uses = tuple(ArrayUse(array, (), is_written) for array, is_written in touched.items())
    return AnalysedLoop(nest, analysis, tuple(candidates), uses, False, origin, band.places if band else "")


def _opened(program: Program, number: int, types: Types) -> tuple[Program, list[AnalysedLoop]] | None:
    """The program with the outer loop of a serial nest made a `Repeat`, and the loops that it then has inside, if that
    makes one of them parallel."""
    if not is_openable(program.nests[number], types):
        return None
    before = len(program.nests)
    program = open_outer_loop(program, number, types)
    found: list[AnalysedLoop] = []
    last = number + len(program.nests) - before + 1
    while number < last:
        loop = analyse_nest(program, number, types, study_loop(program, number, types))
        changed = None if loop.candidates else _opened(program, number, types)
        if changed is None:
            found.append(loop)
            number += 1
            continue
        program, inner = changed
        found += inner
        last += len(inner) - 1
        number += len(inner)
    return (program, found) if any(loop.candidates for loop in found) else None


def analyse_nest(program: Program, number: int, types: Types, study: Study | None = None) -> AnalysedLoop:
    """Analyse one loop: its dependences, the legal candidates of the strongest strategy, and how it uses its arrays."""
    nest = program.nests[number]
    analysis = analyse_loop(program, number, types, study)
    uses = array_uses(analysis.accesses, len(nest.dims))
    candidates = _candidates(nest, analysis)
    overlap = _rounds_overlap(program, number, types)
    return AnalysedLoop(nest, analysis, tuple(candidates), uses, overlap, work=work_of(study))


def _candidates(nest: LoopNest, analysis: LoopDependences) -> list[Candidate]:
    """The legal candidates of the strongest strategy."""
    import islpy as isl

    if analysis.reasons or analysis.scalars.carried:
        return []
    dims = len(nest.dims)
    deltas = difference_sets(analysis.dependences, dims, isl.Context())
    return legal_candidates(Question(deltas, dims, bounded_dims(analysis.domain, dims), nest.ordered))


def _rounds_overlap(program: Program, number: int, types: Types) -> bool:
    """Whether no subscript or bound depends on a name that changes from round to round of a loop around it."""
    changing = {isl_name(name) for name in _changing_names(program.steps, number, frozenset())}
    return changing.isdisjoint(used_names(program.nests[number], types))


def _parameters(relation: str) -> set[str]:
    head = relation.partition("->")[0].strip()
    return {name.strip() for name in head.strip("[]").split(",")} if head.startswith("[") else set()


def _changing_names(steps: tuple[Step, ...], number: int, around: frozenset[str]) -> frozenset[str]:
    for step in steps:
        if isinstance(step, Repeat):
            own = {step.loop.space.var} if isinstance(step.loop.space, Range) else set()
            found = _changing_names(step.steps, number, around | own | set(assigned_names(step.loop.body)))
            if found:
                return found
        elif isinstance(step, RunLoop) and step.number == number:
            return around
    return frozenset()


# ---------------------------------------------------------------- with sizes


def plan_program(analysed: AnalysedProgram, types: Types, sizes: Sizes) -> FunctionPlan:
    """The plan of a function for given sizes: for each loop the legal candidate that moves the fewest bytes.

    Loops are opened, or put in another order, only where all workers together have so much to do that meeting costs
    little.
    """
    loops = tuple(plan_loop(loop, types, sizes) for loop in analysed.loops)
    plan = FunctionPlan(analysed.program, loops, tuple(types.items()), analysed.verdicts)
    if analysed.as_written is None or _is_worthwhile(analysed, sizes):
        return plan
    changed = {number for one in analysed.changed for number in one.numbers}
    alone = tuple(_on_one_worker(loop) if loop.nest.number in changed else loop for loop in loops)
    return replace(plan, loops=alone, instead=plan_program(analysed.as_written, types, sizes))


def _is_worthwhile(analysed: AnalysedProgram, sizes: Sizes) -> bool:
    """Whether opened loops, and those in another order, are worth their meetings at these sizes."""
    values = parameter_values(sizes.shapes, sizes.integers)
    return (
        sizes.symbolic
        or sizes.force_parallel
        or all(
            is_worthwhile(work_ns(one.work, values), meetings_of(analysed.program, one.numbers, values, one.around))
            for one in analysed.changed
        )
    )


def _on_one_worker(loop: LoopPlan) -> LoopPlan:
    message = "at these sizes the loop runs as written, on one worker: meeting the others would cost more than it gains"
    span = (loop.origin.nest if loop.origin else loop.nest).span
    return replace(loop, runs_on=1, reasons=(*loop.reasons, Reason("ORN120", message, (span,), "")))


def plan_loop(loop: AnalysedLoop, types: Types, sizes: Sizes) -> LoopPlan:
    """The plan of one loop."""
    nest, analysis = loop.nest, loop.analysis
    workers = sizes.workers
    values = parameter_values(sizes.shapes, sizes.integers)
    ranges = coordinate_ranges(analysis.domain, len(nest.dims), values)
    legal = [c for c in loop.candidates if sizes.symbolic or all(ranges[d] for d in (c.space, *c.time))]
    extents = [None if span is None else span[1] - span[0] for span in ranges]
    if nest.is_rewritten:  # nothing is moved: what counts is that there are many tiles
        legal.sort(key=lambda c: -min(extents[d] or 0 for d in (c.space, *c.time)))
    at_least_two = max(2, workers)  # on one worker nothing moves, and all candidates would look alike
    options = {c: placements(loop.uses, c, nest, types, sizes.shapes, at_least_two) for c in legal}
    in_turn = nest.elements is not None or nest.is_rewritten
    chosen = cheapest(options, in_turn) if options else None
    iterations = _iterations(nest, extents, sizes)
    grid = cuts(nest, chosen, [_one_block(e, sizes) for e in extents], workers)
    time = None if nest.is_rewritten or iterations is None else work_ns(loop.work, values)
    if time is None and iterations is not None:
        time = predicted_ns(nest, iterations, sizes.shapes)
    runs_on, reasons = _worth(nest, chosen, grid, time, iterations, sizes)
    strategy = _strategy(loop, chosen)
    written = loop.origin or loop
    pairs = written.analysis.dependences
    why = not_stronger(strategy, pairs, written.nest) if chosen else blocking_reasons(pairs, written.nest)
    if loop.candidates and not legal:
        why = (*why, _unknown_range(nest))
    return LoopPlan(
        nest=nest,
        strategy=strategy,
        space=chosen.space if chosen else None,
        time=chosen.time if chosen else (),
        cuts=grid,
        ordered=nest.ordered,
        analysis=analysis,
        placements=placements(loop.uses, chosen, nest, types, sizes.shapes, runs_on),
        reasons=(*analysis.reasons, *why, *reasons),
        runs_on=runs_on,
        iterations=iterations,
        rounds_overlap=loop.rounds_overlap,
        origin=loop.origin,
        places=loop.places,
        written_iterations=_written_iterations(loop.origin, values, sizes) if loop.origin else iterations,
    )


def _written_iterations(origin: Origin, values: Mapping[str, int], sizes: Sizes) -> int | None:
    """How many iterations the loop of the source has, or an upper bound."""
    ranges = coordinate_ranges(origin.analysis.domain, len(origin.nest.dims), values)
    return _iterations(origin.nest, [None if span is None else span[1] - span[0] for span in ranges], sizes)


def _strategy(loop: AnalysedLoop, chosen: Candidate | None) -> str:
    """The name of the strategy: that of anti-diagonals in another order than the written one is "wavefront"."""
    if chosen is None:
        return "serial"
    return "wavefront" if loop.origin and chosen.strategy == "2d" else chosen.strategy


def _one_block(extent: int | None, sizes: Sizes) -> int | None:
    """A dimension of unknown range has one block, unless all sizes are symbols."""
    return 1 if extent is None and not sizes.symbolic else extent


def _unknown_range(nest: LoopNest) -> Reason:
    message = "the bounds of the loop are computed while the function runs: its iterations cannot be shared out before"
    hint = "pass the bound as an argument, or compute it from arguments and shapes"
    return Reason("ORN108", message, (nest.span,), hint)


def _iterations(nest: LoopNest, extents: list[int | None], sizes: Sizes) -> int | None:
    if nest.elements is not None:
        return sizes.counts.get(nest.elements.array)
    known = [extent for extent in extents if extent is not None]
    return prod(known) if len(known) == len(extents) else None


def _worth(
    nest: LoopNest,
    chosen: Candidate | None,
    grid: tuple[int, ...],
    time: float | None,
    iterations: int | None,
    sizes: Sizes,
) -> tuple[int, tuple[Reason, ...]]:
    """How many workers a loop that takes `time` nanoseconds on one runs on, and why not on all of them."""
    if chosen is None:
        return 1, ()
    workers = min(sizes.workers, grid[chosen.space])
    if workers < sizes.workers:
        name = nest.dims[chosen.space]
        message = f"`{name}` has only {grid[chosen.space]} blocks for {sizes.workers} workers"
        return workers, (Reason("ORN121", message, (nest.span,), ""),)
    if time is not None and workers > 1 and not sizes.force_parallel and not nest.is_rewritten and time < DISPATCH_NS:
        microseconds = max(1, round(time / 1000))
        message = f"{iterations} iterations take about {microseconds} µs: waking other workers costs more"
        return 1, (Reason("ORN120", message, (nest.span,), ""),)
    return workers, ()
