"""Epochs that each begin with a shuffle, on hosts whose links take a while for what it brings.

    python -m benchmarks.ahead                          # two hosts; `make ahead` does the same
    python -m benchmarks.ahead --links 20 --parts 0.1

40,000 samples of 128 float32 (20 MB), shared out between two hosts; before each epoch a part of them change places.
`ahead`: shuffles are numbered one after the other, so that the next one is expected, and its rows are sent while the
epoch before it runs. `after`: every other number is left out, so that none is. Seconds of `call` are those of an epoch
from the call to its results, of `loop` those from when its first worker begins; medians. Bytes are what `tc -s` counts
on the links, of all epochs, for each of them. The hosts are network namespaces, and share
the processors of this machine; only root can make them.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import machine
from benchmarks.paced.one import FAST
from benchmarks.process import told_by
from benchmarks.requirements import missing_hosts, require
from benchmarks.written import RESULTS, as_json, markdown, stem, write
from tests.hosts import cluster

LINKS, PARTS = (100.0, 20.0), (0.1, 1.0)
LIMIT = 300.0
HEADS = ("Mbit/s", "q", "rows", "", "call s", "loop s", "sent before", "MB by `tc`")


def medians(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each link, part and kind."""
    found = []
    for key in dict.fromkeys((row["megabits"], row["part"], row["kind"]) for row in rows):
        own = [row for row in rows if (row["megabits"], row["part"], row["kind"]) == key]
        names = [name for name, value in own[0].items() if isinstance(value, float | int)]
        found.append({"kind": key[2], **{name: median(float(row[name]) for row in own) for name in names}})
    return found


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    return (
        f"{row['megabits']:g}", f"{row['part']:g}", f"{row['rows']:,.0f}", row["kind"], f"{row['call']:.3f}",
        f"{row['loop']:.3f}", f"{row['ahead'] / max(1, row['rows']):.0%}", f"{row['carried'] / 1e6:.1f}",
    )  # fmt: skip


def main() -> int:
    """Measure, print the table, and write results."""
    parser = argparse.ArgumentParser(description="Rows of shuffles that are sent while the epoch before runs.")
    parser.add_argument("--links", nargs="+", type=float, default=list(LINKS), help="megabits per second")
    parser.add_argument("--parts", nargs="+", type=float, default=list(PARTS), help="of samples that change places")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of samples")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the hosts are taken away then, too
    require("ahead", missing_hosts())
    with cluster(2, FAST) as found:
        arguments = ["--address", found.address, "--hosts", *(host.name for host in found.hosts)]
        arguments += ["--links", *map(str, options.links), "--parts", *map(str, options.parts)]
        arguments += ["--epochs", str(options.epochs), "--scale", str(options.scale), "--limit", str(LIMIT)]
        told = told_by(["benchmarks.ahead.one", *arguments], LIMIT, found.hosts[0].command(()))
    failed = told.pop("failed", "")
    rows = list(told.values())
    in_cells = [cells(row) for row in medians(rows)]
    table = Table(*HEADS, title="two hosts", title_justify="left")
    for row in in_cells:
        table.add_row(*row)
    console = Console(width=150)
    console.print(machine())
    console.print(table)
    is_whole = options.scale == 1 and (tuple(options.links), tuple(options.parts)) == (LINKS, PARTS)
    name = stem("ahead", is_whole)
    write(RESULTS, f"{name}.json", as_json({"machine": machine(), "failed": failed, "rows": rows}))
    write(RESULTS, f"{name}.md", markdown(HEADS, in_cells))
    print(failed)
    return 1 if failed or len(rows) != 2 * len(options.links) * len(options.parts) * options.epochs else 0


if __name__ == "__main__":
    sys.exit(main())
