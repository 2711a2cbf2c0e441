"""A process that ends what is left of a Ray which Orion has started, when the driver is killed.

The system ends the head and the node of that Ray with the driver. But the node's own helpers (agents) first try for a
minute to tell the head of it, which is dead as well.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

from orion.runtime.ray import processes
from orion.runtime.ray.processes import children_of, started_at


class Guard:
    """Guards the children of a process, those that it has by now, until `close`. It sees the end of this process by the
    end of a pipe."""

    def __init__(self, parent: int) -> None:
        told = [f"{child}:{started}" for child in children_of(parent) if (started := started_at(child))]
        command = [sys.executable, "-I", "-S", processes.__file__, *told]
        quiet = subprocess.DEVNULL
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):  # where no more processes may be started, helpers stay for their minute
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
            )

    def close(self) -> None:
        """End the guard itself. Safe to call again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
