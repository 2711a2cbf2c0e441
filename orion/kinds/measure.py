"""`f.measure(..., kinds=...)`: a call with all its arrays on each kind of memory, in windows, and a trace of accesses.

Times are those by the clock, less what a thread waited for a core: waiting for a disk is what a kind of memory costs.
Each kind is run a few times, each time from files of which the system keeps no page in memory, and of each the whole
run that took the least is taken, so that its windows belong together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import FileIO
from math import inf
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.errors import ArgumentError, describe
from orion.kinds.folders import FileArrays, block_bytes, checked_kinds, cost_of_writing
from orion.kinds.measured import Accesses, LoopOnKinds, MeasuredKinds, accesses_of, first_touches, write_weight
from orion.kinds.trace import LoopTracer, Sampler, Traced, TracedArray, UntracedError
from orion.measured import LoopName, Measurement
from orion.measuring import Measuring, names_of, on_copies
from orion.prepare import Preparation, Prepared
from orion.runtime.parts import LoopPart
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recorder
from orion.runtime.profile.sampled import SampledWorker, Sampling
from orion.runtime.threads.backend import LoadedProgram, load_program, run_by
from orion.runtime.worker import AbortedError
from orion.schedule.schedule import Ints

SCHEDULED = "/proc/thread-self/schedstat"
"""Where Linux says how long a thread has run, and waited for a core."""

RUNS = 5
"""How often a call is run on each kind of memory."""

WINDOWS = 16
"""Loops that are cut are measured in tiles for so many workers, if that is the same loop: these are the windows."""

TRACED = 20_000
"""About so many iterations of a loop are traced in a round, if `every` is not given."""

ROUNDS = 6
"""Rounds of a loop that are traced beside its first two."""

Array = NDArray[Any]


def measure_kinds(
    preparation: Preparation,
    given: Mapping[str, Any],
    workers: int,
    force_parallel: bool,
    seconds: float,
    kinds: object,
    every: int | None,
) -> MeasuredKinds:
    """Measure a call with these arguments on several kinds of memory, and keep it for `plan.estimate`."""
    folders = checked_kinds(kinds)
    if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
        hint = "one of so many iterations is traced"
        raise ArgumentError(describe(f"`every` is an integer of at least 1, not {every!r}", hint=hint))
    begun = perf_counter()
    arguments = preparation.with_outside(given)
    kept = preparation.plan(given, workers, force_parallel).measurements
    prepared = preparation.prepare(arguments, workers, force_parallel)
    windows = preparation.prepare(arguments, max(workers, WINDOWS), True)
    if names_of(windows) != names_of(prepared):
        windows = prepared
    found = _OnKinds(windows, arguments, folders, seconds, every).measured(prepared, begun)
    kept.keep_kinds(found)
    return found


class _ClockedWorker(SampledWorker):
    """A worker that takes the times of tiles by the clock, less what it waited for a core. `before` is called before
    the tiles of a round."""

    before: Callable[[LoopPart, list[Any], tuple[Any, ...]], None]
    values: tuple[Any, ...] = ()

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        self.values = values
        return super().loop(number, *values)

    def walk_timed(self, part: LoopPart, first: int, last: int, arguments: list[Any]) -> None:
        self.before(part, arguments, self.values)
        found = np.zeros(part.tiles.size, np.int64)
        with ExitStack() as stack:
            file = stack.enter_context(open(SCHEDULED, "rb", buffering=0)) if os.path.exists(SCHEDULED) else None
            for place in range(first, last):
                if not self._await_tile(part, place):
                    return
                start, waited = perf_counter_ns(), _waited(file)
                part.walk(part.tiles[place : place + 1], part.round, *part.leading, *arguments)
                waited = _waited(file) - waited  # looked at inside of the time, so that it is a part of that
                found[place] = perf_counter_ns() - start - waited
        self.sampling.tiles.setdefault(part.number, {})[part.round] = found


def _waited(file: FileIO | None) -> int:
    """The nanoseconds that this thread has waited for a core since it began; 0 where the system does not say."""
    return 0 if file is None else int(os.pread(file.fileno(), 128, 0).split()[1])


@dataclass(slots=True, eq=False)
class _Run:
    """One run on a kind: nanoseconds by loop and round, tiles in the order of the worker; seconds of `flush`."""

    tiles: dict[int, dict[int, NDArray[np.int64]]]
    flush: float
    counts: dict[int, int]

    @property
    def total(self) -> float:
        return self.flush * 1e9 + float(sum(one.sum() for found in self.tiles.values() for one in found.values()))


@dataclass(eq=False)
class _OnKinds:
    """Measures a prepared program on kinds of memory."""

    prepared: Prepared
    arguments: Mapping[str, Any]
    folders: Mapping[str, Path | None]
    seconds: float
    every: int | None
    traces: list[Traced] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.measuring = Measuring(self.prepared, self.arguments, self.seconds, 0.0)
        self.program: PreparedProgram = self.prepared.program
        known = self.prepared.given(self.arguments)
        self.arrays = {name: one for name, one in known.items() if isinstance(one, np.ndarray) and one.ndim}
        self.block = max(block_bytes(folder) for folder in self.folders.values() if folder is not None)
        self.steps = [self.every or max(1, (loop.plan.iterations or 1) // TRACED) for loop in self.program.loops]
        self.tracers: dict[int, LoopTracer] = {}

    def measured(self, planned: Prepared, begun: float) -> MeasuredKinds:
        base = Measuring(planned, self.arguments, self.seconds, 0.0).measured()
        try:
            return self._measured(planned, base, begun)
        finally:
            self.measuring.close()

    def _measured(self, planned: Prepared, base: Measurement, begun: float) -> MeasuredKinds:
        alone, runs, beside = load_program(self.program, 1), dict[str, _Run](), dict[str, tuple[float | None, ...]]()
        for kind, folder in self.folders.items():
            with ExitStack() as stack:
                files = None if folder is None else self._files(stack, folder)
                found = [self._run(alone, files, traces=files is None and number == 0) for number in range(RUNS)]
                runs[kind] = min(found, key=lambda run: run.total)
                beside[kind] = tuple(loop.beside for loop in base.loops)
                if files is not None:
                    beside[kind] = self._beside(planned, files, runs[kind])
        known = self.measuring.rounds_of_loops()
        fresh = first_touches(self.traces, [*self.arrays], self._tiles())
        loops = []
        for loop, name in enumerate(names_of(self.prepared)):
            slower = {kind: factors[loop] for kind, factors in beside.items()}
            rounds = max(1, known[loop] or max(run.counts.get(loop, 0) for run in runs.values()))
            loops.append(self._loop(loop, name, rounds, runs, fresh, slower))
        sizes = {name: int(array.nbytes) for name, array in self.arrays.items()}
        accesses = {name: accesses_of(self.traces, name, self.steps) for name in self.arrays}
        flush = {kind: run.flush for kind, run in runs.items()}
        weights = {kind: self._weight(kind, runs, accesses) for kind in self.folders}
        every, run = tuple(self.steps), perf_counter() - begun
        kinds = tuple(self.folders)
        return MeasuredKinds(base, kinds, tuple(loops), sizes, accesses, flush, weights, every, self.block, run)

    def _weight(self, kind: str, runs: Mapping[str, _Run], accesses: Mapping[str, Accesses]) -> float:
        """By how much more than one that is read a written block counts on a kind of memory."""
        folder, first = self.folders[kind], runs[next(iter(self.folders))]
        if folder is None:
            return 0.0
        flush = runs[kind].flush
        slower = (runs[kind].total - first.total) / 1e9 - flush
        blocks, written = (
            sum(found) for found in zip(*((a.blocks, a.written) for a in accesses.values()), strict=True)
        )
        return write_weight(cost_of_writing(folder, self.block), slower, flush, blocks, written)

    def _beside(self, planned: Prepared, files: FileArrays, alone: _Run) -> tuple[float | None, ...]:
        """How many times as long the tiles of each loop take where all workers run at once: they share what the files
        come by."""
        program = planned.program
        if program.workers == 1:
            return (None,) * len(program.loops)
        together, found = (
            self._run(load_program(program, program.workers), files, planned=planned),
            list[float | None](),
        )
        for loop in range(len(program.loops)):
            rounds = sorted({*together.tiles.get(loop, {})} & {*alone.tiles.get(loop, {})})
            own = sum(alone.tiles[loop][round].sum() for round in rounds)
            all_at_once = sum(together.tiles[loop][round].sum() for round in rounds)
            found.append(max(1.0, float(all_at_once / own)) if own else None)
        return tuple(found)

    def _tiles(self) -> dict[int, int]:
        return {number: loop.schedule.tiles for number, loop in enumerate(self.program.loops)}

    def _files(self, stack: ExitStack, folder: Path) -> FileArrays:
        files = FileArrays(folder)
        stack.callback(files.close)
        for name, array in self.arrays.items():
            files.add(name, array)
        return files

    # ------------------------------------------------------------ runs

    def _run(
        self,
        loaded: LoadedProgram,
        files: FileArrays | None,
        *,
        traces: bool = False,
        planned: Prepared | None = None,
    ) -> _Run:
        """Run the program once, with its arrays in files or not: by one worker in windows, or as it is `planned`."""
        prepared, until = planned or self.prepared, perf_counter() + self.seconds
        samplings = [Sampling(self.measuring.rounds_of_loops(), inf, False) for _ in range(loaded.workers)]
        if planned is None:
            samplings[0].until = until

        def run(program: PreparedProgram, loaded: LoadedProgram, number: int, given: tuple[object, ...]) -> Any:
            parts, memory = loaded.parts[number], loaded.memory
            worker = _ClockedWorker(number, loaded.workers, parts, memory, loaded.meet, last=program.last)
            worker.sampling, worker.recorder = samplings[number], Recorder(number)
            worker.before = self._trace if traces else _nothing
            try:
                return loaded.uncompiled(program)(worker, *given)
            except AbortedError:
                if samplings[number].left_out:
                    return None
                raise

        with on_copies(prepared, self.arguments) as copies:
            if files is not None:
                for name, array in files.arrays.items():
                    if name in self.prepared.written:
                        array[...] = self.arrays[name]
                    copies[name] = array
                files.drop()
            run_by(run, prepared.program, loaded, copies, self.measuring.pool, self.measuring.watch)
            start = perf_counter()
            if files is not None:
                files.flush()
        flush = perf_counter() - start if files is not None else 0.0
        return _Run(_of_all_workers(samplings), flush, samplings[0].run)

    def _loop(
        self,
        loop: int,
        name: LoopName,
        rounds: int,
        runs: Mapping[str, _Run],
        fresh: Sequence[Mapping[str, tuple[Ints, Ints]]],
        beside: Mapping[str, float | None],
    ) -> LoopOnKinds:
        """The windows of a loop, in the rounds that were run on all kinds and traced."""
        schedule, order = self.program.loops[loop].schedule, self.program.loops[loop].schedule.serial_tiles()
        traced = {trace.round: one for trace, one in zip(self.traces, fresh, strict=True) if trace.loop == loop}
        both = sorted(set(traced).intersection(*(run.tiles.get(loop, {}) for run in runs.values())))
        seconds = {}
        for kind, run in runs.items():
            seconds[kind] = np.zeros((len(both), schedule.tiles))
            for at, round in enumerate(both):
                seconds[kind][at, order] = run.tiles[loop][round] / 1e9
        none = np.zeros((0, schedule.tiles), np.int64)
        brought, written = (
            {
                array: np.array([traced[round][array][which] for round in both]) if both else none
                for array in self.arrays
            }
            for which in (0, 1)
        )
        elements = self.program.loops[loop].sparse
        count = 0 if elements is None else self.prepared.plan.sizes.counts[elements]
        sampled = np.array(both, np.int64)
        return LoopOnKinds(name, rounds, tuple(schedule.bounds), sampled, seconds, beside, brought, written, count)

    # ------------------------------------------------------------ traces

    def _trace(self, part: LoopPart, arguments: list[Any], values: tuple[Any, ...]) -> None:
        """Trace the round of a loop that is about to run, if it is one of those that are traced."""
        rounds = self.measuring.rounds_of_loops()[part.number]
        step = max(1, (rounds or 0) // ROUNDS)
        if part.round > 1 and (part.round % step if rounds else part.round & (part.round - 1)):
            return
        try:
            self._trace_round(part, arguments, values)
        except UntracedError as error:
            span = part.loop.plan.nest.span
            what = f"the accesses of the loop in line {span.line} cannot be traced: {error}"
            raise ArgumentError(describe(what, hint="measure it without `kinds`")) from None

    def _trace_round(self, part: LoopPart, arguments: list[Any], values: tuple[Any, ...]) -> None:
        loop, nest = part.loop, part.loop.plan.nest
        given = dict(zip(loop.inputs, values, strict=True))
        traced: dict[str, TracedArray] = {}
        elements: list[Any] = []
        for position, argument in loop.array_arguments():
            if argument.kind == "array":
                own = np.array(arguments[position]) if argument.name in loop.writes else arguments[position]
                if argument.name in self.arrays:
                    own = traced[argument.name] = TracedArray(own, self.block)
                given[argument.name] = own
            else:
                elements.append((argument.kind, argument.position, arguments[position]))
        columns = [column for _, _, column in sorted(elements, key=lambda one: one[:2])]
        if part.number not in self.tracers:
            self.tracers[part.number] = LoopTracer(nest, [*given])
        tracer, tiles = self.tracers[part.number], dict[int, dict[str, Any]]()
        extents, step = part.leading[0], self.steps[part.number]
        for tile in part.tiles.tolist():
            box = extents[tile]
            if nest.elements is not None:
                box = [column[extents[tile] : extents[tile + 1]] for column in columns]
            tracer.tile(given, box, Sampler(step))  # the first iteration of each tile is among them
            found = {name: array.taken() for name, array in traced.items()}
            tiles[tile] = {name: one for name, one in found.items() if one is not None}
        self.traces.append(Traced(part.number, part.round, tiles))


def _of_all_workers(samplings: Sequence[Sampling]) -> dict[int, dict[int, NDArray[np.int64]]]:
    """The nanoseconds of tiles by loop and round, those of the workers one after the other."""
    found: dict[int, dict[int, NDArray[np.int64]]] = {}
    for sampling in samplings:
        for loop, rounds in sampling.tiles.items():
            own = found.setdefault(loop, {})
            for round, times in rounds.items():
                own[round] = np.concatenate([own[round], times]) if round in own else times
    return found


def _nothing(part: LoopPart, arguments: list[Any], values: tuple[Any, ...]) -> None:
    """What is done before the tiles of a round that is not traced."""
