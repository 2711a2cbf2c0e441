"""What it costs to hand bytes from one process to another: Orion's own ways, the system's, gRPC's, Ray's.

    python -m benchmarks.transports                       # all, 1 KB to 256 MB; `make transports` does the same
    python -m benchmarks.transports --only segment grpc --largest 1048576
    python -m benchmarks.transports --torn 10000          # messages whose source is overwritten at once, nothing else

Each transport runs in processes of its own, one after the other, and all of them again in each of `--repeats` turns.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks.measure import machine
from benchmarks.process import told_by
from benchmarks.transports.contenders import BY_NAME, CONTENDERS
from benchmarks.transports.tables import Figures, all_tables, targets

SIZES = tuple(1 << power for power in range(10, 29, 2))
LIMIT = 600.0
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
            cpu_others=median(part["cpu_others"] for part in parts),
            network=median(part.get("network", 0.0) for part in parts),
            memory=median(part.get("memory", 0.0) for part in parts),
        )
    return found


def torn(names: list[str], messages: int) -> int:
    """Send messages whose source is overwritten at once by each transport of the runtime, and print what was torn."""
    wrong = 0
    for name in names:
        each = messages // len(TORN_SIZES)
        sizes = list(map(str, TORN_SIZES))
        told = told_by(["benchmarks.transports.one", name, "--torn", str(each), "--sizes", *sizes], LIMIT)
        found = sum(told.get(size, 0) for size in sizes)
        wrong += found + ("failed" in told)
        print(f"{name}: {each * len(sizes)} messages, {told.get('failed', f'{found} torn')}", flush=True)
    return wrong


def main() -> int:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description="What it costs to hand bytes from one process to another.")
    parser.add_argument("--only", nargs="+", choices=BY_NAME, default=list(BY_NAME), metavar="NAME")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="bytes (default 256 MB)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for the rounds of each size, about")
    parser.add_argument("--repeats", type=int, default=3, help="turns (default 3)")
    parser.add_argument("--torn", type=int, default=0, metavar="MESSAGES", help="look for torn messages instead")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    if options.torn:
        return 1 if torn([name for name in options.only if BY_NAME[name].is_of_runtime], options.torn) else 0
    names = [one.name for one in CONTENDERS if one.name in options.only]
    if "grpc" in names and find_spec("grpc") is None:
        print("grpc is left out: grpcio is not installed (pip install -e '.[transports]')")
        names.remove("grpc")
    sizes = [str(size) for size in SIZES if size <= options.largest]
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(options.repeats):
        for name in names:
            arguments = ["benchmarks.transports.one", name, "--seconds", str(options.seconds), "--sizes", *sizes]
            turns[name].append(told_by(arguments, LIMIT))
            print(f"turn {turn + 1}: {name} {turns[name][-1].pop('failed', '')}", file=sys.stderr, flush=True)
    found = {name: figures(told) for name, told in turns.items()}
    console = Console(width=150)
    console.print(machine())
    for table in all_tables(found):
        console.print(table)
    for line in targets(found):
        console.print(line)
    if options.json is not None:
        values = {name: {size: one.__dict__ for size, one in by_size.items()} for name, by_size in found.items()}
        options.json.write_text(json.dumps({"machine": machine(), "figures": values}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
