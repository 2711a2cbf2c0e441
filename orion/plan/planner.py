"""The plan stage: dependences, types, shapes and a number of workers in, a strategy for each loop out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from orion.dependence.access import Dependence, LoopDependences
from orion.dependence.analyse import analyse_loop
from orion.dependence.effects import assigned_names
from orion.dependence.model import used_names
from orion.dependence.names import isl_name
from orion.loop.ir import Range
from orion.loop.nest import LoopNest, Program, Repeat, RunLoop, Step
from orion.loop.program import is_openable, open_outer_loop
from orion.loop.types import Shapes, Types
from orion.plan.explain import blocking_reasons, not_stronger
from orion.plan.extents import bounded_dims, coordinate_ranges, parameter_values
from orion.plan.grid import DISPATCH_NS, cuts, predicted_ns
from orion.plan.placement import ArrayUse, array_uses, cheapest, placements
from orion.plan.plan import FunctionPlan, LoopPlan, Verdict
from orion.plan.rules import Candidate, Question, difference_sets, legal_candidates
from orion.reasons import Reason


@dataclass(frozen=True, slots=True)
class AnalysedLoop:
    """What planning a loop needs that does not depend on shapes or workers: computed once per types."""

    nest: LoopNest
    analysis: LoopDependences
    candidates: tuple[Candidate, ...]
    uses: tuple[ArrayUse, ...]
    rounds_overlap: bool

    @property
    def parameters(self) -> frozenset[str]:
        """The isl names of the parameters that the domain and the relations of the loop have."""
        relations = [self.analysis.domain, *(access.relation for access in self.analysis.accesses)]
        return frozenset(name for relation in relations for name in _parameters(relation))


@dataclass(frozen=True, slots=True)
class AnalysedProgram:
    """A program with its analysed loops; serial loops that hold parallel ones are opened into `Repeat`s."""

    program: Program
    loops: tuple[AnalysedLoop, ...]


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
    number = 0
    loops: list[AnalysedLoop] = []
    while number < len(program.nests):
        loop = analyse_nest(program, number, types)
        opened = _opened(program, number, types) if not loop.candidates else None
        if opened is not None:
            program = opened
            continue
        loops.append(loop)
        number += 1
    return AnalysedProgram(program, tuple(loops))


def _opened(program: Program, number: int, types: Types) -> Program | None:
    """The program with the outer loop of a serial nest made a `Repeat`, if that makes a loop inside parallel."""
    if not is_openable(program.nests[number], types):
        return None
    opened = open_outer_loop(program, number, types)
    added = len(opened.nests) - len(program.nests) + 1
    inner = analyse_program_slice(opened, range(number, number + added), types)
    return opened if any(loop.candidates for loop in inner) else None


def analyse_program_slice(program: Program, numbers: range, types: Types) -> list[AnalysedLoop]:
    """The loops with these numbers, analysed; a serial one among them counts as what it becomes when opened."""
    loops = []
    for number in numbers:
        loop = analyse_nest(program, number, types)
        opened = _opened(program, number, types) if not loop.candidates else None
        if opened is not None:
            added = len(opened.nests) - len(program.nests) + 1
            loops += analyse_program_slice(opened, range(number, number + added), types)
        else:
            loops.append(loop)
    return loops


def analyse_nest(program: Program, number: int, types: Types) -> AnalysedLoop:
    """Analyse one loop: its dependences, the legal candidates of the strongest strategy, and how it uses its arrays."""
    import islpy as isl

    nest = program.nests[number]
    analysis = analyse_loop(program, number, types)
    dims = len(nest.dims)
    candidates: list[Candidate] = []
    if not analysis.reasons and not analysis.scalars.carried:
        deltas = difference_sets(analysis.dependences, dims, isl.Context())
        question = Question(deltas, dims, bounded_dims(analysis.domain, dims), nest.ordered)
        candidates = legal_candidates(question)
    uses = array_uses(analysis.accesses, dims)
    return AnalysedLoop(nest, analysis, tuple(candidates), uses, _rounds_overlap(program, number, types))


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
    """The plan of a function for given sizes: for each loop the legal candidate that moves the fewest bytes."""
    loops = tuple(plan_loop(loop, types, sizes) for loop in analysed.loops)
    return FunctionPlan(analysed.program, loops, tuple(types.items()))


def plan_loop(loop: AnalysedLoop, types: Types, sizes: Sizes) -> LoopPlan:
    """The plan of one loop."""
    nest, analysis = loop.nest, loop.analysis
    workers = sizes.workers
    ranges = coordinate_ranges(analysis.domain, len(nest.dims), parameter_values(sizes.shapes, sizes.integers))
    legal = [c for c in loop.candidates if sizes.symbolic or all(ranges[d] for d in (c.space, *c.time))]
    at_least_two = max(2, workers)  # on one worker nothing moves, and all candidates would look alike
    options = {c: placements(loop.uses, c, nest, types, sizes.shapes, at_least_two) for c in legal}
    chosen = cheapest(options) if options else None
    extents = [None if span is None else span[1] - span[0] for span in ranges]
    iterations = _iterations(nest, extents, sizes)
    grid = cuts(nest, chosen, [_one_block(e, sizes) for e in extents], workers)
    runs_on, reasons = _worth(nest, chosen, grid, iterations, sizes)
    strategy = chosen.strategy if chosen else "serial"
    if chosen:
        why = not_stronger(strategy, analysis.dependences, nest)
    else:
        why = blocking_reasons(analysis.dependences, nest)
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
        verdicts=verdicts(nest, analysis),
        placements=placements(loop.uses, chosen, nest, types, sizes.shapes, runs_on),
        reasons=(*analysis.reasons, *why, *reasons),
        runs_on=runs_on,
        iterations=iterations,
        rounds_overlap=loop.rounds_overlap,
    )


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
    nest: LoopNest, chosen: Candidate | None, grid: tuple[int, ...], iterations: int | None, sizes: Sizes
) -> tuple[int, tuple[Reason, ...]]:
    """How many workers the loop runs on, and why not on all of them."""
    if chosen is None:
        return 1, ()
    workers = min(sizes.workers, grid[chosen.space])
    if workers < sizes.workers:
        name = nest.dims[chosen.space]
        message = f"`{name}` has only {grid[chosen.space]} blocks for {sizes.workers} workers"
        return workers, (Reason("ORN121", message, (nest.span,), ""),)
    if iterations is not None and workers > 1 and not sizes.force_parallel:
        time = predicted_ns(nest, iterations, sizes.shapes)
        if time < DISPATCH_NS:
            microseconds = max(1, round(time / 1000))
            message = f"{iterations} iterations take about {microseconds} µs: waking other workers costs more"
            return 1, (Reason("ORN120", message, (nest.span,), ""),)
    return workers, ()


def verdicts(nest: LoopNest, analysis: LoopDependences) -> tuple[Verdict, ...]:
    """One verdict per `for` of the nest: the dependences that it carries.

    A loop carries a dependence where the difference may be zero in all loops around it and is not in its own.
    Elements of a sparse array are one loop, which carries them all.
    """
    if nest.elements is not None:
        return (Verdict(nest.loops[0].index, nest.span.line, analysis.dependences),)
    found = []
    for depth, loop in enumerate(nest.loops):
        carried = tuple(d for d in analysis.dependences if _carries(d, depth))
        found.append(Verdict(loop.index, loop.span.line, carried))
    return tuple(found)


def _carries(dependence: Dependence, depth: int) -> bool:
    import islpy as isl

    deltas = isl.Map(dependence.relation).deltas()
    names = [f"d{d}" for d in range(deltas.dim(isl.dim_type.set))]
    zero = " and ".join([*(f"{name} = 0" for name in names[:depth]), f"{names[depth]} != 0"])
    here = isl.Set(f"{{ [{', '.join(names)}] : {zero} }}", deltas.get_ctx())
    return not deltas.intersect(here).is_empty()

