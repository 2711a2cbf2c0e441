"""What the driver and the actors say to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.records import (
    NONE_BROUGHT,
    NONE_FETCHED,
    NONE_SENT,
    BroughtCopies,
    FetchedRows,
    SentUpdates,
    WorkerRecord,
)
from orion.runtime.ray.announced import Announcements
from orion.runtime.ray.exchange import ProgramExchange
from orion.runtime.ray.regions import Mask, Region, Section
from orion.runtime.ray.reordered import Reordered, Rows, SentAhead
from orion.runtime.ray.segments import Block, SegmentName
from orion.runtime.ray.store import LoopBlocks
from orion.schedule.schedule import Ints

BARRIER = -1
"""Stands for the barrier where the number of a loop is asked for."""


@dataclass(frozen=True, slots=True)
class RunOrder:
    """One worker's part in one run of a program.

    `program` is its number; `prepared` is the program itself, with what nodes send each other, where this actor does
    not know it yet; None and None where it does, and no exchange where all is on one node. `run`
    counts the runs of the session. `memory` is the segment of flags and results, `segments` how this
    machine's segments are opened, `dropped` those that are no longer needed, as are the programs `ended`.
    `given` are the arguments of the skeleton. Times are taken where `measured` has the number of such a call.
    `announced` are the rows of arrays that tiles touch, where this actor does not know them yet; else None.
    """

    program: int
    prepared: PreparedProgram | None
    exchange: ProgramExchange | None
    run: int
    memory: int
    segments: dict[int, SegmentName]
    loops: tuple[LoopBlocks, ...]
    given: tuple[object, ...]
    dropped: tuple[int, ...]
    ended: tuple[int, ...]
    measured: int | None = None
    announced: Announcements | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a worker's run ended: `returned` is what the skeleton returned; `error` why it failed; `left` where
    it left the program because another worker failed or the run was aborted. `sent_bytes` are the contents of arrays
    that it has sent to other nodes. `busy` has for each loop how many nanoseconds it computed, where there are several
    nodes. `held` are the cells of arrays that nodes have as they are at the end, bool
    (nodes, *cells), where worker 0 of several nodes says so. `measured` are the times that it took, and one moment on
    its own clock and on that of all machines. `notes` are its notes about buffers in each loop, where there are several
    nodes, and `carried` is what it has sent of such updates as the carrier of its node; `fetched` is what that was sent
    of rows that tiles have announced, and how long this worker waited for such; `brought` is what it has sent of copies
    of arrays for its node.
    """

    returned: Any = None
    error: BaseException | None = None
    left: bool = False
    sent_bytes: int = 0
    busy: tuple[int, ...] = ()
    held: Mapping[str, Mask] = field(default_factory=dict)
    measured: tuple[WorkerRecord, tuple[int, int]] | None = None
    notes: tuple[Ints, ...] = ()
    carried: SentUpdates = NONE_SENT
    fetched: FetchedRows = NONE_FETCHED
    brought: BroughtCopies = NONE_BROUGHT


# ---------------------------------------------------------------- between nodes


CLOCKS = -2
"""From here downwards stand for the clocks of loops where the number of a loop is asked for."""


def clock_of(loop: int) -> int:
    """What stands for the clocks of a loop, and back.

    >>> clock_of(0), clock_of(clock_of(3))
    (-2, 3)
    """
    return CLOCKS - loop


MEETINGS = -(1 << 32)
"""From here downwards stand for the meetings of the workers of loops where the number of a loop is asked for."""


def meeting_of(loop: int) -> int:
    """What stands for the meetings of a loop, and back.

    >>> meeting_of(meeting_of(3))
    3
    """
    return MEETINGS - loop


@dataclass(frozen=True, slots=True)
class Flag:
    """Tile `tile` of a loop (or of the barrier) has finished `round`; or of the clocks of a loop, that of worker `tile`
    is `round`; or of the copies of a loop, worker `tile` has come to meeting or pull number `round` (what that says
    beside the number: `orion.runtime.ray.at_home`), or node -1 - `tile` has told of all of its workers."""

    loop: int
    tile: int
    round: int


@dataclass(frozen=True, slots=True)
class Piece:
    """The contents of a part of a dense array of the run."""

    region: Section
    data: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Results:
    """The partial results of some tiles, for output number `output` of a loop, in one of the two arrays that
    take turns.
    """

    loop: int
    output: int
    turn: int
    tiles: Ints
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class CopiedParts:
    """Of copy number `copy` of a loop, in one of the two arrays that take turns: the elements from `first` on of some
    blocks' copies, as many as `values` has of each."""

    loop: int
    copy: int
    turn: int
    blocks: Ints
    first: int
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class LateRows:
    """Of array number `array` with a buffer in a loop: what is to be added to some of its rows, (rows, width)."""

    loop: int
    array: int
    rows: Ints
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class FedRows:
    """Of array number `array` with a buffer in a loop: what rows are that tiles of a node have announced, from number
    `first` of them on, in the order in which they need them, (rows, width). Both ends know which rows these are."""

    loop: int
    array: int
    first: int
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Brought:
    """Of replica number `replica` of a loop: the copies of some `workers` for a meeting or pull, or what the copy of
    one is moved by, (workers, elements)."""

    loop: int
    replica: int
    meeting: int
    workers: Ints
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message from a worker to another node: data first, then the flags that tell of it. `number` counts
    the messages from this sender to this node in run `run`, from 0.
    """

    run: int
    sender: int
    number: int
    flags: tuple[Flag, ...]
    pieces: tuple[Piece, ...]
    results: tuple[Results | CopiedParts | LateRows | FedRows | Brought, ...]


@dataclass(frozen=True, slots=True)
class Filling:
    """What the driver puts into a part of a node's copy of a block."""

    block: Block
    region: Section | Reordered | Rows | SentAhead
    data: NDArray[Any]

    def parts(self, most: int) -> Iterator[Filling]:
        """The same in parts of at most so many bytes, as far as whole rows are no more than that."""
        region, rows = self.region, len(self.data) if self.data.ndim else 1
        if self.data.nbytes <= most or rows < 2 or not isinstance(region, Region) or region.lean is not None:
            yield self
            return
        (first, _), *others = region.box or ((0, rows),)
        step = max(1, most * rows // self.data.nbytes)
        for low in range(0, rows, step):
            data = self.data[low : low + step]
            yield Filling(self.block, Region(region.array, ((first + low, first + low + len(data)), *others)), data)


@dataclass(frozen=True, slots=True)
class AheadRows:
    """What rows of a block are after its next shuffle, which the driver expects as its `number`-th one: those from
    number `at` on of all that the node will lack."""

    block: Block
    number: int
    at: int
    rows: Rows
    data: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Ready:
    """Before a run: have the flags and results of its program, in segment `memory`, zero, and fill parts of arrays."""

    memory: int
    fillings: tuple[Filling, ...]


Order = RunOrder | Ready | None
"""What an actor is told to do; for None it just answers."""

FILL_BYTES = 1 << 23
"""The driver sends a node so many bytes at a time: what is on its way is in memory."""


def messages_of(fillings: Iterable[Filling]) -> Iterator[tuple[Filling, ...]]:
    """Fillings as messages of at most `FILL_BYTES`, cut where that is needed; at least one, which may have none."""
    message: list[Filling] = []
    size = 0
    for part in (part for filling in fillings for part in filling.parts(FILL_BYTES)):
        if message and size + part.data.nbytes > FILL_BYTES:
            yield tuple(message)
            message, size = [], 0
        message.append(part)
        size += part.data.nbytes
    yield tuple(message)
