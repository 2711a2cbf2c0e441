"""The session: where loops run. It is the only global state of Orion."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from importlib import import_module
from numbers import Integral
from pathlib import Path
from threading import RLock, current_thread, main_thread
from typing import Any, TypeVar

from orion.arrays.storage import IN_MEMORY, Storage, storage_from
from orion.aside import aside
from orion.cores import cores
from orion.dataclass import dataclass, replace
from orion.errors import ArgumentError, WorkerLostError, describe, did_you_mean
from orion.extras import require
from orion.ir.recent import Recent
from orion.runtime.backend import Backend, LocalBackend, ProgramCall, RunsAgain
from orion.runtime.checkpoints import Checkpoints
from orion.runtime.local_arrays import LocalArray
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.collector import Collector
from orion.runtime.profile.recorder import Recording
from orion.runtime.profile.records import CallRecord
from orion.tracebacks import ends_in_users_line

R = TypeVar("R")

BACKENDS = ("threads", "ray", "serial")
MOST_THREADS = 1024
"""The most workers of a process that has no more cores: above it, a number is a mistake."""
MOST_ACTORS = 65_536
"""The most workers on Ray. A cluster has room for one per CPU, which is known when it is joined."""
DIGITS = 18
"""Numbers of more digits are cut short, or not written out: Python does neither with thousands of them."""
STANDSTILL = 10.0
"""How many seconds a worker on Ray may be stopped by a signal before another takes its place."""
YES, NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class Settings:
    """Settings of a session. `workers` is None for one per core, or one per CPU of the cluster with `address`.
    `storage` is where arrays hold their elements."""

    backend: str = "threads"
    workers: int | None = None
    address: str | None = None
    force_parallel: bool = False
    standstill: float = STANDSTILL
    storage: Storage = IN_MEMORY


class Session:
    """A backend and its workers. They are started when the first loop runs, and end with `close`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._backend = _make_backend(settings)
        self.checkpoints = Checkpoints()
        self.profiles: tuple[Collector, ...] = ()

    @property
    def workers(self) -> int:
        """The number of workers that loops are planned for."""
        return self._backend.workers

    @property
    def force_parallel(self) -> bool:
        """True if loops use every worker wherever that is legal, whatever the predicted cost."""
        return self.settings.force_parallel

    def run(self, call: ProgramCall) -> Any:
        """Run a program and return what the user's function returns.

        `call.arguments` has a value for every parameter of the function, of checked types, layouts and bounds, without
        aliases. Raises the first error of any worker, `OutOfBoundsError` for a subscript that is checked at run time,
        `WorkerLostError`, and KeyboardInterrupt, once all workers have left the program; the session can be used after
        each.
        """
        try:
            return self._backend.run(call)
        except BaseException as error:
            self.failed(error, call.prepared, call.arguments)
            raise

    def failed(self, error: BaseException, prepared: PreparedProgram, arguments: Mapping[str, object]) -> None:
        """Tell the checkpoints that an error ended a run. A WorkerLostError then names those of the lost arrays."""
        self.checkpoints.after_failure(arguments[name] for name in prepared.written.union(prepared.stored))
        if isinstance(error, WorkerLostError) and error.lost:
            error.add_note(self.checkpoints.told_of(arguments[name] for name in error.lost))

    def again(self, call: ProgramCall, recent: Recent, own: Mapping[str, LocalArray]) -> RunsAgain | None:
        """Return a runner of the same program for arguments like these, by position, and local arrays like these; None
        if there is none."""
        return self._backend.again(call, recent, own)

    def after_call(self) -> None:
        """Write the automatic checkpoints that are due, once a call has ended."""
        if self.checkpoints.are_due():
            self._backend.between_runs(self.checkpoints.after_run)

    def dealt(self, prepared: PreparedProgram) -> PreparedProgram:
        """Return a program with the present assignment of its tiles, as the next call will run it."""
        return self._backend.dealt(prepared)

    def recording(self, function: str) -> Recording | None:
        """Return the recording of a call that begins now, for the active profiles; None without any."""
        profiles = self.profiles
        if not profiles:
            return None

        def keep(record: CallRecord) -> None:
            for profile in profiles:
                profile.keep(record)

        return Recording(function, keep, profiles[0].known)

    def profile(self, profile: Collector, *, is_on: bool) -> None:
        """Have a profile collect the calls of this session, or no longer."""
        with _beginning:
            others = tuple(one for one in self.profiles if one is not profile)
            self.profiles = (*others, profile) if is_on else others

    def checkpoint(self, folder: Path, values: Mapping[str, object], every: float | None) -> Path:
        """Write a checkpoint while no loop runs (`orion.checkpoint`)."""
        return self._backend.between_runs(lambda: self.checkpoints.write(folder, values, every))

    def with_threads(self, workers: int, run: Callable[[Session], R]) -> R:
        """Return the result of `run` in a session of so many threads, with this session's checkpoints. This session's
        programs wait."""
        threads = Session(Settings("threads", workers, storage=self.settings.storage))
        threads.checkpoints = self.checkpoints
        try:
            return self._backend.between_runs(lambda: run(threads))
        finally:
            threads._backend.close()

    def scale(self, workers: int) -> None:
        """Have so many workers from the next run on (`orion.scale`)."""
        self._backend.scale(workers)
        self.settings = replace(self.settings, workers=workers)

    def close(self) -> None:
        """End the workers, once the run under way is over. The session can be used again; they are then started
        anew.
        """
        self._backend.close()
        self.checkpoints.close()

    def __repr__(self) -> str:
        return f"<orion session: {self.settings.backend}, {self.workers} workers>"


