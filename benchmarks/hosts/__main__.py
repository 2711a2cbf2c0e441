"""Programs on hosts with links of 1 Gbit/s, 100 and 20 Mbit/s: network namespaces of this machine.

    python -m benchmarks.hosts                                  # two hosts, all rates; `make hosts` does the same
    python -m benchmarks.hosts --only SGD-MF --megabits 100 --hosts 3

Of each program and rate: the time of a call next to that of one worker, the bytes that the plan predicts, that the
runtime counts and that `tc -s` counts on the links, and how much of the time of messages is hidden behind computing.
The hosts share the processors of this machine. Only root can make network namespaces.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.hosts.programs import PROGRAMS
from benchmarks.measure import machine
from benchmarks.process import told_by
from tests.hosts import Cluster, cluster, why_not

MEGABITS = (1000, 100, 20)
LIMIT = 180.0
"""Seconds for one program at one rate."""

HEADS = (
    "", "Mbit/s", "ms, one worker", "ms", "MB predicted", "MB sent", "MB, driver", "MB by tc",
    "tc / counted", "packets sent again", "ms of the busiest link", "hidden",
)  # fmt: skip


def told_on(found: Cluster, names: Sequence[str], calls: int) -> dict[str, Any]:
    """What programs took, by name; `failed` says why some are missing."""
    arguments = ["--address", found.address, "--calls", str(calls), "--limit", str(LIMIT), "--only", *names]
    arguments += ["--hosts", *(host.name for host in found.hosts)]
    return told_by(["benchmarks.hosts.one", *arguments], LIMIT, found.hosts[0].command(()))


def row(name: str, megabits: int, told: dict[str, Any]) -> tuple[str, ...]:
    """The row of a program at a rate."""
    counted = told["sent"] + told["moved"]
    link = told["busiest"] * 8 / (megabits * 1e6)
    predicted = "?" if told["predicted"] is None else f"{told['predicted'] / 1e6:.3f}"
    sizes = predicted, *(f"{told[key] / 1e6:.3f}" for key in ("sent", "moved", "contents"))
    times = f"{told['alone'] * 1e3:.1f}", f"{told['seconds'] * 1e3:.1f}"
    ratio = f"{told['contents'] / counted:.3f}" if counted else "–"
    return name, str(megabits), *times, *sizes, ratio, f"{told['again']}", f"{link * 1e3:.1f}", f"{told['hidden']:.0%}"


def notes(name: str, told: dict[str, Any]) -> list[str]:
    """Which of the program's loops are on one host, and why."""
    return [f"{name}, a loop on one host: {why}" for why in dict.fromkeys(told["why"])]


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Programs on hosts with slow links.")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--megabits", nargs="+", type=int, default=MEGABITS, metavar="RATE")
    parser.add_argument("--hosts", type=int, choices=(2, 3), default=2)
    parser.add_argument("--calls", type=int, default=5)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the hosts are taken away then, too
    if why := why_not():
        print(f"there can be no hosts here: {why}")
        return 0
    table, said = Table(*HEADS, title=f"{options.hosts} hosts", title_justify="left"), []
    for megabits in options.megabits:
        with cluster(options.hosts, megabits) as found:
            told = told_on(found, options.only, options.calls)
        print(f"{megabits} Mbit/s: {told}", file=sys.stderr, flush=True)
        if "failed" in told:
            said.append(f"{megabits} Mbit/s: {told['failed']}")
        for name in (name for name in options.only if name in told):
            table.add_row(*row(name, megabits, told[name]))
            said += notes(name, told[name])
    console = Console(width=170)
    console.print(machine())
    console.print(table)
    for line in dict.fromkeys(said):
        console.print(line)
    return 0 if table.row_count == len(options.only) * len(options.megabits) else 1


if __name__ == "__main__":
    sys.exit(main())
