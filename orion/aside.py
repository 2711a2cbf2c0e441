"""Work that looks at no signals (isl, LLVM, Arrow, the start of Ray), done in another thread while the main one waits.

Ctrl-C is seen at once then. The work is not ended by it: it goes on in the background, and nobody need take its result.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from io import IOBase
from threading import Lock, current_thread
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from orion.forks import fork_waits
from orion.own_threads import OwnThread

T = TypeVar("T")

LOOK_SECONDS = 0.2
"""How often a thread that waits looks up, so that signal handlers run."""


MANY_OBJECTS = 200_000
"""How many objects Python may go through at its end; it does that half a dozen times."""

FILE = IOBase.__mro__[1]
"""The class of all files; `IOBase` itself is an abstract one, which the files that `open` gives are registered with."""

_left: WeakSet[Aside[Any]] = WeakSet()
"""What a signal handler had the main thread leave before it was done."""


def aside(work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises.

    The main thread waits for it, and may leave at any time by what a signal handler raises. A thread of the user's
    waits too, as its stack may be too small for the work. A thread of Orion calls it, and so does one that can start
    none. A fork waits for the work.

    >>> aside(lambda: 2 + 3)
    5
    """

    def finished() -> T:
        with fork_waits():
            return work()

    return finished() if isinstance(current_thread(), OwnThread) else Aside(finished).result()


class Aside(Generic[T]):
    """Some work in a thread of its own, in the context of whoever makes this. It begins with the first call of
    `result`. No fork waits for it: the start of Ray forks."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._context = copy_context()
        self._found: Future[T] = Future()
        self._begin = Lock()

    def result(self) -> T:
        """What the work returns or raises, once it is done; may be called again where a signal handler raised."""
        if not self._begin.locked():  # Ctrl-C may come before the thread has got hold of it: then there are two
            try:
                OwnThread(self._run, "orion-aside").start()
            except RuntimeError:  # the system, or a process that is about to end, gives no thread
                self._run()
        try:
            while not self._found.done():  # a signal that comes just before the wait begins does not end it
                wait([self._found], LOOK_SECONDS)
        except BaseException:
            _left.add(self)
            _hasten_end_once()
            raise
        return self._found.result()

    @property
    def has_begun(self) -> bool:
        """Whether a thread has begun with it."""
        return self._begin.locked()

    @property
    def is_done(self) -> bool:
        """Whether the work has been done."""
        return self._found.done()

    def _run(self) -> None:
        if not self._begin.acquire(blocking=False):
            return
        try:
            found = self._context.run(self._work)
        except BaseException as error:
            self._found.set_exception(error)
        else:
            self._found.set_result(found)


@cache
def _hasten_end_once() -> None:
    atexit.register(_hasten_end)


def _hasten_end() -> None:
    """At the end of the process, while work that was left goes on. Files are flushed: those in globals of a module that
    a thread still uses Python does not close. And Python is kept from looking for garbage: it would again and again go
    through all that compiling a large function has made so far, for seconds in which nobody knows what it waits for."""
    if any(not one.is_done for one in list(_left)):
        objects = gc.get_objects()
        for one in objects:
            if issubclass(type(one), FILE):
                with suppress(Exception):  # closed, or to be read only
                    one.flush()
        if len(objects) > MANY_OBJECTS:
            gc.freeze()
