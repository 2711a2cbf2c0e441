"""What a session runs programs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from orion.aside import aside
from orion.dataclass import dataclass, field
from orion.errors import OrionError, RescaledError
from orion.ir.recent import Recent
from orion.runtime.local_arrays import LocalArray
from orion.runtime.notice import said_if_slow
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recording
from orion.runtime.profile.records import Noted
from orion.runtime.threads.again import MISSED, RunAgain, compile_again, may_run_again
from orion.runtime.threads.backend import LoadedProgram, load_program, run_locally, run_timed
from orion.runtime.threads.elastic import ElasticRun
from orion.runtime.threads.pool import Pool
from orion.runtime.threads.watch import Watch
from orion.runtime.turn import Turn

R = TypeVar("R")

RunsAgain = Callable[[Sequence[object], Mapping[str, LocalArray]], Any]
"""Runs a program for arguments by position, and arrays that it makes."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCall:
    """A program to run on the arrays in `arguments`, in place. Times are taken where there is a `recording`; `noted` is
    told how it went."""

    prepared: PreparedProgram
    arguments: Mapping[str, object]
    recording: Recording | None = None
    noted: Noted = field(default_factory=Noted)


class Backend(Protocol):
    """Workers that can run programs."""

    @property
    def workers(self) -> int:
        """The number of workers that programs are planned for."""

    def run(self, call: ProgramCall) -> Any:
        """Run a program, and return its result."""

    def dealt(self, prepared: PreparedProgram) -> PreparedProgram:
        """A program as its tiles are dealt out to the workers now: what the next call is to run."""

    def between_runs(self, action: Callable[[], R]) -> R:
        """Call `action` while no program runs, and return what it returns."""

    def again(self, call: ProgramCall, recent: Recent, own: Mapping[str, LocalArray]) -> RunsAgain | None:
        """What runs a program again that has run, for positional arguments like these, which are `recent`, and gives
        MISSED where the arrays are others; None where there is no such."""

    def scale(self, workers: int) -> None:
        """Have so many workers from the next run on; a run under way goes on with them where it can, else they are had
        once it is over."""

    def close(self) -> None:
        """End the workers, once the run under way is over; `run` starts them again."""


ELASTIC_SECONDS = 0.1
"""Runs of several loops that take longer are such that other workers may take part on the way."""


class LocalBackend:
    """Threads of this process; with one worker, just the calling thread."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._turn = Turn(self._end, self._forget)
        self._pool: Pool | None = None
        self._watch = Watch()
        self._loaded: WeakKeyDictionary[PreparedProgram, LoadedProgram] = WeakKeyDictionary()
        self._loaded_for = workers
        self._is_closed = False
        self._seconds: WeakKeyDictionary[PreparedProgram, float] = WeakKeyDictionary()

    def run(self, call: ProgramCall) -> Any:
        """Run a program. One at a time: a second caller, in another thread, waits."""
        try:
            return self._turn.run(lambda: self._run(call))
        finally:
            if self._is_closed:  # a call of another thread, which began before that: it has started workers anew
                self._turn.close()

    def dealt(self, prepared: PreparedProgram) -> PreparedProgram:
        """The program as it is: threads take tiles of each other."""
        return prepared

    def between_runs(self, action: Callable[[], R]) -> R:
        """Call `action` while no program runs."""
        return self._turn.run(action)

    def again(self, call: ProgramCall, recent: Recent, own: Mapping[str, LocalArray]) -> RunsAgain | None:
        """What runs a program again that has no more than arrays and scalars anew; else None."""
        prepared = call.prepared
        loaded = self._loaded.get(prepared)
        if loaded is None or self._is_elastic(prepared) or not may_run_again(prepared, loaded):
            return None
        try:
            aside(lambda: compile_again(loaded.workers))
        except OrionError:  # the compiler was switched off, or has no folder any more
            return None
        made = self._turn.run(
            lambda: RunAgain(prepared, loaded, recent, call.arguments, own)
        )  # it uses parts that runs use

        def again(given: Sequence[object], own: Mapping[str, LocalArray]) -> Any:
            is_loaded = self._loaded_for == self.workers and self._loaded.get(prepared) is loaded
            if not is_loaded or self._pool is None or self._is_elastic(prepared):
                return MISSED
            start = perf_counter()
            try:
                return made(given, own, self._pool, self._watch)
            finally:
                self._seconds[prepared] = perf_counter() - start

        return lambda given, own: self._turn.run(lambda: again(given, own))

    def _is_elastic(self, prepared: PreparedProgram) -> bool:
        """Whether a program takes other workers on its way, as far as its last run tells."""
        return not prepared.is_single_loop and self._seconds.get(prepared, 0.0) > ELASTIC_SECONDS

    def scale(self, workers: int) -> None:
        """Have so many threads from the next run on; a run under way goes on with as many at the end of a round. It is
        not waited for."""
        self.workers = workers
        self._turn.if_free(self._scaled)

    def _scaled(self) -> None:
        """Let go of the threads, and of what is loaded for a number of them that there was before."""
        if self._loaded_for != self.workers:
            self._end()
            self._loaded.clear()
            self._loaded_for = self.workers

    def close(self) -> None:
        """End the threads, once the run under way is over."""
        self._is_closed = True
        self._turn.close()

    def _run(self, call: ProgramCall) -> Any:
        self._scaled()
        prepared, arguments, recording = call.prepared, call.arguments, call.recording
        if recording is not None:
            recording.enter(prepared, arguments)
        asked = self._loaded_for
        workers = 1 if asked == 1 else prepared.workers
        if workers > asked:  # another thread has scaled the session meanwhile
            raise RescaledError(f"the program is scheduled for {workers} workers, the session has {asked}")
        loaded = self._loaded.get(prepared)
        if loaded is None:
            with said_if_slow(prepared.program.function.name):
                loaded = aside(lambda: load_program(prepared, workers))
            self._loaded[prepared] = loaded
        if self._pool is None:
            self._pool = Pool()
        if recording is not None or prepared.is_single_loop:  # times are those of the workers that it began with
            call.noted.counts.append((0.0, workers))
            run_part = None if recording is None else partial(run_timed, recording)
            returned = run_locally(prepared, loaded, arguments, self._pool, self._watch, run_part)
            call.noted.updates = loaded.memory.all_notes()
            return returned
        run = ElasticRun(prepared, loaded, arguments, lambda: self.workers, asked, call.noted)
        start = perf_counter()
        try:
            return run.on(self._pool, self._watch)
        finally:
            self._seconds[prepared] = perf_counter() - start

    def _end(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        self._watch.close()

    def _forget(self) -> None:
        self._pool = None
        self._watch = Watch()
        self._loaded = WeakKeyDictionary()
