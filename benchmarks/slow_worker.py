"""Two workers, one of them at half speed, and tiles of unequal times: how much of the workers' time is idle.

    python -m benchmarks.slow_worker
    python -m benchmarks.slow_worker --repeats 21

Worker 1 is slowed down by a quota of the processor's time (cgroup v1, as root: two milliseconds in four), which its
thread alone is put under. While a loop is timed its workers have a core each, and nothing else runs there. A worker at
speed s can do s times what one worker does alone, so that

    idle = 1 − (time of one worker) / ((1 + s) × time of two)

with s = 1 where it is not slowed down, else as measured by how much longer it takes for half of an even loop. `best` is
what no schedule of these tiles, none of which is split, can be better than: the time in which all of them end if they
are shared out in parts of any size, or that of the longest one at full speed. One worker, the static and the dynamic
schedule take turns; figures are medians. Results, and those of a replay, are compared bit for bit.

The last line is of one loop, called again and again: worker 1 is slowed down in the calls of the middle third.
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import interleaved, seconds
from benchmarks.requirements import CPU_QUOTAS, missing_quotas, require
from benchmarks.uneven import sweeps, walks

PERIOD_US = 4000
"""A tick of the kernel's clock at 250 Hz: with shorter periods a worker gets less than half of the time. A worker that
is stopped in a tile has others wait for that for half as long at most."""


def epochs(ratings, W, H, step, rounds):
    for _ in range(rounds):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            wi = W[i].copy()
            W[i] += step * err * H[j]
            H[j] += step * err * wi


def cases() -> dict[str, tuple[Callable[..., None], Callable[[], tuple[Any, ...]]]]:
    """The loops by title, each with what makes its arguments: long beside the period of the quota."""
    random = np.random.default_rng(0)
    count = 20_000
    zipf = 10 * np.minimum(random.zipf(1.5, count), 200_000)
    falling = np.sort(zipf)[::-1].copy()
    rising = falling[::-1].copy()
    even = np.full(count, int(zipf.mean()))
    ratings = orion.sparse(
        (random.integers(0, 6000, 4_000_000), random.integers(0, 4000, 4_000_000)), random.random(4_000_000)
    )
    W, H, A = random.random((6000, 16)), random.random((4000, 16)), random.random((2048, 2048))
    return {
        "Zipf, in any order": (walks, lambda: (zipf, np.zeros(count))),
        "Zipf, longest first": (walks, lambda: (falling, np.zeros(count))),
        "Zipf, longest last": (walks, lambda: (rising, np.zeros(count))),
        "even": (walks, lambda: (even, np.zeros(count))),
        "SGD, 4 million ratings, 8 epochs": (epochs, lambda: (ratings, W.copy(), H.copy(), 1e-3, 8)),
        "Gauss-Seidel, 2048², 60 sweeps": (sweeps, lambda: (A.copy(), 60)),
    }


class Brake:
    """A group of threads that get half of a processor each period."""

    def __init__(self) -> None:
        self._folder = CPU_QUOTAS / f"orion-slow-{os.getpid()}"

    def __enter__(self) -> Brake:
        self._folder.mkdir()
        (self._folder / "cpu.shares").write_text("262144")
        (self._folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (self._folder / "cpu.cfs_quota_us").write_text(str(PERIOD_US // 2))
        return self

    def __exit__(self, *_: object) -> None:
        for thread in (self._folder / "tasks").read_text().split():
            (CPU_QUOTAS / "tasks").write_text(thread)
        self._folder.rmdir()

    @contextmanager
    def on(self, threads: list[int]) -> Iterator[None]:
        """These threads are at half speed."""
        for thread in threads:
            (self._folder / "tasks").write_text(str(thread))
        try:
            yield
        finally:
            for thread in threads:
                (CPU_QUOTAS / "tasks").write_text(str(thread))


@contextmanager
def apart(brake: Brake, *, is_slow: bool) -> Iterator[None]:
    """Workers 0 and 1 of this process's session have a core each, which nothing else of the machine runs on while they
    do; `is_slow`: worker 1 has half of one."""
    cores = sorted(os.sched_getaffinity(0))
    others = [one.native_id for one in threading.enumerate() if one.name == "orion-1" and one.native_id]
    before, first = os.sched_getscheduler(0), os.sched_param(1)
    try:
        for thread in others:
            os.sched_setaffinity(thread, cores[1:] or cores)
            if not is_slow:  # quotas are for other threads
                os.sched_setscheduler(thread, os.SCHED_FIFO, first)
        os.sched_setaffinity(0, cores[:1])
        os.sched_setscheduler(0, os.SCHED_FIFO, first)
        with brake.on(others if is_slow else []):
            yield
    finally:
        for thread in (0, *others):
            os.sched_setscheduler(thread, before, os.sched_param(0))
            os.sched_setaffinity(thread, cores)


def slow_speed(repeats: int, brake: Brake) -> float:
    """The speed of a slow worker 1: half of an even loop is its, and takes it longer than the other half takes."""
    function, fresh = cases()["even"]
    static, arguments = orion.parallel_for(function), fresh()
    with orion.session(workers=2):
        static(*arguments)

        def taken(*, is_slow: bool) -> float:
            with apart(brake, is_slow=is_slow):
                return seconds(lambda: static(*arguments))

        return median([taken(is_slow=False) / taken(is_slow=True) for _ in range(repeats)])


def best_share(function: Any, arguments: tuple[Any, ...], speed: float) -> float | None:
    """The least time of two workers as a part of that of one, where the work of each tile is known: that of `walks`
    is its steps."""
    if function.__name__ != "walks":
        return None
    schedule = function.plan(*arguments).schedule()
    work = np.add.reduceat(arguments[0], schedule.bounds[0][:-1])
    return float(max(work.sum() / (1 + speed), work.max()) / work.sum())


def measured(
    function: Callable[..., None], fresh: Callable[[], tuple[Any, ...]], repeats: int, brake: Brake, slow: float
) -> tuple[dict[str, float], dict[str, float | None], bool]:
    """Median seconds by contender, the best shares of dynamic tiles, and whether all bits are the same."""
    static, dynamic = orion.parallel_for(function), orion.parallel_for(schedule="dynamic")(function)
    kept: dict[str, list[bytes]] = {}
    best: dict[str, float | None] = {}

    def run(name: str, chosen: Any, workers: int, *, is_slow: bool) -> float:
        with orion.session(workers=workers):
            chosen(*fresh())  # compiled, and loaded by this session
            arguments = fresh()
            with apart(brake, is_slow=is_slow):
                taken = seconds(lambda: chosen(*arguments))
            if chosen is dynamic:
                best[name] = best_share(chosen, arguments, slow if is_slow else 1.0)
        kept[name] = bits(arguments)
        return taken

    contenders = {
        "one": lambda: run("one", static, 1, is_slow=False),
        "static": lambda: run("static", static, 2, is_slow=False),
        "dynamic": lambda: run("dynamic", dynamic, 2, is_slow=False),
        "static, slow": lambda: run("static, slow", static, 2, is_slow=True),
        "dynamic, slow": lambda: run("dynamic, slow", dynamic, 2, is_slow=True),
    }
    found = {name: median(values) for name, values in interleaved(contenders, repeats).items()}
    arguments = fresh()
    dynamic.replay(dynamic.last_run, *arguments)
    kept["replay"] = bits(arguments)
    return found, best, len({tuple(one) for one in kept.values()}) == 1


def bits(arguments: tuple[Any, ...]) -> list[bytes]:
    """The contents of the arrays among arguments."""
    return [one.tobytes() for one in arguments if isinstance(one, np.ndarray)]


def followed(repeats: int, brake: Brake) -> list[float]:
    """The medians of calls of one loop before worker 1 is slowed down, while it is, and after."""
    function, fresh = cases()["Zipf, in any order"]
    dynamic = orion.parallel_for(schedule="dynamic")(function)
    found = []
    with orion.session(workers=2):
        arguments = fresh()
        dynamic(*arguments)
        for is_slow in (False, True, False):
            with apart(brake, is_slow=is_slow):
                found.append(median([seconds(lambda: dynamic(*arguments)) for _ in range(repeats)]))
    return found


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description="Two workers, one of them at half speed, and unequal tiles.")
    parser.add_argument("--repeats", type=int, default=11, help="measurements of each (default 11)")
    options = parser.parse_args()
    require("slow_worker", missing_quotas())
    columns = ("loop", "bits", "1 worker, ms", "worker 1", "static, ms", "idle", "dynamic, ms", "idle", "best")
    table = Table(*columns, "dynamic / static")
    with Brake() as brake:
        slow = slow_speed(options.repeats, brake)
        for title, (function, fresh) in cases().items():
            found, best, same = measured(function, fresh, options.repeats, brake, slow)
            one = found["one"]
            for speed, suffix in ((1.0, ""), (slow, ", slow")):
                still, taken = found[f"static{suffix}"], found[f"dynamic{suffix}"]
                share = best[f"dynamic{suffix}"]
                idle = [f"{1 - one / ((1 + speed) * time):.1%}" for time in (still, taken)]
                least = "–" if share is None else f"{1 - 1 / ((1 + speed) * share):.1%}"
                middle = [f"{one * 1e3:.1f}", f"{speed:.2f} ×", f"{still * 1e3:.1f}", idle[0]]
                last = [f"{taken * 1e3:.1f}", idle[1], least, f"{taken / still:.3f}"]
                table.add_row(title, "same" if same else "OTHER", *middle, *last)
        calls = followed(options.repeats, brake)
    Console(width=150).print(table)
    print("calls of `Zipf, in any order`, ms: " + ", ".join(f"{one * 1e3:.2f}" for one in calls))


if __name__ == "__main__":
    main()
