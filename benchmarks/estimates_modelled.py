"""Predicted times of more workers than there are cores: four of them, by quota, and a curve up to 1,024.

    python -m benchmarks.estimates_modelled [--repeats N]

Twelve loops of 20 to 300 ms are measured with `f.measure` on two workers, predicted for four, and run on four threads,
each of which gets about half of a core (a cgroup of its own, version 1, wants root). How much it gets is measured
before each loop: four threads in these groups compute for a while. That share of a run's time is the time of four
workers with cores of their own, as far as these are not slowed down by what they share. A thread that has had its
millisecond waits for the next one, which a loop whose tiles wait for each other feels more than others.

Then weak scaling: with twice the workers there is twice the work, and the part of the time on one worker that is left
of the time on all is told, predicted by what was measured on two; runs are those of one worker, of two, and of four by
quota.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import orion
from benchmarks.estimates import (
    collatz,
    dot,
    factorize,
    gauss_seidel,
    gradient,
    jacobi,
    matmul,
    matvec,
    scale,
    shortest,
    subsequence,
    timed,
    triangle,
)
from benchmarks.requirements import CPU_QUOTAS, missing_quotas, require

PERIOD_US, WORKERS = 2000, 4
SHARE_SECONDS = 1.0
"""For so long threads compute to see how much of a core they get."""

MOST = 1024
FAST = 64
"""Up to so many workers a curve is told at every power of two, beyond at every fourth."""


@contextmanager
def half_a_core_each(workers: int) -> Iterator[list[Path]]:
    """Each thread of this process's session, the calling one among them, has half of a core: the groups."""
    names = {f"orion-{number}" for number in range(1, workers)}
    threads = [threading.get_native_id(), *(one.native_id or 0 for one in threading.enumerate() if one.name in names)]
    groups = [CPU_QUOTAS / f"orion-estimates-{os.getpid()}-{number}" for number in range(len(threads))]
    with ExitStack() as stack:
        for group, thread in zip(groups, threads, strict=True):
            group.mkdir()
            stack.callback(group.rmdir)
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(PERIOD_US // 2))
            (group / "tasks").write_text(str(thread))
            stack.callback((CPU_QUOTAS / "tasks").write_text, str(thread))
        yield groups


def share_of_a_core(groups: list[Path]) -> float:
    """The part of a core that a thread gets which computes all the time, of one in each group."""
    found, data = [], bytes(1 << 26)

    def compute(group: Path) -> None:
        (group / "tasks").write_text(str(threading.get_native_id()))
        start, before = time.perf_counter(), time.thread_time()
        while (wall := time.perf_counter() - start) < SHARE_SECONDS:
            hashlib.sha256(data)  # without the interpreter's lock, for tens of milliseconds
        found.append((time.thread_time() - before) / wall)

    threads = [threading.Thread(target=compute, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.mean(found)


def cases() -> dict[Any, Callable[[], tuple[Any, ...]]]:
    """The loops, each with what makes its arguments."""
    rng = np.random.default_rng(7)

    def ratings() -> orion.SparseArray:
        keys = rng.integers(0, 6000, 2_000_000), rng.integers(0, 4000, 2_000_000)
        return orion.sparse(keys, rng.random(2_000_000), shape=(6000, 4000))

    return {
        scale: lambda: (rng.random(40_000_000), np.zeros(40_000_000)),
        dot: lambda: (rng.random(60_000_000), rng.random(60_000_000)),
        matvec: lambda: (rng.random((8000, 8000)), rng.random(8000), np.zeros(8000)),
        matmul: lambda: (rng.random((1000, 1000)), rng.random((1000, 1000)), np.zeros((1000, 1000))),
        jacobi: lambda: (rng.random((800, 800)), np.zeros((800, 800)), 200),
        gauss_seidel: lambda: (rng.random((1500, 1500)), 40),
        shortest: lambda: (rng.random((600, 600)),),
        triangle: lambda: (rng.random(8000), np.zeros(8000)),
        collatz: lambda: (np.zeros(1_000_000, np.int64),),
        gradient: lambda: (rng.random((600_000, 64)), rng.random(600_000), np.zeros(64), np.zeros(64)),
        factorize: lambda: (ratings(), rng.random((6000, 16)), rng.random((4000, 16)), 1e-4),
        subsequence: lambda: (rng.integers(0, 4, 6000), rng.integers(0, 4, 6000), np.zeros((6001, 6001), np.int64)),
    }


def predicted(function: Any, arguments: tuple[Any, ...], workers: int) -> float:
    found = function.plan(*arguments).estimate(workers=workers)
    if found.seconds is None:
        raise SystemExit(f"{function.__name__}: {found.unmeasured}")
    return float(found.seconds)


def run_by_quota(function: Any, arguments: tuple[Any, ...], repeats: int) -> tuple[list[float], float]:
    """The seconds that runs on four threads would take if each had a core, and the share of one that each has."""
    with orion.session(workers=WORKERS):
        function(*arguments)
        with half_a_core_each(WORKERS) as groups:
            share = share_of_a_core(groups)
            return [share * timed(lambda: function(*arguments)) for _ in range(repeats)], share


def show_by_quota(repeats: int) -> None:
    print(f"{WORKERS} workers by quota; milliseconds, load {os.getloadavg()[0]:.1f}")
    print(f"{'loop':<13} predicted     least    median  off least  off med.  share of a core")
    errors = []
    for function, fresh in cases().items():
        arguments = fresh()
        with orion.session(workers=2):
            function(*arguments)
            function.measure(*arguments)
            seconds = predicted(function, arguments, WORKERS)
        runs, share = run_by_quota(function, arguments, repeats)
        of_least, of_median = (seconds / one - 1 for one in (min(runs), statistics.median(runs)))
        errors.append((abs(of_least), abs(of_median)))
        times = " ".join(f"{1e3 * one:9.2f}" for one in (seconds, min(runs), statistics.median(runs)))
        print(f"{function.__name__:<13} {times} {of_least:+10.1%} {of_median:+9.1%} {share:16.2f}", flush=True)
    least, median = (statistics.mean(one) for one in zip(*errors, strict=True))
    print(f"mean error: {least:.1%} of the least run, {median:.1%} of the median run")


# ---------------------------------------------------------------- weak scaling


def growing() -> dict[Any, Callable[[int], tuple[Any, ...]]]:
    """Loops, each with what makes its arguments for so many workers. Arrays for many workers are never looked at."""

    def side(of_one: int, workers: int) -> int:
        return round(of_one * workers**0.5)

    return {
        matmul: lambda w: (np.empty((300 * w, 300)), np.ones((300, 300)), np.empty((300 * w, 300))),
        gauss_seidel: lambda w: (np.empty((side(800, w), side(800, w))), 20),
        dot: lambda w: (np.empty(1_000_000 * w), np.empty(1_000_000 * w)),
    }


def ran(function: Any, arguments: tuple[Any, ...], workers: int, repeats: int) -> float | None:
    """The median seconds of runs, by quota on four workers; None on more."""
    if workers > WORKERS:
        return None
    for one in arguments:
        if isinstance(one, np.ndarray):
            one[...] = 1.0
    if workers == WORKERS:
        return statistics.median(run_by_quota(function, arguments, repeats)[0])
    with orion.session(workers=workers):
        function(*arguments)
        return statistics.median(timed(lambda: function(*arguments)) for _ in range(repeats))


def show_weak_scaling(repeats: int) -> None:
    counts = [1 << k for k in range(MOST.bit_length()) if 1 << k <= FAST or k % 2 == 0]
    for function, made in growing().items():
        print(
            f"\n{function.__name__}, as much work for each worker\nworkers predicted, ms  efficiency  run, ms      off"
        )
        with orion.session(workers=2):
            measured = made(2)
            for one in measured:
                if isinstance(one, np.ndarray):
                    one[...] = 1.0
            function(*measured)
            function.measure(*measured)
        first = 0.0
        for workers in counts:
            arguments = made(workers)
            with orion.session(workers=2):
                seconds = predicted(function, arguments, workers)
            first = first or seconds
            took = ran(function, arguments, workers, repeats)
            of_run = "" if took is None else f"{1e3 * took:8.2f} {seconds / took - 1:+8.1%}"
            print(f"{workers:7,} {1e3 * seconds:13.2f} {first / seconds:11.1%} {of_run}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, help="runs per loop")
    options = parser.parse_args()
    require("estimates", missing_quotas())
    show_by_quota(options.repeats)
    show_weak_scaling(options.repeats)


if __name__ == "__main__":
    main()
