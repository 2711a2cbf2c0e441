"""What it costs to hand bytes from one process to another: Orion's own ways, the system's, gRPC's, Ray's.

    python -m benchmarks.transports                       # all, 1 KB to 256 MB; `make transports` does the same
    python -m benchmarks.transports --quick               # to 1 MB, one turn: to see that it works
    python -m benchmarks.transports --only segment grpc --largest 1048576
    python -m benchmarks.transports --torn 10000          # messages whose source is overwritten at once, nothing else

Each transport runs in processes of its own, one after the other, and all of them again in each of `--repeats` turns.
Then those of the runtime hand over 10,000 messages whose source is overwritten at once (not with `--quick`).

Results are written to benchmarks/results/ as JSON and as the tables of the documentation, a figure of them to
docs/figures/ if everything was run, else to benchmarks/results/. `benchmarks.transports.pictures` draws it again.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks.measure import machine
from benchmarks.process import told_by
from benchmarks.transports.contenders import BY_NAME, CONTENDERS
from benchmarks.transports.pictures import draw
from benchmarks.transports.tables import Figures, Found, all_tables, documented, sizes_of, targets
from benchmarks.written import RESULTS, as_json, figures_folder, stem, write

SIZES = tuple(1 << power for power in range(10, 29, 2))
LIMIT = 600.0
TORN = 10_000
TORN_SIZES = (8, 1 << 10, 1 << 16, 1 << 20)


def figures(turns: list[dict[str, Any]]) -> dict[int, Figures]:
    """The figures of a transport by size: medians of all rounds of all turns."""
    found = {}
    for size in sorted({int(size) for turn in turns for size in turn if size.isdigit()}):
        parts = [turn[str(size)] for turn in turns if str(size) in turn]
        rounds = {kind: median(value for part in parts for value in part[kind]) for kind in ("handed", "touched")}
        found[size] = Figures(
            handed=rounds["handed"] / 2,
            touched=rounds["touched"] / 2,
            cpu=median(part["cpu"] for part in parts),
            waiting=median(part.get("waiting", 0.0) for part in parts),
            cpu_others=median(part["cpu_others"] for part in parts),
            network=median(part.get("network", 0.0) for part in parts),
            memory=median(part.get("memory", 0.0) for part in parts),
        )
    return found


def torn(names: list[str], messages: int) -> tuple[int, list[str]]:
    """Send messages whose source is overwritten at once by each transport of the runtime: how many were torn or could
    not be sent, and what to say of each."""
    wrong, lines = 0, []
    for name in (name for name in names if BY_NAME[name].is_of_runtime):
        each = messages // len(TORN_SIZES)
        sizes = list(map(str, TORN_SIZES))
        told = told_by(["benchmarks.transports.one", name, "--torn", str(each), "--sizes", *sizes], LIMIT)
        found = sum(told.get(size, 0) for size in sizes)
        wrong += found + ("failed" in told)
        lines.append(f"{name}: {each * len(sizes)} messages, {told.get('failed', f'{found} torn')}")
        print(lines[-1], flush=True)
    return wrong, lines


def chosen() -> argparse.Namespace:
    """What is to be run."""
    parser = argparse.ArgumentParser(description="What it costs to hand bytes from one process to another.")
    parser.add_argument("--only", nargs="+", choices=BY_NAME, default=list(BY_NAME), metavar="NAME")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="bytes (default 256 MB)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for the rounds of each size, about")
    parser.add_argument("--repeats", type=int, default=3, help="turns (default 3)")
    parser.add_argument("--torn", type=int, default=0, metavar="MESSAGES", help="look for torn messages alone")
    parser.add_argument("--quick", action="store_true", help="to 1 MB, one turn, no torn messages")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="where the figure goes (default: see above)")
    options = parser.parse_args()
    if options.quick:
        options.largest, options.seconds, options.repeats = 1 << 20, 0.05, 1
    return options


def measured(options: argparse.Namespace) -> tuple[Found, list[str]]:
    """The figures of all that were chosen and are there, and what failed."""
    names = [one.name for one in CONTENDERS if one.name in options.only]
    failed = []
    if "grpc" in names and find_spec("grpc") is None:
        failed.append("grpc is left out: grpcio is not installed (pip install -e '.[transports]')")
        names.remove("grpc")
    sizes = [str(size) for size in SIZES if size <= options.largest]
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(options.repeats):
        for name in names:
            arguments = ["benchmarks.transports.one", name, "--seconds", str(options.seconds), "--sizes", *sizes]
            told = told_by(arguments, LIMIT)
            why = told.pop("failed", "")
            turns[name].append(told)
            failed += [f"turn {turn + 1}, {name}: {why}"] if why else []
            print(f"turn {turn + 1}: {name} {why}", file=sys.stderr, flush=True)
    return {name: figures(told) for name, told in turns.items()}, failed


def is_whole(found: Found) -> bool:
    """Whether every transport was measured with every size."""
    return set(found) == set(BY_NAME) and all(sorted(one) == list(SIZES) for one in found.values())


def main() -> int:
    """Measure, print tables, and write results and the figure."""
    options = chosen()
    if options.torn:
        return 1 if torn(options.only, options.torn)[0] else 0
    found, lines = measured(options)
    console = Console(width=150)
    console.print(machine())
    for table in all_tables(found):
        console.print(table)
    lines += targets(found)
    for line in lines:
        print(line)
    wrong, said = (0, []) if options.quick else torn(list(found), TORN)
    lines += said
    if sizes_of(found):
        name = stem("transports", is_whole(found))
        values = {name: {size: asdict(one) for size, one in by_size.items()} for name, by_size in found.items()}
        write(RESULTS, f"{name}.json", as_json({"machine": machine(), "said": lines, "figures": values}))
        write(RESULTS, f"{name}.md", documented(found) + "".join(f"\n{line}\n" for line in lines))
        draw(found, name, figures_folder(options.figures, is_whole(found)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
