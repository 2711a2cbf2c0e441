"""A function called for many things at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

from orion.cores import cores
from orion.own_threads import OwnPool

T = TypeVar("T")


def threads_for(things: int) -> int:
    """Return how many threads to start for so many things: at most one per core, and at least one."""
    return min(things, cores()) if things > 1 else 1


class AtOnce:
    """Threads that call functions, for as long as a `with` statement lasts. Where none can be started, because the
    system gives none or the process is about to end, this one does it all; so a function may be called twice for a
    thing.

    >>> with AtOnce(2) as threads:
    ...     threads.map(pow, [2, 3], [5, 2])
    [32, 9]
    """

    def __init__(self, threads: int) -> None:
        self._pool: OwnPool | None = OwnPool(threads)

    def map(self, function: Callable[..., T], *things: Iterable[Any]) -> list[T]:
        """What the function returns for each thing, or for each of several together."""
        if self._pool is not None:
            try:
                return list(self._pool.map(function, *things))
            except RuntimeError:
                self._close()
        return list(map(function, *things))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)
