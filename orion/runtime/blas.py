"""BLAS threads of this process, limited while several workers run a loop that calls BLAS.

Numba calls the BLAS that SciPy links to, which has a pool of one thread per core. Each worker that calls it would wait
for that pool, whose threads want the cores that the other workers have.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Lock, get_ident
from typing import Any, Protocol

from orion.cores import cores
from orion.kernel.calling import KernelSource, Walk
from orion.runtime.prepared import PreparedLoop
from orion.schedule.schedule import Ints


class Library(Protocol):
    """A BLAS library, as `threadpoolctl` controls it."""

    internal_api: str

    def get_num_threads(self) -> int:
        """Return the number of its threads."""

    def set_num_threads(self, num_threads: int) -> Any:
        """Set the number of its threads."""


class BlasLimit:
    """A limit of the threads of some libraries, for as long as any thread holds it. These numbers belong to the
    process, so that one value of this class serves all sessions."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._libraries = libraries
        self._forget()

    def _forget(self) -> None:
        self._lock = Lock()
        self._holders: set[int] = set()
        self._before: list[int] = []
        self._threads: float = math.inf

    def hold(self, threads: int) -> None:
        """Let each library have so many threads at most, until this thread and all others have called `release`."""
        with self._lock:
            self._before = self._before or [one.get_num_threads() for one in self._libraries]
            self._holders.add(get_ident())
            for one, before in zip(self._libraries, self._before, strict=True):
                if threads < self._threads or _is_per_thread(one):
                    _set(one, min(before, threads))
            self._threads = min(self._threads, threads)

    def release(self) -> None:
        """Let go of the limit, as often as is liked: Ctrl-C may come at any place of `hold` and of this. The last
        holder gives the libraries their threads back."""
        with self._lock:
            self._holders.discard(get_ident())
            is_over = not self._holders
            for one, before in zip(self._libraries, self._before, strict=False):
                if is_over or _is_per_thread(one):
                    _set(one, before)
            if is_over:
                self._before, self._threads = [], math.inf

    def after_fork(self) -> None:
        """Give up the limit in a process that was forked off: its holders are threads that it does not have."""
        self._holders.clear()
        self._lock = Lock()
        self.release()


def _set(library: Library, threads: int) -> None:
    """Set the number of threads of a library, from whichever thread. Since 3.8 `threadpoolctl` takes numbers from the
    first thread only that sets one, until that thread says that it is done; no other thread of ours sets one now, and
    the user's can afterwards."""
    give_up = getattr(library, "clear_controlling_thread", None)
    if give_up is not None:
        give_up(force=True)
    library.set_num_threads(threads)
    if give_up is not None:
        give_up()


def _is_per_thread(library: Library) -> bool:
    """Whether each thread that calls a library has a number of its own, as OpenMP counts them."""
    return library.internal_api == "openblas" and getattr(library, "threading_layer", "") == "openmp"


@cache
def _limit() -> BlasLimit:
    """Return the limit of the BLAS libraries of this process."""
    from threadpoolctl import ThreadpoolController

    with suppress(ImportError):  # compiled code that calls BLAS loads it no later than with its first call
        import_module("scipy.linalg.cython_blas")
    found = BlasLimit(ThreadpoolController().select(user_api="blas").lib_controllers)
    os.register_at_fork(after_in_child=found.after_fork)
    return found


# ---------------------------------------------------------------- walks


class Limited:
    """A function during which BLAS has `threads` threads at most."""

    def __init__(self, run: Callable[..., None], threads: int, limit: BlasLimit) -> None:
        self.run = run
        self.threads = threads
        self._limit = limit

    def __call__(self, *arguments: Any, **others: Any) -> None:
        try:
            self._limit.hold(self.threads)
            self.run(*arguments, **others)
        finally:
            self._limit.release()


class LimitedWalk(Limited):
    """A walk so limited."""

    def __init__(self, walk: Walk, threads: int, limit: BlasLimit) -> None:
        super().__init__(walk, threads, limit)
        self.walk = walk

    @property
    def entry(self) -> Any:
        return self.walk.entry

    def block(self, extents: Any, control: Any, arguments: Sequence[Any]) -> Any:
        return self.walk.block(extents, control, arguments)

    def pack(self, block: Any, extents: Any, control: Any, arguments: Sequence[Any]) -> None:
        self.walk.pack(block, extents, control, arguments)

    def put(self, block: Any, position: int, argument: Any) -> None:
        self.walk.put(block, position, argument)


def limited_walks(loops: Sequence[PreparedLoop], walks: Sequence[Walk], tiles: Sequence[Sequence[Ints]]) -> list[Walk]:
    """Return the walks of loops with BLAS limited to the cores of one worker, where several run a loop that calls it.
    `tiles[k]` are those of all workers of this machine in loop k."""
    sharing = [sum(own.size > 0 for own in of_loop) for of_loop in tiles]
    return [_limited(walk, loop.kernel, many) for loop, walk, many in zip(loops, walks, sharing, strict=True)]


def limited_rounds(run: Callable[..., None], walks: Sequence[Walk]) -> Callable[..., None]:
    """Return what follows the instructions of steps, limited as the walks are that it calls."""
    threads = [walk.threads for walk in walks if isinstance(walk, LimitedWalk)]
    run = run.run if isinstance(run, Limited) else run
    return Limited(run, min(threads), _limit()) if threads else run


def _limited(walk: Walk, kernel: KernelSource, workers: int) -> Walk:
    walk = walk.walk if isinstance(walk, LimitedWalk) else walk
    if workers < 2 or not kernel.calls_blas:
        return walk
    return LimitedWalk(walk, max(1, cores() // workers), _limit())
