"""First calls of everyday loops, PolyBench and whole programs, each in a process of its own: a table.

    python -m benchmarks.first_calls.run             # from the project's folder; `make first-calls` does the same
    python -m benchmarks.first_calls.run --only polybench.gemm everyday.kmeans

Three states: *cold*, where the machine has compiled what is the same for all loops, and not this one; *warm*, where it
has compiled this one in another process; *never*, where it has compiled nothing. The peer is `numba.njit(cache=True)`
of the same text. Seconds are from the import of the contender to the first result.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.first_calls.programs import PROGRAMS
from benchmarks.measure import machine
from benchmarks.process import ROOT, told_by

RESULTS = ROOT / "benchmarks" / "results" / "first-calls.json"
ONE = "benchmarks.first_calls.one"
WIDTH = 110  # of the table, where it goes to a file
WORST = 10


@dataclass(frozen=True)
class Row:
    """What was found of a program: by contender the facts of a cold and of a warm process."""

    name: str
    facts: dict[str, list[dict[str, Any]]]

    def seconds(self, contender: str, state: int) -> float | None:
        found = self.facts[contender][state].get("first")
        return None if found is None else float(found)

    @property
    def ratio(self) -> float | None:
        """How many times as long as `njit` it takes cold."""
        own, peer = self.seconds("orion", 0), self.seconds("njit", 0)
        return own / peer if own and peer else None

    @property
    def more(self) -> float | None:
        """The seconds that it takes more than `njit`, warm."""
        own, peer = self.seconds("orion", 1), self.seconds("njit", 1)
        return own - peer if own and peer else None


def main() -> None:
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    rows = []
    with folder() as known, folder() as kept:
        never = first_on_a_machine(kept, options.limit)
        shutil.copytree(kept, known, dirs_exist_ok=True)
        for number, name in enumerate(options.only, 1):
            with console.status(f"{name} ({number} of {len(options.only)})"):
                rows.append(Row(name, {one: calls(name, one, known, kept, options) for one in ("njit", "orion")}))
    console.print(table(rows))
    for line in summary(rows, never):
        console.print(line, highlight=False)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"machine": machine(), "never": never, "rows": {row.name: row.facts for row in rows}})
    )
    console.print(f"written to {RESULTS}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="First calls: Orion next to Numba on the same text.")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=[*PROGRAMS], metavar="NAME")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that the calls of a process may take")
    return parser.parse_args()


# ---------------------------------------------------------------- processes


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for compiled code, empty, which is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="orion-first-calls-") as found:
        yield Path(found)


def call(name: str, contender: str, kept: Path, limit: float) -> dict[str, Any]:
    """What a process tells that finds the compiled code in a folder, and adds to it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # packages that are installed have bytecode
    os.environ["XDG_CACHE_HOME"] = str(kept)
    os.environ["NUMBA_CACHE_DIR"] = str(kept / "numba")
    return told_by([ONE, name, contender, "--limit", str(limit)], limit)


def first_on_a_machine(kept: Path, limit: float) -> float:
    """The seconds of the first call of all, in a folder without anything; `kept` then has what all loops share."""
    found = call("polybench.gemm", "walker", kept, limit)
    if "failed" in found:
        raise SystemExit(found["failed"])
    with folder() as empty:
        return float(call("polybench.gemm", "orion", empty, limit)["first"])


def calls(name: str, contender: str, known: Path, kept: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What a cold process tells, and then a warm one. Numba finds its files by the path of their folder, so that each
    program begins with what is known in the same one."""
    shutil.rmtree(kept)
    shutil.copytree(known, kept)
    return [call(name, contender, kept, options.limit) for _ in range(2)]


# ---------------------------------------------------------------- what is printed


def table(rows: list[Row]) -> Table:
    found = Table("program", "njit, cold", "orion", "times", "njit, warm", "orion", "more", "what failed")
    for row in sorted(rows, key=lambda row: row.ratio or 0.0, reverse=True):
        cold, warm = ([row.seconds(one, state) for one in ("njit", "orion")] for state in (0, 1))
        failed = "; ".join(str(one["failed"])[:40] for found in row.facts.values() for one in found if "failed" in one)
        cells = [*map(_number, (*cold, row.ratio)), *map(_number, (*warm, row.more))]
        found.add_row(row.name, *cells, failed)
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def summary(rows: list[Row], never: float) -> Iterator[str]:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    more = [row.more for row in rows if row.more is not None]
    yield f"the very first call on a machine: {never:.2f} s"
    if ratios:
        yield (
            f"cold, {len(ratios)} programs: geometric mean {geometric_mean(ratios):.2f} × njit, median"
            f" {median(ratios):.2f}, worst {max(ratios):.2f}; at most 1.3 ×: {sum(one <= 1.3 for one in ratios)}"
        )
    if more:
        yield f"warm: median {median(more):.2f} s more than njit, worst {max(more):.2f}; more than 0.3 s: " + str(
            sum(one > 0.3 for one in more)
        )


if __name__ == "__main__":
    main()
