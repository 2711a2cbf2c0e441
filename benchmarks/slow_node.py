"""Two nodes of one worker each, of which one becomes slow, and fast again: seconds of each call, the shares of its
blocks, and the bytes that went between the driver and the other node.

    python -m benchmarks.slow_node
    python -m benchmarks.slow_node --calls 30

Both nodes are on this machine, in a Ray cluster of its own. Their workers have a core each, with more weight than
anything else there; the second one is held to half of its core by a quota (cgroup v1, as root: two milliseconds in
four) in the calls of the middle part. The static schedule is measured first, the dynamic one after it, on new arrays;
results are compared bit for bit.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import seconds
from benchmarks.requirements import CPU_QUOTAS, missing_quotas, require
from benchmarks.slow_worker import PERIOD_US, bits, epochs
from benchmarks.uneven import walks
from orion.plan.deal import ByTimes
from tests.ray_nodes import session_on

STORE = 200 * 1024**2

PARTS = ("before", "slow", "fast again")


def cases() -> dict[str, tuple[Callable[..., None], Callable[[], tuple[Any, ...]]]]:
    """The loops by title, each with what makes its arguments."""
    random = np.random.default_rng(0)
    count = 20_000
    steps = np.full(count, 8000)
    keys = random.integers(0, 6000, 2_000_000), random.integers(0, 4000, 2_000_000)
    ratings = orion.sparse(keys, random.random(2_000_000))
    W, H = random.random((6000, 16)), random.random((4000, 16))
    return {
        "SGD, 2 million ratings, 16 epochs": (epochs, lambda: (ratings, W.copy(), H.copy(), 1e-3, 16)),
        "1-D, even": (walks, lambda: (steps, np.zeros(count))),
    }


@dataclass(frozen=True)
class Call:
    """One call: in which part, its seconds, the blocks of each worker where they are unequal, and bytes moved."""

    part: str
    seconds: float
    blocks: tuple[int, ...]
    moved: int


class Cores:
    """Groups of processes: one for workers at full speed, one for those at half."""

    def __init__(self) -> None:
        self._folders = {name: CPU_QUOTAS / f"orion-{name}-node-{os.getpid()}" for name in ("fast", "slow")}

    def __enter__(self) -> Cores:
        for name, folder in self._folders.items():
            folder.mkdir()
            (folder / "cpu.shares").write_text("262144")
            if name == "slow":
                (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (folder / "cpu.cfs_quota_us").write_text(str(PERIOD_US // 2))
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._folders.values():
            for process in (folder / "cgroup.procs").read_text().split():
                (CPU_QUOTAS / "cgroup.procs").write_text(process)
            folder.rmdir()

    def put(self, process: int, name: str) -> None:
        """Have a process in one of the groups."""
        (self._folders[name] / "cgroup.procs").write_text(str(process))


def called(function: Any, arguments: tuple[Any, ...], calls: int, session: Any, cores: Cores) -> list[Call]:
    """Calls of a function one after the other, the second worker being slow in those of the middle part."""
    function(*arguments)  # compiled, and loaded by the workers
    group, found = session._backend._team.group, []
    for worker, process in enumerate(group.processes):
        for thread in os.listdir(f"/proc/{process}/task"):
            os.sched_setaffinity(int(thread), {sorted(os.sched_getaffinity(0))[worker]})
        cores.put(process, "fast")
    for part in PARTS:
        cores.put(group.processes[1], "slow" if part == "slow" else "fast")
        for _ in range(calls):
            before = group.moved
            taken = seconds(lambda: function(*arguments))
            deal = function.last_run.plan.loops[0].deal
            blocks = deal.blocks if isinstance(deal, ByTimes) else ()
            found.append(Call(part, taken, blocks, group.moved - before))
    return found


def main() -> None:
    """Measure, and print a table of the parts and all calls."""
    parser = argparse.ArgumentParser(description="Two nodes, one of which becomes slow and fast again.")
    parser.add_argument("--calls", type=int, default=20, help="calls of each part (default 20)")
    options = parser.parse_args()
    require("slow_node", missing_quotas())
    table = Table("loop", "schedule", *(f"{part}, ms" for part in PARTS), "bytes moved, each call that did")
    lines = []
    with Cores() as cores, session_on((1, 1), STORE) as session:
        for title, (function, fresh) in cases().items():
            kept = []
            for schedule in ("static", "dynamic"):
                arguments = fresh()
                calls = called(
                    orion.parallel_for(schedule=schedule)(function), arguments, options.calls, session, cores
                )
                kept.append(bits(arguments))
                # the last half of a part: by then shares are what they will be
                last = [[one.seconds for one in calls if one.part == part][options.calls // 2 :] for part in PARTS]
                moved = ", ".join(f"{one.moved:,}" for one in calls if one.moved)
                table.add_row(title, schedule, *(f"{median(one) * 1e3:.0f}" for one in last), moved or "none")
                each = " ".join(f"{one.seconds * 1e3:.0f}{''.join(f'[{n}]' for n in one.blocks)}" for one in calls)
                lines.append(f"{title}, {schedule}, ms and blocks of each call: {each}")
            lines.append(f"{title}: {'same bits' if kept[0] == kept[1] else 'OTHER BITS'}")
    Console(width=150).print(table)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
