"""What the system counts of processes and of the network: processor time, memory, bytes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

PEAK_OF_MEMORY = "5"
"""What is written to `clear_refs` to begin the highest resident size anew (proc(5))."""


def cpu_seconds(processes: Iterable[int]) -> float:
    """The processor time of processes so far, all threads, in user and system mode."""
    return sum(time.clock_gettime((~process << 3) | 2) for process in processes)  # as clock_getcpuclockid(3) makes it


def begin_peak(process: int) -> int:
    """Begin the highest resident size of a process anew, and return the present one, bytes."""
    Path(f"/proc/{process}/clear_refs").write_text(PEAK_OF_MEMORY)
    return _status(process, "VmRSS")


def peak(process: int) -> int:
    """The highest resident size of a process since `begin_peak`, bytes."""
    return _status(process, "VmHWM")


def loopback_bytes() -> int:
    """The bytes that have gone through the network stack from this machine to itself."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[0])
    return 0


def _status(process: int, field: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0
