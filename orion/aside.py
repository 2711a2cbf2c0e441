"""Work that looks at no signals (isl, LLVM, Arrow, the start of Ray), done in another thread while the main one waits.

Ctrl-C is seen at once then. The work is not ended by it: it goes on in the background, and nobody need take its result.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from threading import Lock, Thread, current_thread, main_thread
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.2
"""How often a thread that waits looks up, so that signal handlers run."""


def aside(work: Callable[[], T]) -> T:
    """What `work` returns or raises. The main thread waits for it, and may leave at any time by what a signal handler
    raises; any other thread just calls it: it handles no signals.

    >>> aside(lambda: 2 + 3)
    5
    """
    return Aside(work).result() if current_thread() is main_thread() else work()


class Aside(Generic[T]):
    """Some work in a thread of its own, in the context of whoever makes this. It begins with the first call of
    `result`."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._context = copy_context()
        self._found: Future[T] = Future()
        self._begin = Lock()

    def result(self) -> T:
        """What the work returns or raises, once it is done; may be called again where a signal handler raised."""
        if not self._begin.locked():  # Ctrl-C may come before the thread has got hold of it: then there are two
            Thread(target=self._run, name="orion-aside", daemon=True).start()
        while not self._found.done():  # a signal that comes just before the wait begins does not end it
            wait([self._found], LOOK_SECONDS)
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
