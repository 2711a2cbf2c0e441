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
    """Why a loop of the source is fused with its neighbours: `lines` of those, the arrays that are used again
    while a cache still has them, and the bytes that need not go through memory once more."""

    lines: tuple[int, ...]
    arrays: tuple[str, ...]
    saved: int | None


@dataclass(frozen=True, slots=True)
class Tiled:
    """The blocks of loop dimension `space` are shared out among the workers; along those of `time` the tiles follow one
    another."""

    space: int
    time: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Weighed(Tiled):
    """The same, the blocks of dimension `space` having about as much work each, as the contents of `arrays` show it:
    their `bounds`, int64 (blocks + 1,), and in `heavy`, int64 (blocks,), how many times the work of the average block
    each has, as a power of two, 0 where it is less than twice. Of tiles that may be run at once the heavier are begun
    first."""

    arrays: tuple[str, ...]
    bounds: Ints
    heavy: Ints

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Uncut:
    """One worker runs all of it; of a loop in another order the tiles are those of its parts."""


@dataclass(frozen=True, slots=True)
class NotInspected:
    """One worker runs all of it as long as nobody has looked at what its subscripts are read from."""

    inspectable: Inspectable


@dataclass(frozen=True, slots=True)
class Inspected:
    """The tiles that an inspection has found: those of its iterations, which are no blocks of a dimension."""

    inspectable: Inspectable
    inspection: Inspection


Tiles = Tiled | Uncut | NotInspected | Inspected


@dataclass(frozen=True, slots=True)
class Listed:
    """An array of which several nodes have what their tiles touch: `announcer` lists it, for iterations of which there
    are `count`, the first with coordinate `first`."""

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
    """One with a buffer, number `number` of those of its loop, whose rows nodes fetch while the loop runs."""

    number: int

    @property
    def leading(self) -> int:
        """How many subscripts say which row."""
        return len(self.announcer.keyed)


@dataclass(frozen=True, slots=True)
class ParallelInside:
    """A `for` inside a serial loop that has a parallel schedule, but is too short to share out: its index, and the
    predicted time of one run on one worker, in nanoseconds (None where it is not known)."""

    index: int
    nanoseconds: float | None


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """How one loop is run.

    `form` says what the loop is to the source. `tiles` are how it is cut, and `cuts` the number of blocks of each loop
    dimension. `is_parallel`: a legal parallel schedule exists, also where at these sizes it would cost more than it
    gains, so that the loop runs as it is written. `runs_on` is the number of workers it will use. `iterations` is their
    number, or an upper bound of it, where sizes are known. `rewrites` are the names of those that it was made by
    (`orion.pipeline.REWRITES`), in their order. `rounds_overlap`: where the loop stands in a serial one, no subscript
    depends on the round, so that a tile of the next round need only wait for the tiles of this round that share a block
    with it; where False, a round must be done before the next begins. `copies` are those of the arrays whose elements
    the loop adds to without knowing which iterations share them. `works` are its statements as the prediction of their
    time needs them, where they are known: those of a loop in another order in the loops of the source. `is_dynamic`:
    a worker that would have to wait takes tiles of others that these have not begun. `deal`: how many blocks of the
    space dimension each worker has. `relaxed` are its arrays with buffers, and `served` those of which several nodes
    fetch what tiles announce. `read_in_part` are arrays that it only reads, of which they are sent what tiles read.
    `known` are the values of isl's parameters in the call: examples of iterations are those of it. `parallel_inside`:
    of a serial loop the `for`s in it that would be shared out at larger sizes. `may_be_private`: of a serial loop the
    arrays of which each iteration could have its own, so that they are not what keeps it serial.
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
        """The loop dimension whose blocks are shared out; None where none is."""
        return self.tiles.space if isinstance(self.tiles, Tiled) else None

    @property
    def time(self) -> tuple[int, ...]:
        """The loop dimensions along which tiles follow one another."""
        return self.tiles.time if isinstance(self.tiles, Tiled) else ()

    @property
    def counts_on(self) -> bool:
        """Whether a worker may rest between tiles, so that updates that may be late are counted on from those of others
        when it goes on (`orion.kernel.support.buffers`)."""
        return bool(self.time) or self.takes_tiles

    @property
    def takes_tiles(self) -> bool:
        """Whether workers take tiles of each other: of dynamic loops and of those that an inspection has found."""
        return self.is_dynamic or isinstance(self.tiles, Inspected)

    @property
    def private_arrays(self) -> tuple[PrivateArray, ...]:
        """The arrays of which every tile has its own; the last tile, which has the last iteration, has the array."""
        return self.analysis.private

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """The dependences between the iterations of the loop."""
        return self.analysis.dependences

    @property
    def blocking(self) -> tuple[Dependence, ...]:
        """The dependences but for those on arrays of which each iteration could have its own."""
        return tuple(one for one in self.dependences if one.array not in self.may_be_private)

    @property
    def parts(self) -> tuple[LoopPlan, ...]:
        """Of a loop of the source in another order the planned loops that stand for it; none of any other."""
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
    """The plan of a loop whose blocks are dealt out in another way; so are those of the neighbours that it stands for,
    which are in the same blocks."""
    form = loop.form
    if isinstance(form, Fused):
        form = Fused(tuple(replace(member, deal=deal) for member in form.members))
    return replace(loop, deal=deal, form=form)


def is_of_source(loop: LoopPlan) -> bool:
    """Whether it is a loop of the source, or stands for one: not statements that run once, and not the filling of an
    array that the function makes."""
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
    """The loop of the source that a loop stands for in another order; of any other loop its own."""
    match loop.form:
        case Reordered(origin=origin) | ReorderedSingle(origin=origin) | Merged(origin=origin):
            return origin.nest
        case Written() | Fused() | Single() | Fill() | Member() | Inside():
            return loop.nest
        case _:
            assert_never(loop.form)


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
    all that is shown and checked. `verdicts` has one for each `for` of the source, in textual order. `unfused` is the
    program with its loops one after the other, where the plan has neighbours run as one. `deferred`: what is to be made
    yet of its loops before they can be run. `rewrites` are the names of those that made its program, with the lines of
    the loops of the source that they were taken for. `local_arrays` are those that the function makes, and `considered`
    other ways to run it that were not taken. `floats` are the scalars and arrays of floats that iterations add to or
    multiply. `is_apart`: its workers may be on several nodes, which share no memory. `sizes` are those that it is
    for. `shuffled` are the arguments that were shuffled before (`SparseArray.shuffle`, `DenseArray.shuffle`), each
    with what its last shuffle did. `taken_inside`: subscripts, as text, that are taken to be inside their arrays,
    because sizes that say so are not given."""

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
