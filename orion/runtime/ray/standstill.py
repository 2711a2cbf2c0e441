"""Workers that stand still in a run: stopped by a signal, or waiting for something that does not come.

A worker that computes, or waits for the tile of another, runs or is ready to; one that does neither has been stopped
(`SIGSTOP`, a debugger), waits for the disk, or hangs. Only processes of this machine are looked at.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from orion.errors import StandstillWarning
from orion.runtime.ray.processes import state_of
from orion.tracebacks import warn_in_users_line

LOOK_SECONDS = 1.0
"""How often it is looked."""

STOPPED_SECONDS = 10.0
"""How long a worker may be stopped by a signal before it is taken for lost."""

STILL_SECONDS = 30.0
"""After how long it is said that a worker does nothing."""

BUSY = 0.02
"""The part of a core that a worker uses at least which does something."""

STATES = {"D": "it waits for a disk or another device", "S": "it sleeps", "T": "it was stopped by a signal"}
"""What Linux says of processes that do not run."""


@dataclass(slots=True)
class _Seen:
    """The processor time of a process when it last did something, and when it was first seen stopped since."""

    ticks: int
    since: float
    stopped_at: float | None = None
    is_told: bool = False


class Standstill:
    """The workers of one run on this machine, by their numbers. `place` says where a worker is in the run."""

    def __init__(self, processes: Mapping[int, int], place: Callable[[int], str]) -> None:
        self._processes, self._place = processes, place
        self._seen: dict[int, _Seen] = {}
        self._next = 0.0

    def stopped(self, running: Collection[int]) -> tuple[int, str] | None:
        """A worker of those running that has been stopped for too long, whose process is then ended, and why; those
        that have long done nothing are warned of, once each."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + LOOK_SECONDS
        for number in running:
            process = self._processes.get(number)
            found = None if process is None else state_of(process)
            if process is None or found is None:
                continue
            seen = self._look(number, *found, now)
            if seen.stopped_at is not None and now - seen.stopped_at >= STOPPED_SECONDS:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                return number, f"its process {process} was stopped by a signal, and not told to go on"
            if now - seen.since >= STILL_SECONDS and not seen.is_told:
                seen.is_told = True
                self._tell(number, process, found[0], now - seen.since)
        return None

    def _look(self, number: int, state: str, ticks: int, now: float) -> _Seen:
        seen = self._seen.setdefault(number, _Seen(ticks, now))
        used = (ticks - seen.ticks) / os.sysconf("SC_CLK_TCK")
        if state == "R" or (state != "T" and used > BUSY * (now - seen.since)):
            seen.ticks, seen.since = ticks, now
        if state != "T":
            seen.stopped_at = None
        elif seen.stopped_at is None:
            seen.stopped_at = now
        return seen

    def _tell(self, number: int, process: int, state: str, seconds: float) -> None:
        why = STATES.get(state, f"it is in state {state}")
        told = f"worker {number} (process {process}) has done nothing for {seconds:.0f} s: {why}"
        warn_in_users_line(StandstillWarning(f"{told}; {self._place(number)}"))
