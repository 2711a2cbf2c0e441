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
    """Late updates that a node has sent to others, in a call on several nodes.

    - `messages`, `rows`, `bytes`: how many messages, with how many rows of arrays, of how many bytes.
    - `flushes`: how often it sent all changes, as `max_delay` asks for.
    - `early`: rows sent before that, in the link's spare time.
    - `looking`: seconds spent on finding changes.
    """

    messages: int
    rows: int
    early: int
    bytes: int
    flushes: int
    looking: float


NONE_SENT = SentUpdates(0, 0, 0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class FetchedRows:
    """Prefetched rows of served arrays that a node got, in a call on several nodes.

    - `messages`, `rows`, `bytes`: how many messages, with how many announced rows, of how many bytes. They come in the
      order in which tiles need them.
    - `seconds`: when the last one arrived, from the beginning of the loops.
    - `waited`: seconds that the worker with the longest wait for rows has waited.

    Without prefetching, a worker would have asked `rows` times.
    """

    messages: int
    rows: int
    bytes: int
    seconds: float
    waited: float

    @property
    def hidden(self) -> float:
        """Part of the transfer time in which workers computed."""
        return 1 - self.waited / self.seconds if self.seconds else 1.0


NONE_FETCHED = FetchedRows(0, 0, 0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ShuffledRows:
    """Rows that shuffles since the previous call have brought to other nodes.

    `rows` is their number, `ahead` the number of those sent during that call.
    """

    rows: int
    ahead: int

    def and_of(self, rows: int, ahead: int) -> ShuffledRows:
        """Return the sum with the rows of one more array."""
        return ShuffledRows(self.rows + rows, self.ahead + ahead)


NONE_SHUFFLED = ShuffledRows(0, 0)


@dataclass(frozen=True, slots=True)
class BroughtCopies:
    """Copies of replicated arrays (`orion.replicate`) that a node has sent to others, in a call on several nodes.

    - `meetings`: the number of meetings; where workers pull one by one, that of its workers' pulls.
    - `messages`, `bytes`: how many messages, of how many bytes.
    """

    meetings: int
    messages: int
    bytes: int

    def with_more(self, meetings: int = 0, messages: int = 0, bytes: int = 0) -> BroughtCopies:
        """Return the sum with some more."""
        return BroughtCopies(self.meetings + meetings, self.messages + messages, self.bytes + bytes)

    def __add__(self, other: BroughtCopies) -> BroughtCopies:
        return self.with_more(other.meetings, other.messages, other.bytes)


NONE_BROUGHT = BroughtCopies(0, 0, 0)


@dataclass(slots=True)
class Noted:
    """Notes of a run, with or without times.

    - `counts`: pairs of seconds from the beginning and the number of workers from then on.
    - `updates`: per loop, the workers' notes on buffers, of shape (workers, NOTES_SIZE).
    - `sent`, `fetched`, `brought`: per node, late updates sent, rows prefetched, and copies sent.
    - `shuffled`: rows that shuffles have brought to other nodes.
    """

    counts: list[tuple[float, int]] = field(default_factory=list)
    updates: tuple[Ints, ...] = ()
    sent: tuple[SentUpdates, ...] = ()
    fetched: tuple[FetchedRows, ...] = ()
    brought: tuple[BroughtCopies, ...] = ()
    shuffled: ShuffledRows = NONE_SHUFFLED


@dataclass(frozen=True, slots=True)
class LoopLabel:
    """Name of a loop, and the part of its plan that matters for judging times.

    - `code`, `part`: the code of the source that it stands for, and which part where several loops do
      (`orion.plan.called`).
    - `plan`: how it runs, None where that is not known.
    - `has_waits`: tiles wait for tiles of other workers.
    - `takes_tiles`: workers take each other's tiles, so that waiting cannot be told from computing.
    - `is_compiled`: without a profile, its rounds run without Python.
    - `bytes`: those of the arrays that it accesses.
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
    """Message that a worker sent to another node, or received from a worker there.

    It has the time, its `number` between worker and node, and its bytes.
    """

    time: int
    worker: int
    node: str
    number: int
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TileTimes:
    """Times of one worker's tiles in a loop.

    - `tiles`, `work`: which tiles, and how many iterations each has at most.
    - `compute`, `cpu`: sums of their times over all rounds.
    - `alone`, `together`: the least core time of one and the same tile, while the other workers stood still, and while
      they ran. 0 without such a sample.
    """

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
    """Record of one worker in one call.

    - `totals`: sums of its parts by loop, also of parts that are not kept. `round` then is their number, `end` their
      length.
    - `last`: the loop that it ran last.
    - `messages`, `bytes`, `sends`: what it sent to other nodes, in how many nanoseconds; `sent` has the first messages.
    """

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
    """Record of one call of a function.

    - `start`, `planned`, `entered`, `end`: when it began, had its plan, got its turn, and returned or raised.
    - `copying`, `copied`: the driver's time for copying arguments to and from workers' memory and sending them to
      nodes, and the bytes.
    - `error`: the class of the error that it raised.
    - `loops`: those of its plan; none for a function that ran as it is.
    """

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
        """Time at which the first worker began; the end where none did."""
        return min((one.start for one in self.workers), default=self.end)

    @property
    def ended(self) -> int:
        """Time at which the last worker finished."""
        return max((one.end for one in self.workers), default=self.end)
