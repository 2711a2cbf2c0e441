"""`f.measure(...)`: times of the tiles of a call, of beginning loops and of meeting, on copies of what is written.

The program is run a few times by one worker, which goes through all tiles of the plan, and then by all workers at once,
if that does not take too long; see `orion.runtime.profile.sampled` for which rounds are run. Times of tiles are those
of a core, so that what else the machine does is not in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from time import perf_counter, thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.aligned import LINE
from orion.arrays.copied import copies_of, room_for_copy, value_bytes
from orion.arrays.dense import DenseArray, array
from orion.arrays.sparse import SparseArray
from orion.dataclass import dataclass, field, replace
from orion.errors import ArgumentError, describe
from orion.measured import LoopName, LoopSpeeds, Measurement, loop_names
from orion.predicted_times import seconds_on_one_node
from orion.prepare import Preparation
from orion.prepared_call import Prepared
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recorder
from orion.runtime.profile.sampled import SampledWorker, Sampling
from orion.runtime.threads.backend import LoadedProgram, load_program, run_locally, worker_of
from orion.runtime.threads.pool import Pool
from orion.runtime.threads.watch import Watch
from orion.runtime.walk import UnpredictableError, count_rounds
from orion.runtime.worker import AbortedError

FEWEST, MOST, SHORT = 4, 24, 0.05
"""How often a program is run by one worker: in every second run tiles are walked at once. After the fewest runs there
are more as long as they have taken less than this part of the time for all."""

MEETINGS, BATCHES = 200, 9
"""Workers meet so often, one time after the other, and this is done so many times."""

KEPT_ROUNDS = 64
"""Of so many rounds, evenly spread, the times of tiles are kept."""


def measure(
    preparation: Preparation, given: Mapping[str, Any], workers: int, force_parallel: bool, seconds: float
) -> Measurement:
    """Measure a call with these arguments, and keep it for `plan.estimate`. The plan for one worker is measured too,
    where it has other loops than that for `workers`."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:
        hint = "that is how long each of a few runs may take before rounds are left out"
        raise ArgumentError(describe(f"`seconds` is a number above 0, not {seconds!r}", hint=hint))
    arguments = preparation.with_outside(given)
    kept = preparation.plan(given, workers, force_parallel).measurements
    prepared = preparation.prepare(arguments, workers, force_parallel)
    on_one = preparation.prepare(arguments, 1, force_parallel)
    before = min(_seconds(lambda: preparation.prepare(arguments, workers, force_parallel)) for _ in range(FEWEST))
    if {*names_of(on_one)} - {*names_of(prepared)}:
        kept.keep(Measuring(on_one, arguments, seconds, before).measured())
    found = Measuring(prepared, arguments, seconds, before).measured()
    kept.keep(found)
    return found


