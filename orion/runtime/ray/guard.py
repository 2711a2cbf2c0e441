"""A process that ends what is left of a Ray which Orion has started, when that was ended or the driver was killed.

The system ends the head and the node of that Ray with the driver, and so does Ray where the node takes long to end. But
the node's own helpers (agents) then try for a minute to tell the head of it, which is dead as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

from orion.runtime.ray import processes
from orion.runtime.ray.processes import children_of, started_at


class Guard:
    """Guards the children of a process, those that it has by now, until `close`, when they are to end soon. It sees
    that, and the end of this process, by the end of a pipe."""

    def __init__(self, parent: int) -> None:
        told = [f"{child}:{started}" for child in children_of(parent) if (started := started_at(child))]
        self._open: list[int] = []
        if told and sys.executable:
            with suppress(OSError):  # where no more processes may be started, helpers stay for their minute
                self._open.append(_started(told))

    def close(self) -> None:
        """Let the guard end what is still there soon, and then itself. Safe to call again."""
        while self._open:
            os.close(self._open.pop())


def _started(told: list[str]) -> int:
    """Start the guard, which leaves this process at once so that nobody waits for its end. The end of its pipe."""
    command, quiet = [sys.executable, "-I", "-S", processes.__file__, *told], subprocess.DEVNULL
    theirs, ours = os.pipe()
    try:
        subprocess.run(command, stdin=theirs, stdout=quiet, stderr=quiet, start_new_session=True, check=False)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return ours
