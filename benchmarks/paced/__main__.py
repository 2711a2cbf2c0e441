"""Training on hosts whose links are too slow for it: what is sent first, and what that is worth.

    python -m benchmarks.paced                                  # two hosts, everything; `make paced` does the same
    python -m benchmarks.paced --hosts 3 --only topics --shares 0.05 --epochs 8

Each training begins from the same values, and goes through its data some times in one call. Links have a share of the
demand: of what sending all that has changed would take 40 times in a pass, if that took no time. `often` sends so, and
waits as long as that takes. `bound` sends all that has changed once in a pass, and nothing between. The others do that
too, and between, as far as the link has time, single rows in an order (`orion.pacing`).

Seconds are those of the loop, without the data's way to the hosts and the results' way back; bytes those that carriers
sent, of all hosts, and what `tc -s` counts on the links, with headers and with the results' way back. The hosts share
the processors of this machine. Only root can make network namespaces.

Results are written to benchmarks/results/, a figure to docs/figures/ if everything was run, else beside the results.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import machine
from benchmarks.paced.one import EPOCHS, FAST, POLICIES
from benchmarks.paced.pictures import figure, medians
from benchmarks.paced.programs import PROGRAMS
from benchmarks.process import told_by
from benchmarks.requirements import missing_hosts, require
from benchmarks.written import RESULTS, as_json, figures_folder, markdown, stem, write
from tests.hosts import cluster

SHARES = (0.05, 0.2, 0.8)
LIMIT = 600.0
HEADS = ("", "link", "Mbit/s", "first", "passes", "s", "loss", "MB sent", "MB by `tc`", "early", "looking")


def chosen() -> argparse.Namespace:
    """What is to be run."""
    parser = argparse.ArgumentParser(description="Training on hosts whose links are too slow for it.")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--hosts", type=int, choices=(2, 3), default=2)
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES))
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--epochs", nargs="+", type=int, help="passes, for all programs")
    parser.add_argument("--repeats", type=int, default=1, help="trainings of each kind, of which the median is taken")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="where the figure goes (default: see above)")
    return parser.parse_args()


def measured(options: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """What trainings took, and what failed."""
    rows, failed = [], []
    for name in options.only:
        for _ in range(options.repeats):
            with cluster(options.hosts, FAST) as found:
                arguments = [
                    "--address",
                    found.address,
                    "--hosts",
                    *(host.name for host in found.hosts),
                    "--only",
                    name,
                ]
                arguments += ["--shares", *map(str, options.shares), "--policies", *options.policies]
                arguments += ["--epochs", *map(str, options.epochs)] if options.epochs else []
                told = told_by(["benchmarks.paced.one", *arguments], LIMIT, found.hosts[0].command(()))
            failed += [f"{name}: {told.pop('failed')}"] if "failed" in told else []
            rows += told.values()
            print(f"{name}: {len(told)} trainings", file=sys.stderr, flush=True)
    return rows, failed


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    return (
        row["name"], f"{row['share']:.0%}", f"{row['megabits']:.1f}", row["policy"], f"{row['epochs']:g}",
        f"{row['seconds']:.2f}", f"{row['loss']:.4f}", f"{row['sent'] / 1e6:.2f}", f"{row['carried'] / 1e6:.2f}",
        f"{row['early']:.0%}", f"{row['looking'] / row['seconds']:.1%}",
    )  # fmt: skip


def main() -> int:
    """Measure, print the table, and write results and the figure."""
    options = chosen()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the hosts are taken away then, too
    require("paced", missing_hosts())
    rows, failed = measured(options)
    found = medians(rows)
    console = Console(width=150)
    console.print(machine())
    table = Table(*HEADS, title=f"{options.hosts} hosts", title_justify="left")
    for row in found:
        table.add_row(*cells(row))
    console.print(table)
    for line in failed:
        print(line)
    is_whole = options.hosts == 2 and not options.epochs and set(options.only) == set(PROGRAMS)
    is_whole &= set(options.policies) == set(POLICIES) and set(options.shares) == set(SHARES)
    name = stem(f"paced-{options.hosts}", is_whole)
    write(
        RESULTS, f"{name}.json", as_json({"machine": machine(), "hosts": options.hosts, "failed": failed, "rows": rows})
    )
    write(RESULTS, f"{name}.md", markdown(HEADS, [cells(row) for row in found]))
    if rows:
        write(figures_folder(options.figures, is_whole), f"{name}.svg", figure(rows, options.hosts))
    wanted = (
        sum(len(options.epochs or EPOCHS[one]) for one in options.only) * len(options.shares) * len(options.policies)
    )
    return 0 if len(rows) == wanted * options.repeats else 1


if __name__ == "__main__":
    sys.exit(main())
