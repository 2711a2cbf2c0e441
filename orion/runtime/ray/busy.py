"""How long a worker was busy with the tiles of a loop, where some of its time is waiting for other workers.

It may have no core for a while: it has a quota of one, or other processes run there. Where that falls into waiting it
says just as much of how fast the worker is as where it falls into a tile; and a quota mostly ends while a worker waits,
as the kernel looks at it whenever a thread gives way or asks for something. (A worker with half of a core, whose tiles
of 0.2 ms were a third of its time, was in them for half as long as the same tiles take it when it need not wait. By
these times it was dealt as many tiles again as the others had, and fewer, and as many again.) So the time of a core
that tiles took counts as many times as all of the time in the loop was longer than what the worker had of a core.
"""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns

from orion.dataclass import dataclass

Now = tuple[int, int]
"""A moment, and how long this thread had a core until then, in nanoseconds."""


def now() -> Now:
    """This moment."""
    return perf_counter_ns(), thread_time_ns()


@dataclass(slots=True, eq=False)
class Busy:
    """Of one worker in one loop, in nanoseconds: how long it was in tiles, and in the loop but for sending, and how
    long it had a core in each."""

    in_tiles: int = 0
    of_core: int = 0
    in_loop: int = 0
    of_core_in_loop: int = 0

    def add_tiles(self, before: Now) -> None:
        """Since that moment it was in tiles."""
        after = now()
        self.in_tiles += after[0] - before[0]
        self.of_core += after[1] - before[1]

    def add_loop(self, before: Now) -> None:
        """Since that moment it was in the loop."""
        after = now()
        self.in_loop += after[0] - before[0]
        self.of_core_in_loop += after[1] - before[1]

    def leave_out(self, before: Now) -> None:
        """Since that moment it was sending: how long that takes says nothing of how fast it computes."""
        after = now()
        self.in_loop -= after[0] - before[0]
        self.of_core_in_loop -= after[1] - before[1]

    @property
    def nanoseconds(self) -> int:
        """How long its tiles would take it, had it nothing to wait for.

        >>> Busy(in_tiles=50, of_core=40, in_loop=100, of_core_in_loop=50).nanoseconds
        80
        >>> Busy(in_tiles=50, of_core=10, in_loop=100, of_core_in_loop=60).nanoseconds  # tiles that wait for a disk
        50
        """
        if self.of_core_in_loop <= 0:
            return self.in_tiles
        return max(self.in_tiles, self.of_core * self.in_loop // self.of_core_in_loop)
