"""First calls of the example package, from its kernels next to cold ones, each in a process of its own: a table.

    orion build smoothing --record "python -m pytest tests"      # in examples/package
    python -m benchmarks.first_calls.wheel examples/package/src

The machine's walker is on disk already, but in the rows "new machine". Ways take turns. Wall seconds run from before
the import of NumPy to the first result; CPU seconds are those of the process to then, with its start.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
LOOPS = ("smooth", "blur", "relax")
WAYS = {
    "cold": ("walker", "0"),
    "wheel": ("walker", "1"),
    "warm": ("kernels", "0"),
    "new machine, cold": ("", "0"),
    "new machine, wheel": ("", "1"),
}
"""What is in the cache, and `ORION_SHIPPED`."""

CALL = """
from time import perf_counter, process_time
begun = perf_counter()
import json, sys
import numpy as np
import smoothing
given = {
    "smooth": (np.arange(1_000_000.0), np.zeros(1_000_000)),
    "blur": (np.ones((1000, 1000)), np.zeros((1000, 1000))),
    "relax": (np.ones((1000, 1000)), 4),
}
getattr(smoothing, sys.argv[1])(*given[sys.argv[1]])
print(json.dumps([perf_counter() - begun, process_time()]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the package that was built is imported from")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--loop", choices=LOOPS, action="append")
    parser.add_argument("--way", choices=WAYS, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for loop in options.loop or LOOPS:
            caches = {name: Path(place) / f"{loop}-{name}" for name in ("walker", "kernels")}
            called(options.folder, loop, caches["walker"], "1")  # its kernel is the package's: none is kept
            called(options.folder, loop, caches["kernels"], "0")
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in options.way or WAYS}
            for number in range(options.repeats):
                for way, times in found.items():
                    times.append(called_so(way, options.folder, loop, caches, Path(place) / "cache"))
                    wall, cpu = times[-1]
                    print(f"{loop} {number} {way}: {wall:.2f} {cpu:.2f}", file=sys.stderr, flush=True)
            for way, times in found.items():
                wall, cpu = (median(column) for column in zip(*times, strict=True))
                print(f"{loop:8} {way:20} {wall:6.2f} s, {cpu:5.2f} s of CPU", flush=True)


def called_so(way: str, folder: Path, loop: str, caches: dict[str, Path], cache: Path) -> tuple[float, float]:
    """The seconds of a first call in one of the ways."""
    kept, shipped = WAYS[way]
    shutil.rmtree(cache, ignore_errors=True)
    if kept:
        shutil.copytree(caches[kept], cache)
    return called(folder, loop, cache, shipped)


def called(folder: Path, loop: str, cache: Path, shipped: str) -> tuple[float, float]:
    """The seconds of a first call, and those of its CPU time."""
    paths = os.pathsep.join((str(folder.absolute()), str(ROOT)))
    environment = os.environ | {"PYTHONPATH": paths, "ORION_CACHE": str(cache), "ORION_SHIPPED": shipped}
    command = [sys.executable, "-W", "ignore", "-c", CALL, loop]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    wall, cpu = json.loads(done.stdout)
    return wall, cpu


if __name__ == "__main__":
    main()
