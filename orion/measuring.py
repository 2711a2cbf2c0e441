"""`f.measure(...)`: runs samples of a call, on copies of what it writes, and keeps how long tiles take.

The tiles of the plan are run by one worker, one by one and in other runs all at once, which says what taking the times
cost; then by all workers of this machine, which says how far they slow each other down. What a call, a loop and a
meeting take besides is measured by calls, loops and meetings that do nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from orion.arrays.dense import DenseArray, array
from orion.errors import ArgumentError, describe
from orion.measured import LoopSpeeds, Measurement, loop_names
from orion.plan.plan import FunctionPlan
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recorder
from orion.runtime.profile.sampled import SampledWorker, Sampling
from orion.runtime.threads.backend import LoadedProgram, load_program, run_by
from orion.runtime.threads.pool import Pool
from orion.runtime.threads.watch import Watch
from orion.runtime.walk import UnpredictableError, count_rounds
from orion.runtime.worker import AbortedError, Worker
from orion.simulate import Seconds

if TYPE_CHECKING:
    from orion.prepare import Prepared

NS = 1e-9
MEETINGS, WAKES = 300, 60


class Runner:
    """Stands for a session: runs a program as a sampling says, on threads of its own."""

    def __init__(self) -> None:
        self._pool, self._watch = Pool(), Watch()
        self._loaded: dict[tuple[PreparedProgram, int], LoadedProgram] = {}
        self.recorders: dict[int, Recorder] = {}
        self.samplings: tuple[Sampling, ...] = ()

    def close(self) -> None:
        """End the threads."""
        self._pool.close()
        self._watch.close()

    def loaded(self, program: PreparedProgram, workers: int) -> LoadedProgram:
        """A program for so many workers, compiled."""
        key = program, workers
        if key not in self._loaded:
            self._loaded[key] = load_program(program, workers)
        return self._loaded[key]

    def run(self, program: PreparedProgram, arguments: Mapping[str, object], recording: None = None) -> Any:
        """Run a program on as many workers as there are samplings."""
        self.recorders = {}
        loaded = self.loaded(program, len(self.samplings))
        return run_by(self._run_worker, program, loaded, arguments, self._pool, self._watch)

    def _run_worker(
        self, program: PreparedProgram, loaded: LoadedProgram, number: int, given: tuple[object, ...]
    ) -> Any:
        worker = SampledWorker(
            number, loaded.workers, loaded.parts[number], loaded.memory, loaded.meet, last=program.last
        )
        worker.recorder = self.recorders[number] = Recorder(number)
        worker.sampling = self.samplings[number]
        try:
            return loaded.uncompiled(program)(worker, *given)
        except AbortedError:
            if number or not worker.sampling.is_over:
                raise
            return None

    def meeting(self, program: PreparedProgram, workers: int) -> float:
        """The seconds of a meeting of so many workers, each of which comes at once."""
        loaded = self.loaded(program, workers)
        loaded.memory.reset()
        found: list[float] = []

        def meet(number: int) -> None:
            worker = Worker(number, workers, loaded.parts[number], loaded.memory, loaded.meet)
            worker.meet()
            start = perf_counter()
            for _ in range(MEETINGS):
                worker.meet()
            if number == 0:
                found.append((perf_counter() - start) / MEETINGS)

        self._pool.run(meet, workers, loaded.memory.abort)
        return found[0]

    def waking(self, workers: int) -> float:
        """The seconds that it takes to have so many workers do nothing."""

        def nothing(number: int) -> None:
            pass

        return median(_seconds(lambda: self._pool.run(nothing, workers, lambda: None)) for _ in range(WAKES))


def _seconds(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def measured(
    prepared: Mapping[int, Prepared], arguments: Mapping[str, Any], preparing: Callable[[], object], seconds: float
) -> Measurement:
    """What is found in about so many seconds, and as long as it takes to run each loop once, a few times.

    `prepared[w]` is the function prepared for w workers, for one and for all; `preparing` is what each call does before
    it runs.
    """
    begin = perf_counter()
    workers = max(prepared)
    whole = prepared[workers]
    stored = sorted(whole.program.stored)
    if stored:
        hint = "measure the loops without it, or a function that writes to a dense array"
        why = f"it stores values of elements of `{stored[0]}`, of which no copies are made"
        name = whole.plan.function.program.function.name
        raise ArgumentError(describe(f"`{name}` cannot be measured", why=why, hint=hint))
    loops: list[LoopSpeeds] = []
    with closing(Runner()) as runner:
        is_whole, calls = True, []
        for _, one in sorted(prepared.items(), reverse=True):
            known = {loop.name for loop in loops}
            if known.issuperset(loop_names(one.plan.function.loops)):
                continue
            measuring = _Measuring(runner, one, arguments, seconds / len(prepared))
            loops += [loop for loop in measuring.loops() if loop.name not in known]
            is_whole &= measuring.is_whole
            calls.append(measuring)
        several = workers > 1 and whole.program.workers > 1
        if several:
            loops = [*calls[0].beside(whole.program.workers, loops)]
        return Measurement(
            function=whole.plan.function.program.function.name,
            sizes=whole.plan.sizes,
            workers=whole.program.workers if several else 1,
            loops=tuple(loops),
            call=calls[0].call + median(_seconds(preparing) for _ in range(5)),
            wake=runner.waking(workers) - runner.waking(1) if several else None,
            begin=calls[0].begin,
            meet=runner.meeting(whole.program, whole.program.workers) if several else None,
            run=perf_counter() - begin,
            is_whole=is_whole,
        )


class _Measuring:
    """The samples of one plan, on one worker."""

    def __init__(self, runner: Runner, prepared: Prepared, arguments: Mapping[str, Any], seconds: float) -> None:
        self._runner, self._prepared, self._arguments = runner, prepared, arguments
        self._seconds = seconds / 3
        function = prepared.plan.function
        self._rounds = _rounds_of(function, prepared.plan.sizes.known)
        self._begins = [1.0]
        self.call = min(self._first_rounds() for _ in range(2))
        self._by_tiles, self._at_once = self._sampled(False), self._sampled(True)
        self.begin = min(self._begins)
        """What beginning a loop takes, in seconds."""
        self.is_whole = not (self._by_tiles.left_out or self._at_once.left_out)

    def _sampled(self, is_whole: bool, workers: int = 1) -> Sampling:
        """A run of samples; what worker 0 has found."""
        until = perf_counter() + self._seconds
        self._runner.samplings = tuple(Sampling(self._rounds, until, is_whole) for _ in range(workers))
        self._prepared.run(_copies(self._prepared, self._arguments), self._runner)  # type: ignore[arg-type]
        self._note_begins()
        return self._runner.samplings[0]

    def _first_rounds(self) -> float:
        """Run the first round of each loop. The seconds besides loops."""
        self._runner.samplings = (Sampling(self._rounds, 0.0, True),)
        copies = _copies(self._prepared, self._arguments)
        taken = _seconds(lambda: self._prepared.run(copies, self._runner))  # type: ignore[arg-type]
        self._note_begins()
        return max(0.0, taken - NS * sum(part.end - part.start for part in self._runner.recorders[0].parts))

    def _note_begins(self) -> None:
        parts = self._runner.recorders[0].parts
        self._begins += [max(0.0, NS * (part.end - part.start - part.compute)) for part in parts]

    def loops(self) -> Iterator[LoopSpeeds]:
        """The times of tiles of each loop that was run."""
        function = self._prepared.plan.function
        for number, (loop, name) in enumerate(
            zip(self._prepared.program.loops, loop_names(function.loops), strict=True)
        ):
            tiles = _corrected(self._by_tiles, self._at_once, number)
            sampled = np.array(sorted(tiles), np.int64)
            nothing = np.zeros((0, loop.schedule.tiles))
            order = loop.schedule.serial_tiles()
            seconds = np.stack([_by_number(tiles[round], order) for round in sampled.tolist()]) if tiles else nothing
            rounds = max(self._by_tiles.run.get(number, 0), self._rounds[number] or 0)
            elements = function.loops[number].nest.elements
            count = 0 if elements is None else self._prepared.plan.sizes.counts[elements.array]
            yield LoopSpeeds(name, rounds, loop.schedule.bounds, sampled, seconds, None, count)

    def beside(self, workers: int, loops: Sequence[LoopSpeeds]) -> Iterator[LoopSpeeds]:
        """The loops, with how many times as long their tiles take where all workers run."""
        self._sampled(False, workers)
        for number, loop in enumerate(loops[: len(self._prepared.program.loops)]):
            alone = dict(zip(loop.sampled.tolist(), loop.seconds.sum(axis=1).tolist(), strict=True))
            together = 0.0
            for tiles in [one.tiles.get(number, {}) for one in self._runner.samplings]:
                alone = {round: seconds for round, seconds in alone.items() if round in tiles}
            for one in self._runner.samplings:
                together += NS * sum(int(one.tiles[number][round].sum()) for round in alone)
            on_one = sum(alone.values())
            yield replace(loop, beside=max(1.0, together / on_one) if on_one > 0 else None)
        yield from loops[len(self._prepared.program.loops) :]


def _rounds_of(function: FunctionPlan, known: Mapping[str, int]) -> tuple[int | None, ...]:
    """How often each loop is run; None where that depends on data."""
    try:
        return count_rounds(function.program.steps, known, len(function.loops))
    except UnpredictableError:
        return (None,) * len(function.loops)


def _copies(prepared: Prepared, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with copies of those arrays that are written."""
    found = dict(arguments)
    for name in prepared.written & found.keys():
        value = found[name]
        if isinstance(value, DenseArray):
            found[name] = array(value.to_numpy())
        elif isinstance(value, np.ndarray):
            found[name] = value.copy(order="K")
    return found


def _corrected(by_tiles: Sampling, at_once: Sampling, number: int) -> dict[int, Seconds]:
    """The seconds of tiles, round by round, made to add up to those of the same rounds run at once."""
    found: dict[int, Seconds] = {}
    for one, other in ((by_tiles, at_once), (at_once, by_tiles)):
        for round, tiles in one.tiles.get(number, {}).items():
            total = other.totals.get(number, {}).get(round)
            summed = int(tiles.sum())
            scale = total / summed if total and summed else 1.0
            found[round] = np.asarray(NS * scale * tiles, np.float64)
    return found


def _by_number(seconds: Seconds, order: Any) -> Seconds:
    """Times in the order of a worker as times by the numbers of tiles."""
    found = np.zeros(len(order))
    found[order] = seconds
    return found
