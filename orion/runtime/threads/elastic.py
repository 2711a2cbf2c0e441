"""Another number of workers in the middle of a run on threads (`orion.scale`).

The workers of a run go through its skeleton by themselves, some loops apart. When other workers are asked for, worker 0
deals the tiles out to them, by the rule by which they are dealt out at the start, and chooses a place in the program
that no worker has come to yet. All others leave there; worker 0 waits for them, and goes on with the new ones. These
have not been through the skeleton, whose scalars worker 0 alone has now: they do the steps that it tells them to.

A step is a planned loop, or some of those that followed steps start. Tiles, flags and results stay what they are,
so that nothing is computed again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Lock
from time import perf_counter, perf_counter_ns
from typing import Any

from orion.aside import aside
from orion.errors import ArgumentError
from orion.runtime.followed.part import Following
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.records import Noted
from orion.runtime.threads.backend import LoadedProgram, Run, load_again, run_worker, worker_of
from orion.runtime.threads.pool import Pool
from orion.runtime.threads.watch import Watch
from orion.runtime.worker import FinishedError, Worker

Step = Callable[[Worker], Any]
"""What all workers do, told to those that do not go through the skeleton by themselves."""

LEAST_NS, MOST_NS = 5_000_000, 20_000_000
"""How long some loops of followed steps take: the calls for them cost a thousandth of it, or less."""

NEVER = sys.maxsize


class Stop:
    """The place in a program at which all workers leave it, as the number of rounds and loops that come before it."""

    def __init__(self, workers: int) -> None:
        self._begun = [0] * workers
        self._at = NEVER
        self._lock = Lock()

    def begin(self, worker: int, count: int) -> int:
        """How many of the next `count` rounds a worker may do, which it has then begun; 0 at the place. It says first
        what it begins, and then looks: so `settle` knows of it, or it waits here for `settle`."""
        before = self._begun[worker]
        self._begun[worker] = before + count
        if before + count > self._at:
            with self._lock:
                count = max(0, min(count, self._at - before))
                self._begun[worker] = before + count
        return count

    def give_back(self, worker: int, count: int) -> None:
        """A worker has not done the last of the rounds that it has begun: there were fewer."""
        self._begun[worker] -= count

    def settle(self) -> None:
        """Choose the first place that no worker has come to."""
        with self._lock:
            self._at = -1  # from here on none goes on without the lock
            self._at = max(self._begun)


class SkeletonWorker:
    """What the skeleton calls on a worker other than 0."""

    def __init__(self, worker: Worker, stop: Stop) -> None:
        self.number = worker.number
        self._worker = worker
        self._stop = stop

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        """Run this worker's part of a loop. FinishedError where it is to leave."""
        self._begin(1)
        return self._worker.loop(number, *values)

    def follow(self, number: int, *values: Any) -> tuple[Any, ...] | None:
        """Run this worker's part of followed steps, some loops at a time."""
        following = self._worker.begin_following(number, values)
        count = max(1, self._worker.followed[number].at_once // 16)
        while following is not None and not following.is_done:
            begun = self._begin(count)
            start = perf_counter_ns()
            self._go_on(number, following, begun)
            self._stop.give_back(self.number, following.unspent)
            taken = perf_counter_ns() - start
            if taken < LEAST_NS:
                count *= 2
            elif taken > MOST_NS:
                count = max(1, count // 2)
            self._worker.followed[number].at_once = count
        return None if following is None else following.found()

    def _go_on(self, number: int, following: Following, starts: int) -> None:
        self._worker.go_on(number, following, starts)

    def _begin(self, count: int) -> int:
        found = self._stop.begin(self.number, count)
        if not found:
            raise FinishedError
        return found


class FirstWorker(SkeletonWorker):
    """What the skeleton calls on worker 0, which has the others changed."""

    def __init__(self, worker: Worker, run: ElasticRun) -> None:
        super().__init__(worker, run.stop)
        self._run = run

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        """Run this worker's part of a loop, and have those do theirs that are told to."""
        self._begin(1)
        self._tell(lambda worker: worker.loop(number, *values))
        return self._worker.loop(number, *values)

    def _begin(self, count: int) -> int:
        run = self._run
        run.look()
        found = run.stop.begin(0, count)
        if not found:
            self._worker = run.change()
            found = run.stop.begin(0, count)
        return found

    def _go_on(self, number: int, following: Following, starts: int) -> None:
        if self._run.told:
            before = following.copy()
            self._tell(lambda worker: worker.go_on(number, before.copy(), starts))
        super()._go_on(number, following, starts)

    def _tell(self, step: Step) -> None:
        """Have the others do a step, where they do those that they are told."""
        for one in self._run.told:
            one.put(step)


class ElasticRun(Run):
    """A run with as many workers as are `asked` for, `began_for` when it began; `noted` is told how many there were,
    and when."""

    def __init__(
        self,
        prepared: PreparedProgram,
        loaded: LoadedProgram,
        arguments: Mapping[str, object],
        asked: Callable[[], int],
        began_for: int,
        noted: Noted,
    ) -> None:
        super().__init__(run_worker, prepared, loaded, arguments)
        self.stop = Stop(loaded.workers)
        self.told: tuple[SimpleQueue[Step | None], ...] = ()
        self._noted, self._start = noted, perf_counter()
        self._asked, self.asked_last = asked, began_for
        self._next: tuple[PreparedProgram, LoadedProgram] | None = None
        self._origin = prepared
        self._rounds = [0] * len(prepared.loops)
        noted.counts.append((0.0, loaded.workers))

    def on(self, pool: Pool, watch: Watch) -> Any:
        """Run it, and return what worker 0 returns."""
        self._pool = pool
        returned = super().on(pool, watch)
        self._noted.updates = self.loaded.memory.all_notes()
        return returned

    def run_part(self, number: int, given: tuple[object, ...]) -> Any:
        """Run a worker's part of the program, or what it is told of it."""
        worker = worker_of(self.prepared, self.loaded, number)
        if number and self.told:
            steps = self.told[number - 1]
            while (step := steps.get()) is not None:
                step(worker)
            return None
        try:
            called = SkeletonWorker(worker, self.stop) if number else FirstWorker(worker, self)
            return self.loaded.skeleton(called, *given)
        finally:
            if not number:
                self._tell_end()

    # ------------------------------------------------------------ by worker 0

    def look(self) -> None:
        """Get other workers ready where others are asked for than before, and choose the place where they begin."""
        asked = self._asked()
        if asked == self.asked_last:
            return
        self.asked_last = asked
        dealt = aside(lambda: self._origin.dealt_to(asked))
        if dealt.workers == self.loaded.workers and self._next is None:
            return
        try:
            self._pool.grow(dealt.workers)
        except ArgumentError:
            return  # this run goes on as it is; the next one will say so
        self._next = dealt, aside(lambda: load_again(dealt, self.loaded, dealt.workers))
        self.stop.settle()

    def change(self) -> Worker:
        """Go on with the new workers, once those before have left: worker 0 as one of them."""
        assert self._next is not None
        self._tell_end()
        self._pool.wait()
        self._rounds = [part.round for part in self.loaded.parts[0]]
        self.end(0)
        (self.prepared, self.loaded), self._next = self._next, None
        self.told = tuple(SimpleQueue() for _ in range(self.loaded.workers - 1))
        self.stop = Stop(1)
        self.begin_first()
        self.begin(0)
        self._pool.change(self.loaded.workers)
        self._noted.counts.append((perf_counter() - self._start, self.loaded.workers))
        return worker_of(self.prepared, self.loaded, 0)

    def begin(self, number: int) -> None:
        """Make the parts of a worker ready, in the rounds that their loops are in."""
        super().begin(number)
        for part, round in zip(self.loaded.parts[number], self._rounds, strict=True):
            part.round = round

    def abort(self) -> None:
        """Have all workers leave."""
        super().abort()
        self._tell_end()

    def _tell_end(self) -> None:
        for one in self.told:
            one.put(None)
