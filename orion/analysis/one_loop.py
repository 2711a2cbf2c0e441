"""What is known of one planned loop before sizes are: its dependences, its legal strategies, how it uses its arrays."""

from __future__ import annotations

from collections.abc import Iterable

from orion.cost.candidate import Candidate
from orion.cost.placement import ArrayUse
from orion.cost.worth import Work
from orion.dataclass import dataclass, field
from orion.dependence.access import LoopDependences
from orion.dependence.announcer import Announcer
from orion.dependence.bounds import BoundsChecks
from orion.dependence.inspection import Inspectable
from orion.dependence.model import Model
from orion.dependence.region import Place, Statement
from orion.ir.nodes import Assign, Const
from orion.ir.program import LoopNest, OfFilling, OfStatements
from orion.reasons import Reason


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
    statements: tuple[Statement, ...] = field(compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Origin: ({', '.join(self.nest.dims)}) in line {self.nest.span.line}>"


@dataclass(frozen=True, slots=True)
class Summed:
    """What is different about a loop when it has copies of the arrays whose elements it adds to."""

    analysis: LoopDependences
    candidates: tuple[Candidate, ...]
    uses: tuple[ArrayUse, ...]


@dataclass(frozen=True, slots=True)
class TimeTiles:
    """Rounds over arrays.

    `slopes` are those of the coordinates of space. `shifts` has the shift in coordinate k + 1 of the loop or statement
    at a place of the region, for (k, place). `rows` are the arrays that have elements for each value of the
    coordinates: (array, bytes of an element, axes that no coordinate goes along).
    """

    slopes: tuple[int, ...]
    shifts: tuple[tuple[tuple[int, Place], int], ...]
    rows: tuple[tuple[str, int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class AnalysedLoop:
    """What planning a loop needs that does not depend on shapes or workers: computed once per types.

    `form` says what the loop is to the source. `inspectable` is its inspector, None where it has none or needs none;
    `uninspected` is why it has none, or why a loop without candidates is not cut at all. `announcers` list what it
    touches of arrays that no partition fits.
    `summed` is how it is parallel with copies of arrays that it adds to;
    None where it needs none, or they would not make it so. `capped` are what was not found out because it would have
    taken too long. `round_ns` is the predicted time of the longest loop in the followed steps around it; 0
    where there is none. `middle_round` are the variables of the serial loops around it with their values in the middle
    round, which is the one that is predicted. `rewrites` are those that put it in another order.
    """

    nest: LoopNest
    form: AnalysedForm
    analysis: LoopDependences
    candidates: tuple[Candidate, ...]
    uses: tuple[ArrayUse, ...]
    rounds_overlap: bool
    work: tuple[Work, ...]
    summed: Summed | None
    inspectable: Inspectable | None
    uninspected: tuple[Reason, ...]
    announcers: tuple[Announcer, ...]
    capped: tuple[Reason, ...]
    round_ns: float
    middle_round: tuple[tuple[str, int], ...]
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
    """The loop that neighbours, its `members`, are run as (`orion.plan.fused`)."""

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
    """The same of tiles of rounds and space, `time_tiles`."""

    origin: Origin
    told: tuple[Work, ...]
    places: str
    time_tiles: TimeTiles


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


def is_without_waits(loop: AnalysedLoop) -> bool:
    """Whether a loop is parallel without tiles that wait for each other."""
    return any(not candidate.time for candidate in loop.candidates)


def may_be_shared(loop: AnalysedLoop) -> bool:
    """Whether a loop is parallel, perhaps with copies of arrays."""
    return bool(loop.candidates) or loop.summed is not None


def is_shared_out(loops: Iterable[AnalysedLoop]) -> bool:
    """Whether any of the loops is parallel, perhaps with copies of arrays: statements that one worker runs, and what
    only fills arrays, are no reason to meet."""
    return any(may_be_shared(loop) and not _only_prepares(loop) for loop in loops)


def _only_prepares(loop: AnalysedLoop) -> bool:
    """Whether it stands for statements that one worker runs, or fills arrays with a number; neighbours that are run as
    one do where each of them does."""
    members = loop.form.members if isinstance(loop.form, AsOne) else (loop,)
    return all(isinstance(one.nest.form, OfStatements | OfFilling) or _only_fills(one) for one in members)


def _only_fills(loop: AnalysedLoop) -> bool:
    """Whether all that it does, as far as that is told, is to give elements a number."""
    match loop.form:
        case InBand(told=told) | InTimeTiles(told=told) | OutsideBands(told=told):
            body = tuple(statement for work in told for statement in work.body)
        case _:
            body = loop.nest.body
    return bool(body) and all(isinstance(one, Assign) and isinstance(one.value, Const) for one in body)


def is_single(nest: LoopNest) -> bool:
    """Whether it stands for statements between loops, which one worker runs."""
    return isinstance(nest.form, OfStatements)


def _parameters(relation: str) -> set[str]:
    head = relation.partition("->")[0].strip()
    return {name.strip() for name in head.strip("[]").split(",")} if head.startswith("[") else set()