def _seconds(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def names_of(prepared: Prepared) -> tuple[LoopName, ...]:
    return tuple(loop_names([loop.plan for loop in prepared.program.loops]))


@contextmanager
def on_copies(prepared: Prepared, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments, those that are written as copies; sparse arrays get their values back at the end."""
    undo: list[Callable[[], None]] = []
    copies = dict(arguments)
    for name in prepared.written.union(prepared.program.stored):
        value = arguments.get(name)
        if isinstance(value, SparseArray):
            with room_for_copy([name], value_bytes(value)):
                undo.append(value.before_image())
        elif isinstance(value, DenseArray):
            with room_for_copy([name], value.storage.nbytes):
                copies[name] = array(value.to_numpy())
            _look_at(copies[name].storage)
        elif isinstance(value, np.ndarray):
            (copies[name],) = copies_of([(name, value)])
            _look_at(copies[name])
    own = prepared.local.take() if prepared.local.specs else {}
    try:
        yield {**prepared.given(copies), **own}
    finally:
        prepared.local.give_back(own)
        for action in undo:
            action()


def _look_at(value: NDArray[Any]) -> None:
    """Bring an array into the caches as far as it fits, where a call finds what the one before has left there: a large
    copy is written past them."""
    value.ravel(order="K").view(np.uint8)[::LINE].max(initial=0)


@dataclass(eq=False)
class Measuring:
    """Measures a prepared program; `before` are the seconds of what a call does before it runs. `tiles[k]` and
    `totals[k]` have for each round of loop k that was run the least nanoseconds of each tile, by its number, and of all
    tiles walked at once."""

    prepared: Prepared
    arguments: Mapping[str, Any]
    seconds: float
    before: float
    tiles: dict[int, dict[int, NDArray[np.int64]]] = field(default_factory=dict)
    totals: dict[int, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.program: PreparedProgram = self.prepared.program
        self.workers = self.program.workers
        self.pool, self.watch = Pool(), Watch()

    def measured(self) -> Measurement:
        begun = perf_counter()
        try:
            return self._measured(begun)
        finally:
            self.close()

    def close(self) -> None:
        """End the threads that measured."""
        self.pool.close()
        self.watch.close()

    def _measured(self, begun: float) -> Measurement:
        alone = load_program(self.program, 1)
        started, is_whole, counts = perf_counter(), True, [0] * len(self.program.loops)
        runs = 0
        for runs in self._runs():
            sampling = Sampling(self.rounds_of_loops(), perf_counter() + self.seconds / FEWEST, runs % 2 == 0)
            self._run(sampling, alone)
            is_whole &= not sampling.left_out
            self._keep(sampling, alone)
            counts = [max(old, sampling.run.get(loop, 0)) for loop, old in enumerate(counts)]
        taken = (perf_counter() - started) / runs
        speeds = tuple(
            self._speeds(name, loop, known or counts[loop])
            for loop, (name, known) in enumerate(zip(names_of(self.prepared), self.rounds_of_loops(), strict=True))
        )
        each = self._residual(alone, speeds) if is_whole else 0.0
        together = load_program(self.program, self.workers) if self.workers > 1 else None
        wake, meet = (None, None) if together is None else self._meeting(together)
        sizes, name = self.prepared.plan.sizes, self.program.program.function.name
        call = self.before + each
        found = Measurement(name, sizes, self.workers, speeds, call, wake, each, meet, 0.0, is_whole)
        if together is not None and is_whole and taken < self.seconds:
            found = self._with_others(found, together)
        return replace(found, run=perf_counter() - begun)

    def _runs(self) -> Iterator[int]:
        """The numbers of runs, from 1 on: a few, and of short ones as many as warm processors up."""
        begun = perf_counter()
        for number in range(1, MOST + 1):
            if number > FEWEST and perf_counter() - begun > SHORT * self.seconds:
                return
            yield number

    def rounds_of_loops(self) -> tuple[int | None, ...]:
        """How often each loop runs, None where that depends on data."""
        loops = len(self.program.loops)
        try:
            return count_rounds(self.program.program.steps, self.program.known, loops)
        except UnpredictableError:
            return (None,) * loops

    # ------------------------------------------------------------ runs

    def _run(self, sampling: Sampling, loaded: LoadedProgram) -> None:
        """Run the program on copies, by one worker."""

        def run(prepared: PreparedProgram, loaded: LoadedProgram, number: int, given: tuple[object, ...]) -> Any:
            parts, memory = loaded.parts[number], loaded.memory
            worker = SampledWorker(number, loaded.workers, parts, memory, loaded.meet, last=prepared.last)
            worker.sampling, worker.recorder = sampling, Recorder(number)
            try:
                return loaded.uncompiled(prepared)(worker, *given)
            except AbortedError:
                if sampling.left_out:
                    return None  # the time was over
                raise

        with on_copies(self.prepared, self.arguments) as copies:
            run_locally(self.program, loaded, copies, self.pool, self.watch, run)

    def _keep(self, sampling: Sampling, loaded: LoadedProgram) -> None:
        """Keep the least times of a run by one worker."""
        for loop, found in sampling.tiles.items():
            kept, order = self.tiles.setdefault(loop, {}), loaded.parts[0][loop].tiles
            for round, times in found.items():
                placed = np.zeros(self.program.loops[loop].schedule.tiles, np.int64)
                placed[order] = times
                kept[round] = np.minimum(kept.get(round, placed), placed)
        for loop, totals in sampling.totals.items():
            sums = self.totals.setdefault(loop, {})
            for round, total in totals.items():
                sums[round] = min(sums.get(round, total), total)

    def _with_others(self, found: Measurement, loaded: LoadedProgram) -> Measurement:
        """With how many times as long tiles take where all workers run at once, by the least time of a call on all of
        them. Where the simulation says more than that without it, waking and meeting take less than was measured: in
        followed steps no Python runs between two rounds. What is simulated grows evenly with all of
        these."""
        least = inf
        for _ in self._runs():
            with on_copies(self.prepared, self.arguments) as copies:
                start = perf_counter()
                run_locally(self.program, loaded, copies, self.pool, self.watch)
                least = min(least, self.before + perf_counter() - start)
        schedules = {number: loop.schedule for number, loop in enumerate(self.program.loops)}
        wake, meet = found.wake or 0.0, found.meet or 0.0

        def at(beside: float, waits: float) -> tuple[Measurement, float]:
            loops = tuple(replace(loop, beside=beside) for loop in found.loops)
            each = replace(found, loops=loops, wake=waits * wake, meet=waits * meet)
            return each, seconds_on_one_node(self.prepared.plan.function, found.sizes, schedules, each)

        alone, as_alone = at(1.0, 1.0)
        if least > as_alone:
            _, twice = at(2.0, 1.0)
            return at(1.0 + (least - as_alone) / (twice - as_alone), 1.0)[0] if twice > as_alone else alone
        _, unmet = at(1.0, 0.0)
        return at(1.0, max(0.0, least - unmet) / (as_alone - unmet))[0] if as_alone > unmet else alone

    def _meeting(self, loaded: LoadedProgram) -> tuple[float, float]:
        """The seconds of waking all workers, and of one meeting of them, each by the least of several times: what is
        more is what a thread waits for a core that something else has."""

        def seconds(meetings: int) -> float:
            def body(number: int) -> None:
                worker = worker_of(self.program, loaded, number)
                for _ in range(meetings):
                    worker.meet()

            loaded.memory.reset()
            start = perf_counter()
            self.pool.run(body, self.workers, loaded.memory.abort)
            return perf_counter() - start

        seconds(1)
        wake = min(seconds(0) for _ in range(BATCHES))
        together = min(seconds(MEETINGS) for _ in range(BATCHES))
        return wake, max(0.0, together - wake) / MEETINGS

    def _residual(self, loaded: LoadedProgram, speeds: Sequence[LoopSpeeds]) -> float:
        """What one worker takes beside its tiles, for each round of a loop and for the call itself."""
        found = []
        for _ in self._runs():
            with on_copies(self.prepared, self.arguments) as copies:
                before = thread_time()
                run_locally(self.program, loaded, copies, self.pool, self.watch)
                found.append(thread_time() - before)
        tiles = sum(one.rounds * one.seconds_per_round for one in speeds)
        return max(0.0, min(found) - tiles) / (1 + sum(one.rounds for one in speeds))

    # ------------------------------------------------------------ times of tiles

    def _speeds(self, name: LoopName, loop: int, rounds: int) -> LoopSpeeds:
        """The times of a loop. Walked one by one tiles may take longer than at once: they are scaled to that."""
        schedule, elements = self.program.loops[loop].schedule, self.program.loops[loop].sparse
        found, totals = self.tiles.get(loop, {}), self.totals.get(loop, {})
        if found:
            least = sorted(found)
            sampled = [least[k] for k in np.unique(np.linspace(0, len(least) - 1, KEPT_ROUNDS).astype(int))]
            seconds = np.array([found[round] for round in sampled], np.float64) / 1e9
            by_tile = float(np.mean([times.sum() for times in found.values()]))
            if totals and by_tile:
                seconds *= min(1.0, float(np.mean([*totals.values()])) / by_tile)
        else:  # workers take tiles of each other: only their sum is known
            sampled = sorted(totals)
            share = np.array([[totals[round]] for round in sampled], np.float64) / 1e9 / max(1, schedule.tiles)
            seconds = np.repeat(share.reshape(-1, 1), schedule.tiles, axis=1)
        count = 0 if elements is None else self.prepared.plan.sizes.counts[elements]
        at = np.array(sampled, np.int64)
        return LoopSpeeds(name, max(1, rounds), tuple(schedule.bounds), at, seconds, None, count)