def _make_backend(settings: Settings) -> Backend:
    if settings.backend == "ray":
        require("ray", "the Ray backend", 'use backend="threads"')
        imported = aside(lambda: import_module("orion.runtime.ray.backend"))  # an import that is left half-way stays so
        found: Backend = imported.RayBackend(settings.workers, settings.address, settings.standstill, settings.storage)
        return found
    workers = 1 if settings.backend == "serial" else settings.workers or cores()
    return LocalBackend(workers)


# ---------------------------------------------------------------- settings


def settings_from(
    backend: str | None,
    workers: int | None,
    address: str | None,
    force_parallel: bool | None,
    standstill: float | None = None,
    spill: str | os.PathLike[str] | None = None,
    spill_above: int | str | None = None,
) -> Settings:
    """Settings from arguments, from the environment where they are None. `ArgumentError` for what cannot be."""
    backend = _backend(backend)
    if backend == "serial" and workers not in (None, 1):
        hint = 'leave out workers, or use backend="threads"'
        raise ArgumentError(describe(f"the serial backend has one worker, not {workers}", hint=hint))
    count = None if backend == "serial" else _workers(backend, workers)
    if address is not None and (backend != "ray" or not isinstance(address, str)):
        why = f"address={address!r}, backend={backend!r}"
        raise ArgumentError(
            describe("`address` is the text address of a Ray cluster", why=why, hint='use it with backend="ray"')
        )
    forced, still = _force_parallel(force_parallel), _standstill(standstill)
    return Settings(backend, count, address, forced, still, storage_from(spill, spill_above))


def _backend(given: str | None) -> str:
    name = (_variable("ORION_BACKEND") or "threads") if given is None else given
    if name not in BACKENDS:
        source = "ORION_BACKEND" if given is None else "backend"
        hint = did_you_mean(str(name), BACKENDS, f"use one of {', '.join(map(repr, BACKENDS))}")
        raise ArgumentError(describe(f"{source}={name!r} is not a backend", hint=hint))
    return name


def _workers(backend: str, given: int | None) -> int | None:
    text = _variable("ORION_WORKERS")
    if given is None and not text:
        return None
    name = "workers" if given is not None else "ORION_WORKERS"
    count = _whole(given) if given is not None else _written(text)
    told = f"{name}={_shown(given if given is not None else text)}"
    if count is None or count < 1:
        otherwise = "unset it" if given is None else "leave it out"
        hint = f"set {name} to a whole number from 1 on, or {otherwise} for every core"
        raise ArgumentError(describe(f"{told} is not a number of workers", hint=hint))
    each = "a thread of this process" if backend == "threads" else "a process of a Ray cluster"
    most = max(MOST_THREADS, cores()) if backend == "threads" else MOST_ACTORS
    if count > most:
        why = f"each worker is {each}, and {most:,} are the limit; more workers than cores only wait for each other"
        hint = f"{'unset' if given is None else 'leave out'} {name} for one worker per core"
        raise ArgumentError(describe(f"{told} is too many workers", why=why, hint=hint))
    return count


