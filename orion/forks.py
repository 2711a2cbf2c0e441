"""Work that a fork waits for. Imports and compilation hold locks of Python and of Numba; a forked child would find them
held by threads that it does not have, and wait for ever.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import get_ident

FORK_WAITS = 10.0
"""For how many seconds at most a fork waits for work of other threads."""
WORK_WAITS = 1.0
"""For how many seconds at most work waits for the fork of another thread: a signal handler may call a function while
its own thread waits to fork."""
LOOK_SECONDS = 0.002


class Forks:
    """The threads at such work, and those about to fork. There are no locks: signal handlers run in between."""

    def __init__(self) -> None:
        self._at_work: dict[int, int] = {}  # a thread, and how often it has begun
        self._forking: dict[int, None] = {}

    def begin(self) -> None:
        """Note that this thread begins with work, once no other thread is about to fork."""
        me, until = get_ident(), time.monotonic() + WORK_WAITS
        depth = self._at_work[me] = self._at_work.get(me, 0) + 1
        while depth == 1 and self._forking.keys() - {me} and time.monotonic() < until:
            del self._at_work[me]
            time.sleep(LOOK_SECONDS)
            self._at_work[me] = 1

    def end(self) -> None:
        """Note that this thread is through with what it began last."""
        me = get_ident()
        depth = self._at_work.pop(me, 0)
        if depth > 1:
            self._at_work[me] = depth - 1

    def before(self) -> None:
        """Wait until no other thread is at work; a thread that forks in the middle of its own goes on with that."""
        me, until = get_ident(), time.monotonic() + FORK_WAITS
        self._forking[me] = None
        while self._at_work.keys() - {me} and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def after_in_parent(self) -> None:
        """Let work begin again."""
        self._forking.pop(get_ident(), None)

    def after_in_child(self) -> None:
        """Forget all other threads: the child has none of them."""
        me = get_ident()
        self._forking.clear()
        self._at_work = {thread: depth for thread, depth in self._at_work.items() if thread == me}


_forks = Forks()


@cache
def _watch() -> None:
    os.register_at_fork(
        before=_forks.before, after_in_parent=_forks.after_in_parent, after_in_child=_forks.after_in_child
    )


@contextmanager
def fork_waits() -> Iterator[None]:
    """Do what stands inside without a fork in between, as long as that takes no more than ten seconds."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        _watch()
    _forks.begin()
    try:
        yield
    finally:
        _forks.end()
