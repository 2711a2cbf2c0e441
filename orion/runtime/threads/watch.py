"""A clock that has the main thread look for signals while it runs compiled code.

Python notes that a signal has come, but runs its handler only where the main thread runs Python. So every twentieth of
a second of a long run the main thread is asked to look, through the control rows that its kernels look at (see
`orion.kernel.calling`): it runs the handlers, leaves where one raises, and goes on where none does. Who asks is a
thread that sleeps; when no run has come for a while it sleeps until there is one.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from threading import main_thread
from time import sleep

from orion.kernel.calling import ALARM
from orion.own_threads import OwnThread
from orion.schedule.schedule import Ints

LOOK_SECONDS = 0.05
IDLE_LOOKS = 20
"""After how many looks without a run the clock stops."""


class Watch:
    """The clock of one backend. `begin` and `end` are called around each run, and do next to nothing."""

    def __init__(self) -> None:
        self._main = main_thread().ident or 0
        self._rows: Ints | None = None
        self._has_stopped = True
        self._has_ended = False
        self._wake = allocate_lock()
        self._wake.acquire()
        self._thread: OwnThread | None = None

    def begin(self, rows: Ints) -> None:
        """A run begins whose control rows are `rows`. Where this is another thread than the main one there is nothing
        to look for."""
        if get_ident() == self._main:
            self._rows = rows
            if self._has_stopped:
                self._start()

    def end(self) -> None:
        """The run is over."""
        self._rows = None

    def close(self) -> None:
        """End the clock; the next run starts it again."""
        self._has_ended = True
        self._release()
        self._thread = None

    def _start(self) -> None:
        """Start the clock. Ctrl-C may come anywhere in here: the next run does it again. So it does where no thread can
        be started: signal handlers then run once the kernel is done that the main thread runs."""
        if self._thread is None:
            self._has_ended = False
            thread = OwnThread(self._tick, "orion-watch")
            try:
                thread.start()
            except RuntimeError:
                return
            self._thread = thread
        self._release()

    def _release(self) -> None:
        try:  # noqa: SIM105 - `suppress` takes six times as long
            self._wake.release()
        except RuntimeError:
            pass  # it is awake

    def _tick(self) -> None:
        idle = IDLE_LOOKS
        while not self._has_ended:
            if idle >= IDLE_LOOKS:
                self._has_stopped = True  # before looking whether a run has begun, which then looks here
                if self._rows is None:
                    self._wake.acquire()
                self._has_stopped, idle = False, 0
            sleep(LOOK_SECONDS)
            rows = self._rows
            if rows is None:
                idle += 1
            else:
                idle = 0
                alarms = rows[:, ALARM]
                alarms[alarms == 0] = self._main
