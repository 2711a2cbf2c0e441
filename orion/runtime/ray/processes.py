"""The processes of Ray on this machine, as Linux tells of them (`proc_pid_stat(5)`).

    python processes.py 4711:18512 …    # end those that are still there soon after the one who started this has ended

`orion.runtime.ray.guard` does that, each by its number and when it was started: nothing of Orion is imported here.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.01

LEFT_SECONDS = 3.0
"""How long after the end of the driver processes may take to end by themselves."""

State = tuple[str, int]
"""The state of a process, "R" where any of its threads runs or is ready to, and the ticks of processor time that it
has used."""


def state_of(process: int) -> State | None:
    """The state of a process; None where nothing is known."""
    try:
        states = {_fields(one / "stat")[0] for one in Path(f"/proc/{process}/task").iterdir()}
        whole = _fields(Path(f"/proc/{process}/stat"))
    except OSError:  # it, or a thread of it, has ended
        return None
    return "R" if "R" in states else whole[0], int(whole[11]) + int(whole[12])


def states_of(processes: Mapping[int, int]) -> dict[int, State]:
    """The states of processes of which something is known, by the numbers that stand for them."""
    found = {number: state_of(process) for number, process in processes.items()}
    return {number: state for number, state in found.items() if state is not None}


def end_stopped(processes: Iterable[int]) -> None:
    """End those that are stopped by a signal: they cannot do what Ray tells them."""
    for process in processes:
        found = state_of(process)
        with suppress(OSError):
            if found is not None and found[0] == "T" and _is_actor(process):
                os.kill(process, signal.SIGKILL)


def have_ended(processes: Iterable[int], seconds: float) -> bool:
    """Whether all of them have ended, at the latest so many seconds from now."""
    end = time.monotonic() + seconds
    for process in processes:
        while _is_actor(process):
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_SECONDS)
    return True


def children_of(parent: int) -> list[int]:
    """The processes that a process has started, and that have not ended; none where the system does not tell."""
    found: list[int] = []
    if not os.path.isdir("/proc"):
        return found
    for one in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            if int(_fields(Path(f"/proc/{one}/stat"))[1]) == parent:
                found.append(int(one))
    return found


def started_at(process: int) -> str:
    """When a process was started, in ticks of the system; "" where there is none. Numbers are used again."""
    try:
        return _fields(Path(f"/proc/{process}/stat"))[19]
    except OSError:
        return ""


def end_left(told: Iterable[str]) -> None:
    """In a process of its own, wait for the end of what is read from, then for the processes to end; end those that do
    not."""
    if os.fork():
        return
    sys.stdin.buffer.read()
    guarded = [(int(process), started) for process, _, started in (one.partition(":") for one in told)]
    end = time.monotonic() + LEFT_SECONDS
    while left := [process for process, started in guarded if started_at(process) == started]:
        if time.monotonic() > end:
            for process in left:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            return
        time.sleep(LOOK_SECONDS)


def _is_actor(process: int) -> bool:
    """Whether a process is there that is one of Ray's workers: numbers are used again. One that has ended, and is not
    yet forgotten by its parent, has no command line."""
    try:
        return b"ray::" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def _fields(path: Path) -> list[str]:
    text = path.read_text()
    return text[text.rindex(")") + 2 :].split()  # the name before may have any characters


if __name__ == "__main__":
    end_left(sys.argv[1:])
