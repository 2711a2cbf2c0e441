"""A plan: how each loop of a function is run, and the proof that it may be."""

from __future__ import annotations

from typing import assert_never

from orion.analysis.one_loop import Origin
from orion.arrays.exchange import Exchange
from orion.cost.candidate import Strategy
from orion.cost.local_arrays import SizedLocalArray
from orion.cost.placement import Placement
from orion.cost.sizes import Sizes
from orion.cost.worth import Work
from orion.dataclass import dataclass, field, replace
from orion.dependence.access import Dependence, LoopDependences, PrivateArray
from orion.dependence.announcer import Announcer
from orion.dependence.inspection import Inspectable, Inspection, Ints
from orion.ir.program import LoopNest, Program
from orion.ir.types import ArgumentType
from orion.plan.deal import Deal
from orion.plan.relaxed import Relaxed
from orion.reasons import Reason
from orion.rewrites.reorder.apply import Deferred


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on one `for` of the source: the dependences it carries, and whether it is parallel by itself.

    - `index`, `line`: the position among the `for`s of the function, from 0, and the line.
    - `carried`: the dependences that it carries.
    - `reasons`: reasons that are not about a dependence.
    - `copies`: arrays with all of its dependences, if iterations only add to their elements. Copies of these, combined
      afterwards, make the `for` parallel (`orion.rewrites.array_sums.find`).
    - `private`: arrays that each iteration must then have for itself; dependences over them do not count.
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
class FusedWith:
    """Reason why a loop of the source is fused with its neighbours.

    It has the neighbours' `lines`, the `arrays` that a cache still holds for the second use, and the bytes of memory
    traffic `saved`.
    """

    lines: tuple[int, ...]
    arrays: tuple[str, ...]
    saved: int | None


@dataclass(frozen=True, slots=True)
class Tiled:
    """Tiles from blocks: workers share out the blocks of dimension `space`; along those of `time`, tiles follow one
    another."""

    space: int
    time: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Weighed(Tiled):
    """Tiles whose blocks of dimension `space` have about as much work each, judging by the contents of `arrays`.

    - `bounds`: those of the blocks, int64 of shape (blocks + 1,).
    - `heavy`: the work of each block over that of the average block, int64 of shape (blocks,). It is a power of two, or
      0 below two.

    Of tiles that may run at once, heavier ones begin first.
    """

    arrays: tuple[str, ...]
    bounds: Ints
    heavy: Ints

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Uncut:
    """Whole loop, which one worker runs. The tiles of a reordered loop are those of its parts."""


@dataclass(frozen=True, slots=True)
class NotInspected:
    """Whole loop, which one worker runs until an inspection has read its index arrays."""

    inspectable: Inspectable


@dataclass(frozen=True, slots=True)
class Inspected:
    """Tiles from an inspection: sets of iterations, not blocks of a dimension."""

    inspectable: Inspectable
    inspection: Inspection


Tiles = Tiled | Uncut | NotInspected | Inspected


@dataclass(frozen=True, slots=True)
class Listed:
    """Array of which nodes have only the elements that their tiles access.

    `announcer` lists these for `count` iterations, the first of which has coordinate `first`.
    """

    announcer: Announcer
    first: int
    count: int

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.array} by {', '.join(self.announcer.lists.reads)}>"

    @property
    def array(self) -> str:
        """The name of the array."""
        return self.announcer.array


@dataclass(frozen=True, slots=True, repr=False)
class Served(Listed):
    """Array with buffer `number` of its loop, whose rows nodes fetch while the loop runs."""

    number: int

    @property
    def leading(self) -> int:
        """Number of subscripts that select the row."""
        return len(self.announcer.keyed)


