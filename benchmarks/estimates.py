"""Twelve loops on one and two workers: the time that `plan.estimate` predicts after `f.measure`, next to runs.

    python -m benchmarks.estimates [--repeats N]

`least` and `median` are of the runs. On a machine that is busy a run waits for a core, which a prediction for workers
that have cores of their own has not in it: the least time has least of that, and the time of cores none (with two
workers waiting for each other is in it, so that it is compared with one alone). The ratios at the end of a line say how
many times faster predicting was than the median run: `estimate` alone, and with `measure`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Compared:
    """Seconds: predicted, of each run by the clock and of cores, of an estimate, and of measuring."""

    predicted: float
    runs: tuple[float, ...]
    of_cores: tuple[float, ...]
    estimating: float
    measuring: float


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compared(case: Case, workers: int, repeats: int, seconds: float = 1.0) -> Compared:
    """Measure a function, predict a call, and run it so many times."""
    function, arguments = case
    runs, of_cores = [], []
    with orion.session(workers=workers):
        function(*arguments)  # compiled, so that measuring is not compiling
        function.measure(*arguments, seconds=seconds)  # so are the parts that only this needs
        measuring = timed(lambda: function.measure(*arguments, seconds=seconds))
        plan = function.plan(*arguments)
        found = plan.estimate()
        estimating = statistics.median(timed(plan.estimate) for _ in range(5))
        for _ in range(repeats):
            before = time.process_time()
            runs.append(timed(lambda: function(*arguments)))
            of_cores.append(time.process_time() - before)
    if found.seconds is None:
        raise SystemExit(f"{function.__name__}: {found.unmeasured}")
    return Compared(found.seconds, tuple(runs), tuple(of_cores), estimating, measuring)


def line_of(name: str, workers: int, one: Compared) -> str:
    least, median, core = min(one.runs), statistics.median(one.runs), min(one.of_cores)
    times = " ".join(f"{each * 1e3:9.2f}" for each in (one.predicted, least, median, core))
    off = " ".join(f"{one.predicted / each - 1.0:+9.1%}" for each in (least, median))
    costs = f"{one.estimating * 1e3:9.2f} {one.measuring * 1e3:9.1f}"
    faster = f"{median / one.estimating:.3g}, {median / (one.estimating + one.measuring):.3g}"
    return f"{name:<13} {workers:7} {times} {off} {costs}  {faster}"


def show_mean_errors(found: list[tuple[int, Compared]]) -> None:
    for workers in (1, 2):
        ones = [one for count, one in found if count == workers]
        least = statistics.mean(abs(one.predicted / min(one.runs) - 1.0) for one in ones)
        median = statistics.mean(abs(one.predicted / statistics.median(one.runs) - 1.0) for one in ones)
        text = f"mean error, workers={workers}: {least:.1%} of the least run, {median:.1%} of the median run"
        if workers == 1:
            core = statistics.mean(abs(one.predicted / min(one.of_cores) - 1.0) for one in ones)
            text += f", {core:.1%} of the least time of a core"
        print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=41, help="runs per loop and number of workers")
    options = parser.parse_args()
    print(f"load when it began: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; milliseconds")
    heads = ("predicted", "least", "median", "core", "off least", "off med.", "estimate", "measure")
    print(f"{'loop':<13} workers {' '.join(f'{head:>9}' for head in heads)}  faster")
    found = []
    for case in cases():
        for workers in (1, 2):
            one = compared(case, workers, options.repeats)
            found.append((workers, one))
            print(line_of(case[0].__name__, workers, one), flush=True)
    show_mean_errors(found)
    distances = np.random.default_rng(7).random((1200, 1200))
    print("1,200 rounds, measured with seconds=0.1:")
    print(line_of("shortest", 1, compared((shortest, (distances,)), 1, 3, 0.1)))
    print(f"load when it ended: {os.getloadavg()[0]:.1f}")
    for function, arguments in (case for case in cases() if case[0] in (gauss_seidel, matmul, factorize)):
        with orion.session(workers=2):
            function.measure(*arguments)
            print(f"\n{function.__name__}\n{function.plan(*arguments).scaling()}", flush=True)


if __name__ == "__main__":
    main()
