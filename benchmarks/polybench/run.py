"""All kernels of PolyBench side by side: prints a table and writes JSON to benchmarks/results/.

    python -m benchmarks.polybench.run                   # from the project's folder; `make polybench` does the same
    python -m benchmarks.polybench.run --only gemm lu --repeats 9
    python -m benchmarks.polybench.run --size small

Each kernel runs in a process of its own: serial Numba (fastmath off), `prange` by hand, and Orion on two threads. Times
are medians of interleaved runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.measure import machine
from benchmarks.process import told_by

from .kernel import SIZES
from .kernels import KERNELS
from .outcome import Outcome
from .table import kernel_table, summary, summary_lines

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "results"
WIDTH = 170  # of the table, where it goes to a file


def main() -> None:
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    before = machine()
    outcomes = []
    for number, name in enumerate(options.only, 1):
        with console.status(f"{name} ({number} of {len(options.only)})"):
            outcomes.append(run_kernel(name, options))
    title = f"PolyBench, size {options.size}, medians of {options.repeats}; load before {before['load'][0]:.2f}"
    console.print(kernel_table(outcomes, title))
    for line in summary_lines(outcomes):
        console.print(line, highlight=False)
    console.print(f"written to {write(outcomes, before, options)}")


def arguments() -> argparse.Namespace:
    names = [kernel.name for kernel in KERNELS]
    parser = argparse.ArgumentParser(description="PolyBench: Orion next to serial Numba and hand-written prange.")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="these kernels only")
    parser.add_argument("--size", choices=SIZES, default="bench")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of each contender")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that each step of Orion's may take")
    return parser.parse_args()


def run_kernel(name: str, options: argparse.Namespace) -> Outcome:
    """What is found in a process of its own. Where Orion ends that process, the others are measured in a second one."""
    command = ["benchmarks.polybench.one", name, "--size", options.size]
    command += ["--repeats", str(options.repeats), "--limit", str(options.limit)]
    facts = told_by(command, options.limit)
    if facts.get("failed") and not facts.get("serial"):
        facts = {**told_by([*command, "--without-orion"], options.limit), **facts}
    return Outcome.from_dict({"kernel": name, **facts})


def write(outcomes: Sequence[Outcome], before: dict[str, Any], options: argparse.Namespace) -> Path:
    """The results as JSON, in a file named after the time."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"polybench-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    results = {
        "machine": before,
        "size": options.size,
        "repeats": options.repeats,
        "summary": summary(outcomes),
        "kernels": [outcome.to_dict() for outcome in outcomes],
    }
    path.write_text(json.dumps(results, indent=1) + "\n")
    return path


if __name__ == "__main__":
    main()