@dataclass(frozen=True, slots=True)
class ParallelInside:
    """A `for` inside a serial loop that has a parallel schedule, but is too short to share out: its index, and the
    predicted time of one run on one worker, in nanoseconds (None where it is not known)."""

    index: int
    nanoseconds: float | None


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """Plan of one loop: its strategy, its tiles and its proof. `plan.loops` has one per loop of the source.

    What a user reads:

    - `strategy`: "independent", "1d", "2d", "nd", "wavefront", "inspected", "relaxed" or "serial".
    - `is_parallel`: a legal parallel schedule exists, even where it would cost more than it gains at these sizes.
    - `runs_on`: the number of workers it will use.
    - `iterations`: their number or an upper bound; None where sizes are unknown.
    - `ordered`: the result is that of the written order.
    - `reasons`: why it has no stronger strategy.
    - `placements`: the place of each array, and the bytes moved.
    - `is_dynamic`: a worker that would wait takes tiles that other workers have not begun.
    - `deal`: how many blocks of the space dimension each worker has.

    For the other parts of Orion:

    - `nest`, `analysis`: the loop and its dependences. `form` is its relation to the source.
    - `tiles`, `cuts`: how it is cut, and the number of blocks of each loop dimension.
    - `rewrites`: names of the rewrites that made it, in their order (`orion.pipeline.REWRITES`).
    - `rounds_overlap`: no subscript depends on the round of an enclosing serial loop. A tile of the next round then
      waits only for tiles of this round in the same blocks, not for the whole round.
    - `copies`: arrays to whose elements the loop adds without knowing which iterations share them.
    - `works`: the statements as the prediction of time needs them, if known. A reordered loop has those of the loops of
      the source.
    - `relaxed`: its arrays with late updates.
    - `served`: late arrays whose announced rows nodes fetch.
    - `read_in_part`: arrays that it only reads, in parts sent to nodes.
    - `known`: values of isl's parameters in the call.
    - `parallel_inside`: of a serial loop, the inner `for`s that would be shared out at larger sizes.
    - `may_be_private`: of a serial loop, the arrays of which each iteration could have its own. They do not keep it
      serial.
    """

    nest: LoopNest
    form: Form
    strategy: Strategy
    tiles: Tiles
    cuts: tuple[int, ...]
    is_parallel: bool
    ordered: bool
    analysis: LoopDependences
    placements: tuple[Placement, ...]
    reasons: tuple[Reason, ...]
    runs_on: int
    iterations: int | None
    rewrites: tuple[str, ...]
    rounds_overlap: bool
    copies: tuple[Copies, ...]
    works: tuple[Work, ...]
    is_dynamic: bool
    deal: Deal
    relaxed: Relaxed
    served: tuple[Served, ...]
    read_in_part: tuple[Listed, ...]
    known: tuple[tuple[str, int], ...]
    parallel_inside: tuple[ParallelInside, ...] = ()
    may_be_private: tuple[str, ...] = ()

    def __repr__(self) -> str:
        dims = ", ".join(self.nest.dims)
        workers = f"{self.runs_on} worker{'s' * (self.runs_on != 1)}"
        return f"<LoopPlan: {self.strategy} over ({dims}) in line {self.nest.span.line}, {workers}>"

    @property
    def space(self) -> int | None:
        """Loop dimension whose blocks are shared out; None where none is."""
        return self.tiles.space if isinstance(self.tiles, Tiled) else None

    @property
    def time(self) -> tuple[int, ...]:
        """Loop dimensions along which tiles follow one another."""
        return self.tiles.time if isinstance(self.tiles, Tiled) else ()

    @property
    def counts_on(self) -> bool:
        """True if a worker may rest between tiles, and then counts late updates on from those of other workers
        (`orion.kernel.support.buffers`)."""
        return bool(self.time) or self.takes_tiles

    @property
    def takes_tiles(self) -> bool:
        """True if workers take tiles of each other: in dynamic loops, and in inspected ones."""
        return self.is_dynamic or isinstance(self.tiles, Inspected)

    @property
    def private_arrays(self) -> tuple[PrivateArray, ...]:
        """Arrays that every tile has for itself. The last tile, which has the last iteration, uses the array itself."""
        return self.analysis.private

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """Dependences between the iterations of the loop."""
        return self.analysis.dependences

    @property
    def blocking(self) -> tuple[Dependence, ...]:
        """The dependences but for those on arrays of which each iteration could have its own."""
        return tuple(one for one in self.dependences if one.array not in self.may_be_private)

    @property
    def parts(self) -> tuple[LoopPlan, ...]:
        """Loops that replace a reordered loop of the source; empty for any other."""
        return self.form.parts if isinstance(self.form, Merged) else ()


# ---------------------------------------------------------------- what a loop is to the source


