"""`f.measure(...)`: times of the tiles of a call, of beginning loops and of meeting, on copies of what is written.

The program is run a few times by one worker, which goes through all tiles of the plan, and then by all workers at once,
if that does not take too long; see `orion.runtime.profile.sampled` for which rounds are run. Times of tiles are those
of a core, so that what else the machine does is not in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import perf_counter, thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dense import DenseArray, array
from orion.arrays.sparse import SparseArray
from orion.errors import ArgumentError, describe
from orion.measured import LoopName, LoopSpeeds, Measurement, loop_names
from orion.prepare import Preparation, Prepared
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recorder
from orion.runtime.profile.sampled import SampledWorker, Sampling
from orion.runtime.threads.backend import LoadedProgram, load_program, run_by, run_locally, worker_of
from orion.runtime.threads.pool import Pool
from orion.runtime.threads.watch import Watch
from orion.runtime.walk import UnpredictableError, count_rounds
from orion.runtime.worker import AbortedError

RUNS = 4
"""How often a program is run by one worker: in every second run tiles are walked at once."""

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
    if {*names_of(on_one)} - {*names_of(prepared)}:
        kept.keep(Measuring(on_one, arguments, seconds).measured())
    found = Measuring(prepared, arguments, seconds).measured()
    kept.keep(found)
    return found


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
            undo.append(value.before_image())
        elif isinstance(value, DenseArray):
            copies[name] = array(value.to_numpy())
        elif isinstance(value, np.ndarray):
            copies[name] = _like(value)
    own = prepared.local.take() if prepared.local.specs else {}
    try:
        yield {**prepared.given(copies), **own}
    finally:
        prepared.local.give_back(own)
        for action in undo:
            action()


def _like(value: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array with the same strides, which kernels are compiled for."""
    if value.flags.forc:
        return value.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(value)
    room = np.empty(high - low, np.uint8)
    start = value.__array_interface__["data"][0] - low
    found: NDArray[Any] = np.ndarray(value.shape, value.dtype, room, start, value.strides)
    found[...] = value
    return found


@dataclass(eq=False)
class Measuring:
    """Measures a prepared program. `tiles[k]` and `totals[k]` have for each round of loop k that was run the least
    nanoseconds of each tile, by its number, and of all tiles walked at once."""

    prepared: Prepared
    arguments: Mapping[str, Any]
    seconds: float
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
        for number in range(RUNS):
            sampling = Sampling(self.rounds_of_loops(), perf_counter() + self.seconds / RUNS, number % 2 == 1)
            self._run([sampling], alone)
            is_whole &= not sampling.left_out
            self._keep(sampling, alone)
            counts = [max(old, sampling.run.get(loop, 0)) for loop, old in enumerate(counts)]
        taken = (perf_counter() - started) / RUNS
        beside: tuple[float | None, ...] = (None,) * len(counts)
        wake = meet = None
        if self.workers > 1:
            together = load_program(self.program, self.workers)
            wake, meet = self._meeting(together)
            if is_whole and taken < self.seconds:
                beside = self._beside(together)
        names = names_of(self.prepared)
        speeds = tuple(
            self._speeds(name, loop, known or counts[loop], beside[loop])
            for loop, (name, known) in enumerate(zip(names, self.rounds_of_loops(), strict=True))
        )
        each = self._residual(alone, speeds) if is_whole else 0.0
        plan = self.prepared.plan
        name = self.program.program.function.name
        run = perf_counter() - begun
        return Measurement(name, plan.sizes, self.workers, speeds, each, wake, each, meet, run, is_whole)

    def rounds_of_loops(self) -> tuple[int | None, ...]:
        """How often each loop runs, None where that depends on data."""
        loops = len(self.program.loops)
        try:
            return count_rounds(self.program.program.steps, self.program.known, loops)
        except UnpredictableError:
            return (None,) * loops

    # ------------------------------------------------------------ runs

    def _run(self, samplings: Sequence[Sampling], loaded: LoadedProgram) -> None:
        """Run the program on copies, by one worker for each sampling."""

        def run(prepared: PreparedProgram, loaded: LoadedProgram, number: int, given: tuple[object, ...]) -> Any:
            sampling = samplings[number]
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
            run_by(run, self.program, loaded, copies, self.pool, self.watch)

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

    def _beside(self, loaded: LoadedProgram) -> tuple[float | None, ...]:
        """How many times as long the tiles of each loop take where all workers run at once, walked one by one in both
        cases."""
        least: dict[int, float] = {}
        for _ in range(RUNS // 2):
            samplings = [Sampling((None,) * len(self.program.loops), inf, False) for _ in range(self.workers)]
            self._run(samplings, loaded)
            for loop in self.tiles:
                means = [np.mean([t.sum() for t in one.tiles[loop].values()]) for one in samplings if loop in one.tiles]
                least[loop] = min(least.get(loop, inf), float(sum(means)))
        found: list[float | None] = []
        for loop in range(len(self.program.loops)):
            own = float(np.mean([t.sum() for t in self.tiles[loop].values()])) if loop in self.tiles else 0.0
            found.append(max(1.0, least[loop] / own) if own else None)
        return tuple(found)

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
        for _ in range(RUNS):
            with on_copies(self.prepared, self.arguments) as copies:
                before = thread_time()
                run_locally(self.program, loaded, copies, self.pool, self.watch)
                found.append(thread_time() - before)
        tiles = sum(one.rounds * one.seconds_per_round for one in speeds)
        return max(0.0, min(found) - tiles) / (1 + sum(one.rounds for one in speeds))

    # ------------------------------------------------------------ times of tiles

    def _speeds(self, name: LoopName, loop: int, rounds: int, beside: float | None) -> LoopSpeeds:
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
        return LoopSpeeds(name, max(1, rounds), tuple(schedule.bounds), at, seconds, beside, count)
