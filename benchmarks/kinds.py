"""Arrays in memory and in files of a slow disk: the time that `plan.estimate(placement=...)` predicts, next to runs.

    python -m benchmarks.kinds [--folder PATH] [--repeats N] [--only LOOP]

Five loops are measured with all their arrays in memory, and with all in files. What is compared are all other
placements, array by array, none of which was measured: each is run from files of which no page is in memory, until what
was written is in the files. Placements are run in turn. Times are by the clock, with all arrays in memory less what the
thread waited for a core; errors are those against the median, and against the least, of which others have least.

Of each placement the bytes that the trace says are read and written are compared with those that the link carried, and
both, with the times, for other rates of the trace. Last, some placements on two workers, which share the link.

Without `--folder` the files are in the memory of another process, behind a link of 50 MB per second
(`benchmarks/far_folder.py`; wants root and /dev/fuse); of other folders nobody counts the bytes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import orion
from benchmarks.estimates import factorize
from benchmarks.far_folder import far_folder
from benchmarks.requirements import missing_fuse, require
from orion.kinds.folders import FileArrays, leave_caches
from orion.kinds.measured import MeasuredKinds
from orion.kinds.runs import SCHEDULED

LINKS = (5e7, 1e-4), (1e9, 1e-5)
"""Bytes per second and latency of the link of what is measured, and of one on which nothing is."""
EVERY = (100, 1000, 10_000, 100_000)
"""The first is what estimates are compared by; of the others only the trace is taken."""
NICE, GROUP = -15, Path("/proc/self/autogroup")
"""Runs are made before those of other sessions, if that may be: what is to be seen is what waits for the link. Linux
shares cores out among sessions first."""
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


@dataclass(frozen=True)
class Folder:
    """Where files are, and the bytes that were read and written there up to now; None where nobody counts."""

    path: Path
    moved: Callable[[], tuple[int, int]] | None

    def __fspath__(self) -> str:
        return os.fspath(self.path)


@dataclass(frozen=True)
class Run:
    """One run: its seconds, the bytes that were read and those that were written."""

    seconds: float
    read: int
    written: int


class Runs:
    """Runs a function with some of its arrays in files of a folder; those that are `written` are as they were given in
    each run."""

    def __init__(self, case: Case, measured: MeasuredKinds, folder: Folder) -> None:
        self.function, arguments = case
        parameters = self.function.plan(*arguments).function.program.function.params
        self.given = dict(zip(parameters, arguments, strict=True))
        self.written = [name for name, one in measured.accesses["file"].items() if one.written]
        self.folder, self.files = folder, FileArrays(folder.path)
        for name in measured.arrays:
            self.files.add(name, self.given[name])

    def run(self, placement: dict[str, str]) -> Run:
        """A call, until what it wrote is in files."""
        given = {name: one.copy() if isinstance(one, np.ndarray) else one for name, one in self.given.items()}
        placed = {name: self.files.arrays[name] for name, kind in placement.items() if kind == "file"}
        for name in self.written:
            if name in placed:
                placed[name][...] = self.given[name]
        self.files.drop()
        leave_caches()
        before = moved(self.folder)
        given |= placed
        waited = waited_for_core()
        start = time.perf_counter()
        self.function(**given)
        self.files.flush()
        taken = time.perf_counter() - start
        waited = 0.0 if placed else waited_for_core() - waited
        read, written = (now - then for now, then in zip(moved(self.folder), before, strict=True))
        return Run(taken - waited, read, written)

    def close(self) -> None:
        self.files.close()


def moved(folder: Folder) -> tuple[int, int]:
    return (0, 0) if folder.moved is None else folder.moved()


def waited_for_core() -> float:
    """The seconds that this thread has waited for a core."""
    return int(Path(SCHEDULED).read_text().split()[1]) / 1e9


# ---------------------------------------------------------------- compared


@dataclass(frozen=True)
class Predicted:
    """Of a placement: seconds, and the bytes that are read and written."""

    seconds: float
    read: int
    written: int


@dataclass(frozen=True)
class Compared:
    """One placement: its runs, and what is predicted by `every`; what predicting took."""

    placement: dict[str, str]
    runs: list[Run]
    predicted: dict[int, Predicted]
    estimating: float

    @property
    def is_held_out(self) -> bool:
        return len({*self.placement.values()}) > 1

    @property
    def median(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def least(self) -> float:
        return min(run.seconds for run in self.runs)

    def error(self, every: int) -> float:
        return self.predicted[every].seconds / self.median - 1.0

    def bytes_errors(self, every: int) -> tuple[float | None, float | None]:
        """Of bytes read and written; None where none are."""
        found, run = self.predicted[every], self.runs[0]
        pairs = (found.read, run.read), (found.written, run.written)
        return tuple(own / real - 1.0 if real else None for own, real in pairs)  # type: ignore[return-value]


def compared(case: Case, folder: Folder, fast: Path, repeats: int) -> list[Compared]:
    """All placements of a loop; traces of other rates are taken with files in a folder that is `fast`."""
    function, arguments = case
    kinds = {"dram": None, "file": folder.path}
    with orion.session(workers=1):
        first = function.measure(*arguments, kinds=kinds, every=EVERY[0])
        print(f"  measured in {first.run:.2f} s")
        plan, arrays = function.plan(*arguments), [*first.arrays]
        placements = [dict(zip(arrays, one, strict=True)) for one in product(kinds, repeat=len(arrays))]
        seconds, estimating = list[float](), list[float]()
        for placement in placements:
            start = time.perf_counter()
            seconds.append(plan.estimate(placement=placement).seconds)
            estimating.append(time.perf_counter() - start)
        each = statistics.median(estimating)
        print(f"  the first estimate took {estimating[0] * 1e3:.1f} ms, others {each * 1e3:.2f} ms")
        print(f"  {plan.estimate().best({'dram': sum(first.arrays.values()) // 2})}".replace("\n", "\n  "))
        predicted: list[dict[int, Predicted]] = [
            {EVERY[0]: of_bytes(first, one, found)} for one, found in zip(placements, seconds, strict=True)
        ]
        for every in EVERY[1:]:
            mixed = with_trace(first, function.measure(*arguments, kinds={"dram": None, "file": fast}, every=every))
            for own, one, found in zip(predicted, placements, seconds, strict=True):
                share = mixed.seconds_on_one(one) / first.seconds_on_one(one)
                own[every] = of_bytes(mixed, one, share * found)
        runs: list[list[Run]] = [[] for _ in placements]
        with closing(Runs(case, first, folder)) as files:
            for _ in range(repeats):
                for own_runs, placement in zip(runs, placements, strict=True):
                    own_runs.append(files.run(placement))
    pairs = zip(placements, runs, predicted, strict=True)
    return [Compared(one, own_runs, own, each) for one, own_runs, own in pairs]


def of_bytes(measured: MeasuredKinds, placement: dict[str, str], seconds: float) -> Predicted:
    """What is predicted of a placement that takes so many seconds."""
    own = [measured.accesses["file"][name] for name, kind in placement.items() if kind == "file"]
    return Predicted(seconds, sum(one.bytes for one in own), sum(one.written_bytes for one in own))


def with_trace(first: MeasuredKinds, other: MeasuredKinds) -> MeasuredKinds:
    """The times of one measurement with the trace of another one: what is off is then off by the trace."""
    by_trace, pairs = other.kinds[0], zip(first.loops, other.loops, strict=True)
    loops = tuple(replace(one, windows=dict.fromkeys(first.kinds, traced.windows[by_trace])) for one, traced in pairs)
    return replace(first, loops=loops, accesses=dict.fromkeys(first.kinds, other.accesses[by_trace]))


def on_two(case: Case, folder: Folder, repeats: int) -> list[Compared]:
    """Placements on two workers: all arrays in files, each by itself, and all others."""
    function, arguments = case
    with orion.session(workers=2):
        measured = function.measure(*arguments, kinds={"dram": None, "file": folder.path}, every=EVERY[0])
        plan, arrays = function.plan(*arguments), {*measured.arrays}
        sets = {frozenset(one) for name in arrays for one in (arrays, {name}, arrays - {name}) if one}
        found = []
        for chosen in sorted(sets, key=sorted):
            placement = {name: "file" if name in chosen else "dram" for name in measured.arrays}
            start = time.perf_counter()
            seconds = plan.estimate(placement=placement).seconds
            taken = time.perf_counter() - start
            found.append(Compared(placement, [], {EVERY[0]: of_bytes(measured, placement, seconds)}, taken))
        with closing(Runs(case, measured, folder)) as files:
            for _ in range(repeats):
                for one in found:
                    one.runs.append(files.run(one.placement))
    return found


@contextmanager
def before_others() -> Iterator[None]:
    """What this session runs is run before other sessions, where it may be."""
    if not GROUP.exists() or os.geteuid():
        yield
        return
    before = GROUP.read_text().split()[-1]
    GROUP.write_text(str(NICE))
    try:
        yield
    finally:
        GROUP.write_text(before)


# ---------------------------------------------------------------- printed


def in_files(placement: dict[str, str]) -> str:
    return "+".join(array for array, kind in placement.items() if kind == "file") or "none"


def show(name: str, found: list[Compared]) -> None:
    """Print the placements of a loop, and the mean of the errors of those that were held out."""
    for one in found:
        times = f"{one.median * 1e3:8.1f} {one.least * 1e3:8.1f} {one.predicted[EVERY[0]].seconds * 1e3:8.1f}"
        errors = f"{one.error(EVERY[0]):+8.1%} {one.predicted[EVERY[0]].seconds / one.least - 1.0:+8.1%}"
        faster = one.median / one.estimating
        bytes_errors = " ".join(f"{'-' if e is None else f'{e:+.1%}':>8}" for e in one.bytes_errors(EVERY[0]))
        print(f"  {name:<10} {in_files(one.placement):<22} {times} {errors} {bytes_errors} {faster:8.3g}")
    print(f"{name}: {mean_errors(found)}", flush=True)


def mean_errors(found: list[Compared]) -> str:
    """Those of the placements that were held out, in words."""
    held = [one for one in found if one.is_held_out]
    medians = [abs(one.error(EVERY[0])) for one in held]
    leasts = [abs(one.predicted[EVERY[0]].seconds / one.least - 1.0) for one in held]
    means = f"{statistics.mean(medians):.1%} against medians, {statistics.mean(leasts):.1%} against the least"
    return f"mean error {means}; largest {max(medians):.1%}, {max(leasts):.1%}, of {len(held)}"


def show_rates(name: str, found: list[Compared]) -> None:
    """Print the mean errors for each rate of the trace: of times, of bytes read and of bytes written."""
    held = [one for one in found if one.is_held_out]
    for every in EVERY:
        columns = [[abs(one.error(every)) for one in held]]
        for which in (0, 1):
            columns.append([abs(e) for one in held if (e := one.bytes_errors(every)[which]) is not None])
        means = " ".join(f"{statistics.mean(column) if column else 0:8.1%}" for column in columns)
        print(f"  {name:<10} one of {every:>7,} {means}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where files are made, in place of another process's memory")
    parser.add_argument("--repeats", type=int, default=5, help="runs per placement")
    parser.add_argument("--only", help="the name of one loop")
    parser.add_argument("--workers", choices=("one", "two", "both"), default="both", help="which runs to compare")
    options = parser.parse_args()
    if options.folder is None:
        require("kinds", missing_fuse())
    print(f"load when it began: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    chosen = [case for case in cases() if options.only in (None, case[0].__name__)]
    found: dict[str, list[Compared]] = {}
    with ExitStack() as stack:
        stack.enter_context(before_others())
        if options.folder is None:
            far = [stack.enter_context(far_folder(*link)) for link in LINKS]
            folder, fast = Folder(far[0].path, far[0].moved), far[1].path
        else:
            folder, fast = Folder(options.folder, None), options.folder
        print(
            "arrays in files; ms: median, least, predicted; error against both; error of bytes read, of bytes written;"
        )
        print("how many times faster than a run an estimate is")
        for case in chosen if options.workers != "two" else ():
            found[case[0].__name__] = compared(case, folder, fast, options.repeats)
            show(case[0].__name__, found[case[0].__name__])
        print("mean errors by iterations traced: time, bytes read, bytes written")
        for name, one in found.items():
            show_rates(name, one)
        if options.workers != "one":
            print("two workers")
            for case in chosen:
                show(case[0].__name__, on_two(case, folder, options.repeats))
    if found:
        print(f"all: {mean_errors([one for own in found.values() for one in own])}")
    print(f"load when it ended: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
