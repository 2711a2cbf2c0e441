"""`f.last_run`: what the last call of a function has run."""

from __future__ import annotations

import numpy as np

from orion.dataclass import dataclass
from orion.errors import PlanError
from orion.inspect.profiles.elapsed import elapsed_by_loop
from orion.inspect.profiles.text import call_text
from orion.inspect.text.text import terminal_width, tree_text
from orion.inspect.tree.html import tree_html
from orion.inspect.tree.view import Seconds, Tree, seconds_of
from orion.ir.types import ArrayType
from orion.kernel.calling import APPLIED, BINS, FLUSHES, HISTOGRAM, MOST_LATE, WAITS
from orion.plan.plan import LoopPlan
from orion.plan.shares import runs_alone
from orion.plan.source_plans import main_part
from orion.planned import Plan
from orion.prepare import Preparation
from orion.prepared_call import Prepared
from orion.printable import printable
from orion.runtime.profile.collector import of_call
from orion.runtime.profile.recorder import Recording
from orion.runtime.profile.records import BroughtCopies, CallRecord, FetchedRows, Noted, SentUpdates, ShuffledRows
from orion.schedule.schedule import Ints
from orion.tracebacks import ends_in_users_line

NO_TIMES = "no times were taken of this run: they are where the call stands inside of `with orion.profile():`"


@dataclass(frozen=True, slots=True, eq=False)
class LoopTimes:
    """Times of one worker in one loop of a call, in seconds.

    - `line`, `worker`, `tiles`: the loop's line, the worker from 0, and the number of its tiles.
    - `compute`: in its tiles.
    - `wait`: waiting for other workers.
    - `transfer`: sending to other nodes, or receiving from them.
    """

    line: int
    worker: int
    tiles: int
    compute: float
    wait: float
    transfer: float


@dataclass(frozen=True, slots=True, eq=False)
class LateUpdates:
    """Counts of late updates of one worker, in a loop over `arrays` with buffers.

    - `flushes`: how often it applied its updates, to how many `elements`, of how many `bytes`.
    - `waits`: how often it waited for others.
    - `latest`: the most iterations by which another worker's update was late, at most `max_delay`.
    - `histogram`: triples (from, to, pieces), both ends included. So many pieces of `every` iterations began with
      updates that late.
    """

    line: int
    worker: int
    arrays: tuple[str, ...]
    max_delay: int
    every: int
    flushes: int
    elements: int
    bytes: int
    waits: int
    latest: int
    histogram: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pulls:
    """Pulls of one worker's copies of `arrays` in a loop: their number, and how often it waited for others.

    A worker waits at meetings, for its turn, for what all have posted, or for the home node to pull its copies.
    """

    line: int
    worker: int
    arrays: tuple[str, ...]
    pulls: int
    waits: int


