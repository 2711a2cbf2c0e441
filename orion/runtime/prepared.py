"""What the runtime is given: a program whose loops are planned, scheduled and generated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from orion.cost.grid import DISPATCH_NS, predicted_ns
from orion.dataclass import dataclass, replace
from orion.ir.program import Program, RunLoop, Scalars
from orion.kernel.calling import Argument, KernelSource
from orion.plan.deal import dealt_by_times
from orion.plan.plan import Listed, LoopPlan, with_deal
from orion.schedule.build import most_workers
from orion.schedule.schedule import Schedule
from orion.sets.names import extent_name
from orion.verify.proved import proved_schedule

OUTPUTS = ("partial", "chosen", "carried")


@dataclass(frozen=True, eq=False)
class PreparedLoop:
    """A planned loop ready to run. `schedule` is for at most as many workers as the session has."""

    plan: LoopPlan
    schedule: Schedule
    kernel: KernelSource

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The scalars whose values the loop needs when it starts, in the order in which its kernel names
        them.
        """
        return tuple(dict.fromkeys(a.name for a in self.kernel.arguments if a.kind in ("scalar", *OUTPUTS)))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The scalars that have new values after the loop: reductions, choices and carried ones."""
        return tuple(a.name for a in self.kernel.arguments if a.kind in OUTPUTS)

    @cached_property
    def reads(self) -> frozenset[str]:
        """The arrays that the loop touches."""
        return frozenset(a.name for a in self.kernel.arguments if a.kind in ("array", "key", "value"))

    @cached_property
    def writes(self) -> frozenset[str]:
        """The arrays that the loop writes."""
        return frozenset(p.array for p in self.plan.placements if p.is_written)

    @cached_property
    def predicted_ns(self) -> float | None:
        """The predicted time of the loop on one worker, at the sizes of the call, in nanoseconds; None where nothing is
        known of it."""
        plan, known = self.plan, dict(self.plan.known)
        if plan.iterations is None:
            return None
        names = {a.name: [extent_name(a.name, axis) for axis in range(a.ndim)] for _, a in self.array_arguments()}
        shapes = {array: tuple(map(known.__getitem__, own)) for array, own in names.items() if known.keys() >= {*own}}
        return predicted_ns(plan.nest, plan.iterations, shapes, known)

    def ndim_of(self, array: str) -> int:
        """The number of dimensions of an array that the loop touches."""
        return next(one.ndim for one in self.kernel.arguments if one.kind == "array" and one.name == array)

    @property
    def own(self) -> frozenset[str]:
        """The parameters that are arrays of each worker's own."""
        return frozenset(name for one in self.plan.nest.function.late for name in one.own)

    @property
    def stored(self) -> str | None:
        """The sparse array of which the loop stores values, if it does."""
        return self.sparse if self.plan.nest.stored else None

    def has_tiles_everywhere(self, workers: int) -> bool:
        """Whether each of the workers has tiles in the loop, and runs them itself."""
        if self.plan.takes_tiles:
            return False  # they take each other's
        return self.schedule.workers == workers and all(tiles.size for tiles in self.schedule.order)

    @property
    def follows_times(self) -> bool:
        """Whether its blocks are dealt out by how long the workers of calls before have computed, on several nodes."""
        return self.plan.deal.follows_times and self.schedule.workers > 1

    @property
    def sparse(self) -> str | None:
        """The sparse array over whose elements the loop goes, if it does."""
        elements = self.plan.nest.elements
        return None if elements is None else elements.array

    def array_arguments(self) -> Iterator[tuple[int, Argument]]:
        """Position and description of every argument that is part of an array."""
        for position, argument in enumerate(self.kernel.arguments):
            if argument.kind in ("array", "key", "value"):
                yield position, argument


@dataclass(frozen=True, eq=False)
class Announcing:
    """The program that lists what iterations of loop number `loop` touch of an array. It is given the arguments of the
    call, and `extents`, the lengths of arrays."""

    loop: int
    of: Listed
    program: PreparedProgram
    extents: Mapping[str, int]


MakesAnnouncers = Callable[[Mapping[str, Any]], tuple[Announcing, ...]]


def _no_announcers(arguments: Mapping[str, Any]) -> tuple[Announcing, ...]:
    return ()