def _whole(given: object) -> int | None:
    """An argument as a whole number, None where it is none."""
    return int(given) if isinstance(given, Integral) and not isinstance(given, bool) else None


def _written(text: str) -> int | None:
    """The whole number that a text is, None where it is none. Python reads no number of thousands of digits."""
    return int(text[:DIGITS]) if text.isdecimal() else None


def _shown(value: object) -> str:
    is_long = isinstance(value, int) and abs(value) >= 10**DIGITS
    return f"a number of more than {DIGITS} digits" if is_long else reprlib.repr(value)


def _force_parallel(given: bool | None) -> bool:
    if given is not None:
        if not isinstance(given, bool):
            raise ArgumentError(describe(f"force_parallel={given!r} is neither True nor False"))
        return given
    text = _variable("ORION_FORCE_PARALLEL").lower()
    if text not in YES + NO:
        what = f"ORION_FORCE_PARALLEL={text!r} is neither 1 nor 0"
        raise ArgumentError(describe(what, hint="set it to 1 or 0, or unset it"))
    return text in YES


def _standstill(given: float | None) -> float:
    text = _variable("ORION_STANDSTILL")
    if given is None and not text:
        return STANDSTILL
    name = "standstill" if given is not None else "ORION_STANDSTILL"
    try:
        seconds = math.nan if isinstance(given, bool | str) else float(text if given is None else given)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not seconds > 0:
        told = f"{name}={_shown(given if given is not None else text)} is no number of seconds"
        raise ArgumentError(
            describe(told, hint="give a number above 0, `math.inf` for workers that are never replaced")
        )
    return seconds


def _variable(name: str) -> str:
    """A variable of the environment; "" where it is not set, or to blanks alone."""
    return os.environ.get(name, "").strip()


# ---------------------------------------------------------------- the current session


class Place:
    """Place of a session: the process as a whole, or a `with` statement and the place around it.

    `session` is None before there is one. A place that was left is skipped, in whichever order places are left.
    """

    def __init__(self, session: Session | None, outer: Place | None) -> None:
        self.session = session
        self.outer = outer
        self.is_left = False


_process = Place(None, None)
_inside: ContextVar[Place | None] = ContextVar("orion_session", default=None)
"""The `with` statement that this thread, or task of asyncio, is in."""
_of_main_thread: list[Place] = []
"""The `with` statements that the main thread is in: threads that are in none of their own, such as those of a pool,
work for it.
"""
_beginning = RLock()


def _place() -> Place:
    place = _inside.get()
    if place is None and current_thread() is not main_thread():
        place = next(reversed(_of_main_thread), None)
    while place is not None and place.is_left:
        place = place.outer
    return place or _process


def current_session() -> Session:
    """Return the session that loops run in: that of the enclosing `with` statement, of `init`, or one with default
    settings."""
    place = _place()
    if place.session is None:
        with _beginning:
            if place.session is None:
                place.session = Session(settings_from(None, None, None, None))
    return place.session


def planned_workers() -> tuple[int, bool]:
    """Return the number of workers that loops are planned for, and whether all must be used. Starts nothing."""
    session = current_session()
    return session.workers, session.force_parallel


def current_storage() -> Storage:
    """Return where arrays hold their elements. Starts nothing."""
    session = _place().session
    return storage_from(None, None) if session is None else session.settings.storage


