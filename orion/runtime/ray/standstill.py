"""Workers that stand still in a run: stopped by a signal, or waiting for something that does not come.

A worker that computes, or waits for the tile of another, runs or is ready to; one that does neither has been stopped
(`SIGSTOP`, a debugger), waits for the disk, or hangs. One that computes for ever is not told from one that has much to
do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence

from orion.dataclass import dataclass
from orion.errors import StandstillWarning
from orion.runtime.ray.looks import Looks
from orion.tracebacks import warn_in_users_line

LOOK_SECONDS = 1.0
"""How often it is looked."""

STILL = 3.0
"""After how many times as long as a worker may be stopped by a signal it is said that one does nothing."""

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
    """The workers of one run, by the nodes that they are on. `place` says where a worker is in the run, `seconds` how
    long one may be stopped by a signal before it is taken for lost."""

    def __init__(self, looks: Sequence[Looks], seconds: float, place: Callable[[int], str]) -> None:
        self._looks, self._seconds, self._place = looks, seconds, place
        self._seen: dict[int, _Seen] = {}
        self._next = 0.0

    def stopped(self, running: Collection[int]) -> tuple[int, str] | None:
        """A worker of those running that has been stopped for too long, and why it is taken for lost; those that have
        long done nothing are warned of, once each."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + min(LOOK_SECONDS, self._seconds / 4)
        for node in self._looks:
            for number, (state, ticks) in node.newest(running).items():
                seen = self._look(number, state, ticks, now)
                process = f"process {node.processes[number]}"
                if seen.stopped_at is not None and now - seen.stopped_at >= self._seconds:
                    why = f"its {process}{node.where} was stopped by a signal, and not told to go on"
                    return number, f"{why}; {self._place(number)}"
                if now - seen.since >= STILL * self._seconds and not seen.is_told:
                    seen.is_told = True
                    self._tell(f"worker {number} ({process}{node.where})", state, now - seen.since, number)
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

    def _tell(self, who: str, state: str, seconds: float, number: int) -> None:
        why = STATES.get(state, f"it is in state {state}")
        told = f"{who} has done nothing for {seconds:.0f} s: {why}; {self._place(number)}"
        warn_in_users_line(StandstillWarning(told))
