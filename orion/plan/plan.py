"""A plan: how each loop of a function is run, and the proof that it may be."""

from __future__ import annotations

from dataclasses import dataclass, field

from orion.cost.local_arrays import MadeArray
from orion.cost.placement import Placement
from orion.cost.sizes import Sizes
from orion.cost.worth import Work
from orion.dependence.access import Dependence, LoopDependences, PrivateArray
from orion.dependence.bounds import BoundsChecks
from orion.dependence.region import Statement
from orion.ir.program import LoopNest, Program
from orion.ir.types import ArgumentType
from orion.reasons import Reason
from orion.rewrites.reorder.apply import Outlined


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one `for` of the source: the dependences it carries, and whether it is parallel by itself.

    `index` counts the `for`s of the function from 0. `reasons` are those that are not about a dependence. `copies` are
    the arrays that all dependences are over, where trips do nothing but add to elements of them: given copies of these,
    combined afterwards, the `for` is parallel (`orion.rewrites.array_sums.find`). `private` are the arrays of which
    each trip must have its own for that: dependences over them do not count.
    """

    index: int
    line: int
    carried: tuple[Dependence, ...]
    reasons: tuple[Reason, ...] = ()
    copies: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    def __repr__(self) -> str:
        arrays = ", ".join(dict.fromkeys(dependence.array for dependence in self.carried))
        carried = f"carries dependences over {arrays}" if arrays else ""
        said = "; ".join(filter(None, [carried, *(reason.code for reason in self.reasons)])) or "parallel"
        return f"<Verdict on the for in line {self.line}: {said}>"

    @property
    def is_parallel(self) -> bool:
        return not self.carried and not self.reasons


@dataclass(frozen=True, slots=True)
class Origin:
    """The loop of the source that one or several planned loops stand for, in another order.

    `analysis` and `checks` are those of the loop as written. `dependences` and `order` are isl union maps as text:
    the dependences between the instances of its statements, and the place of each instance in the new order.
    `statements` are those whose instances these are.
    """

    nest: LoopNest
    analysis: LoopDependences
    checks: BoundsChecks
    dependences: str
    order: str
    statements: tuple[Statement, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Origin: ({', '.join(self.nest.dims)}) in line {self.nest.span.line}>"


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of an array that a loop updates the elements of, by `op`: one for each block of the space dimension.

    They start at the value that changes nothing, and are combined into the array in the order of the blocks when all
    tiles are done. `shape` is that of the memory of one, and `count` their number.
    """

    array: str
    op: str
    dtype: str
    shape: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Together:
    """Why a loop of the source is run together with its neighbours: `lines` of those, the arrays that are used again
    while a cache still has them, and the bytes that need not go through memory once more."""

    lines: tuple[int, ...]
    arrays: tuple[str, ...]
    saved: int | None


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """How one loop is run.

    `strategy` is "independent", "1d", "2d", "nd" or "serial". `space` is the loop dimension whose blocks are shared
    out among the workers, and `time` those along which the tiles follow one another (both are empty where the loop
    is serial). `cuts` is the number of blocks of each loop dimension. `runs_on` is the number of workers it will
    use. `iterations` is their number, or an upper bound of it, where sizes are known. `rounds_overlap`: where the
    loop stands in a serial one, no subscript depends on the round, so that a tile of the next round need only wait
    for the tiles of this round that share a block with it; where False, a round must be done before the next
    begins.

    A loop that stands for another one of the source, or for a part of it, in another order has an `origin`. Its
    `places` is the isl union map, as text, from the instances of its statements to the coordinates of the serial
    loops around it and its own; it is empty where one worker runs the statements once. `written_iterations` is the
    number of iterations of the loop of the source. `copies` are those of the arrays whose elements the loop adds to
    without knowing which iterations share them. `is_swept`: its tiles are of the rounds of a serial loop and of what
    each round goes over (`orion.rewrites.time_tiles.find`).

    `parts` is not empty only in what `orion.plan.whole.whole_loops` makes: the plan of a loop of the source as a
    whole, with the planned loops that stand for it. Such a plan has the nest and analysis of the loop as written,
    which is not cut: `space` is None, `time` is empty, and the tiles are those of its parts.

    `members` are the loops of the source that are run as this one (`orion.plan.together`), each as it would be run by
    itself, in the same blocks; `together` says why, in each of them.

    `inside` are the loops of the source in statements that run once, each with `is_inside`: one worker runs them.

    `rewrites` are the names of those that it was made by (`orion.pipeline.REWRITES`), in their order.

    `works` are its statements as the prediction of their time needs them, where they are known: those of a loop in
    another order in the loops of the source.
    """

    nest: LoopNest
    strategy: str
    space: int | None
    time: tuple[int, ...]
    cuts: tuple[int, ...]
    ordered: bool
    analysis: LoopDependences
    placements: tuple[Placement, ...]
    reasons: tuple[Reason, ...]
    runs_on: int
    iterations: int | None
    rewrites: tuple[str, ...]
    rounds_overlap: bool = True
    origin: Origin | None = None
    places: str = ""
    written_iterations: int | None = None
    parts: tuple[LoopPlan, ...] = ()
    copies: tuple[Copies, ...] = ()
    is_swept: bool = False
    members: tuple[LoopPlan, ...] = ()
    together: Together | None = None
    inside: tuple[LoopPlan, ...] = ()
    is_inside: bool = False
    works: tuple[Work, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        dims = ", ".join(self.nest.dims)
        workers = f"{self.runs_on} worker{'s' * (self.runs_on != 1)}"
        return f"<LoopPlan: {self.strategy} over ({dims}) in line {self.nest.span.line}, {workers}>"

    @property
    def is_parallel(self) -> bool:
        """Whether a legal parallel schedule exists: also where at these sizes it would cost more than it gains, so that
        the loop runs as it is written."""
        return self.is_shared_out or any(reason.code == "ORN120" for reason in self.reasons)

    @property
    def is_shared_out(self) -> bool:
        """Whether its iterations are cut into blocks for several workers."""
        return self.strategy != "serial"

    @property
    def private_arrays(self) -> tuple[PrivateArray, ...]:
        """The arrays of which every tile has its own; the last tile, which has the last iteration, has the array."""
        return self.analysis.private

    @property
    def deals_in_turn(self) -> bool:
        """Whether workers get blocks in turn, not neighbouring ones: where tiles wait and nothing is partitioned."""
        return self.nest.is_rewritten and bool(self.time)

    @property
    def is_written_by_user(self) -> bool:
        """False for statements between loops that touch arrays, which run once, as a loop of one trip, and for loops
        that fill an array which the function makes."""
        return self.nest.loops[0].index >= 0

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """The dependences of the loop as it is written."""
        return self.origin.analysis.dependences if self.origin else self.analysis.dependences


@dataclass(frozen=True, slots=True)
class Considered:
    """Another way to run loops of a function that was not taken: what would be done, the predicted time of those loops
    on the workers of the plan, in nanoseconds (None where it is not known), and why it was not taken."""

    name: str
    nanoseconds: float | None
    reason: Reason

    def __repr__(self) -> str:
        predicted = "" if self.nanoseconds is None else f", predicted {self.nanoseconds / 1e6:.2g} ms"
        return f"<Considered: {self.name}{predicted}; {self.reason.code}>"


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """The plans of all loops of a function, in textual order, and the program they are part of: what a call runs, and
    all that is shown and checked. `verdicts` has one for each `for` of the source, in textual order. `separate` is the
    program with its loops one after the other, where the plan has neighbours run as one. `outlined`: what is to be made
    yet of its loops before they can be run. `made` are the arrays that the function makes, and `considered` other ways
    to run it that were not taken. `sizes` are those that it is for."""

    program: Program
    loops: tuple[LoopPlan, ...]
    types: tuple[tuple[str, ArgumentType], ...]
    verdicts: tuple[Verdict, ...] = ()
    separate: Program | None = None
    outlined: tuple[Outlined, ...] = ()
    made: tuple[MadeArray, ...] = ()
    considered: tuple[Considered, ...] = ()
    sizes: Sizes = field(default_factory=Sizes, compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<FunctionPlan of {self.program.function.name}: {len(self.loops)} planned loops>"
