"""Programs whose loops are small and many, next to `numba.njit` of the same text. Prints a table and the means.

    python -m benchmarks.small.run                    # from the project's folder; `make small` does the same
    python -m benchmarks.small.run --only lu viterbi --repeats 31

Each program runs in a process of its own. Its results are compared with Numba's before its times are taken: medians of
runs in turn, Numba's and Orion's, once in a session of one worker and once in one of two.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import geometric_mean, median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.measure import machine
from benchmarks.process import ROOT, told_by
from benchmarks.small.programs import PROGRAMS

RESULTS = ROOT / "benchmarks" / "results" / "small.json"
ONE = "benchmarks.small.one"
WIDTH = 130  # of the table, where it goes to a file
LEAST = 0.95
"""Below this ratio a program counts as slower than `njit`."""


@dataclass(frozen=True)
class Row:
    """The facts of one program."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)

    def milliseconds(self, contender: str, workers: int) -> float | None:
        """Return the median of a contender, measured in a session of so many workers."""
        found = self.facts.get(f"times x{workers}")
        return None if found is None else 1000.0 * median(found[contender])

    def ratio(self, workers: int) -> float | None:
        """Return how many times as fast as `njit` Orion is."""
        peer, own = self.milliseconds("njit", workers), self.milliseconds("orion", workers)
        return None if peer is None or own is None else peer / own

    @property
    def remark(self) -> str:
        """What went wrong, or else the plan."""
        wrong = self.facts.get("wrong")
        parts = self.facts.get("failed"), f"wrong: {', '.join(wrong)}" if wrong else None, self.facts.get("plan")
        return "; ".join(part for part in parts if part)


def main() -> None:
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    found = machine()
    console.print(f"{found['processor']}, {found['cores']} cores, load {found['load'][0]:.1f}", highlight=False)
    how = "--repeats", str(options.repeats), "--limit", str(options.limit)
    rows = []
    for number, name in enumerate(options.only, 1):
        with console.status(f"{name} ({number} of {len(options.only)})"):
            rows.append(Row(name, told_by([ONE, name, *how], options.limit)))
    console.print(table(rows))
    console.print(f"njit/Orion above 1: Orion is faster; <: below {LEAST}", highlight=False)
    for line in summary(rows):
        console.print(line, highlight=False)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": found, "programs": {row.name: row.facts for row in rows}}))
    console.print(f"written to {RESULTS}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Programs of small loops: Orion next to Numba on the same text.")
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="these programs only")
    parser.add_argument("--repeats", type=int, default=15, help="measurements of each contender")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that each step may take")
    return parser.parse_args()


# ---------------------------------------------------------------- what is printed


def table(rows: Iterable[Row]) -> Table:
    """Return a row per program; ratios below `LEAST` are marked `<`."""
    found = Table()
    found.add_column("program", no_wrap=True)
    for name in ("njit, ms", "1 worker, ms", "njit/Orion", "2 workers, ms", "njit/Orion"):
        found.add_column(name, justify="right")
    found.add_column("plan, or what fails")
    for row in rows:
        cells = [in_ms(row.milliseconds("njit", 1))]
        for workers in (1, 2):
            cells += [in_ms(row.milliseconds("orion", workers)), marked(row.ratio(workers))]
        found.add_row(row.name, *cells, escape(row.remark))
    return found


def in_ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def marked(ratio: float | None) -> str:
    return "" if ratio is None else f"{'< ' if ratio < LEAST else ''}{ratio:.2f}"


def summary(rows: list[Row]) -> Iterator[str]:
    """Yield the geometric means, the least ratios, and the programs without times."""
    for workers in (1, 2):
        ratios = {row.name: ratio for row in rows if (ratio := row.ratio(workers)) is not None}
        if ratios:
            slow = sorted((name for name in ratios if ratios[name] < LEAST), key=lambda name: ratios[name])
            named = f": {', '.join(slow)}" if slow else ""
            yield (
                f"on {workers}: {geometric_mean(ratios.values()):.2f} × njit (geometric mean of {len(ratios)}), "
                f"least {min(ratios.values()):.2f}, {len(slow)} below {LEAST}{named}"
            )
    others = [row.name for row in rows if row.ratio(2) is None]
    if others:
        yield f"without times: {', '.join(others)}"


if __name__ == "__main__":
    main()
