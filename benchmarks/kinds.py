"""Arrays in memory and in files of a slow disk: the time that `plan.estimate(placement=...)` predicts, next to runs.

    python -m benchmarks.kinds [--folder PATH] [--repeats N]

Five loops are measured with all their arrays in memory, and with all in files. What is compared are all other
placements, array by array, none of which was measured: each is run from files of which no page is in memory, until what
was written is in the files. Of some runs the least time is taken, which is that by the clock less what the thread
waited for a core, as predictions are; the least by the clock alone stands beside it.

Without `--folder` the files are in the memory of another process, behind a link of 50 MB per second
(`benchmarks/far_folder.py`; wants root and /dev/fuse).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import orion
from benchmarks.estimates import factorize
from benchmarks.far_folder import far_folder
from orion.kinds.folders import FileArrays
from orion.kinds.measure import SCHEDULED
from orion.kinds.measured import MeasuredKinds

LINKS = (5e7, 1e-4), (1e9, 1e-5)
"""Bytes per second and latency of the link of what is measured, and of one on which nothing is."""
EVERY = (100, 1000, 10_000, 100_000)
"""The first is what estimates are compared by; of the others only the trace is taken."""
Case = tuple[Any, tuple[Any, ...]]


@orion.parallel_for
def combine(a, b, c, out):
    for i in range(out.shape[0]):
        out[i] = a[i] + b[4 * i] * c[i // 4]


@orion.parallel_for
def gather(index, values, x, y):
    for i in range(y.shape[0]):
        total = 0.0
        for p in range(8 * i, 8 * i + 8):
            total += values[p] * x[index[p]]
        y[i] = total


@orion.parallel_for
def triangle(A, B, out):
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(i):
            total += A[i, j]
        for j in range(i, B.shape[1]):
            total += B[i, j]
        out[i] = total


@orion.parallel_for
def several(a, b, c, rounds):
    for _ in range(rounds):
        for i in range(a.shape[0]):
            b[i] = 0.5 * a[i] + 0.25 * b[i]
        for i in range(a.shape[0]):
            a[i] = np.sqrt(b[i] * b[i] + c[i])


def cases() -> list[Case]:
    """Five functions, with 30 to 60 MB of arrays each."""
    rng = np.random.default_rng(7)
    line, million = rng.random(1_000_000), 1_000_000
    index = rng.integers(0, million, 2 * million)
    ratings = orion.sparse((rng.integers(0, 20_000, 200_000), rng.integers(0, 12_000, 200_000)), rng.random(200_000))
    factors = [rng.random((count, 96)) for count in (20_000, 12_000)]
    return [
        (gather, (index, rng.random(2 * million), line, np.zeros(million // 4))),
        (factorize, (ratings, *factors, 0.01)),
        (triangle, (rng.random((1500, 1500)), rng.random((1500, 1500)), np.zeros(1500))),
        (several, (line.copy(), line.copy(), line.copy(), 4)),
        (combine, (rng.random(million), rng.random(4 * million), rng.random(million // 4), np.zeros(million))),
    ]


# ---------------------------------------------------------------- runs


def seconds_of(
    case: Case, names: list[str], placement: dict[str, str], written: set[str], folder: Path, repeats: int
) -> list[tuple[float, float]]:
    """What calls take with some arrays in files, until these are written: less what was waited for a core, and by the
    clock."""
    function, arguments = case
    given = dict(zip(names, arguments, strict=True))
    files, found, placed = FileArrays(folder), [], {}
    try:
        for name, kind in placement.items():
            if kind == "file":
                files.add(name, given[name])
        for _ in range(repeats):
            placed |= {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in given.items()}
            for name in written & {*files.arrays}:
                files.arrays[name][...] = given[name]
            placed |= files.arrays
            files.drop()
            start, waited = time.perf_counter(), waited_for_core()
            function(**placed)
            files.flush()
            waited = waited_for_core() - waited
            taken = time.perf_counter() - start
            found.append((taken - waited, taken))
    finally:
        placed.clear()  # no view of a file is left
        files.close()
    return found


def waited_for_core() -> float:
    """The seconds that this thread has waited for a core."""
    return int(Path(SCHEDULED).read_text().split()[1]) / 1e9


@dataclass(frozen=True)
class Compared:
    """One placement: the seconds of runs, less waiting for a core and by the clock, those that are predicted by
    `every`, and what predicting took."""

    placement: dict[str, str]
    runs: list[tuple[float, float]]
    predicted: dict[int, float]
    estimating: float

    @property
    def least(self) -> tuple[float, float]:
        """The least of both times."""
        return min(own for own, _ in self.runs), min(clock for _, clock in self.runs)

    def error(self, every: int) -> float:
        return self.predicted[every] / self.least[0] - 1.0


def compared(case: Case, folder: Path, fast: Path, repeats: int, workers: int) -> list[Compared]:
    """All placements of a loop; traces of other rates are taken with files in a folder that is `fast`."""
    function, arguments = case
    names = [*function.plan(*arguments).function.program.function.params]
    found, kinds = list[Compared](), {"dram": None, "file": folder}
    with orion.session(workers=workers):
        first = function.measure(*arguments, kinds=kinds, every=EVERY[0])
        print(f"  measured in {first.run:.2f} s")
        plan, arrays = function.plan(*arguments), [*first.arrays]
        placements = [dict(zip(arrays, one, strict=True)) for one in product(kinds, repeat=len(arrays))]
        start = time.perf_counter()
        predicted = {EVERY[0]: [plan.estimate(placement=placement).seconds for placement in placements]}
        estimating = (time.perf_counter() - start) / len(placements)
        print(f"  {plan.estimate().best({'dram': sum(first.arrays.values()) // 2})}".replace("\n", "\n  "))
        for every in EVERY[1:]:
            mixed = with_trace(first, function.measure(*arguments, kinds={"dram": None, "file": fast}, every=every))
            shares = [mixed.seconds_on_one(one) / first.seconds_on_one(one) for one in placements]
            predicted[every] = [share * seconds for share, seconds in zip(shares, predicted[EVERY[0]], strict=True)]
        written = {name for name, one in first.accesses.items() if one.written}
        runs = [seconds_of(case, names, placement, written, folder, repeats) for placement in placements]
        for number, placement in enumerate(placements):
            own = {every: predicted[every][number] for every in EVERY}
            found.append(Compared(placement, runs[number], own, estimating))
    return found


def with_trace(first: MeasuredKinds, other: MeasuredKinds) -> MeasuredKinds:
    """The times of one measurement with the trace of another one: what is off is then off by the trace."""
    pairs = zip(first.loops, other.loops, strict=True)
    loops = tuple(replace(one, brought=traced.brought, written=traced.written) for one, traced in pairs)
    return replace(first, loops=loops, accesses=other.accesses)


def show(name: str, found: list[Compared]) -> list[Compared]:
    """Print the placements; those that were held out."""
    for one in found:
        files = "+".join(array for array, kind in one.placement.items() if kind == "file") or "none"
        times = " ".join(f"{seconds * 1e3:8.1f}" for seconds in one.least)
        errors = " ".join(f"{one.error(every):+8.1%}" for every in EVERY)
        print(f"  {name:<10} {files:<22} {times}  {errors}  {one.least[0] / one.estimating:8.3g}")
    return [one for one in found if len({*one.placement.values()}) > 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where files are made, in place of another process's memory")
    parser.add_argument("--repeats", type=int, default=3, help="runs per placement")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", help="the name of one loop")
    options = parser.parse_args()
    print(f"load when it began: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("milliseconds: the least less waiting for a core, the least by the clock")
    print(f"error for one of {', '.join(map(str, EVERY))} iterations; how many times faster than a run an estimate is")
    held: list[Compared] = []
    slow, fast = (far_folder(*link) if options.folder is None else nullcontext(options.folder) for link in LINKS)
    with slow as folder, fast as quick:
        for case in cases():
            if options.only in (None, case[0].__name__):
                held += show(case[0].__name__, compared(case, folder, quick, options.repeats, options.workers))
    for every in EVERY:
        errors = [abs(one.error(every)) for one in held]
        print(f"every {every}: mean error {statistics.mean(errors):.1%}, largest {max(errors):.1%}, of {len(held)}")
    print(f"load when it ended: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
