"""What each rewrite is worth: all rewrites on against all but one.

    python -m benchmarks.ablation                        # from the project's folder; `make ablation` does the same
    python -m benchmarks.ablation --only polybench,histogram --rewrites tile --rounds 15
    python -m benchmarks.ablation --json benchmarks/results/ablation.json

Each program runs in a process of its own, on two threads and on one. Each rewrite without which other code is run is
left out in turn; with and without it take turns. A ratio is the median of the times without over the times with: above
1, the rewrite pays. `plans` is by how much all first plans together take longer with the rewrite than without.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.measure import machine
from orion.pipeline import REWRITES

from .programs import programs
from .table import by_rewrite, far_from_one

ROOT = Path(__file__).parents[2]
WIDTH = 140  # of the tables, where they go to a file


def main() -> None:
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    parts = options.only.split(",")
    names = [one.name for one in programs() if any(part in one.name for part in parts)]
    before, found = machine(), []
    for number, name in enumerate(names, 1):
        with console.status(f"{name} ({number} of {len(names)})"):
            found.append(measured(name, options))
        if options.json:
            written = {"machine": before, "rounds": options.rounds, "programs": found}
            options.json.write_text(json.dumps(written, indent=1) + "\n")
    title = f"Time without a rewrite over time with all, {len(found)} programs; {before['processor']}"
    console.print(by_rewrite(found, title))
    for line in far_from_one(found):
        console.print(line, highlight=False)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="All rewrites on against all but one, for every program.")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each (default 7)")
    parser.add_argument("--only", default="", metavar="NAME,…", help="programs whose names have one of these in them")
    names = [one.name for one in REWRITES]
    parser.add_argument("--rewrites", nargs="+", choices=names, default=[], metavar="NAME", help="these only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that is measured there")
    return parser.parse_args()


def measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What is found of one program. Where its process ends early, the rest is measured in another one."""
    facts: dict[str, Any] = {"program": name, "fired": {}, "acting": {}, "pairs": [], "failed": [], "planning": {}}
    skip: list[str] = []
    while (step := _child(name, options, skip, facts)) is not None:
        skip.append(step)
        if step.rpartition(" ")[0] not in {one.name for one in REWRITES}:
            break
    return facts


def _child(name: str, options: argparse.Namespace, skip: list[str], facts: dict[str, Any]) -> str | None:
    """Add to the facts what one process tells; the step in which it ended, if not well."""
    command = [sys.executable, "-m", "benchmarks.ablation.one", name, "--rounds", str(options.rounds)]
    command += ["--rewrites", *options.rewrites, "--skip", *skip]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    step = "the beginning"
    for told in map(json.loads, filter(lambda line: line.startswith("{"), ended.stdout.splitlines())):
        step = told.get("step", step)
        if "pair" in told:
            facts["pairs"].append(told["pair"])
            skip.append(f"{told['pair']['rewrite']} x{told['pair']['workers']}")
        for what in ("fired", "acting"):
            if what in told:
                facts[what][told["workers"]] = told[what]
        facts["planning"] = told.get("planning", facts["planning"])
    if not ended.returncode:
        return None
    facts["failed"].append(f"{step}: {_why(ended)}")
    return step


def _why(ended: subprocess.CompletedProcess[str]) -> str:
    """Why a process did not end well, in one line."""
    if ended.returncode == -signal.SIGALRM:
        return "too slow"
    if ended.returncode < 0:
        return f"signal {-ended.returncode}"
    return (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]


if __name__ == "__main__":
    main()
