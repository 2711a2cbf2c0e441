"""Twelve loops on one and two workers: the time that `plan.estimate` predicts after `f.measure`, next to runs.

    python -m benchmarks.estimates [--repeats N] [--curve]

`least` and `median` are of the runs. On a machine that is busy a run waits for a core, which a prediction for workers
that have cores of their own has not in it: the least time has least of that. The ratios at the end of a line say how
many times faster predicting was than the median run: `estimate` alone, and with `measure`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import orion

Case = tuple[Any, tuple[Any, ...]]


@orion.parallel_for
def scale(a, b):
    for i in range(a.shape[0]):
        b[i] = np.sqrt(a[i]) + 0.5 * a[i]


@orion.parallel_for
def dot(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@orion.parallel_for
def matvec(m, x, y):
    for i in range(m.shape[0]):
        y[i] = m[i] @ x


@orion.parallel_for
def matmul(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@orion.parallel_for
def jacobi(a, b, rounds):
    for _ in range(rounds):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = b[i, j]


@orion.parallel_for
def gauss_seidel(a, sweeps):
    for _ in range(sweeps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


@orion.parallel_for
def shortest(d):
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


@orion.parallel_for
def triangle(a, out):
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(i):
            total += np.exp(-abs(a[i] - a[j]))
        out[i] = total


@orion.parallel_for
def collatz(steps):
    for i in range(1, steps.shape[0]):
        n = i
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        steps[i] = count


@orion.parallel_for
def gradient(x, y, w, g):
    for s in range(x.shape[0]):
        e = x[s] @ w - y[s]
        for f in range(x.shape[1]):
            g[f] += e * x[s, f]


@orion.parallel_for
def factorize(ratings, W, H, step):
    for (i, j), r in ratings:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += step * (err * H[j])
        H[j] += step * (err * wi)


@orion.parallel_for
def subsequence(a, b, table):
    for i in range(1, table.shape[0]):
        for j in range(1, table.shape[1]):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])


def cases() -> list[Case]:
    """Twelve functions with arguments for which a run takes some milliseconds."""
    rng = np.random.default_rng(7)
    line, square = rng.random(2_000_000), rng.random((300, 300))
    letters = rng.integers(0, 4, 1500), rng.integers(0, 4, 1500)
    keys = rng.integers(0, 2000, 100_000), rng.integers(0, 1500, 100_000)
    ratings = orion.sparse(keys, rng.random(100_000), shape=(2000, 1500))
    wide = rng.random((20_000, 64))
    return [
        (scale, (line, np.zeros_like(line))),
        (dot, (line, line.copy())),
        (matvec, (rng.random((2000, 2000)), rng.random(2000), np.zeros(2000))),
        (matmul, (square, square.copy(), np.zeros((300, 300)))),
        (jacobi, (rng.random((400, 400)), np.zeros((400, 400)), 100)),
        (gauss_seidel, (rng.random((600, 600)), 20)),
        (shortest, (rng.random((250, 250)),)),
        (triangle, (rng.random(2000), np.zeros(2000))),
        (collatz, (np.zeros(60_000, np.int64),)),
        (gradient, (wide, rng.random(20_000), np.zeros(64), np.zeros(64))),
        (factorize, (ratings, rng.random((2000, 16)), rng.random((1500, 16)), 1e-4)),
        (subsequence, (*letters, np.zeros((1501, 1501), np.int64))),
    ]


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compared(case: Case, workers: int, repeats: int) -> tuple[float, float, float, float, float]:
    """Seconds: predicted, of the least and the median run, of an estimate, and of measuring."""
    function, arguments = case
    with orion.session(workers=workers):
        function(*arguments)  # compiled, so that measuring is not compiling
        measuring = timed(lambda: function.measure(*arguments))
        measuring = min(measuring, timed(lambda: function.measure(*arguments)))
        plan = function.plan(*arguments)
        found = plan.estimate()
        estimating = statistics.median(timed(plan.estimate) for _ in range(5))
        runs = [timed(lambda: function(*arguments)) for _ in range(repeats)]
    if found.seconds is None:
        raise SystemExit(f"{function.__name__}: {found.unmeasured}")
    return found.seconds, min(runs), statistics.median(runs), estimating, measuring


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=41, help="runs per loop and number of workers")
    parser.add_argument("--curve", action="store_true", help="also the predicted times up to 1,024 workers")
    options = parser.parse_args()
    print(f"load when it began: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; milliseconds")
    print(f"{'loop':<13} workers predicted    least   median  error of least, of median  estimate measure  faster")
    errors: list[tuple[float, float]] = []
    for case in cases():
        for workers in (1, 2):
            predicted, least, median, estimating, measuring = compared(case, workers, options.repeats)
            off = predicted / least - 1.0, predicted / median - 1.0
            errors.append((abs(off[0]), abs(off[1])))
            times = f"{predicted * 1e3:9.2f} {least * 1e3:8.2f} {median * 1e3:8.2f}"
            costs = f"{estimating * 1e3:8.2f} {measuring * 1e3:8.1f}"
            faster = f"{median / estimating:.3g}, {median / (estimating + measuring):.3g}"
            print(
                f"{case[0].__name__:<13} {workers:7} {times} {off[0]:+14.1%} {off[1]:+11.1%}  {costs}  {faster}",
                flush=True,
            )
    of_least, of_median = (statistics.mean(part) for part in zip(*errors, strict=True))
    print(f"mean error: {of_least:.1%} of the least run, {of_median:.1%} of the median run")
    print(f"load when it ended: {os.getloadavg()[0]:.1f}")
    if options.curve:
        for function, arguments in (case for case in cases() if case[0] in (gauss_seidel, matmul, factorize)):
            with orion.session(workers=2):
                function.measure(*arguments)
                print(f"\n{function.__name__}\n{function.plan(*arguments).scaling()}", flush=True)


if __name__ == "__main__":
    main()
