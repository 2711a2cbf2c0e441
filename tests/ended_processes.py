"""Why a process of tests has ended before its time: xdist says only that it is gone, and what it had printed is lost.

A crash leaves a stack dump, by pytest. Nothing of that kind is left by a process that was killed, or that ended itself
without a word, as Ray's part of it does where it has lost the head of its cluster. What remains are the exit code and
the logs of the Ray that it has used last.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

SECONDS = 10.0
"""How long a process may take to end once it says nothing any more."""

MOST_LINES = 20
"""So many of each log, from its end."""

LOGS = "python-core-driver-*_{process}.log", "raylet*.out", "gcs_server.out"
"""What a driver, a node and the head of a cluster have logged."""

NOT_INFORMATION = re.compile(r"^\[[^]]* [WEFC] ")
"""Where Ray begins a line that warns, or tells of an error."""


def why_it_ended(node: Any, folder: Path | None = None) -> str:
    """How the process of a node of xdist has ended, and what Ray has logged in the folder where it has its files."""
    process = node.gateway._io.popen
    told = [f"{node.gateway.id}: process {process.pid} {_ending(process)}"]
    for log in _last_logs(process.pid, folder or Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray")):
        lines = log.read_text("utf-8", "replace").splitlines()
        chosen = lines if "driver" in log.name else [line for line in lines if NOT_INFORMATION.match(line)]
        told += [f"{log}:", *(f"    {line}" for line in chosen[-MOST_LINES:])] if chosen else []
    return "\n".join(told)


def _ending(process: Any) -> str:
    try:
        code = process.wait(SECONDS)
    except TimeoutExpired:
        return f"has not ended, {SECONDS:.0f} s after it was gone for xdist"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"has ended with exit code {code}"


def _last_logs(process: int, folder: Path) -> list[Path]:
    """The logs of the Ray that a process has used last."""
    own, *others = LOGS
    drivers = sorted(folder.glob(f"session_*/logs/{own.format(process=process)}"), key=lambda one: one.stat().st_mtime)
    return [drivers[-1], *(log for name in others for log in drivers[-1].parent.glob(name))] if drivers else []
