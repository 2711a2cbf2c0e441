"""The checker: that what a plan runs does what its function says, by other means than those by which it was planned.

It takes the function, as its program has it, and the chosen plan: the texts of its loops, their schedules, the private
copies. Reads and writes are read from the text here (`orion.verify.reading`), and all is proved by isl of them:

    the program is the function's text, taken apart                      `orion.verify.text_of`
    every tile is run once; conflicts between tiles keep their order     `orion.verify.tiles`
    inspectors list all accesses; these keep their order in tiles        `inspector`, `inspected`
    loops in another order run each instance once, conflicts in order    `orion.verify.text`, `moved`
    arrays and scalars of which there are several may be so              `private`, `sums`, `copied`, `scalars`
    arrays live where iterations touch them                              `placed`
    iterations after the end of a loop may run                           `early_exits`
    passes over blocks of a scan have all statements that they need      `scans`
    updates of buffers are all applied, and in time                      `relaxed`
    workers that pull copies together do not wait for ever               `replicas`
    subscripts that kernels do not look at lie inside of their arrays    `inside`
    neighbours may be run as one                                         `fused`
    the sizes and integers of the call are such as the plan assumes      here

Nothing of `orion.dependence` or `orion.rewrites` is asked. What a rewrite claims of its statements and their places is
looked at, not believed. What is taken for granted: that the passes kept the meaning of the function, integers within 64
bits, and that a kernel runs its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from typing import TYPE_CHECKING, assert_never

import numpy as np

from orion.analysis.one_loop import Origin
from orion.dataclass import dataclass, field, replace
from orion.dependence.inspection import Inspection
from orion.errors import PlanError
from orion.ir.assigned import assigned_names
from orion.ir.assumed import OfArray, OfWorkers, held_by
from orion.ir.nodes import For, Stmt, names_in
from orion.ir.program import (
    SYNTHETIC,
    Branch,
    OfFilling,
    OfNewOrder,
    OfStatements,
    Program,
    Repeat,
    RunLoop,
    Step,
    blocks_of,
    with_loops,
)
from orion.ir.types import ArrayType, SparseType, Types
from orion.plan.plan import (
    Fill,
    FunctionPlan,
    Fused,
    Inside,
    Inspected,
    LoopPlan,
    Member,
    Merged,
    Reordered,
    ReorderedSingle,
    Single,
    Written,
)
from orion.plan.source_plans import in_formulas, rounds_around, source_plans
from orion.schedule.schedule import Schedule
from orion.typing.infer import infer_types
from orion.verify.conflicts import Conflict, Uses, any_parameters, described, in_one_round, in_other_rounds, uses_of
from orion.verify.copied import assigned_arrays, original, prove_copied, prove_copied_before
from orion.verify.early_exits import is_ended_by_first, prove_harmless
from orion.verify.elements import narrowed
from orion.verify.events import Iterations
from orion.verify.fused import prove_fused
from orion.verify.inside import Place, prove_inside
from orion.verify.inspected import prove_accesses, prove_needs
from orion.verify.inspector import prove_inspector
from orion.verify.moved import (
    between_outer_rounds,
    between_rounds,
    coordinates,
    in_round,
    known_values,
    moved,
    moved_accesses,
)
from orion.verify.nests import is_outline, prove_ended, prove_nest
from orion.verify.placed import prove_placed, prove_written
from orion.verify.private import prove_last, prove_private
from orion.verify.reading import Reader
from orion.verify.relaxed import prove_relaxed
from orion.verify.replicas import prove_replicas
from orion.verify.scalars import prove_scalars
from orion.verify.scans import prove_scans
from orion.verify.statements import Source, live_after
from orion.verify.sums import prove_own_copies, prove_shape, prove_sums
from orion.verify.text import prove_text, source_of
from orion.verify.text_of import bare, inlined, text_of
from orion.verify.text_values import UnprovedError
from orion.verify.tiles import Broken, broken_between_rounds, broken_in_round, prove_covered, prove_whole

if TYPE_CHECKING:
    import islpy as isl

Told = Callable[[Conflict, "isl.Map"], str]
"""The accesses that are in conflict for pairs of iterations, in words."""

Scheduled = Callable[[LoopPlan, int], Schedule]
"""The schedule of a planned loop for a number of workers."""


def check(
    plan: FunctionPlan,
    values: Mapping[str, int],
    scheduled: Scheduled,
    counts: Sequence[int],
    inside: Sequence[Set[Place]],
) -> tuple[str, ...]:
    """Prove that a plan, with the texts of all its loops, does what its function says, on each of these numbers of
    workers. `values` are those of isl's parameters, `inside` the subscripts that kernels do not look at, by loops.
    PlanError where it does not; what could be proved neither right nor wrong is returned, a sentence each."""
    checker = _Checker(plan, values, scheduled, counts, inside)
    checker.run()
    return tuple(checker.unproved)


@dataclass
class _Checker:
    plan: FunctionPlan
    values: Mapping[str, int]
    scheduled: Scheduled
    counts: Sequence[int]
    inside: Sequence[Set[Place]]
    unproved: list[str] = field(default_factory=list)

    @cached_property
    def context(self) -> isl.Context:
        import islpy as isl

        return isl.Context()

    @cached_property
    def types(self) -> Types:
        return dict(self.plan.types)

    @cached_property
    def arrays(self) -> Set[str]:
        return {name for name, kind in self.plan.types if isinstance(kind, ArrayType | SparseType)}

    @cached_property
    def apart(self) -> Program:
        """The program with its loops one after the other."""
        return self.plan.unfused or self.plan.program

    @cached_property
    def written(self) -> tuple[For | None, ...]:
        """The loop of the source that each planned loop of `apart` stands for, the first of several for all."""
        found: list[For | None] = []
        seen: set[int] = set()
        for loop in self.alone:
            origin = origin_of(loop)
            if origin is None:
                found += original(loop.nest)
            else:
                found.append(None if id(origin) in seen else origin.nest.loops[0])
                seen.add(id(origin))
        return tuple(found)

    @cached_property
    def text(self) -> tuple[Stmt, ...]:
        """The program as one text, without the loops that make copies for others."""
        loops: dict[int, tuple[For, ...]] = {}
        made = {one.copy for loop in self.alone for one in loop.nest.copied_in}
        for number, (loop, written) in enumerate(zip(self.alone, self.written, strict=True)):
            is_copy = isinstance(loop.nest.form, OfFilling) and not assigned_arrays(loop.nest.body).isdisjoint(made)
            loops[number] = () if written is None or is_copy else (written,)
        names = {*self.apart.variables, *self.apart.tests}
        return inlined(bare(text_of(self.outside(self.apart.steps), loops)), names)

    def outside(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        """The steps without serial loops of a new order, which are around parts of it alone."""
        found: list[Step] = []
        for step in steps:
            inside = [*_run((step,))]
            if isinstance(step, Repeat) and isinstance(step.loop, For) and step.loop.index == SYNTHETIC:
                is_own = bool(inside) and all(origin_of(self.alone[number]) for number in inside)
                found += self.outside(step.steps) if is_own else (step,)
            elif isinstance(step, Repeat):
                found.append(replace(step, steps=self.outside(step.steps)))
            elif isinstance(step, Branch):
                first, second = step.sides
                found.append(replace(step, sides=(self.outside(first), self.outside(second))))
            else:
                found.append(step)
        return tuple(found)

    def read(self, program: Program, loops: Iterable[LoopPlan]) -> dict[int, Iterations]:
        reader = Reader(program.function, self.types, self.values)
        reader.steps(program.steps, [loop.nest for loop in loops])
        return reader.found

    @cached_property
    def found(self) -> dict[int, Iterations]:
        return self.read(self.plan.program, self.plan.loops)

    @cached_property
    def found_apart(self) -> dict[int, Iterations]:
        return self.found if self.plan.unfused is None else self.read(self.plan.unfused, self.alone)

    @cached_property
    def alone(self) -> tuple[LoopPlan, ...]:
        """The planned loops of `apart`, by their numbers."""
        return tuple(one for loop in self.plan.loops for one in (members_of(loop) or (loop,)))

    # ------------------------------------------------------------ what is proved

    def run(self) -> None:
        self.prove_assumed()
        for number, loop in enumerate(self.plan.loops):
            prove_nest(loop.nest, number, self.plan.program)
        for number, loop in enumerate(self.alone):
            if not isinstance(loop.form, Reordered | ReorderedSingle):  # those have their text in one program alone
                prove_nest(replace(loop.nest, number=number), number, self.apart)
        self.prove_program()
        if self.plan.program.function.in_blocks:
            prove_scans(self.plan.program.function, infer_types(self.plan.program.function, self.types))
        sources: dict[int, Source] = {}
        for whole in source_plans(self.plan):
            if isinstance(whole.form, Merged):
                self.prove_order(whole, whole.form.origin, sources)
        for number, loop in enumerate(self.plan.loops):
            try:
                self.prove_loop(number, loop, sources.get(id(origin_of(loop))))
            except PlanError as error:
                raise PlanError(f"{loop.nest.span}: {error}") from None

    def prove_assumed(self) -> None:
        """The conditions that the plan is under hold for this call."""
        import islpy as isl

        for one in self.plan.program.function.assumed:
            if isinstance(one, OfArray):
                if (one.array, one.has, True) not in self.plan.sizes.shown:
                    self.unproved.append(f"not proved: {one.array} {one.has}, as no elements were looked at")
                continue
            if isinstance(one, OfWorkers):
                continue  # it is right with fewer, too
            if not all(name in self.values for name in one.names):
                self.unproved.append(f"not proved: {one.constraint}, as the call's values are not known")
                continue
            known = " and ".join(f"{name} = {self.values[name]}" for name in one.names)
            text = f"[{', '.join(one.names)}] -> {{ : {known or 'true'} and {one.constraint} }}"
            if isl.Set(text, self.context).is_empty():
                raise PlanError(f"the plan is for calls with {one.constraint}, which this one is not")

    def prove_program(self) -> None:
        """The steps of the program are the text of the function, with fused loops in place of their members."""
        function, steps = self.apart.function, with_loops(self.plan.program.steps, self.members)
        own = {*self.plan.program.variables, *self.plan.program.tests, *self.apart.variables, *self.apart.tests}
        if not own.isdisjoint({*function.params, *names_in(*function.body), *assigned_names(function.body)}):
            raise PlanError(f"{function.span}: names that the program has beside the function's are those of it")
        if steps != self.apart.steps or self.text != inlined(bare(function.body), ()):
            raise PlanError(f"{function.span}: the planned loops are not those of the function")
        if sorted(_run(self.plan.program.steps)) != [*range(len(self.plan.loops))]:
            raise PlanError(f"{function.span}: the steps of the program do not run each planned loop once")
        for nest in (loop.nest for loop in self.plan.loops):
            if isinstance(nest.form, OfNewOrder | OfStatements) and not is_outline(nest):
                raise PlanError(f"{nest.span}: the loops around what is run once, or for a box, are not those of it")

    def members(self, number: int) -> Iterator[RunLoop]:
        """The planned loops of `apart` that a planned loop is run for."""
        first = sum(len(members_of(other)) or 1 for other in self.plan.loops[:number])
        yield from map(RunLoop, range(first, first + (len(members_of(self.plan.loops[number])) or 1)))

    def prove_order(self, whole: LoopPlan, origin: Origin, sources: dict[int, Source]) -> None:
        """The texts of the loops that stand for one in another order."""
        try:
            source = source_of(self.plan, origin)
        except UnprovedError as error:
            self.unproved.append(f"{whole.nest.span}: not proved: {error}")
            return
        sources[id(origin)] = source
        self.unproved += prove_text(self.plan, whole, source)

    def prove_loop(self, number: int, loop: LoopPlan, source: Source | None) -> None:
        prove_scalars(loop, live_after(self.plan_text, loop.nest.loops[0]), self.arrays)
        if loop.ordered != loop.nest.ordered:
            raise PlanError("the order of the iterations is not that of the loop")
        if isinstance(loop.form, Reordered | ReorderedSingle) and (loop.private_arrays or loop.copies):
            raise PlanError("tiles of a new order have arrays of their own")
        match loop.form:
            case ReorderedSingle():
                self.prove_single(loop)
            case Reordered(places=places):
                if source is not None:
                    self.prove_part(loop, places, source)
            case Fused(members):
                own = [self.found_apart[step.number] for step in self.members(number)]
                prove_fused(loop, members, self.found[number], own, self.context)
                self.prove_iterations(loop, self.found[number])
            case Written() | Single() | Fill() | Member() | Inside() | Merged():
                self.prove_iterations(loop, self.found[number])
            case _:
                assert_never(loop.form)
        prove_written(loop.nest, loop.placements, self.types)
        if isinstance(loop.form, Reordered | ReorderedSingle):
            parts = () if source is None else [one.instances for one in source.statements]
        else:
            parts = [self.found[number]]
        context = self.context if source is None else source.context
        at_call = known_values(self.values, context)
        for condition in () if source is None else source.known:  # a text may have the name or what it stands for
            at_call = at_call.intersect(condition)
        self.unproved += prove_inside(parts, self.inside[number], at_call, context)

    def prove_iterations(self, loop: LoopPlan, found: Iterations) -> None:
        """A loop that is run as its text has it, in tiles."""
        if is_ended_by_first(loop.nest):
            typing = infer_types(self.plan.program.function, self.types)
            prove_harmless(loop.nest, found, typing, known_values(self.values, self.context), self.context)
        for one in loop.nest.copied_in:
            prove_copied(found, one, self.context)
            prove_copied_before(self.plan.program, loop.nest.number, one)
        for array in loop.private_arrays:
            prove_private(found, array.name, self.context)
        for copies in loop.copies:
            prove_sums(self.plan.program.function, loop.nest.loops[0], copies, self.types)
            prove_shape(copies, self.types, self.values)
        self.unproved += prove_placed(found, loop.placements, self.context)
        several = {array.name for array in loop.private_arrays} | {copies.array for copies in loop.copies}
        several |= self.plan.program.function.relaxed  # what the user lets be late
        prove_relaxed(loop.nest, loop.relaxed, waits=bool(loop.time) or loop.takes_tiles)
        self.prove_pulls(loop)
        if isinstance(loop.tiles, Inspected):
            prove_inspector(loop.nest, loop.tiles.inspectable, self.plan.program.function)
            several |= set(loop.tiles.inspectable.arrays)  # their accesses are listed
        uses = uses_of(found, self.context).items()
        self.prove_tiles(loop, found, {array: one for array, one in uses if one.is_written and array not in several})

    def prove_pulls(self, loop: LoopPlan) -> None:
        """Workers pull their copies of arrays together as the loop has it."""
        ends = is_ended_by_first(loop.nest)
        prove_replicas(loop.nest, loop.runs_on, waits=bool(loop.time), takes=loop.takes_tiles, ends_early=ends)

    @cached_property
    def plan_text(self) -> tuple[Stmt, ...]:
        loops = {number: loop.nest.loops[:1] for number, loop in enumerate(self.plan.loops)}
        return text_of(self.plan.program.steps, loops)

    # ------------------------------------------------------------ tiles

    def prove_tiles(self, loop: LoopPlan, found: Iterations, uses: Mapping[str, Uses]) -> None:
        now = [*self.narrowed(in_one_round(uses, loop.ordered), found)]
        again = is_repeated(self.plan.program.steps, loop.nest.number)
        later = [*self.narrowed(in_other_rounds(uses), found, of_rounds=True)] if again and loop.rounds_overlap else []
        told = partial(described, found)
        iterations = any_parameters(found.domain(self.context)) if found.is_exact else None
        for count in self.counts:
            schedule = self.scheduled(loop, count)
            prove_whole(schedule)
            prove_ended(loop.nest, schedule)
            if iterations is not None:
                prove_covered(iterations, in_coordinates(loop, schedule))
            if isinstance(loop.tiles, Inspected):
                self.prove_inspected(loop, loop.tiles.inspection, schedule, now)
                continue
            self.refuse(broken_in_round(now, schedule, loop.ordered), loop, schedule, told)
            self.refuse(broken_between_rounds(later, schedule), loop, schedule, told)
            if loop.private_arrays:
                prove_last(found, schedule, self.context)
            prove_own_copies(loop, schedule)

    def prove_inspected(
        self, loop: LoopPlan, found: Inspection, schedule: Schedule, others: Sequence[Conflict]
    ) -> None:
        """The tiles that an inspection has found keep the order of the accesses that were listed; iterations have no
        `others` in conflict."""
        prove_needs(schedule, found)
        prove_accesses(schedule, found, ordered=loop.ordered)
        for one in others:
            if not one.relation.is_empty():
                self.unproved.append(f"{loop.nest.span}: not proved: accesses to {one.array} were not listed")

    def narrowed(
        self, conflicts: Iterable[Conflict], found: Iterations, *, of_rounds: bool = False
    ) -> Iterator[Conflict]:
        held = held_by(self.plan.program.function.assumed)
        for one in conflicts:
            yield narrowed(one, found, held, self.context, of_rounds=of_rounds)

    def prove_single(self, loop: LoopPlan) -> None:
        """Statements that stand for a part of a loop are run, once."""
        import islpy as isl

        for count in self.counts:
            schedule = self.scheduled(loop, count)
            prove_covered(isl.Set("{ [x] : x = 0 }", self.context), schedule)
            self.refuse(broken_in_round([], schedule, True), loop, schedule, lambda *_: "")

    def prove_part(self, part: LoopPlan, places: str, source: Source) -> None:
        rounds = len(rounds_around(self.plan, part.nest.number))
        pairs = moved(source, places, self.values)
        now = [] if pairs is None else [*in_round(pairs, rounds, source.is_exact)]
        later: list[Conflict] = []
        if part.rounds_overlap:
            later += [] if pairs is None else between_rounds(pairs, rounds, source.is_exact)
            if is_repeated(self.plan.program.steps, part.nest.number):
                later += between_outer_rounds(source, places, self.values, rounds)
        iterations = coordinates(source, places, self.values, rounds)
        told = partial(moved_accesses, source, places, self.values, rounds)
        for count in self.counts:
            schedule = self.scheduled(part, count)
            if iterations is not None:
                prove_covered(iterations, schedule)
            self.refuse(broken_in_round(now, schedule, True), part, schedule, told)
            self.refuse(broken_between_rounds(later, schedule), part, schedule, told)

    def refuse(self, broken: Iterable[Broken], loop: LoopPlan, schedule: Schedule, told: Told) -> None:
        """PlanError for a pair of tiles that breaks the schedule; a sentence, if what was read is not exact."""
        for one in broken:
            late = f"tile {_name(loop, schedule, one.second)} may start before tile {_name(loop, schedule, one.first)}"
            message = f"the schedule does not keep a dependence: {told(one.conflict, one.pairs)}; {late} is done"
            if one.conflict.is_exact:
                raise PlanError(message)
            self.unproved.append(f"{loop.nest.span}: not proved: {message}")
            return


def in_coordinates(loop: LoopPlan, schedule: Schedule) -> Schedule:
    """A schedule with the coordinates of iterations for bounds: tiles of an inspected loop are of a list of them."""
    if not isinstance(loop.tiles, Inspected) or not loop.tiles.inspection.is_listed:
        return schedule
    order = loop.tiles.inspection.order
    return replace(schedule, bounds=(np.array([order.min(), order.max() + 1]), *schedule.bounds[1:]))


def members_of(loop: LoopPlan) -> tuple[LoopPlan, ...]:
    return loop.form.members if isinstance(loop.form, Fused) else ()


def origin_of(loop: LoopPlan) -> Origin | None:
    """The loop of the source that a loop stands for in another order."""
    return loop.form.origin if isinstance(loop.form, Reordered | ReorderedSingle | Merged) else None


def is_repeated(steps: Sequence[Step], number: int) -> bool:
    """Whether a planned loop is run in a serial loop of the source."""
    for step in steps:
        for block in blocks_of(step):
            repeats = isinstance(step, Repeat) and not (isinstance(step.loop, For) and step.loop.index == SYNTHETIC)
            if (repeats and RunLoop(number) in _every(block)) or is_repeated(block, number):
                return True
    return False


def _every(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from _every(block)


def _name(loop: LoopPlan, schedule: Schedule, tile: int) -> str:
    """A tile by its limits; of a loop in another order in terms of the variables of the source."""
    blocks = np.unravel_index(tile, schedule.grid)
    spans = zip(in_formulas(loop).nest.dims, schedule.bounds, blocks, strict=True)
    return "(" + ", ".join(f"{dim} in {b[k]}..{b[k + 1] - 1}" for dim, b, k in spans) + ")"


def _run(steps: Iterable[Step]) -> Iterator[int]:
    """The numbers of the planned loops that steps run."""
    for step in steps:
        if isinstance(step, RunLoop):
            yield step.number
        for block in blocks_of(step):
            yield from _run(block)
