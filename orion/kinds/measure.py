"""`f.measure(..., kinds=...)`: a call with all its arrays on each kind of memory, in windows, and a trace of accesses.

Times are those by the clock: waiting for a disk is what a kind of memory costs.
Each kind is run a few times, each time from files of which the system keeps no page in memory. Of each window the lower
median of its times is taken, as what else the machine does falls into a run or two, and all windows are scaled to the
run in which they took least. One more run counts the pages that each window brings in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import inf
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.errors import ArgumentError, describe
from orion.kinds.blocks import NOTHING, Accesses, Windows, in_rounds, windows_of
from orion.kinds.folders import FileArrays, block_bytes, checked_kinds, cost_of_blocks, leave_caches
from orion.kinds.measured import LoopOnKinds, MeasuredKinds
from orion.kinds.runs import (
    After,
    Before,
    ClockedWorker,
    Counted,
    Run,
    lower_median,
    nothing_after,
    nothing_before,
    scheduled,
    tiles_of_workers,
    typical,
    waited_for_core,
    whole_of_workers,
)
from orion.kinds.trace import LoopTracer, Sampler, Traced, TracedArray, UntracedError
from orion.measured import LoopName, LoopSpeeds, Measurement
from orion.measuring import Measuring, names_of, on_copies
from orion.prepare import Preparation
from orion.prepared_call import Prepared
from orion.runtime.parts import LoopPart
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recorder
from orion.runtime.profile.sampled import Sampling
from orion.runtime.threads.backend import LoadedProgram, load_program, run_locally
from orion.runtime.worker import AbortedError
from orion.schedule.schedule import Ints
from orion.simulate import slowdown

RUNS, TOGETHER = 4, 3
"""How often a call is run on each kind of memory to take times, by one worker and by all."""

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

    def prepare() -> Prepared:
        return preparation.prepare(preparation.with_outside(given), workers, force_parallel)

    found = _OnKinds(windows, arguments, folders, seconds, every, prepare).measured(prepared, begun)
    kept.keep_kinds(found)
    return found


@dataclass(eq=False)
class _OnKinds:
    """Measures a prepared program on kinds of memory. `prepare` is what a call does before it runs."""

    prepared: Prepared
    arguments: Mapping[str, Any]
    folders: Mapping[str, Path | None]
    seconds: float
    every: int | None
    prepare: Callable[[], Prepared]
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
        alone, runs, beside = load_program(self.program, 1), dict[str, Run](), dict[str, tuple[float | None, ...]]()
        counted = dict[str, Counted]()
        for kind, folder in self.folders.items():
            with ExitStack() as stack:
                files = None if folder is None else self._files(stack, folder)
                if files is None:
                    self._run(alone, None, before=self._trace)
                else:
                    counted[kind] = Counted(files, self._is_traced)
                    self._run(alone, files, before=counted[kind].before, after=counted[kind].after)
                runs[kind] = typical([self._run(alone, files) for _ in range(RUNS)])
                beside[kind] = tuple(loop.beside for loop in base.loops)
                if files is not None:
                    beside[kind] = self._beside(planned, files, runs[kind])
        sizes = {name: int(array.nbytes) for name, array in self.arrays.items()}
        flush = {kind: run.flush for kind, run in runs.items()}
        tried = {
            kind: NOTHING if folder is None else cost_of_blocks(folder, self.block)
            for kind, folder in self.folders.items()
        }
        loops, accesses = self._loops(runs, counted, beside)
        call = max(base.call, self._call(alone, runs[next(iter(runs))])) if base.is_whole else base.call
        every, run = tuple(self.steps), perf_counter() - begun
        kinds = tuple(self.folders)
        return MeasuredKinds(base, kinds, loops, sizes, accesses, call, flush, tried, every, self.block, run)

    def _loops(
        self,
        runs: Mapping[str, Run],
        counted: Mapping[str, Counted],
        beside: Mapping[str, Sequence[float | None]],
    ) -> tuple[tuple[LoopOnKinds, ...], dict[str, dict[str, Accesses]]]:
        """The loops, and what was seen of arrays on each kind: by the trace, and by what was counted, if it was."""
        traced, by_trace = windows_of(self.traces, self._spans(), self.block, self._tiles(), self.steps)
        accesses = dict.fromkeys(self.folders, by_trace)
        for kind, counts in counted.items():
            if counts.bytes:
                found = {name: seen.as_counted(counts.bytes[name], self.block) for name, seen in by_trace.items()}
                accesses[kind] = found
        known, loops = self.measuring.rounds_of_loops(), []
        for loop, name in enumerate(names_of(self.prepared)):
            schedule = self.program.loops[loop].schedule
            of_rounds = {t.round: one for t, one in zip(self.traces, traced, strict=True) if t.loop == loop}
            both = sorted(set(of_rounds).intersection(*(run.tiles.get(loop, {}) for run in runs.values())))
            by_array = {array: in_rounds([of_rounds[k][array] for k in both], schedule.tiles) for array in self.arrays}
            windows = dict.fromkeys(self.folders, by_array)
            for kind, counts in counted.items():
                if counts.bytes:
                    brought = {array: counts.windows(loop, both, array, schedule) for array in self.arrays}
                    windows[kind] = self._as_counted(by_array, brought, by_trace, accesses[kind])
            seconds = {kind: run.windows(loop, both, schedule) for kind, run in runs.items()}
            rounds = max(1, known[loop] or max(run.counts.get(loop, 0) for run in runs.values()))
            slower = {kind: factors[loop] for kind, factors in beside.items()}
            bounds, at, count = tuple(schedule.bounds), np.array(both, np.int64), self._elements(loop)
            loops.append(LoopOnKinds(name, rounds, bounds, at, seconds, slower, windows, count))
        return tuple(loops), accesses

    def _as_counted(
        self,
        windows: Mapping[str, Windows],
        brought: Mapping[str, Ints],
        traced: Mapping[str, Accesses],
        counted: Mapping[str, Accesses],
    ) -> dict[str, Windows]:
        """The windows of a loop that a trace has found, where so many bytes of arrays were counted to be `brought`."""
        found = {}
        for array, one in windows.items():
            seen = counted[array].written_bytes / (traced[array].written_bytes or 1)
            found[array] = one.as_counted(brought[array], self.block, seen)
        return found

    def _spans(self) -> dict[str, int]:
        """The bytes from the first to the last element of each array, at least 1."""
        bounds = {name: np.lib.array_utils.byte_bounds(array) for name, array in self.arrays.items()}
        return {name: max(1, high - low) for name, (low, high) in bounds.items()}

    def _beside(self, planned: Prepared, files: FileArrays, alone: Run) -> tuple[float | None, ...]:
        """How many times as long the tiles of each loop take where all workers run at once: they share what the files
        come by."""
        program = planned.program
        if program.workers == 1:
            return (None,) * len(program.loops)
        loaded = load_program(program, program.workers)
        together = typical([self._run(loaded, files, planned=planned) for _ in range(TOGETHER)])
        return tuple(
            self._slowdown(loop, name, planned, alone, together) for loop, name in enumerate(names_of(self.prepared))
        )

    def _slowdown(self, loop: int, name: LoopName, planned: Prepared, alone: Run, together: Run) -> float | None:
        """How many times as long the tiles of a loop take beside others, by runs of one worker and of all."""
        own, schedule = self.program.loops[loop].schedule, planned.program.loops[loop].schedule
        rounds = sorted({*together.tiles.get(loop, {})} & {*alone.tiles.get(loop, {})})
        windows, count = alone.windows(loop, rounds, own), self._elements(loop)
        at = np.array(rounds, np.int64)
        speeds = LoopSpeeds(name, len(rounds), tuple(own.bounds), at, windows, None, count)
        if not windows.sum():
            return None
        if schedule.takes_tiles or schedule.waits.size:
            busy = sum(float(together.tiles[loop][round].sum()) for round in rounds) / 1e9
            return max(1.0, busy / float(windows.sum()))
        loads = np.array(
            [np.bincount(schedule.owner, each, schedule.workers) for each in speeds.in_tiles_of(schedule, count)]
        )
        return slowdown(loads, np.array([together.whole[loop][round] for round in rounds]) / 1e9)

    def _call(self, loaded: LoadedProgram, windows: Run) -> float:
        """The seconds of a call beside its windows, where the caches hold neither its arrays nor its code."""
        found = []
        for _ in range(RUNS):
            with on_copies(self.prepared, self.arguments) as copies, scheduled(True) as file:
                leave_caches()
                start, waited = perf_counter_ns(), waited_for_core(file)
                self.prepare()
                run_locally(self.program, loaded, copies, self.measuring.pool, self.measuring.watch)
                waited = waited_for_core(file) - waited
                found.append(perf_counter_ns() - start - waited)
        return max(0.0, float(lower_median(found)) / 1e9 - windows.seconds)

    def _elements(self, loop: int) -> int:
        """How many elements a loop goes over, 0 where it goes over none."""
        elements = self.program.loops[loop].sparse
        return 0 if elements is None else self.prepared.plan.sizes.counts[elements]

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
        before: Before = nothing_before,
        after: After = nothing_after,
        planned: Prepared | None = None,
    ) -> Run:
        """Run the program once, with its arrays in files or not: by one worker in windows, or as it is `planned`."""
        prepared, until = planned or self.prepared, perf_counter() + self.seconds
        samplings = [Sampling(self.measuring.rounds_of_loops(), inf, False) for _ in range(loaded.workers)]
        if planned is None:
            samplings[0].until = until

        def run(program: PreparedProgram, loaded: LoadedProgram, number: int, given: tuple[object, ...]) -> Any:
            parts, memory = loaded.parts[number], loaded.memory
            worker = ClockedWorker(number, loaded.workers, parts, memory, loaded.meet, last=program.last)
            worker.sampling, worker.recorder = samplings[number], Recorder(number)
            worker.in_memory, worker.before, worker.after = files is None, before, after
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
            leave_caches()
            run_locally(prepared.program, loaded, copies, self.measuring.pool, self.measuring.watch, run)
            flush = dict.fromkeys(self.arrays, 0.0) if files is None else files.flush()
        return Run(tiles_of_workers(samplings), whole_of_workers(samplings), flush, samplings[0].run)

    # ------------------------------------------------------------ traces

    def _is_traced(self, part: LoopPart) -> bool:
        """Whether this round of a loop is traced."""
        rounds = self.measuring.rounds_of_loops()[part.number]
        if part.round < 2:
            return True
        return not (part.round % max(1, rounds // ROUNDS) if rounds else part.round & (part.round - 1))

    def _trace(self, part: LoopPart, values: tuple[Any, ...]) -> None:
        """Trace the round of a loop that is about to run, if it is one of those that are traced."""
        if not self._is_traced(part):
            return
        try:
            self._trace_round(part, values)
        except UntracedError as error:
            span = part.loop.plan.nest.span
            what = f"the accesses of the loop in line {span.line} cannot be traced: {error}"
            raise ArgumentError(describe(what, hint="measure it without `kinds`")) from None

    def _trace_round(self, part: LoopPart, values: tuple[Any, ...]) -> None:
        loop, nest = part.loop, part.loop.plan.nest
        given = dict(zip(loop.inputs, values, strict=True))
        traced: dict[str, TracedArray] = {}
        elements: list[Any] = []
        for position, argument in loop.array_arguments():
            if argument.kind == "array":
                own = part.template[position]
                own = np.array(own) if argument.name in loop.writes else own
                if argument.name in self.arrays:
                    own = traced[argument.name] = TracedArray(own, self.block)
                given[argument.name] = own
            else:
                elements.append((argument.kind, argument.position, part.template[position]))
        columns = [column for _, _, column in sorted(elements, key=lambda one: one[:2])]
        if part.number not in self.tracers:
            self.tracers[part.number] = LoopTracer(nest, [*given])
        tracer, tiles = self.tracers[part.number], dict[int, dict[str, Any]]()
        extents, step = part.extents, self.steps[part.number]
        for tile in part.tiles.tolist():
            box = extents[tile]
            if nest.elements is not None:
                box = [column[extents[tile] : extents[tile + 1]] for column in columns]
            tracer.tile(given, box, Sampler(step))  # the first iteration of each tile is among them
            found = {name: array.taken() for name, array in traced.items()}
            tiles[tile] = {name: one for name, one in found.items() if one is not None}
        self.traces.append(Traced(part.number, part.round, tiles))
