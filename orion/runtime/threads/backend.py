"""Runs a program on this process's threads: one worker in the calling thread, or as many as the schedules are
for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orion.dataclass import dataclass, field, replace
from orion.kernel.calling import Walk
from orion.runtime.arguments import DataSource, GivenArrays, begin_stores, skeleton_arguments
from orion.runtime.bars import Bars
from orion.runtime.blas import limited_walks
from orion.runtime.failures import failure_in, is_by_all, left_without_error
from orion.runtime.followed.part import FollowedPart, followed_of, followed_parts
from orion.runtime.memory import RunMemory, allocate_run_memory, clocks_of, meeting_flags, notes_of
from orion.runtime.parts import LoopPart, Meet, loop_parts, worker_tiles
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recorder, Recording
from orion.runtime.profile.timed import TimedWorker
from orion.runtime.skeleton import Skeleton, make_skeleton
from orion.runtime.threads.pool import Pool
from orion.runtime.threads.watch import Watch
from orion.runtime.worker import AbortedError, FinishedError, Worker

RunWorker = Callable[[PreparedProgram, "LoadedProgram", int, tuple[object, ...]], Any]
"""Runs the part of a program of the worker with a number, given the arguments of the skeleton."""


@dataclass(frozen=True, eq=False)
class LoadedProgram:
    """What this process made for a program: kernels, skeleton, shared memory. `parts` has the loop parts of
    each worker, and `followed` its parts of followed steps; `meet` is the walk of the barrier, None for one
    worker. `bars` are those that the skeleton shows.
    """

    sources: tuple[DataSource, ...]
    skeleton: Skeleton
    memory: RunMemory
    parts: tuple[tuple[LoopPart, ...], ...]
    meet: Meet | None
    followed: tuple[tuple[FollowedPart, ...], ...] = ()
    bars: Bars | None = None
    _uncompiled: list[Skeleton] = field(default_factory=list)

    @property
    def workers(self) -> int:
        return len(self.parts)

    def uncompiled(self, prepared: PreparedProgram) -> Skeleton:
        """The skeleton that starts each loop itself, also those of followed steps: what a profile sees."""
        if not self._uncompiled:
            self._uncompiled.append(make_skeleton(prepared, (), self.bars))
        return self._uncompiled[0]


def load_program(prepared: PreparedProgram, workers: int) -> LoadedProgram:
    """Compile everything that a program needs to run on `workers` workers of this process."""
    from orion.kernel.build.compile import compile_kernel

    walks = tuple(compile_kernel(loop.kernel).walk for loop in prepared.loops)
    bars = prepared.program.function.bars
    shown = Bars(bars) if bars else None
    followed = followed_of(prepared, {bar.line for bar in bars})
    meet = barrier_walk() if workers > 1 else None
    memory = allocate_run_memory(prepared)
    parts = _parts(prepared, memory, walks, workers)
    return LoadedProgram(
        sources=tuple(DataSource(loop) for loop in prepared.loops),
        skeleton=make_skeleton(prepared, [one.followed for one in followed], shown),
        memory=memory,
        parts=parts,
        meet=meet,
        followed=tuple(followed_parts(followed, own) for own in parts),
        bars=shown,
    )


def load_again(prepared: PreparedProgram, loaded: LoadedProgram, workers: int) -> LoadedProgram:
    """What was loaded of a program, for other workers, to whom `prepared` has dealt the same tiles: they go on with the
    flags and results of those before."""
    clocks, notes = ([make(loop, workers) for loop in prepared.loops] for make in (clocks_of, notes_of))
    memory = replace(loaded.memory, meeting=meeting_flags(workers), clocks=tuple(clocks), notes=tuple(notes))
    walks = [part.walk for part in loaded.parts[0]]
    steps = [one.steps for one in loaded.followed[0]]
    parts = _parts(prepared, memory, walks, workers)
    followed = tuple(followed_parts(steps, own) for own in parts)
    return replace(loaded, memory=memory, parts=parts, meet=loaded.meet or barrier_walk(), followed=followed)


def _parts(
    prepared: PreparedProgram, memory: RunMemory, walks: Sequence[Walk], workers: int
) -> tuple[tuple[LoopPart, ...], ...]:
    """The parts of all workers. One alone has the tiles of all, and waits for nobody."""
    tiles = [worker_tiles(prepared, worker, workers) for worker in range(workers)]
    orders = [*zip(*tiles, strict=True)] if prepared.loops else []
    walks = limited_walks(prepared.loops, walks, orders)
    return tuple(loop_parts(prepared, memory, walks, own, worker, orders) for worker, own in enumerate(tiles))


def barrier_walk() -> Meet:
    """The compiled walk of the barrier."""
    from orion.kernel.build.walker import meeting_walk

    return meeting_walk()


def run_locally(
    prepared: PreparedProgram,
    loaded: LoadedProgram,
    arguments: Mapping[str, object],
    pool: Pool,
    watch: Watch,
    run: RunWorker | None = None,
) -> Any:
    """Run a program on members of the pool and return what worker 0, the calling thread, returns.

    `run` runs the part of each worker, if not `run_worker`. The first error of any worker is raised once all have left;
    so is KeyboardInterrupt.
    """
    return Run(run or run_worker, prepared, loaded, arguments).on(pool, watch)


class Run:
    """A run of a program on members of a pool: what they share, and what each does."""

    def __init__(
        self, run: RunWorker, prepared: PreparedProgram, loaded: LoadedProgram, arguments: Mapping[str, object]
    ) -> None:
        self.prepared, self.loaded = prepared, loaded
        loaded.memory.reset()
        arrays = GivenArrays(arguments)
        self._run_worker = run
        self._data = [source.data(arrays) for source in loaded.sources]
        if prepared.stored:
            begin_stores(prepared, [one.layout for one in self._data], arguments)
        self._given = skeleton_arguments(prepared, arguments)
        self.begin_first()
        self._errors: list[BaseException] = []
        self._returned: list[Any] = []

    def on(self, pool: Pool, watch: Watch) -> Any:
        """Run it, and return what worker 0, the calling thread, returns."""
        prepared, memory = self.prepared, self.loaded.memory
        watch.begin(memory.control)
        try:
            pool.run(self.member, self.loaded.workers, self.abort)
        finally:
            watch.end()
        failure = failure_in(prepared, memory)
        if failure is not None:
            raise failure
        if self._errors:
            raise self._errors[0]
        if not self._returned:
            raise left_without_error(prepared)
        return self._returned.pop()

    def member(self, number: int) -> None:
        """What each member of the pool does."""
        try:
            self.begin(number)
            result = self.run_part(number, self._given)
            if number == 0:
                self._returned.append(result)
        except (AbortedError, FinishedError):
            pass
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._errors.append(error)
            if not is_by_all(error):
                self.abort()
        finally:
            self.end(number)

    def run_part(self, number: int, given: tuple[object, ...]) -> Any:
        """Run the part of a worker, with the arguments of the skeleton."""
        return self._run_worker(self.prepared, self.loaded, number, given)

    def begin_first(self) -> None:
        """Make the parts of worker 0 ready: the others take of its blocks what it has packed."""
        for part, found in zip(self.loaded.parts[0], self._data, strict=True):
            part.begin(found)
        self._packed = [part.blocks for part in self.loaded.parts[0]]

    def begin(self, number: int) -> None:
        """Make the parts of a worker ready, if they are not yet."""
        if number:
            for part, found, packed in zip(self.loaded.parts[number], self._data, self._packed, strict=True):
                part.begin(found, packed)

    def end(self, number: int) -> None:
        """Have the parts of a worker let go of the arrays."""
        for part in self.loaded.parts[number]:
            part.end()

    def abort(self) -> None:
        """Have all workers leave."""
        self.loaded.memory.abort()


def worker_of(prepared: PreparedProgram, loaded: LoadedProgram, number: int) -> Worker:
    """Worker `number` of a loaded program."""
    followed = loaded.followed[number] if loaded.followed else ()
    return Worker(number, loaded.workers, loaded.parts[number], loaded.memory, loaded.meet, followed, prepared.last)


def run_worker(prepared: PreparedProgram, loaded: LoadedProgram, number: int, given: tuple[object, ...]) -> Any:
    """Run a worker's part of a program."""
    return loaded.skeleton(worker_of(prepared, loaded, number), *given)


def run_timed(
    recording: Recording, prepared: PreparedProgram, loaded: LoadedProgram, number: int, given: tuple[object, ...]
) -> Any:
    """Run a worker's part of a program, and take times."""
    worker = TimedWorker(number, loaded.workers, loaded.parts[number], loaded.memory, loaded.meet, last=prepared.last)
    worker.recorder = Recorder(number, recording.number)
    try:
        return loaded.uncompiled(prepared)(worker, *given)
    finally:
        recording.worker(worker.recorder.record())
