"""Programs on hosts with links of 1 Gbit/s, 100 and 20 Mbit/s: network namespaces of this machine.

    python -m benchmarks.hosts                                  # two hosts, everything; `make hosts` does the same
    python -m benchmarks.hosts --quick                          # small sizes, two calls: to see that it works
    python -m benchmarks.hosts --only SGD-MF --megabits 100 --hosts 3

Of each program, size and rate: the time of a call next to that of one worker, and as its plan predicts it; the bytes
that the plan predicts, that the runtime counts and that `tc -s` counts on the links; and for how long of a call workers
compute, messages are on their way, and both. The hosts share the processors of this machine. Only root can make network
namespaces.

Results are written to benchmarks/results/ as JSON and as the tables of the documentation, figures of them to
docs/figures/ if everything was run, else to benchmarks/results/. `benchmarks.hosts.pictures` draws the figures of
results again.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.hosts.pictures import draw
from benchmarks.hosts.programs import PROGRAMS, SCALES
from benchmarks.hosts.results import BYTES, TIMES, Row, agreement, documented
from benchmarks.measure import machine
from benchmarks.process import told_by
from benchmarks.requirements import missing_hosts, require
from benchmarks.written import RESULTS, as_json, figures_folder, stem, write
from tests.hosts import Cluster, cluster

MEGABITS = (1000, 100, 20)
CALLS, QUICK_CALLS = 5, 2
LIMIT = 300.0
"""Seconds for one program of one size at one rate."""


def told_on(
    found: Cluster, names: Sequence[str], scales: Sequence[float], calls: int, megabits: int
) -> tuple[list[dict[str, Any]], str]:
    """What programs took by size, and why some are missing, "" if none is."""
    arguments = ["--address", found.address, "--calls", str(calls), "--limit", str(LIMIT), "--only", *names]
    arguments += ["--scales", *map(str, scales), "--hosts", *(host.name for host in found.hosts)]
    arguments += ["--megabits", str(megabits)]
    told = told_by(["benchmarks.hosts.one", *arguments], LIMIT, found.hosts[0].command(()))
    failed = told.pop("failed", "")
    return list(told.values()), failed


def notes(rows: Sequence[Row]) -> list[str]:
    """Which of the programs' loops are on one host, and why."""
    return list(dict.fromkeys(f"{row.name}, a loop on one host: {why}" for row in rows for why in row.why))


def chosen() -> argparse.Namespace:
    """What is to be run."""
    parser = argparse.ArgumentParser(description="Programs on hosts with slow links.")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--megabits", nargs="+", type=int, default=MEGABITS, metavar="RATE")
    parser.add_argument(
        "--scales", nargs="+", type=float, default=SCALES, help="sizes: 4 has four times the bytes of 1"
    )
    parser.add_argument("--hosts", type=int, choices=(2, 3), default=2)
    parser.add_argument("--calls", type=int, default=CALLS, help="of which the median is taken (default 5)")
    parser.add_argument(
        "--quick", action="store_true", help="the two smallest sizes at 1 Gbit/s and 100 Mbit/s, 2 calls"
    )
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="where figures go (default: see above)")
    options = parser.parse_args()
    if options.quick:
        options.megabits, options.scales, options.calls = MEGABITS[:2], SCALES[:2], QUICK_CALLS
    return options


def measured(options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """The rows, and what failed."""
    rows, failed = [], []
    for megabits in options.megabits:
        with cluster(options.hosts, megabits) as found:
            told, why = told_on(found, options.only, options.scales, options.calls, megabits)
        print(f"{megabits} Mbit/s: {len(told)} measured {why}", file=sys.stderr, flush=True)
        rows += [Row(megabits=megabits, **one) for one in told]
        failed += [f"{megabits} Mbit/s: {why}"] if why else []
    return rows, failed


def keep(rows: Sequence[Row], options: argparse.Namespace, lines: Sequence[str], is_whole: bool) -> None:
    """Write results and figures."""
    name = stem(f"hosts-{options.hosts}", is_whole)
    values = {"machine": machine(), "hosts": options.hosts, "calls": options.calls, "said": list(lines)}
    write(RESULTS, f"{name}.json", as_json({**values, "rows": [asdict(row) for row in rows]}))
    said = "".join(f"\n{line}\n" for line in lines)
    write(RESULTS, f"{name}.md", documented(rows) + said)
    draw(rows, options.hosts, name, figures_folder(options.figures, is_whole))


def main() -> int:
    """Measure, print the table, and write results and figures."""
    options = chosen()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the hosts are taken away then, too
    require("hosts", missing_hosts())
    rows, failed = measured(options)
    rows.sort(key=lambda row: list(PROGRAMS).index(row.name))
    lines = [*agreement(rows), *notes(rows), *failed]
    console = Console(width=150)
    console.print(machine())
    for heads, cells in ((TIMES, Row.times), (BYTES, Row.bytes)):
        table = Table(*heads, title=f"{options.hosts} hosts", title_justify="left")
        for row in rows:
            table.add_row(*cells(row))
        console.print(table)
    for line in lines:
        print(line)
    there = {(row.name, row.megabits, row.scale) for row in rows}
    if rows:
        keep(rows, options, lines, is_whole=there >= set(product(PROGRAMS, MEGABITS, SCALES)))
    return 0 if len(rows) == len(options.only) * len(options.megabits) * len(options.scales) else 1


if __name__ == "__main__":
    sys.exit(main())