@dataclass(frozen=True, eq=False)
class PreparedProgram:
    """A function ready to run with arguments of given types and shapes.

    What a session keeps for a program (flags, compiled kernels, what the actors know) is kept for this
    object: the caller makes one per signature and hands in the same one again. `known` are the values of the isl
    parameters that it is for (`orion.cost.sizes.Sizes.known`). `announcing` makes the programs that list what tiles
    touch of arrays that several nodes do not have whole: for arguments, when there are several nodes.
    """

    program: Program
    loops: tuple[PreparedLoop, ...]
    known: Mapping[str, int]
    announcing: MakesAnnouncers = _no_announcers

    def __reduce__(self) -> tuple[Any, ...]:
        """As workers get it, who list nothing."""
        return PreparedProgram, (self.program, self.loops, self.known)

    @property
    def workers(self) -> int:
        """The number of workers that take part in a run: that of the loop with the most."""
        return max((loop.schedule.workers for loop in self.loops), default=1)

    def dealt_to(self, workers: int) -> PreparedProgram:
        """The same program, its tiles dealt to so many workers as they would be from the start. Loops that one worker
        runs beside others that are shared out stay so, and so do short ones where nothing was shared out, and
        programs of which each worker has copies of arrays."""
        was_shared = self.workers > 1
        if any(loop.plan.nest.replicas for loop in self.loops):
            return self  # workers have copies of arrays that go on

        def dealt(loop: PreparedLoop) -> PreparedLoop:
            plan, schedule = loop.plan, loop.schedule
            is_shared = schedule.workers > 1 if was_shared else not is_short(loop)
            count = most_workers(plan, workers) if is_shared else 1
            if count == schedule.workers:
                return loop
            return replace(loop, schedule=proved_schedule(plan, schedule.bounds, count, self.known))

        return replace(self, loops=tuple(map(dealt, self.loops)))

    def dealt_by(self, speeds: Sequence[float], since: int) -> PreparedProgram:
        """The same program, the blocks of its loops that follow times dealt to workers of these speeds from call number
        `since` on: in the same tiles, so that results have the same bits."""

        def dealt(loop: PreparedLoop) -> PreparedLoop:
            plan, schedule = loop.plan, loop.schedule
            if not loop.follows_times or schedule.workers != len(speeds):
                return loop
            assert plan.space is not None
            plan = with_deal(plan, dealt_by_times(speeds, schedule.grid[plan.space], since))
            return replace(loop, plan=plan, schedule=proved_schedule(plan, schedule.bounds, len(speeds), self.known))

        return replace(self, loops=tuple(map(dealt, self.loops)))

    @cached_property
    def is_single_loop(self) -> bool:
        """Whether a run is that of one loop, once: its workers come to no other, and to no other round."""
        steps = [step for step in self.program.steps if not isinstance(step, Scalars)]
        return len(steps) <= 1 and all(isinstance(step, RunLoop) for step in steps)

    @cached_property
    def last(self) -> int | None:
        """The loop after which nothing but statements on scalars follows; None where it may run more than once, or not
        at all, or where all workers have something to do after their tiles of it."""
        steps = [step for step in self.program.steps if not isinstance(step, Scalars)]
        if not steps or not isinstance(steps[-1], RunLoop):
            return None
        loop = self.loops[steps[-1].number]
        needs_all = loop.plan.copies or (loop.outputs and not loop.has_tiles_everywhere(self.workers))
        return None if needs_all else steps[-1].number

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """The sparse arrays of which loops store values."""
        return tuple(dict.fromkeys(loop.stored for loop in self.loops if loop.stored is not None))

    @cached_property
    def written(self) -> frozenset[str]:
        """The arrays that any of the loops writes."""
        return frozenset[str]().union(*(loop.writes for loop in self.loops))


def is_short(loop: PreparedLoop) -> bool:
    """Whether it would cost more to wake other workers for a loop than it takes, as far as its time is known."""
    return loop.predicted_ns is not None and loop.predicted_ns < DISPATCH_NS


def conflict(first: PreparedLoop, second: PreparedLoop) -> bool:
    """Whether one of two loops writes an array that the other touches."""
    return bool(first.writes & second.reads or first.reads & second.writes)
