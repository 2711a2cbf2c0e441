"""Threads of Orion, with stacks that do not depend on what the program sets for its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import RLock, Thread, stack_size
from typing import ParamSpec, TypeVar

from orion.forks import fork_waits

P = ParamSpec("P")
T = TypeVar("T")

STACK_BYTES = 16 << 20
"""What a stack reserves; memory is taken as far as it is used. LLVM and isl need more than some programs leave."""

_setting = RLock()  # a signal handler may call a loop while its thread starts another


class OwnThread(Thread):
    """A thread that does not keep the process from ending."""

    def __init__(self, target: Callable[[], object], name: str) -> None:
        super().__init__(target=target, name=name, daemon=True)

    def start(self) -> None:
        """Start it. RuntimeError where the process can have no more threads, or ends: Python 3.11 waits for ever then
        for a thread that cannot run."""
        if sys.is_finalizing():
            raise RuntimeError("can't start a thread while the interpreter ends")
        with own_stacks():
            super().start()


class OwnPool(ThreadPoolExecutor):
    """A pool of such threads."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a thread do the work. RuntimeError where there is none, and the process can have no more."""
        with own_stacks():
            return super().submit(work, *args, **kwargs)


@contextmanager
def own_stacks() -> Iterator[None]:
    """Give threads that start inside a stack of Orion's size, whatever `threading.stack_size` was set to."""
    with fork_waits(), _setting:
        before = stack_size(STACK_BYTES)
        try:
            yield
        finally:
            stack_size(before)
