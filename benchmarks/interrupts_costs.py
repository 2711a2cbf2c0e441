"""What looks in loops cost: kernels with them and without, in turns, on one worker."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from statistics import geometric_mean, median
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.interrupted import decay, gauss_seidel, training
from benchmarks.measure import interleaved
from benchmarks.polybench.kernels import KERNELS
from orion.kernel.emit import tile

LEAST = 0.05
"""Seconds that one measurement takes at least: shorter calls are repeated."""

SAMPLES = 2000

Arguments = Callable[[], tuple[Any, ...]]


def scaled_sum(x, y, z):
    for i in range(x.shape[0]):
        z[i] = 2.0 * x[i] + y[i] * z[i]


def squares(x, out):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    out[0] = s


def sgd_mf(R, W, H):
    for (i, j), r in R:
        err = r - W[i] @ H[j]
        wi = W[i].copy()
        W[i] += 0.01 * (err * H[j] - 0.05 * W[i])
        H[j] += 0.01 * (err * wi - 0.05 * H[j])


def rows_times_vector(indptr, indices, values, x, y):
    for i in range(y.shape[0]):
        s = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            s += values[p] * x[indices[p]]
        y[i] = s


def collatz(starts, steps):
    for i in range(starts.shape[0]):
        n, count = starts[i], 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        steps[i] = count


def own_loops() -> dict[str, tuple[Callable[..., object], Arguments]]:
    """Loops beside those of PolyBench."""
    random = np.random.default_rng(0)
    n = 20_000
    keys = (random.integers(0, 2000, 500_000), random.integers(0, 1000, 500_000))
    ratings = orion.sparse(keys, random.random(500_000).astype(np.float32), shape=(2000, 1000))
    factors = [random.random((extent, 32)).astype(np.float32) for extent in (2000, 1000)]
    triples = np.column_stack([random.integers(0, 200, (n, 2)), random.random(n)])
    indptr = np.arange(n + 1) * 16
    indices, values = random.integers(0, n, 16 * n), random.random(16 * n)
    vectors = [random.random(n) for _ in range(3)]
    large = [random.random(2_000_000) for _ in range(3)]
    return {
        "vectors of 20,000": (scaled_sum, lambda: tuple(vectors)),
        "vectors of 2 million": (scaled_sum, lambda: tuple(large)),
        "sum of squares of 20,000": (squares, lambda: (vectors[0], np.zeros(1))),
        "SGD-MF, sparse": (sgd_mf, lambda: (ratings, *factors)),
        "SGD-MF, triples": (training, lambda: (triples, np.ones((200, 32)) / 8, np.ones((200, 32)) / 8, 1)),
        "Gauss-Seidel": (gauss_seidel, lambda: (random.random((500, 500)), 10)),
        "decay": (decay, lambda: (np.ones(1000), 2000)),
        "rows of 16 times a vector": (rows_times_vector, lambda: (indptr, indices, values, vectors[0], vectors[1])),
        "Collatz": (collatz, lambda: (np.arange(1, 20_001), np.zeros(20_000, np.int64))),
    }


def loops() -> dict[str, tuple[Callable[..., object], Arguments]]:
    """All loops by name, with what makes their arguments."""
    found = own_loops()
    for kernel in KERNELS:
        found[kernel.name] = kernel.function, lambda kernel=kernel: tuple(kernel.inputs("small").values())
    return found


@contextmanager
def without_looks() -> Iterator[None]:
    """Kernels that are made meanwhile don't look up in their tiles."""
    kept = tile.with_stops
    tile.with_stops = lambda lines, *_: list(lines)
    try:
        yield
    finally:
        tile.with_stops = kept


def measures(function: Callable[..., object], arguments: tuple[Any, ...]) -> Mapping[str, Callable[[], float]]:
    """The seconds of CPU time of a call with looks and without, after a first call of each. The arguments are the same
    in all calls."""
    contenders = {"with": orion.parallel_for(function), "without": orion.parallel_for(function)}
    contenders["with"](*arguments)
    with without_looks():
        contenders["without"](*arguments)
    once = max(1e-6, cpu_seconds(partial(contenders["with"], *arguments), 3))
    repeats = max(1, int(LEAST / once))
    return {name: partial(cpu_seconds, partial(loop, *arguments), repeats) for name, loop in contenders.items()}


def cpu_seconds(action: Callable[[], object], repeats: int) -> float:
    """The CPU time of an action: other work on the machine counts less in it than in time by the clock."""
    start = process_time()
    for _ in range(repeats):
        action()
    return (process_time() - start) / repeats


def interval(ratios: np.ndarray[Any, Any]) -> tuple[float, float]:
    """What holds 95 % of the medians of samples drawn from the ratios of all rounds."""
    drawn = np.random.default_rng(0).choice(ratios, (SAMPLES, ratios.size))
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
    return float(low), float(high)


def table_of_costs(rounds: int, only: list[str]) -> Table:
    """The times with looks over those without, for each kernel and in all."""
    table = Table("kernel", "ms", "with / without", "95 %")
    found: list[float] = []
    warnings.simplefilter("ignore")
    with orion.session("threads", 1):
        for name, (function, make) in loops().items():
            if only and name not in only:
                continue
            times = interleaved(measures(function, make()), rounds)
            ratios = np.array(times["with"]) / np.array(times["without"])
            low, high = interval(ratios)
            found.append(median(ratios))
            row = (name, f"{1e3 * median(times['with']):.3f}", f"{found[-1]:.4f}", f"{low:.4f} … {high:.4f}")
            table.add_row(*row)
            Console(stderr=True).print(*row)
    if found:
        table.add_row("geometric mean", "", f"{geometric_mean(found):.4f}", "")
    return table