@ends_in_users_line
def init(
    backend: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    force_parallel: bool | None = None,
    standstill: float | None = None,
    spill: str | os.PathLike[str] | None = None,
    spill_above: int | str | None = None,
) -> None:
    """Choose the workers that loops run on. Ends the previous session.

    A program needs no `init`: by default, loops run on threads of this process, one per core. An argument that is None
    comes from its environment variable (docs/reference/environment.md), or has the default named here.

    - `backend`: "threads" (this process, the default), "ray" (one actor per worker, which owns its partitions) or
      "serial" (one worker).
    - `workers`: their number. The default is one per core, or one per CPU of the cluster with `address`.
    - `address`: the Ray cluster to join; "auto" is the one on this machine. Without it, Orion starts Ray unless it
      runs, and ends it with the session.
    - `force_parallel`: use every worker wherever that is legal, whatever the predicted cost. False by default.
    - `standstill`: seconds, 10 by default. A worker on Ray that a signal has stopped for so long is replaced. One that
      does nothing for three times as long causes a `StandstillWarning`.
    - `spill`: a folder on a disk, for data larger than memory. By default, all arrays are in memory.
    - `spill_above`: bytes, or a text such as "256MB"; 64 MiB by default. Larger dense arrays, and columns of sparse
      arrays, become mapped files in the `spill` folder. The files have no names, and vanish with their arrays or with
      the process. Results have the same bits.

    Errors: `ArgumentError` for settings that do not exist or do not fit together; the previous session then stays.
    `StorageError` where the `spill` folder cannot be written to, and, once arrays are made, where it is full.

    >>> import orion
    >>> orion.init(backend="threads", workers=2)
    >>> orion.shutdown()
    """
    settings = settings_from(backend, workers, address, force_parallel, standstill, spill, spill_above)
    place = _place()
    before = place.session
    if before is not None and before.settings.backend == "ray" and settings.address is not None:
        before.close()  # Ray has one connection per process; the session can be used again where that fails
    place.session = Session(settings)
    if before is not None:
        before.close()


@ends_in_users_line
def scale(workers: int) -> None:
    """Change the number of workers of the session. Arrays stay as they are, and nothing is computed again.

    - `workers`: the new number, from 1 on.

    Results keep their bits for up to eight workers, for most loops (docs/guides/reproducible.md lists all cases).

    On threads, `scale` returns at once, also while another thread or the interrupted program is in a call. The call
    uses the new workers from the end of a round, with the same blocks; `f.last_run.worker_counts` says when. Inside of
    one loop, and under `orion.profile`, the number changes with the next call.

    On Ray, `scale` waits for a call of another thread. New workers start at once if the session has started workers
    already. A signal handler cannot scale there.

    Errors: `ArgumentError` for a number below 1, on the serial backend, and where the cluster has no room; the number
    then stays. `PlanError` from a signal handler on Ray.

    >>> import orion
    >>> with orion.session("threads", 1) as here:
    ...     orion.scale(workers=2)
    ...     here.workers
    2
    """
    session = current_session()
    if workers is None:
        raise ArgumentError(describe("workers=None is not a number of workers", hint="give a whole number from 1 on"))
    count = settings_from(session.settings.backend, workers, None, None).workers
    session.scale(1 if count is None else count)


@ends_in_users_line
def shutdown() -> None:
    """End the session's workers, and Ray if Orion started or joined it. The next loop starts a new session.

    A loop that another thread runs comes to its end first. Without workers, `shutdown` does nothing.

    >>> import orion
    >>> orion.shutdown()
    """
    place = _place()
    ending, place.session = place.session, None
    if ending is not None:
        ending.close()


@ends_in_users_line
def session(
    backend: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    force_parallel: bool | None = None,
    standstill: float | None = None,
    spill: str | os.PathLike[str] | None = None,
    spill_above: int | str | None = None,
) -> AbstractContextManager[Session]:
    """Open a session for a `with` statement. The previous session is back afterwards.

    The arguments and errors are those of `orion.init`. `as` gives the session, with its number of `workers`. The end of
    the statement ends the workers, also those of an `init` inside of it.

    The session belongs to the thread, or the asyncio task, of the statement. Other threads use the sessions of their
    own `with` statements. A thread without one uses that of the main thread.

    >>> import orion
    >>> with orion.session(backend="serial") as here:
    ...     here.workers
    1
    """
    return OpenSession(settings_from(backend, workers, address, force_parallel, standstill, spill, spill_above))


class OpenSession(ContextDecorator, AbstractContextManager[Session]):
    """Session of a `with` statement, whose errors, Ctrl-C among them, end in the user's line."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def _recreate_cm(self) -> OpenSession:
        return OpenSession(self._settings)

    @ends_in_users_line
    def __enter__(self) -> Session:
        self._session = Session(self._settings)
        self._before, self._place = _inside.get(), Place(self._session, _place())
        _inside.set(self._place)
        if current_thread() is main_thread():
            _of_main_thread.append(self._place)
        return self._session

    @ends_in_users_line
    def __exit__(self, *_: object) -> None:
        place = self._place
        place.is_left = True
        if _inside.get() is place:
            _inside.set(self._before)
        if place in _of_main_thread:
            _of_main_thread.remove(place)
        last, place.session = place.session, None
        if last is not None and last is not self._session:
            last.close()
        self._session.close()