def _late_updates(loop: LoopPlan, worker: int, notes: Ints, itemsize: int) -> LateUpdates:
    relaxed, counts = loop.relaxed, notes[HISTOGRAM:].tolist()
    edges = [-(-part * (relaxed.max_delay + 1) // BINS) for part in range(BINS + 1)]
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    return LateUpdates(
        line=loop.nest.span.line,
        worker=worker,
        arrays=tuple(one.buffered.array for one in relaxed.arrays),
        max_delay=relaxed.max_delay,
        every=relaxed.every,
        flushes=notes.item(FLUSHES),
        elements=notes.item(APPLIED),
        bytes=notes.item(APPLIED) * itemsize,
        waits=notes.item(WAITS),
        latest=notes.item(MOST_LATE),
        histogram=tuple((first, end - 1, pieces) for first, end, pieces in bins if first < end),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """Record of a call: its preparation and prepared program, the session's workers, and the notes of its run. `alike`
    counts the calls right before it that ran the same program."""

    preparation: Preparation
    prepared: Prepared
    workers: int
    force_parallel: bool
    recording: Recording | None
    noted: Noted
    alike: int


def alike_before(last: Ran | None, prepared: Prepared) -> int:
    """Return how many calls in a row, the `last` one included, ran this prepared program."""
    return 0 if last is None or last.prepared is not prepared else last.alike + 1


@dataclass(frozen=True, slots=True, eq=False)
class LastRun:
    """Record of a function's last finished call, `f.last_run`. `print` shows it.

    `plan` is the plan as it ran. `seconds`, `times` and `bytes_moved` need a call inside of `with orion.profile():`,
    since taking times costs time. Elsewhere they raise PlanError.

    >>> import numpy as np, orion
    >>> @orion.parallel_for
    ... def halve(a):
    ...     for i in range(a.shape[0]):
    ...         a[i] = 0.5 * a[i]
    >>> with orion.profile():
    ...     halve(np.ones(1000))
    >>> run = halve.last_run
    >>> run.workers, run.seconds > 0, run.serial_order()[:2].tolist()
    (1, True, [[0], [1]])
    """

    plan: Plan
    record: CallRecord | None
    ran: Ran

    @ends_in_users_line
    def serial_order(self, loop: int | None = None) -> Ints:
        """Return a serial order of the iterations that the run equals, in the form of `plan.serial_order`.

        `loop` is the position in `plan.loops`; by default the only loop.
        """
        plan = self.plan.only if loop is None else self.plan.loops[loop]
        return self.plan.serial_order(main_part(plan).runs_on, loop)

    @property
    def workers(self) -> int:
        """Number of workers that the plan shares the loops out among."""
        return self.plan.runs_on

    @property
    def worker_counts(self) -> tuple[tuple[float, int], ...]:
        """Pairs of seconds from the beginning and the number of workers from then on. There are several pairs if
        `orion.scale` came during the call."""
        return tuple(self.ran.noted.counts)

    @property
    def late(self) -> tuple[LateUpdates, ...]:
        """`LateUpdates` of arrays with buffers, by loop and worker; empty without such arrays."""
        prepared, types = self.ran.prepared, dict(self.plan.function.types)
        found = []
        for loop, notes in zip(prepared.program.loops, self.ran.noted.updates, strict=False):
            kinds = (types[one.buffered.array] for one in loop.plan.relaxed.arrays)
            sizes = [np.dtype(kind.dtype).itemsize for kind in kinds if isinstance(kind, ArrayType)]
            for worker, own in enumerate(notes):
                if own[FLUSHES] and loop.plan.relaxed:
                    found.append(_late_updates(loop.plan, worker, own, max(sizes)))
        return tuple(found)

    @property
    def sent(self) -> tuple[SentUpdates, ...]:
        """`SentUpdates` between nodes, by node; empty on one node."""
        return self.ran.noted.sent

    @property
    def fetched(self) -> tuple[FetchedRows, ...]:
        """`FetchedRows` of served arrays, by node; nodes without any are left out."""
        return self.ran.noted.fetched

    @property
    def shuffled(self) -> ShuffledRows:
        """Rows that shuffles of arrays since the previous call brought to other nodes, and how many of them were sent
        during that call."""
        return self.ran.noted.shuffled

    @property
    def brought(self) -> tuple[BroughtCopies, ...]:
        """`BroughtCopies` of replicated arrays (`orion.replicate`), by node; empty where no copies were sent."""
        return self.ran.noted.brought

    @property
    def pulls(self) -> tuple[Pulls, ...]:
        """`Pulls` of replicated arrays (`orion.replicate`), by loop and worker; empty without such arrays."""
        found = []
        for loop, notes in zip(self.ran.prepared.program.loops, self.ran.noted.updates, strict=False):
            names = tuple(one.name for one in loop.plan.nest.replicas)
            for worker, own in enumerate(notes if names else ()):
                if own[FLUSHES]:
                    counts = own.item(FLUSHES), own.item(WAITS)
                    found.append(Pulls(loop.plan.nest.span.line, worker, names, *counts))
        return tuple(found)

    @property
    @ends_in_users_line
    def seconds(self) -> float:
        """Seconds of the whole call."""
        record = self._measured()
        return (record.end - record.start) / 1e9

    @property
    @ends_in_users_line
    def times(self) -> tuple[LoopTimes, ...]:
        """Times of each worker in each loop that ran, as `LoopTimes`."""
        loops = of_call(self._measured()).loops
        return tuple(
            LoopTimes(label.span.line, worker, one.tiles, one.compute / 1e9, one.wait / 1e9, one.transfer / 1e9)
            for label, loop in loops.items()
            for worker, one in sorted(loop.workers.items())
        )

    @property
    @ends_in_users_line
    def bytes_moved(self) -> int:
        """Bytes copied or sent: between the driver and memory that actors share, and between nodes."""
        record = self._measured()
        return record.copied + sum(worker.bytes for worker in record.workers)

    def _measured(self) -> CallRecord:
        if self.record is None:
            raise PlanError(NO_TIMES)
        return self.record

    def __str__(self) -> str:
        width = terminal_width()
        tree = tree_text(self._tree(), width)
        return printable("\n\n".join([tree, NO_TIMES if self.record is None else call_text(self.record)]))

    def _repr_html_(self) -> str:
        return tree_html(self._tree())

    def _tree(self) -> Tree:
        """The tree of the plan's loops with the seconds of the run."""
        return self.plan.tree(self._seconds())

    @property
    def verdict(self) -> str:
        """The first line of the plan, with the part of the time that was shared out where times were taken."""
        return self._tree().verdict

    def _seconds(self) -> Seconds | None:
        """Return the seconds of the call and of its loops; None where no times were taken."""
        if self.record is None:
            return None
        workers = self.plan.sizes.workers
        each = [
            (label.span, seconds, label.plan is not None and runs_alone(label.plan, workers))
            for label, seconds in elapsed_by_loop(self.record)
        ]
        return seconds_of(self.seconds, each)

    def __repr__(self) -> str:
        return f"<orion.LastRun of {self.plan!r}{'' if self.record is None else f', {self.seconds:.3g} s'}>"
