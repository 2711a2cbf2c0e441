"""The session: where loops run. It is the only global state of Orion."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from orion.errors import ArgumentError, describe
from orion.runtime.backend import Backend, LocalBackend, cores
from orion.runtime.prepared import PreparedProgram

BACKENDS = ("threads", "ray", "serial")
YES, NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class Settings:
    """What a session was asked for. `workers` is None for as many as there are cores (of the cluster, with
    `address`).
    """

    backend: str = "threads"
    workers: int | None = None
    address: str | None = None
    force_parallel: bool = False


class Session:
    """A backend and its workers. They are started when the first loop runs, and end with `close`.

    `outer` is the session that this one stands inside of, whose workers stay where they are meanwhile.
    """

    def __init__(self, settings: Settings, outer: Session | None = None) -> None:
        self.settings = settings
        self._outer = outer
        self._backend = _make_backend(settings, lambda: 0 if outer is None else outer.cluster_cpus)

    @property
    def workers(self) -> int:
        """The number of workers that loops are planned for."""
        return self._backend.workers

    @property
    def cluster_cpus(self) -> int:
        """The CPUs of a Ray cluster that the workers of this session and those around it hold now."""
        return self._backend.cluster_cpus + (0 if self._outer is None else self._outer.cluster_cpus)

    @property
    def force_parallel(self) -> bool:
        """Whether loops use every worker wherever that is legal, whatever the cost model says."""
        return self.settings.force_parallel

    def run(self, prepared: PreparedProgram, arguments: Mapping[str, object]) -> Any:
        """Run a program; see `orion.runtime.run.run_program`."""
        return self._backend.run(prepared, arguments)

    def close(self) -> None:
        """End the workers, once the run under way is over. The session can be used again; they are then started
        anew.
        """
        self._backend.close()

    def __repr__(self) -> str:
        return f"<orion session: {self.settings.backend}, {self.workers} workers>"


def _make_backend(settings: Settings, cpus_around: Callable[[], int]) -> Backend:
    if settings.backend == "ray":
        if find_spec("ray") is None:
            hint = 'install it with `pip install ray`, or use backend="threads"'
            raise ArgumentError(describe("the Ray backend needs the package `ray`, which is not installed", hint=hint))
        from orion.runtime.ray.backend import RayBackend

        return RayBackend(settings.workers, settings.address, cpus_around)
    workers = 1 if settings.backend == "serial" else settings.workers or cores()
    return LocalBackend(workers)


# ---------------------------------------------------------------- settings


def settings_from(
    backend: str | None, workers: int | None, address: str | None, force_parallel: bool | None
) -> Settings:
    """Settings from arguments, from the environment where they are None. `ArgumentError` for what cannot be."""
    backend = _backend(backend)
    if backend == "serial" and workers not in (None, 1):
        hint = 'leave out workers, or use backend="threads"'
        raise ArgumentError(describe(f"the serial backend has one worker, not {workers}", hint=hint))
    count = None if backend == "serial" else _workers(workers)
    if address is not None and (backend != "ray" or not isinstance(address, str)):
        why = f"address={address!r}, backend={backend!r}"
        raise ArgumentError(
            describe("`address` is the text address of a Ray cluster", why=why, hint='use it with backend="ray"')
        )
    return Settings(backend, count, address, _force_parallel(force_parallel))


def _backend(given: str | None) -> str:
    name = os.environ.get("ORION_BACKEND", "threads") if given is None else given
    if name not in BACKENDS:
        source = "ORION_BACKEND" if given is None else "backend"
        hint = f"use one of {', '.join(map(repr, BACKENDS))}"
        raise ArgumentError(describe(f"{source}={name!r} is not a backend", hint=hint))
    return name


def _workers(given: int | None) -> int | None:
    if given is None:
        return _environment_workers()
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        hint = "give a whole number from 1 on, or None for every core"
        raise ArgumentError(describe(f"workers={given!r} is not a number of workers", hint=hint))
    return given


def _environment_workers() -> int | None:
    text = os.environ.get("ORION_WORKERS", "")
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        hint = "set it to a whole number from 1 on, or unset it for every core"
        raise ArgumentError(describe(f"ORION_WORKERS={text!r} is not a number of workers", hint=hint))
    return int(text)


def _force_parallel(given: bool | None) -> bool:
    if given is not None:
        if not isinstance(given, bool):
            raise ArgumentError(describe(f"force_parallel={given!r} is neither True nor False"))
        return given
    text = os.environ.get("ORION_FORCE_PARALLEL", "").lower()
    if text not in YES + NO:
        what = f"ORION_FORCE_PARALLEL={text!r} is neither 1 nor 0"
        raise ArgumentError(describe(what, hint="set it to 1 or unset it"))
    return text in YES


# ---------------------------------------------------------------- the current session

_sessions: list[Session | None] = [None]
"""The current session comes last, before it those that it stands inside of; None where there is none yet."""


def _around(sessions: Sequence[Session | None]) -> Session | None:
    return next((session for session in reversed(sessions) if session is not None), None)


def current_session() -> Session:
    """The session that loops run in: that of `init`, or one with the default settings."""
    found = _sessions[-1]
    if found is None:
        found = _sessions[-1] = Session(settings_from(None, None, None, None), _around(_sessions))
    return found


def planned_workers() -> tuple[int, bool]:
    """The number of workers that loops are planned for, and whether all are to be used: starts nothing."""
    session = current_session()
    return session.workers, session.force_parallel


def init(
    backend: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    force_parallel: bool | None = None,
) -> None:
    """Choose where loops run; without it, on every core of this process. Ends the session before.

    `backend` is "threads" (this process), "ray" (one actor per worker, which owns its partitions) or "serial"
    (one worker). `workers` is their number, by default one per core. `address` joins a Ray cluster ("auto":
    the one on this machine); without it, Ray is started here where it isn't running, and ended with the
    session. With `force_parallel`, every worker is used wherever that is legal, whatever the predicted cost.
    What is None is taken from `ORION_BACKEND`, `ORION_WORKERS` and `ORION_FORCE_PARALLEL`. `ArgumentError`
    for what cannot be; the session before then stays.

    >>> import orion
    >>> orion.init(backend="threads", workers=2)
    >>> orion.shutdown()
    """
    settings = settings_from(backend, workers, address, force_parallel)
    shutdown()
    _sessions[-1] = Session(settings, _around(_sessions))


def shutdown() -> None:
    """End the workers, and Ray where Orion started it. The next loop starts a new session; safe to call at
    any time. A loop that another thread runs is waited for.
    """
    ending, _sessions[-1] = _sessions[-1], None
    if ending is not None:
        ending.close()


@contextmanager
def session(
    backend: str | None = None,
    workers: int | None = None,
    address: str | None = None,
    force_parallel: bool | None = None,
) -> Iterator[Session]:
    """A session for a `with` statement, with the arguments of `init`; the one before is back afterwards. Ends
    with the statement, and so does one that was begun by `init` inside of it.

    >>> import orion
    >>> with orion.session(backend="serial") as here:
    ...     here.workers
    1
    """
    inside = Session(settings_from(backend, workers, address, force_parallel), _around(_sessions))
    _sessions.append(inside)
    try:
        yield inside
    finally:
        last = _sessions.pop()
        if last is not None and last is not inside:
            last.close()
        inside.close()
