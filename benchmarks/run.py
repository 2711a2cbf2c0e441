"""All benchmarks side by side: prints a table and writes JSON to benchmarks/results/.

    python benchmarks/run.py                  # MovieLens-1M shape
    python benchmarks/run.py --large          # 10M shape too
    python benchmarks/run.py --only speed --repeats 9

Figures are medians of interleaved runs; the best run stands beside them, since other work on the machine
only slows.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import libmf_peer
from measure import Ratio, Results
from ratings import generate, split
from ray_and_threads import measure_ray
from requirements import missing_program, require
from rich.console import Console
from rich.table import Table
from speed import measure_speed
from time_to_rmse import measure_time_to_rmse

import orion

FOLDER = Path(__file__).parent / "results"
BENCHMARKS = ("speed", "rmse", "ray")
EPOCHS = {"1m": 10, "10m": 3}  # per measurement of speed


def main() -> None:
    options = arguments()
    if options.only != "ray" and not libmf_peer.library_path().exists():
        require("bench", missing_program("g++", "building LIBMF"))
    console = Console()
    results = Results()
    for size in ("1m", "10m") if options.large else ("1m",):
        run_size(results, size, options, console)
    orion.shutdown()
    for table in measured_tables(results):
        console.print(table)
    console.print(ratio_table(results))
    console.print(f"written to {write(results)}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Orion next to LIBMF, Hogwild and a hand-written kernel.")
    parser.add_argument("--large", action="store_true", help="ratings of MovieLens-10M shape too")
    parser.add_argument("--only", choices=BENCHMARKS, help="run one benchmark only")
    parser.add_argument("--ranks", type=int, nargs="+", default=[32, 100], help="ranks of the speed benchmark")
    parser.add_argument("--repeats", type=int, default=9, help="measurements of each contender")
    return parser.parse_args()


def run_size(results: Results, size: str, options: argparse.Namespace, console: Console) -> None:
    train_set, test_set = split(generate(size))
    chosen = BENCHMARKS if options.only is None else (options.only,)
    if "speed" in chosen:
        for rank in options.ranks:
            with console.status(f"speed, {size}, K={rank}"):
                measure_speed(results, size, train_set, rank, options.repeats, EPOCHS[size])
    if "rmse" in chosen:
        with console.status(f"time to test RMSE, {size}"):
            measure_time_to_rmse(results, size, train_set, test_set, 32, options.repeats)
    if "ray" in chosen:
        with console.status(f"Ray and threads, {size}"):
            measure_ray(results, size, train_set, 32, options.repeats)


def measured_tables(results: Results) -> list[Table]:
    """One table per benchmark, in the order in which they ran."""
    tables = []
    for name in dict.fromkeys(entry.benchmark for entry in results.measured):
        entries = [entry for entry in results.measured if entry.benchmark == name]
        table = Table("contender", "workers", f"median, {entries[0].unit}", "best", "notes", title=name)
        for entry in entries:
            digits = ".4f" if entry.unit == "s" else ".1f"
            figures = f"{entry.median:{digits}}", f"{entry.best:{digits}}"
            table.add_row(entry.contender, str(entry.workers), *figures, entry.notes)
        tables.append(table)
    return tables


def ratio_table(results: Results) -> Table:
    table = Table("benchmark", "ratio", "of medians", "of bests", "target", "", title="ratios")
    for ratio in results.ratios:
        table.add_row(
            ratio.benchmark,
            ratio.what,
            *(f"{value:.2f}" for value in (ratio.medians, ratio.bests)),
            *target_cells(ratio),
        )
    return table


def target_cells(ratio: Ratio) -> tuple[str, str]:
    if ratio.target is None:
        return "", ""
    sign = "≤" if ratio.at_most else "≥"
    return f"{sign} {ratio.target:g}", "met" if ratio.is_met else "not met"


def write(results: Results) -> Path:
    """The results as JSON, in a file named after the time."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(json.dumps(results.to_dict(), indent=1) + "\n")
    return path


if __name__ == "__main__":
    main()
