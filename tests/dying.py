"""Signals that workers get in the middle of a call."""

from __future__ import annotations

import os
import signal
import threading
import time

from orion.runtime.ray.processes import state_of

BEGUN_TICKS = 20
"""A worker that has used so much of a core, in hundredths of a second, is in the middle of its call."""

WAIT_SECONDS = 60.0

Sent = tuple[int, int]
"""A process, and the signal that it gets."""


def send_in_the_middle(process: int, *sent: Sent, apart: float = 0.0) -> threading.Thread:
    """Send signals to processes, in a thread, once one has begun to compute, and so many seconds apart. A worker that
    is stopped or dies before it has got its order is replaced without a word, and how soon it gets that depends on what
    else the machine does."""

    def send() -> None:
        end, found = time.monotonic() + WAIT_SECONDS, state_of(process)
        first = last = found[1] if found else 0
        while last < first + BEGUN_TICKS:
            if time.monotonic() > end:
                return
            time.sleep(0.01)
            found = state_of(process)  # None where a thread of it has just ended
            last = found[1] if found else last
        for one, number in sent:
            os.kill(one, number)
            time.sleep(apart)

    sending = threading.Thread(target=send)
    sending.start()
    return sending


def kill_in_the_middle(process: int) -> threading.Thread:
    """Kill a process, in a thread, once it has begun to compute."""
    return send_in_the_middle(process, (process, signal.SIGKILL))
