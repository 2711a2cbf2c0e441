"""Arrays that nodes do not have whole: what they fetch before tiles need it, and what that hides.

    python -m benchmarks.served                       # two hosts; `make served` does the same
    python -m benchmarks.served --hosts 3 --links 100

Sparse logistic regression with four million weights (32 MB) and 100,000 samples of 30 features each, most of which are
in few samples; updates are late (`orion.buffer`). `served` fetches the weights that tiles announce, `whole` has all of
them sent to each host, as of arrays whose subscripts nobody can list. What is fetched is asked for by no host: the home
node knows what tiles need. Fetched on demand each weight would be a question and its answer when a tile first needs it:
so many trips, of which 2,000 are measured on the same link, one after the other.

Seconds are those of the loop; `hidden` is the part of the time until all weights were there in which the worker did not
wait for any. `new` is a call with other samples, for which announcers run once more. Bytes are those that `tc -s`
counts on the links. The hosts are network namespaces, and share the processors of this machine; only root can make
them.
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

LINKS = (100.0, 1000.0)
LIMIT = 600.0
HEADS = (
    "", "Mbit/s", "call s", "loop s", "MB by `tc`", "fetched", "messages", "on demand: trips", "s", "waited s",
    "hidden", "new: call s", "loss",
)  # fmt: skip


def medians(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each kind and link: medians of the passes but for the one with new samples."""
    found = []
    for key in dict.fromkeys((row["kind"], row["megabits"]) for row in rows):
        own = [row for row in rows if (row["kind"], row["megabits"]) == key]
        same, new = [row for row in own if not row["is_new"]], [row for row in own if row["is_new"]]
        names = [name for name, value in own[0].items() if isinstance(value, float | int)]
        middle = {name: median(float(row[name]) for row in same) for name in names}
        found.append({"kind": key[0], **middle, "new": median(float(row["call"]) for row in new)})
    return found


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    hidden = 1 - row["waited"] / row["fetching"] if row["fetching"] else 0.0
    is_served = row["kind"] == "served"
    fetched = (
        f"{row['rows']:,.0f}", f"{row['messages']:.0f}", f"{row['rows']:,.0f}", f"{row['rows'] * row['trip']:.1f}",
        f"{row['waited']:.3f}", f"{hidden:.0%}",
    )  # fmt: skip
    return (
        row["kind"], f"{row['megabits']:g}", f"{row['call']:.3f}", f"{row['loop']:.3f}", f"{row['carried'] / 1e6:.1f}",
        *(fetched if is_served else ("",) * len(fetched)), f"{row['new']:.3f}", f"{row['loss']:.4f}",
    )  # fmt: skip


def main() -> int:
    """Measure, print the table, and write results."""
    parser = argparse.ArgumentParser(description="Arrays that nodes do not have whole.")
    parser.add_argument("--hosts", type=int, choices=(2, 3), default=2)
    parser.add_argument("--links", nargs="+", type=float, default=list(LINKS), help="megabits per second")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of samples and weights")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the hosts are taken away then, too
    require("served", missing_hosts())
    with cluster(options.hosts, FAST) as found:
        names = [host.name for host in found.hosts]
        arguments = ["--address", found.address, "--hosts", *names, "--links", *map(str, options.links)]
        arguments += ["--passes", str(options.passes), "--scale", str(options.scale)]
        told = told_by(["benchmarks.served.one", *arguments], LIMIT, found.hosts[0].command(()))
    failed = told.pop("failed", "")
    rows = list(told.values())
    table = Table(*HEADS, title=f"{options.hosts} hosts", title_justify="left")
    in_cells = [cells(row) for row in medians(rows)]
    for row in in_cells:
        table.add_row(*row)
    console = Console(width=150)
    console.print(machine())
    console.print(table)
    name = stem(f"served-{options.hosts}", options.scale == 1 and set(options.links) == set(LINKS))
    write(RESULTS, f"{name}.json", as_json({"machine": machine(), "failed": failed, "rows": rows}))
    write(RESULTS, f"{name}.md", markdown(HEADS, in_cells))
    print(failed)
    return 1 if failed or len(rows) != 2 * len(options.links) * options.passes else 0


if __name__ == "__main__":
    sys.exit(main())
