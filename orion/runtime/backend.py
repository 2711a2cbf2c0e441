"""What a session runs programs on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from threading import Lock
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from orion.errors import PlanError
from orion.runtime.local import LoadedProgram, load_program, run_locally
from orion.runtime.pool import Pool
from orion.runtime.prepared import PreparedProgram


class Backend(Protocol):
    """Workers that can run programs."""

    @property
    def workers(self) -> int:
        """The number of workers that programs are planned for."""

    def run(self, prepared: PreparedProgram, arguments: Mapping[str, object]) -> Any:
        """Run a program on the arrays in `arguments`, in place, and return its result."""

    def close(self) -> None:
        """End the workers; `run` starts them again."""


class LocalBackend:
    """Threads of this process; with one worker, just the calling thread."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = Lock()
        self._pool: Pool | None = None
        self._loaded: WeakKeyDictionary[PreparedProgram, LoadedProgram] = WeakKeyDictionary()

    def run(self, prepared: PreparedProgram, arguments: Mapping[str, object]) -> Any:
        """Run a program. One at a time: a second caller, in another thread, waits."""
        workers = 1 if self.workers == 1 else prepared.workers
        if workers > self.workers:
            raise PlanError(f"the program is scheduled for {workers} workers, the session has {self.workers}")
        with self._lock:
            loaded = self._loaded.get(prepared)
            if loaded is None:
                loaded = load_program(prepared, workers)
                self._loaded[prepared] = loaded
            return run_locally(prepared, loaded, arguments, self._usable_pool())

    def close(self) -> None:
        """End the threads."""
        pool, self._pool = self._pool, None
        if pool is not None and pool.is_usable:
            pool.close()

    def _usable_pool(self) -> Pool:
        if self._pool is None or not self._pool.is_usable:
            self._pool = Pool(self.workers)
        return self._pool


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
