"""One run at a time, whichever thread asks; and an end of the workers that comes between runs, never inside one."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import RLock
from typing import TypeVar

from orion.errors import PlanError

R = TypeVar("R")


class Turn:
    """Whose turn it is to use the workers of a backend.

    `end` ends the workers; it is called by `close` once no run is under way. `forget` lets go of them without
    ending them: in a process that was forked off they are still the parent's.
    """

    def __init__(self, end: Callable[[], None], forget: Callable[[], None]) -> None:
        self._end, self._forget = end, forget
        self._renew()

    def _renew(self) -> None:
        self._lock = RLock()
        self._is_running = self._is_ending = False
        self._process = os.getpid()

    def run(self, action: Callable[[], R]) -> R:
        """Call `action` once it is this thread's turn, and return what it returns."""
        self._notice_fork()
        with self._lock:
            if self._is_running:
                raise PlanError(
                    "a signal handler or finalizer called a loop, or asked for a checkpoint, while a loop runs"
                )
            try:
                self._is_running = True
                return action()
            finally:
                self._is_running = False
                if self._is_ending:
                    self._is_ending = False
                    self._end()

    def if_free(self, action: Callable[[], object]) -> None:
        """Call `action` if no run is under way, in this thread or another."""
        self._notice_fork()
        if self._lock.acquire(blocking=False):
            try:
                if not self._is_running:
                    action()
            finally:
                self._lock.release()

    def close(self) -> None:
        """End the workers once the run under way is over: wait for it where another thread runs it. Where this
        very thread does (this is a signal handler then), they end when it comes out of the run.
        """
        self._notice_fork()
        with self._lock:
            if self._is_running:
                self._is_ending = True
            else:
                self._end()

    def end_now(self) -> None:
        """End the workers whatever runs: at the end of the process."""
        self._notice_fork()
        self._end()

    def _notice_fork(self) -> None:
        """In a process that was forked off, perhaps in the middle of a run: begin anew."""
        if os.getpid() != self._process:
            self._forget()
            self._renew()
