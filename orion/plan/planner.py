"""The plan stage: analysed loops, shapes and a number of workers in, a strategy for each loop out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, prod

from orion.analysis.one_loop import (
    AnalysedLoop,
    AsOne,
    AsWritten,
    InBand,
    InTimeTiles,
    NewOrder,
    Origin,
    OutsideBands,
    is_shared_out,
    is_single,
    members_of,
    origin_of,
)
from orion.cost.candidate import Candidate, Strategy
from orion.cost.chains import is_chain
from orion.cost.extents import coordinate_ranges
from orion.cost.grid import COMBINED_NS, DISPATCH_NS, ROUND_NS, cuts, extents_of, predicted_ns
from orion.cost.local_arrays import local_arrays_at
from orion.cost.placement import Placement, cheapest, placements
from orion.cost.sizes import Sizes
from orion.cost.worth import (
    Changes,
    barriers_of,
    depth_of,
    is_worthwhile,
    middle_round,
    starts_of,
    work_ns,
    work_of_parts,
)
from orion.dependence.bounds import fix_parameters
from orion.dependence.model import loops_around
from orion.ir.assumed import Assumed
from orion.ir.followable import followable, started_by
from orion.ir.function import written_names
from orion.ir.program import LoopNest, OfFilling, OfStatements, Repeat
from orion.ir.types import Types
from orion.plan.at_values import at_call, at_values
from orion.plan.blockers import without_private_blockers
from orion.plan.conditions import may_hold, with_conditions
from orion.plan.considered import considered, not_made, with_considered
from orion.plan.copied_in import why_not_copied_in, with_costly_copies
from orion.plan.copies import why_no_copies, with_copies
from orion.plan.dynamic import first_deal, is_dynamic, with_smaller_tiles
from orion.plan.explain import Told, blocking_reasons, few_blocks, in_turn, not_stronger, one_by_one, unknown_range
from orion.plan.fused import along, fused_program, keeps_blocks, why_fused, with_members, with_reasons
from orion.plan.inspected import may_gain, too_short, with_inspection
from orion.plan.neighbours import handovers, moved_between
from orion.plan.one_order import in_one_order
from orion.plan.plan import (
    Fill,
    Form,
    FunctionPlan,
    Fused,
    LoopPlan,
    Reordered,
    ReorderedSingle,
    Single,
    Tiled,
    Uncut,
    Written,
)
from orion.plan.relaxed import relaxed_at
from orion.plan.rounded import combined_floats
from orion.plan.served import with_listed
from orion.plan.variants import Changed, Variant
from orion.plan.wide import check_ranges, may_leave_64_bits
from orion.reasons import Reason, ReasonKind
from orion.rewrites.fuse.found import Fusable
from orion.rewrites.privatize.find import ends_at_one_place, with_shared_arrays
from orion.rewrites.time_tiles.cost import all_pay, boxes
from orion.sets.maps import Maps

Beside = Callable[[tuple[Placement, ...]], float]
"""The bytes that move before and after a loop, given its placements."""


def plan_program(variants: Sequence[Variant], sizes: Sizes, maps: Maps | None = None) -> FunctionPlan:
    """The plan of a function for given sizes: of its variants the first whose conditions hold and whose changes pay,
    and for each loop of it the legal candidate that moves the fewest bytes.

    Loops are peeled, or put in another order, only where all workers together have so much to do that meeting costs
    little. What is not taken is told of in the plan. `maps` is what was made in isl before.
    """
    if not sizes.symbolic:
        check_ranges(variants[-1].program.function, sizes.values)
    maps = maps or Maps()  # is there until all that is made in it is gone
    return choose(tuple(variants), sizes, maps)


def choose(variants: tuple[Variant, ...], sizes: Sizes, maps: Maps) -> FunctionPlan:
    """The plan of the variant that is run at these sizes, and what there is to say of those before it."""
    tell: list[Callable[[FunctionPlan], FunctionPlan]] = []
    while len(variants) > 1:
        variant, *rest = variants
        extra = set(variant.program.function.assumed).difference(variants[-1].program.function.assumed)
        failing = [one for one in variant.program.function.assumed if one in extra and not may_hold(one, sizes)]
        if failing:
            variants = _without(failing, variants, sizes, maps)
            tell.append(partial(with_conditions, function=variant.program.function, failing=failing))
            continue
        whole, plan = _plan_of(variant, variant.typing.arguments, sizes, maps)
        variants = tuple(rest)
        if may_leave_64_bits(whole.loops, sizes.values):
            continue
        too_costly = why_not_copied_in(whole, plan, sizes)
        if too_costly:
            tell.append(partial(with_costly_copies, reasons=too_costly))
        elif _is_worthwhile(whole, plan.loops, sizes, maps):
            break
        else:
            tell.append(partial(_told_of, whole, plan, sizes=sizes, maps=maps))
    else:
        last = variants[0] if sizes.symbolic else at_call(variants[0], sizes.values, maps)
        _, plan = _plan_of(last, last.typing.arguments, sizes, maps)
    for told in reversed(tell):
        plan = told(plan)
    return plan


def _without(
    failing: Sequence[Assumed], variants: tuple[Variant, ...], sizes: Sizes, maps: Maps
) -> tuple[Variant, ...]:
    """The variants that run where some conditions do not hold; where these are those for any sizes and integers, with
    the dependences that there are at those of the call."""
    rest = tuple(one for one in variants if {*failing}.isdisjoint(one.program.function.assumed))
    assumed = variants[-1].program.function.assumed
    if any(one.program.function.assumed != assumed for one in rest):
        return rest
    return tuple(at_values(variant, sizes.values, maps) for variant in rest)


def _plan_of(variant: Variant, types: Types, sizes: Sizes, maps: Maps) -> tuple[Variant, FunctionPlan]:
    """A variant with the neighbours that are run as one at these sizes, and its plan."""
    chosen = [one for one in variant.neighbours.fusable if _is_better_as_one(one, types, sizes, maps)]
    whole = fused_program(variant, chosen)
    whole = _with_rounds(whole, sizes, maps)
    again = partial(_plan_loop, types=types, sizes=sizes, maps=maps)
    pairs = zip(whole.loops, in_one_order(whole.loops, _agreed(whole, types, sizes, maps), sizes, again), strict=True)
    found = (_with_neighbours(whole, loop, plan, types, sizes, maps) for loop, plan in pairs)
    loops = without_private_blockers(found, variant.verdicts)
    plan = FunctionPlan(
        whole.program,
        loops,
        tuple(types.items()),
        variant.verdicts,
        unfused=variant.program if chosen else None,
        deferred=whole.deferred,
        rewrites=_rewrites_of(whole),
        local_arrays=local_arrays_at(whole.program.function, sizes.shapes),
        considered=tuple(not_made(loops)),
        floats=combined_floats(loops, variant.typing),
        sizes=sizes,
    )
    return whole, plan


def _rewrites_of(variant: Variant) -> tuple[tuple[str, int], ...]:
    """The rewrites of a variant, with the lines of the loops of the source that they were taken for; but for those of
    single loops of it."""
    return (*variant.rewrites, *((name, one.line) for one in variant.changed for name in one.rewrites))


def _told_of(analysed: Variant, plan: FunctionPlan, instead: FunctionPlan, sizes: Sizes, maps: Maps) -> FunctionPlan:
    """The plan that is taken `instead` of one with opened loops, or some in another order, and that this one was
    considered."""
    if not _are_shared_out(analysed, plan.loops, sizes):
        unshared = (one for one in analysed.changed if not _is_shared(one, analysed, plan.loops, sizes))
        alone = [number for one in unshared for number in one.numbers]
        instead = with_considered(instead, None, plan, alone)
        return replace(instead, considered=tuple(dict.fromkeys((*plan.considered, *instead.considered))))
    changes = [_changes(one, analysed, plan.loops, sizes, maps) for one in analysed.changed]
    numbers = [number for one in analysed.changed for number in one.numbers]
    return with_considered(instead, considered(plan, instead, numbers, changes, sizes.workers), plan)


def _is_better_as_one(neighbours: Fusable, types: Types, sizes: Sizes, maps: Maps) -> bool:
    if why_fused(neighbours.loop, types, sizes) is None:
        return False
    summing = [
        one for one in members_of(neighbours.loop) if one.analysis.scalars.reductions or one.analysis.scalars.choices
    ]
    fused = _plan_loop(neighbours.loop, types, sizes, maps)
    if not isinstance(fused.tiles, Tiled):  # nobody can count its iterations
        return False
    return all(keeps_blocks(fused, _plan_loop(member, types, sizes, maps)) for member in summing)


def _with_neighbours(
    analysed: Variant, loop: AnalysedLoop, plan: LoopPlan, types: Types, sizes: Sizes, maps: Maps
) -> LoopPlan:
    """The plan of a loop of a program with what there is to say of its neighbours."""
    plan = with_reasons(with_smaller_tiles(plan, loop, sizes, maps), analysed.neighbours.not_fused, types, sizes)
    if not isinstance(loop.form, AsOne):
        return plan
    assert isinstance(plan.tiles, Tiled)
    space = plan.tiles.space
    in_blocks = (along(member, space) for member in loop.form.members)
    members = tuple(_plan_loop(member, types, sizes, maps) for member in in_blocks)
    why = why_fused(loop, types, sizes)
    assert why is not None
    return with_members(plan, members, why)


def _agreed(analysed: Variant, types: Types, sizes: Sizes, maps: Maps) -> tuple[LoopPlan, ...]:
    """The plans of all loops. Where one leaves an array cut along another axis than the next, the loops choose again,
    one after the other, given what the others do, until none would choose otherwise.

    They choose as for two workers where there is one, so that the bits of results do not depend on that.
    """
    if len(analysed.loops) < 2:
        return tuple(_plan_loop(loop, types, sizes, maps) for loop in analysed.loops)
    several = replace(sizes, workers=max(2, sizes.workers))
    loops = [_plan_loop(loop, types, several, maps) for loop in analysed.loops]
    values = sizes.values
    found = handovers(analysed.program, loops, values)
    for _ in loops:
        before = list(loops)
        for number in sorted({k for one in found for k in (one.first, one.second)}):
            runs = barriers_of(analysed.program, range(number, number + 1), values, 0)

            def beside(own: Iterable[Placement], number: int = number, runs: float = runs) -> float:
                return moved_between(number, own, loops, found, types, sizes.shapes) / max(1.0, runs)

            if beside(loops[number].placements):
                loops[number] = _plan_loop(analysed.loops[number], types, several, maps, beside)
        if loops == before:
            break
    if several == sizes:
        return tuple(loops)
    pairs = zip(analysed.loops, loops, strict=True)
    return tuple(_plan_loop(loop, types, sizes, maps, _like(plan)) for loop, plan in pairs)


def _like(plan: LoopPlan) -> Beside:
    """Nothing for the placements of a plan, and more than anything for others."""
    wanted = [(placement.array, placement.kind, placement.dim) for placement in plan.placements]
    return lambda own: 0.0 if [(one.array, one.kind, one.dim) for one in own] == wanted else inf


def _is_worthwhile(analysed: Variant, loops: tuple[LoopPlan, ...], sizes: Sizes, maps: Maps) -> bool:
    """Whether opened loops, and those in another order, are worth their meetings at these sizes."""
    if not _are_shared_out(analysed, loops, sizes):
        return False
    if any("time_tiles" in one.rewrites for one in analysed.changed) and not all_pay(analysed.loops, sizes, maps):
        return False
    if sizes.symbolic or sizes.force_parallel:
        return True
    return is_worthwhile([_changes(one, analysed, loops, sizes, maps) for one in analysed.changed])


def _are_shared_out(analysed: Variant, loops: Sequence[LoopPlan], sizes: Sizes) -> bool:
    return all(_is_shared(one, analysed, loops, sizes) for one in analysed.changed)


def _is_shared(changed: Changed, analysed: Variant, loops: Sequence[LoopPlan], sizes: Sizes) -> bool:
    """Whether what stands for a loop that was changed has a loop that is parallel, at these sizes, or may be when it is
    inspected."""
    plans = [(number, loops[number]) for number in changed.numbers]
    shared = (number for number, loop in plans if sizes.symbolic or loop.strategy is not Strategy.SERIAL)
    return is_shared_out(analysed.loops[k] for k in shared) or any(may_gain(loop, sizes) for _, loop in plans)


def _changes(changed: Changed, analysed: Variant, loops: Sequence[LoopPlan], sizes: Sizes, maps: Maps) -> Changes:
    numbers, around, program = changed.numbers, changed.around, analysed.program
    compiled = {number for inside in _followed(analysed) for number in inside}
    in_rounds = [number for number in numbers if depth_of(program, number) > around]
    in_python = not compiled.issuperset(in_rounds) or ("distribute" in changed.rewrites and not changed.work)
    work = work_ns(changed.work, sizes, maps)
    if in_python or (work is not None and not any(origin_of(analysed.loops[number]) for number in numbers)):
        written = analysed.loops
        parts = [(loops[k].nest, loops[k].iterations, written[k].work, written[k].middle_round) for k in numbers]
        apart = work_of_parts(program, parts, sizes, around, maps)
        work = max(apart, work or 0.0)  # as a whole it may have loops whose trips nobody knows
    found = Changes(work, starts_of(program, numbers, sizes.values), in_python)
    times = found.barriers / (barriers_of(program, numbers, sizes.values, around) or 1.0)
    return found if work is None else replace(found, work=work * times)


def _followed(analysed: Variant) -> Iterator[tuple[int, ...]]:
    """The loops of steps that may be followed by the walker, but for those that Python begins in each round."""
    summed = {loop.nest.number for loop in analysed.loops if loop.summed is not None}
    for found in followable(analysed.program.steps, lambda number: number not in summed):
        if not found.is_repeated or any(isinstance(step, Repeat) for step in found.steps):
            yield tuple(started_by(found.steps))


def _with_rounds(analysed: Variant, sizes: Sizes, maps: Maps) -> Variant:
    """The program with the middle rounds of its loops and the times of the longest ones in followed steps: where one of
    them is worth other workers, so are all, since each worker then has its part of the arrays in its cache."""
    steps, values = analysed.program.steps, sizes.values
    loops = [
        replace(loop, middle_round=middle_round(loops_around(steps, number) or (), values))
        for number, loop in enumerate(analysed.loops)
    ]
    for numbers in _followed(analysed):
        times = [work_ns(loops[number].work, sizes.at_round(loops[number].middle_round), maps) for number in numbers]
        longest = max((time or 0.0 for time in times), default=0.0)
        for number in numbers:
            loops[number] = replace(loops[number], round_ns=longest)
    return replace(analysed, loops=tuple(loops))


def _plan_loop(loop: AnalysedLoop, types: Types, sizes: Sizes, maps: Maps, beside: Beside = lambda _: 0) -> LoopPlan:
    """The plan of one loop: with copies of arrays that it adds to, where it needs them and they pay."""
    if loop.summed is None:
        return _plan_plainly(loop, types, sizes, maps, beside)
    found = loop.summed
    names = (*loop.rewrites, "array_sums")
    inside = replace(loop, analysis=found.analysis, candidates=found.candidates, uses=found.uses, rewrites=names)
    plan = with_copies(_plan_plainly(inside, types, sizes, maps, beside), types, sizes.shapes)
    time = work_ns(loop.work, sizes, maps)
    why = why_no_copies(plan, time, sizes.shapes, any_size=sizes.symbolic or sizes.force_parallel)
    if why is None:
        return plan
    serial = _plan_plainly(loop, types, sizes, maps, beside)
    return replace(serial, reasons=(*serial.reasons, why))


def _plan_plainly(loop: AnalysedLoop, types: Types, sizes: Sizes, maps: Maps, beside: Beside) -> LoopPlan:
    workers, values = sizes.workers, sizes.known
    if loop.analysis.private and not (sizes.symbolic or ends_at_one_place(loop.analysis.domain, values, maps)):
        loop = replace(loop, analysis=with_shared_arrays(loop.analysis), candidates=())
    nest, analysis = loop.nest, loop.analysis
    ranges = coordinate_ranges(analysis.domain, len(nest.dims), values, maps)
    known = [c for c in loop.candidates if sizes.symbolic or all(ranges[d] for d in (c.space, *c.time))]
    extents = extents_of(nest, ranges, sizes.shapes)
    legal = [c for c in known if not _is_chain(loop, c, extents, sizes, maps)]
    is_new_order = isinstance(loop.form, NewOrder)
    if is_new_order:  # nothing is moved: what counts is that there are many tiles
        legal.sort(key=lambda c: -min(extents[d] or 0 for d in (c.space, *c.time)))
    options = {c: placements(loop.uses, c, nest, types, sizes.shapes, max(2, workers)) for c in legal}  # 1 moves none
    chosen = cheapest(options, nest.elements is not None or is_new_order, beside) if options else None
    iterations = _iterations(nest, extents, sizes)
    time_tiles = loop.form.time_tiles if isinstance(loop.form, InTimeTiles) else None
    free = not (sizes.symbolic or time_tiles or analysis.scalars.has_results or analysis.private or analysis.sums)
    blocks = [1 if one is None and not sizes.symbolic else one for one in extents]  # 1 where the range is unknown
    grid = cuts(nest, chosen, blocks, workers, few=bool(analysis.sums), free=free)
    if time_tiles and chosen:
        grid = boxes(time_tiles, extents, workers) or grid
    runs_on, reasons = _worth(loop, chosen, grid, extents, sizes, maps)
    strategy = _strategy(loop, chosen)
    written = origin_of(loop) or loop
    pairs = written.analysis.dependences
    told = Told(written.nest, values, maps)
    why = not_stronger(strategy, pairs, told) if chosen else blocking_reasons(pairs, told, sizes.symbolic)
    if not known and (loop.candidates or not (analysis.reasons or why or loop.capped or is_single(nest))):
        why = (*why, unknown_range(nest, types))
    elif known and not legal:
        why = (*why, one_by_one(nest))
    plan = LoopPlan(
        nest=nest,
        form=_form(loop, values, sizes, maps),
        strategy=strategy,
        tiles=Tiled(chosen.space, chosen.time) if chosen else Uncut(),
        cuts=grid,
        is_parallel=bool(known),
        ordered=nest.ordered,
        analysis=analysis,
        placements=placements(loop.uses, chosen, nest, types, sizes.shapes, runs_on),
        reasons=in_turn((*analysis.reasons, *why, *loop.capped, *reasons), nest.function),
        runs_on=runs_on,
        iterations=iterations,
        rewrites=loop.rewrites,
        rounds_overlap=loop.rounds_overlap,
        copies=(),
        works=loop.form.told if isinstance(loop.form, NewOrder) else loop.work,
        is_dynamic=is_dynamic(chosen, analysis, nest, sizes),
        deal=first_deal(chosen, nest, sizes),
        relaxed=relaxed_at(nest, iterations, sizes),
        served=(),
        read_in_part=(),
        known=tuple(values.items()),
    )
    return (
        with_listed(plan, loop.announcers, types, sizes)
        if chosen
        else _with_inspection(plan, loop, extents, sizes, maps)
    )


def _with_inspection(
    plan: LoopPlan, loop: AnalysedLoop, extents: Sequence[int | None], sizes: Sizes, maps: Maps
) -> LoopPlan:
    """The plan of a serial loop with what an inspection has found, or may find, where it has an inspector and is worth
    the workers."""
    if loop.inspectable is None or not isinstance(loop.form, AsWritten):
        return replace(plan, reasons=(*plan.reasons, *loop.uninspected))
    if sizes.symbolic:
        return with_inspection(plan, loop.inspectable, sizes)
    if sizes.workers == 1 or not extents[0]:
        return plan
    iterations = plan.iterations or extents[0]
    time = None if sizes.force_parallel else _short_time(loop, iterations, sizes, maps)
    if time is not None:
        return replace(plan, reasons=(*plan.reasons, too_short(plan, iterations, time)))
    return with_inspection(plan, loop.inspectable, sizes)


def _is_chain(loop: AnalysedLoop, candidate: Candidate, extents: list[int | None], sizes: Sizes, maps: Maps) -> bool:
    """Whether the tiles of a candidate that wait for each other would run one after another at these sizes."""
    if not candidate.time or sizes.symbolic or sizes.force_parallel:
        return False
    grid = cuts(loop.nest, candidate, extents, max(2, sizes.workers))
    return is_chain(fix_parameters(maps.set(loop.analysis.domain), sizes.values), candidate, extents, grid)


def _short_time(loop: AnalysedLoop, iterations: int | None, sizes: Sizes, maps: Maps) -> float | None:
    """The predicted time of a loop on one worker where it is so short that waking others may cost more; None where it
    is not, or nothing is known of it. Of a new order it was looked at as a whole."""
    if iterations is None or isinstance(loop.form, NewOrder):
        return None
    time = work_ns(loop.work, sizes, maps)
    if time is None:
        time = predicted_ns(loop.nest, iterations, sizes.shapes, sizes.values)
    least = COMBINED_NS if loop.analysis.sums else DISPATCH_NS
    return None if time >= least or loop.round_ns >= ROUND_NS else time


def _form(loop: AnalysedLoop, values: Mapping[str, int], sizes: Sizes, maps: Maps) -> Form:
    """What a planned loop is to the source. The loops that are run as one, and those in statements that run once, are
    found later (`with_members`, `with_considered`)."""
    match loop.form, loop.nest.form:
        case ((InBand(origin=origin, places=places) | InTimeTiles(origin=origin, places=places)), _):
            written = _written_iterations(origin, values, sizes, maps)
            return Reordered(origin, written, places, is_time_tiled=isinstance(loop.form, InTimeTiles))
        case OutsideBands(origin=origin), _:
            return ReorderedSingle(origin, ())
        case AsOne(), _:
            return Fused(())
        case AsWritten(), OfStatements():
            return Single(())
        case AsWritten(), OfFilling():
            return Fill()
        case _:
            return Written()


def _written_iterations(origin: Origin, values: Mapping[str, int], sizes: Sizes, maps: Maps) -> int | None:
    """How many iterations the loop of the source has, or an upper bound."""
    ranges = coordinate_ranges(origin.analysis.domain, len(origin.nest.dims), values, maps)
    return _iterations(origin.nest, [None if span is None else span[1] - span[0] for span in ranges], sizes)


def _strategy(loop: AnalysedLoop, chosen: Candidate | None) -> Strategy:
    """The name of the strategy: that of anti-diagonals in another order than the written one is "wavefront"."""
    if chosen is None:
        return Strategy.SERIAL
    is_wavefront = isinstance(loop.form, NewOrder) and chosen.strategy is Strategy.TWO_D
    return Strategy.WAVEFRONT if is_wavefront else chosen.strategy


def _iterations(nest: LoopNest, extents: Sequence[int | None], sizes: Sizes) -> int | None:
    if nest.elements is not None:
        return sizes.counts.get(nest.elements.array)
    known = [extent for extent in extents if extent is not None]
    return prod(known) if len(known) == len(extents) else None


def _worth(
    loop: AnalysedLoop,
    chosen: Candidate | None,
    grid: tuple[int, ...],
    extents: Sequence[int | None],
    sizes: Sizes,
    maps: Maps,
) -> tuple[int, tuple[Reason, ...]]:
    """How many workers a loop runs on, and why not on all of them: one where it takes less time there, in one round of
    the loops around it, than it takes to wake others."""
    if chosen is None:
        return 1, ()
    nest, workers = loop.nest, min(sizes.workers, grid[chosen.space])
    name, extent = nest.dims[chosen.space], extents[chosen.space]
    if workers < sizes.workers:
        return workers, (few_blocks(nest, name, grid[chosen.space], sizes.workers),)
    if workers == 1 or sizes.force_parallel:
        return workers, ()
    here = sizes.at_round(loop.middle_round)
    spans = coordinate_ranges(loop.analysis.domain, len(nest.dims), here.values, maps) if loop.middle_round else []
    in_round = [None if span is None else span[1] - span[0] for span in spans] or extents
    iterations, some = _iterations(nest, in_round, sizes), in_round[chosen.space]
    time = _short_time(loop, iterations, here, maps)
    if time is not None:
        message = f"{iterations} iterations take about {max(1, round(time / 1000))} µs: waking other workers costs more"
        return 1, (Reason(ReasonKind.SIZES, "ORN120", message, (nest.span,), ""),)
    if not sizes.symbolic and extent and some is not None and 2 * some < extent // workers:
        what = f"values of `{name}`" if name in written_names(nest.function) else "iterations"
        message = f"a round has {some} of the {extent} {what}, most of them in one worker's blocks"
        return 1, (Reason(ReasonKind.SIZES, "ORN121", message, (nest.span,), ""),)
    return workers, ()
