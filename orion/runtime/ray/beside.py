"""Threads of the first worker of a node that bring something to other nodes, or from there, while a loop runs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Event

from orion.kernel.calling import GO
from orion.own_threads import OwnThread
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart
from orion.runtime.worker import AbortedError

SHORT_SECONDS, LONG_SECONDS = 5e-5, 1e-3


class Pause:
    """Sleeps between two looks at what workers do: an eighth of the time since it `begin` to wait, within bounds."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def begin(self) -> None:
        self._begun = time.monotonic()

    def __call__(self) -> None:
        time.sleep(min(LONG_SECONDS, max(SHORT_SECONDS, (time.monotonic() - self._begun) / 8)))


class Beside(ABC):
    """One of them, called `name`, in a run with this `memory`. `fail` ends the run with an error."""

    def __init__(self, name: str, memory: RunMemory, fail: Callable[[BaseException], object]) -> None:
        self._name, self._memory, self._fail = name, memory, fail
        self._thread: OwnThread | None = None
        self._over = Event()

    @abstractmethod
    def begin(self, part: LoopPart) -> None:
        """Be ready for a round of a loop: nobody has begun it on any node."""

    def go(self) -> None:
        """Begin, once all nodes are ready."""
        self._over.clear()
        self._thread = OwnThread(self._guarded, self._name)
        self._thread.start()

    def wait(self) -> None:
        """Wait until all is done, once the workers of this node have done the round."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def stop(self) -> None:
        """End in the middle of a round that is left."""
        self._over.set()
        self.wait()

    @abstractmethod
    def _serve(self) -> None:
        """What the thread does in a round."""

    def _guarded(self) -> None:
        try:
            self._serve()
        except AbortedError:
            pass  # why the run is left is known
        except BaseException as error:
            self._fail(error)

    def _is_left(self) -> bool:
        return self._over.is_set() or bool((self._memory.control[:, 0] != GO).any())

    def _leave_if_over(self) -> None:
        if self._is_left():
            raise AbortedError
