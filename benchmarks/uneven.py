"""Loops whose tiles take unequal times, and loops whose tiles do not: tiles that are dealt out, tiles that are taken.

    python -m benchmarks.uneven
    python -m benchmarks.uneven --repeats 21

One worker, two workers with the static schedule and two with `schedule="dynamic"` take turns; the figures are medians.
Idle is the part of the time of two workers in which one has nothing to do, or does other things than the loop's work:
1 − (time of one worker) / (2 × time of two). The results are compared bit for bit with those of one worker.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import interleaved, seconds


def walks(steps, out):
    """Iteration i takes steps[i] steps."""
    for i in range(out.shape[0]):
        x = 0.5
        for _ in range(steps[i]):
            x = 3.7 * x * (1.0 - x)
        out[i] = x


def sgd(ratings, W, H, step):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * err * H[j]
        H[j] += step * err * wi


def sweeps(A, count):
    for _ in range(count):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def cases() -> dict[str, tuple[Callable[..., None], Callable[[], tuple[Any, ...]]]]:
    """The loops by title, each with what makes its arguments."""
    random = np.random.default_rng(0)
    count = 20_000
    zipf = np.minimum(random.zipf(1.5, count), 200_000)
    falling = np.sort(zipf)[::-1].copy()
    even = np.full(count, int(zipf.mean()))
    ratings = orion.sparse(
        (random.integers(0, 6000, 1_000_000), random.integers(0, 4000, 1_000_000)), random.random(1_000_000)
    )
    W, H, A = random.random((6000, 16)), random.random((4000, 16)), random.random((2048, 2048))
    return {
        "Zipf, in any order": (walks, lambda: (zipf, np.zeros(count))),
        "Zipf, longest first": (walks, lambda: (falling, np.zeros(count))),
        "even": (walks, lambda: (even, np.zeros(count))),
        "SGD, a million ratings": (sgd, lambda: (ratings, W.copy(), H.copy(), 1e-3)),
        "Gauss-Seidel, 2048², 10 sweeps": (sweeps, lambda: (A.copy(), 10)),
    }


def times(
    function: Callable[..., None], fresh: Callable[[], tuple[Any, ...]], repeats: int
) -> tuple[dict[str, tuple[float, ...]], bool]:
    """Seconds of every repeat by contender, and whether both schedules give the same bits."""
    static, dynamic = orion.parallel_for(function), orion.parallel_for(schedule="dynamic")(function)
    kept: dict[str, list[bytes]] = {}

    def measured(name: str, chosen: Callable[..., None], workers: int) -> float:
        with orion.session(workers=workers):
            chosen(*fresh())  # compiled, and loaded by this session
            arguments = fresh()
            taken = seconds(lambda: chosen(*arguments))
        kept[name] = [one.tobytes() for one in arguments if isinstance(one, np.ndarray)]
        return taken

    contenders = {
        "one": lambda: measured("one", static, 1),
        "static": lambda: measured("static", static, 2),
        "dynamic": lambda: measured("dynamic", dynamic, 2),
    }
    found = interleaved(contenders, repeats)
    return found, kept["static"] == kept["dynamic"]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Unequal tiles, dealt out and taken.")
    parser.add_argument("--repeats", type=int, default=11, help="measurements of each (default 11)")
    options = parser.parse_args()
    table = Table("loop", "bits", "1 worker, ms", "2 static, ms", "idle", "2 dynamic, ms", "idle", "dynamic / static")
    for title, (function, fresh) in cases().items():
        found, same = times(function, fresh, options.repeats)
        one, static, dynamic = (median(found[name]) for name in ("one", "static", "dynamic"))
        idle = [f"{1 - one / (2 * two):.1%}" for two in (static, dynamic)]
        middle = [f"{one * 1e3:.2f}", f"{static * 1e3:.2f}", idle[0], f"{dynamic * 1e3:.2f}", idle[1]]
        table.add_row(title, "same" if same else "OTHER", *middle, f"{dynamic / static:.3f}")
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
