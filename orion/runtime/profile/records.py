"""What a profile measures of a call, as values. Times are nanoseconds of the driver's clock."""

from __future__ import annotations

from collections.abc import Sequence

from orion.dataclass import dataclass, field
from orion.plan.called import loops_called
from orion.plan.plan import LoopPlan
from orion.runtime.followed.steps import followed_steps
from orion.runtime.prepared import PreparedProgram
from orion.schedule.schedule import Ints
from orion.source import Span

BARRIER = -1
"""Stands for the barrier where the number of a loop is asked for."""


@dataclass(frozen=True, slots=True)
class SentUpdates:
    """What a node has sent to the others of updates that may be late, in a call on several nodes: `messages`, with
    `rows` of arrays in them, of `bytes` in all; `flushes`: how often all that had changed was sent, as the bound asks
    for it; `early`: how many of the rows were sent before that, as the link had time; `looking`: for how many seconds
    it looked for what had changed."""

    messages: int
    rows: int
    early: int
    bytes: int
    flushes: int
    looking: float


NONE_SENT = SentUpdates(0, 0, 0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class FetchedRows:
    """What a node was sent, in a call on several nodes, of arrays that are served: `rows` that its tiles had announced,
    of `bytes` in all, in `messages`, in the order in which tiles need them. The last was there `seconds` after the
    loops had begun, and the worker that waited longest for rows has waited for `waited` seconds. One worker that asked
    for a row when it needs it would have asked `rows` times."""

    messages: int
    rows: int
    bytes: int
    seconds: float
    waited: float

    @property
    def hidden(self) -> float:
        """The part of the time until all were there in which workers computed."""
        return 1 - self.waited / self.seconds if self.seconds else 1.0


NONE_FETCHED = FetchedRows(0, 0, 0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ShuffledRows:
    """Of arrays that were shuffled since the call before: how many rows came to nodes that had not had them, and how
    many of these were sent `ahead`, while the call before was under way."""

    rows: int
    ahead: int

    def and_of(self, rows: int, ahead: int) -> ShuffledRows:
        """These and those of one more array."""
        return ShuffledRows(self.rows + rows, self.ahead + ahead)


NONE_SHUFFLED = ShuffledRows(0, 0)


@dataclass(frozen=True, slots=True)
class BroughtCopies:
    """What a node has sent to the others of copies of arrays that workers pull together (`orion.replicate`), in a call
    on several nodes: `messages`, of `bytes` in all; at how many `meetings` it was, or, where workers pull one by one,
    for how many pulls of its workers."""

    meetings: int
    messages: int
    bytes: int

    def with_more(self, meetings: int = 0, messages: int = 0, bytes: int = 0) -> BroughtCopies:
        """These and some more."""
        return BroughtCopies(self.meetings + meetings, self.messages + messages, self.bytes + bytes)

    def __add__(self, other: BroughtCopies) -> BroughtCopies:
        return self.with_more(other.meetings, other.messages, other.bytes)


NONE_BROUGHT = BroughtCopies(0, 0, 0)


@dataclass(slots=True)
class Noted:
    """What is noted of a run, whether times are taken or not: `counts`, with how many workers it went on from how many
    seconds after its begin on, `updates`, the notes of the workers of each loop about buffers, (workers, NOTES_SIZE),
    `sent`, what each node has sent of such updates, where there are several, `fetched`, what each was sent before its
    tiles needed it, `brought`, what each has sent of copies of arrays, and `shuffled`, what shuffles brought nodes."""

    counts: list[tuple[float, int]] = field(default_factory=list)
    updates: tuple[Ints, ...] = ()
    sent: tuple[SentUpdates, ...] = ()
    fetched: tuple[FetchedRows, ...] = ()
    brought: tuple[BroughtCopies, ...] = ()
    shuffled: ShuffledRows = NONE_SHUFFLED


@dataclass(frozen=True, slots=True)
class LoopLabel:
    """Which loop, and what of its plan matters for judging times.

    `code` is the header or the statement of the source that it stands for, and `part` which part of that it is where
    several loops do (`orion.plan.called`). `plan` is how it runs, None where that is not known.
    `has_waits`: tiles wait for tiles of other workers. `takes_tiles`: workers take each other's tiles, so that waiting
    cannot be told from computing. `is_compiled`: without a profile its rounds run without Python. `bytes` are those of
    the arrays that it touches.
    """

    function: str
    span: Span
    code: str
    part: str
    number: int
    strategy: str
    workers: int
    tiles: int
    has_waits: bool
    takes_tiles: bool
    is_compiled: bool
    bytes: int
    plan: LoopPlan | None = field(default=None, repr=False, compare=False)


def loop_labels(prepared: PreparedProgram, touched: Sequence[int]) -> tuple[LoopLabel, ...]:
    """The labels of the loops of a program, whose arrays have so many bytes."""
    function, compiled = prepared.program.function, compiled_loops(prepared)
    called = loops_called(function, [loop.plan for loop in prepared.loops])
    return tuple(
        LoopLabel(
            function=function.name,
            span=loop.plan.nest.span,
            code=own.code,
            part=own.part,
            number=number,
            strategy=str(loop.plan.strategy),
            workers=loop.schedule.workers,
            tiles=loop.schedule.tiles,
            has_waits=bool(loop.schedule.waits.size),
            takes_tiles=loop.plan.takes_tiles,
            is_compiled=number in compiled,
            bytes=touched[number],
            plan=loop.plan,
        )
        for number, (loop, own) in enumerate(zip(prepared.loops, called, strict=True))
    )


def compiled_loops(prepared: PreparedProgram) -> frozenset[int]:
    """The loops of a program that are started by compiled code."""
    found = followed_steps(prepared.program, prepared.loops)
    return frozenset(number for one in found for number in one.loops)


@dataclass(frozen=True, slots=True)
class Part:
    """One worker's part of one round of a loop, in nanoseconds.

    `compute` is the time in tiles, `cpu` that in which a core ran them, `wait` the time for other workers' tiles, and
    `sent` that of sending to other nodes. The rest, up to the `end`, is the start of the loop in Python and the
    profile's own.
    """

    loop: int
    round: int
    start: int
    end: int
    tiles: int
    compute: int
    cpu: int
    wait: int
    sent: int


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in which a worker waited, in a loop or at the barrier."""

    loop: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Message:
    """What one worker sent to another node, or what came from a worker of one: when, message `number` between worker
    and node, and its bytes."""

    time: int
    worker: int
    node: str
    number: int
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TileTimes:
    """The tiles of one worker in a loop: which, how much is in each (iterations, at most), and the sums of their times
    over all rounds. `alone` and `together` are the least times of a core in one and the same tile, run while the other
    workers stood still and while they did not; 0 where there is no such sample."""

    loop: int
    rounds: int
    tiles: Ints
    work: Ints
    compute: Ints
    cpu: Ints
    alone: int = 0
    together: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class WorkerRecord:
    """What one worker did in one call. `totals` has the sums of its parts by loop, also of parts that are not kept:
    their number for `round`, their length for `end`. `last` is the loop that it ran last; `messages` and `bytes` are
    what it sent to other nodes in `sends` nanoseconds, of which `sent` has the first."""

    worker: int
    node: str
    start: int
    end: int
    totals: tuple[Part, ...]
    tiles: tuple[TileTimes, ...]
    parts: tuple[Part, ...]
    waits: tuple[Wait, ...]
    waited: int
    sends: int
    messages: int
    bytes: int
    last: int
    sent: tuple[Message, ...]
    arrived: tuple[Message, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CallRecord:
    """One call of a function. It began at `start`; its plan was there at `planned`, it was its turn at `entered`, and
    it returned or raised at `end`. `copying` is the time in which the driver copied arguments to and from the workers'
    memory and sent them to other nodes, `copied` their bytes. `error` names the class of what it raised. A function
    that ran as it is, without a plan, has no `loops`."""

    function: str
    thread: int
    start: int
    planned: int
    entered: int
    end: int
    copying: int
    copied: int
    loops: tuple[LoopLabel, ...]
    workers: tuple[WorkerRecord, ...]
    is_planned: bool
    error: str = ""

    @property
    def begun(self) -> int:
        """When the first worker began; the end where none did."""
        return min((one.start for one in self.workers), default=self.end)

    @property
    def ended(self) -> int:
        """When the last worker was through."""
        return max((one.end for one in self.workers), default=self.end)
