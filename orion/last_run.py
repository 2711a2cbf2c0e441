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
    """The times of one worker in one loop of a call, in seconds: in its tiles, waiting for other workers, and sending
    to other nodes or receiving from them."""

    line: int
    worker: int
    tiles: int
    compute: float
    wait: float
    transfer: float


@dataclass(frozen=True, slots=True, eq=False)
class LateUpdates:
    """What one worker saw of the updates of others, and did with its own, in a loop with arrays with buffers, `arrays`.

    `flushes`: how often it applied its updates; `elements`: to how many elements, and `bytes`, what these updates are;
    `waits`: how often it waited for others. `latest`: the most iterations by which an update of another worker was late
    in any of its iterations, at most `max_delay`; `histogram`: how many of its pieces of `every` iterations began so
    late, as triples (from, to, pieces), the ends included.
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
    """How often one worker has pulled its copies of `arrays` and these together in a loop, and how often it waited for
    others: at meetings, for its turn, for what all have posted, or for the home node to pull its copies."""

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
    """The record of a call: what was prepared, by which stages, for how many workers of the session, and the notes of
    its run. `alike` counts the calls right before it that ran the same prepared program."""

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
    """The last call of a function that came to its end: `plan` is the plan as it ran. Times and bytes are known of
    calls inside of `with orion.profile():` alone, as taking them costs time; PlanError elsewhere."""

    plan: Plan
    record: CallRecord | None
    ran: Ran

    @ends_in_users_line
    def serial_order(self, loop: int | None = None) -> Ints:
        """A serial order of the iterations that the run equals, as `plan.serial_order` gives it, for the workers that
        ran. `loop` is the number of the loop; the only one, if not given."""
        plan = self.plan.only if loop is None else self.plan.loops[loop]
        return self.plan.serial_order(main_part(plan).runs_on, loop)

    @property
    def workers(self) -> int:
        """The number of workers that the plan shares the loops out among."""
        return self.plan.runs_on

    @property
    def worker_counts(self) -> tuple[tuple[float, int], ...]:
        """Of how many workers the run made use, and from how many seconds after its begin on: more than one pair where
        `orion.scale` has come while it was under way."""
        return tuple(self.ran.noted.counts)

    @property
    def late(self) -> tuple[LateUpdates, ...]:
        """How late updates of arrays with buffers were, by loops and workers; none of loops without such."""
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
        """What nodes have sent each other of updates that may be late, by nodes; none of calls on one node."""
        return self.ran.noted.sent

    @property
    def fetched(self) -> tuple[FetchedRows, ...]:
        """What nodes were sent of arrays that are served, before their tiles needed it, by nodes; none of nodes that
        were sent none."""
        return self.ran.noted.fetched

    @property
    def shuffled(self) -> ShuffledRows:
        """How many rows came to other nodes with shuffles of arrays since the call before, and how many of these were
        sent while that was under way."""
        return self.ran.noted.shuffled

    @property
    def brought(self) -> tuple[BroughtCopies, ...]:
        """What each node has sent of copies of arrays (`orion.replicate`) that workers of several nodes pull together,
        by nodes; none of calls on one node, and of nodes that have sent none."""
        return self.ran.noted.brought

    @property
    def pulls(self) -> tuple[Pulls, ...]:
        """How often copies of arrays (`orion.replicate`) were pulled together, by loops and workers; none of loops
        without such."""
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
        """The time of the whole call."""
        record = self._measured()
        return (record.end - record.start) / 1e9

    @property
    @ends_in_users_line
    def times(self) -> tuple[LoopTimes, ...]:
        """The times of each worker in each loop that ran."""
        loops = of_call(self._measured()).loops
        return tuple(
            LoopTimes(label.span.line, worker, one.tiles, one.compute / 1e9, one.wait / 1e9, one.transfer / 1e9)
            for label, loop in loops.items()
            for worker, one in sorted(loop.workers.items())
        )

    @property
    @ends_in_users_line
    def bytes_moved(self) -> int:
        """The bytes that were copied or sent: between the driver and memory that actors share, and between nodes."""
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
        """The seconds of the call and of its loops; None where no times were taken."""
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
