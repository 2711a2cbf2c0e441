"""What takes seconds to start, and may no longer be wanted before it has: it is then ended as soon as it is there, and
nobody waits for that but the next start and the end of the process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from orion.aside import Aside

_given_up: set[Start] = set()
"""Those under way that nobody wants."""


class Start:
    """One start, in a thread of its own. `make` starts something, and leaves nothing where it raises; `end` ends it."""

    def __init__(self, make: Callable[[], None], end: Callable[[], None]) -> None:
        self._make, self._end = make, end
        self._lock = Lock()
        self._is_wanted = True
        self._is_made = False
        self._work = Aside(self._run)

    @property
    def is_done(self) -> bool:
        """Whether it is over: made, ended again, or failed."""
        return self._work.is_done

    def result(self) -> bool:
        """Wait until it is made. False where it was given up before, and has been ended. Raises what `make` raises."""
        with self._lock:
            self._is_wanted = True
        _given_up.discard(self)
        return self._work.result()

    def give_up(self) -> bool:
        """It is no longer wanted, unless somebody asks for the result once more. False where it is over, so that
        whoever calls this has to end it."""
        with self._lock:
            if self._is_made or self.is_done:
                return False
            self._is_wanted = False
            _given_up.add(self)
        return True

    def wait(self) -> None:
        """Wait until it is over, where it has begun."""
        if self._work.has_begun:
            with suppress(Exception):
                self._work.result()

    def _run(self) -> bool:
        try:
            for other in list(_given_up - {self}):
                other.wait()
            self._make()
            with self._lock:
                self._is_made = self._is_wanted
            if not self._is_made:
                self._end()
            return self._is_made
        finally:
            _given_up.discard(self)