@dataclass(frozen=True, slots=True)
class Written:
    """A loop of the source, run as it is written."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """A loop of a new order, which stands for one of the source, or for a part of it.

    `written_iterations` is the number of iterations of the loop of the source, or an upper bound, where sizes are
    known. `places` is the isl union map, as text, from the instances of its statements to the coordinates of the serial
    loops around it and its own. `is_time_tiled`: its tiles are of the rounds of a serial loop and of what each round
    goes over (`orion.rewrites.time_tiles.find`).
    """

    origin: Origin
    written_iterations: int | None
    places: str
    is_time_tiled: bool


@dataclass(frozen=True, slots=True)
class ReorderedSingle:
    """Statements of a loop in another order that are in none of its new loops: one worker runs them, once in each round
    of the serial loops around them. `inside` as in `Single`."""

    origin: Origin
    inside: tuple[LoopPlan, ...]


@dataclass(frozen=True, slots=True)
class Fused:
    """A loop that stands for neighbours of the source (`orion.plan.fused`). `members` are these, each as it would be
    run by itself, in the same blocks."""

    members: tuple[LoopPlan, ...]


@dataclass(frozen=True, slots=True)
class Single:
    """Statements between loops that touch arrays, as a loop of one trip: one worker runs them. `inside` are the loops
    of the source in them that the plan has something to say of."""

    inside: tuple[LoopPlan, ...]


@dataclass(frozen=True, slots=True)
class Fill:
    """A loop that fills an array which the function makes, in place of a statement of the source."""


@dataclass(frozen=True, slots=True)
class Member:
    """A loop that is fused with its neighbours, what it is by itself, and why."""

    form: Written | Fill
    fused_with: FusedWith


@dataclass(frozen=True, slots=True)
class Inside:
    """A loop of the source in statements that run once: one worker runs it."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A loop of the source in another order, with the planned loops that stand for it, its `parts`.

    Its plan has the nest and analysis of the loop as written, which is not cut.
    """

    origin: Origin
    parts: tuple[LoopPlan, ...]


Form = Written | Reordered | ReorderedSingle | Fused | Single | Fill | Member | Inside | Merged
"""The first six are forms of planned loops, which are run. `Written`, `Member`, `Inside` and `Merged` are those of the
loops of the source, of which `orion.plan.source_plans.source_plans` makes a plan each, beside `Single` and `Fill`."""


def with_deal(loop: LoopPlan, deal: Deal) -> LoopPlan:
    """Return the plan of a loop with another assignment of its blocks. Fused neighbours get the same one."""
    form = loop.form
    if isinstance(form, Fused):
        form = Fused(tuple(replace(member, deal=deal) for member in form.members))
    return replace(loop, deal=deal, form=form)


def is_of_source(loop: LoopPlan) -> bool:
    """Whether the loop is one of the source, or replaces one. Others run single statements, or fill arrays of the
    function."""
    match loop.form:
        case Single() | ReorderedSingle() | Fill() | Member(form=Fill()):
            return False
        case Fused((first, *_)):
            return is_of_source(first)
        case Written() | Reordered() | Fused() | Member() | Inside() | Merged():
            return True
        case _:
            assert_never(loop.form)


def source_nest(loop: LoopPlan) -> LoopNest:
    """Return the loop of the source that a reordered loop replaces; of any other loop its own."""
    match loop.form:
        case Reordered(origin=origin) | ReorderedSingle(origin=origin) | Merged(origin=origin):
            return origin.nest
        case Written() | Fused() | Single() | Fill() | Member() | Inside():
            return loop.nest
        case _:
            assert_never(loop.form)


@dataclass(frozen=True, slots=True)
class Considered:
    """Alternative for loops of a function that was not chosen.

    - `name`: what would be done.
    - `nanoseconds`: the predicted time of those loops on the plan's workers, None where unknown.
    - `reason`: why it was not chosen.
    """

    name: str
    nanoseconds: float | None
    reason: Reason

    def __repr__(self) -> str:
        predicted = "" if self.nanoseconds is None else f", predicted {self.nanoseconds / 1e6:.2g} ms"
        return f"<Considered: {self.name}{predicted}; {self.reason.code}>"


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """Plans of all loops of a function, and their program: what a call runs, and what views show and `check` proves.

    - `loops`: in textual order.
    - `verdicts`: one per `for` of the source, in textual order.
    - `unfused`: the program without fusion, where the plan fuses neighbours.
    - `deferred`: rewrites of loops that are still to be made before a run.
    - `rewrites`: names of the rewrites that made the program, with the lines of their loops.
    - `local_arrays`: arrays that the function makes.
    - `considered`: alternatives that were not chosen.
    - `floats`: scalars and arrays of floats that iterations add to or multiply.
    - `is_apart`: the workers may be on several nodes, which share no memory.
    - `sizes`: those that it is for.
    - `shuffled`: arguments with an earlier shuffle (`SparseArray.shuffle`, `DenseArray.shuffle`), each with its last
      one.
    - `taken_inside`: subscripts, as text, that are assumed to be inside of their arrays, since sizes are not given.
    """

    program: Program
    loops: tuple[LoopPlan, ...]
    types: tuple[tuple[str, ArgumentType], ...]
    verdicts: tuple[Verdict, ...] = ()
    unfused: Program | None = None
    deferred: tuple[Deferred, ...] = ()
    rewrites: tuple[tuple[str, int], ...] = ()
    local_arrays: tuple[SizedLocalArray, ...] = ()
    considered: tuple[Considered, ...] = ()
    floats: frozenset[str] = frozenset()
    is_apart: bool = False
    sizes: Sizes = field(default_factory=Sizes, compare=False, repr=False)
    shuffled: tuple[tuple[str, Exchange], ...] = ()
    taken_inside: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<FunctionPlan of {self.program.function.name}: {len(self.loops)} planned loops>"
