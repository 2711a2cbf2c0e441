"""Loops whose every iteration needs the one before: Gauss-Seidel and the longest common subsequence.

    python -m benchmarks.wavefront
    python -m benchmarks.wavefront --size 2048 --repeats 9

Serial Numba and Orion on one worker and on two take turns; the figures are medians, with the best beside them. The
results of Orion are compared bit for bit with those of serial Numba.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import interleaved, seconds

SWEEPS = (1, 4, 10, 32)
LETTERS = (4, 26)
WORKERS = (1, 2)


def gauss_seidel(A, sweeps):
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def common_subsequence(L, a, b):
    for i in range(1, L.shape[0]):
        for j in range(1, L.shape[1]):
            if a[i - 1] == b[j - 1]:
                L[i, j] = L[i - 1, j - 1] + 1
            else:
                L[i, j] = max(L[i - 1, j], L[i, j - 1])


def cases(size: int) -> dict[str, tuple[Callable[..., None], Callable[[], tuple[Any, ...]]]]:
    """The loops by title, each with what makes its arguments; the first one is written."""
    random = np.random.default_rng(0)
    grid = random.random((size, size))
    words = {k: (random.integers(0, k, 2 * size), random.integers(0, k, 2 * size)) for k in LETTERS}
    tables = [np.zeros((2 * size + 1, 2 * size + 1), dtype) for dtype in (np.int32, np.int64)]
    found: dict[str, tuple[Callable[..., None], Callable[[], tuple[Any, ...]]]] = {}
    for sweeps in SWEEPS:
        found[f"Gauss-Seidel, {size}², {sweeps} sweeps"] = gauss_seidel, lambda n=sweeps: (grid.copy(), n)
    for letters, pair in words.items():
        for table in tables:
            title = f"common subsequence, {2 * size}², {letters} letters, {table.dtype}"
            found[title] = common_subsequence, lambda table=table, pair=pair: (table.copy(), *pair)
    return found


def times(function: Callable[..., None], make: Callable[[], tuple[Any, ...]], repeats: int) -> dict[str, Any]:
    """Seconds of every repeat by contender, and whether the results are the same bits."""
    serial, parallel = njit(function), orion.parallel_for(function)
    expected = make()
    serial(*expected)
    same = True

    def by_numba() -> float:
        arguments = make()
        return seconds(lambda: serial(*arguments))

    def by_orion(workers: int) -> float:
        nonlocal same
        arguments = make()
        with orion.session(workers=workers):
            parallel(*arguments)  # compiled, and loaded by this session
            same = same and np.array_equal(arguments[0], expected[0])
            again = make()
            return seconds(lambda: parallel(*again))

    contenders = {"serial Numba": by_numba} | {f"Orion x{w}": lambda w=w: by_orion(w) for w in WORKERS}
    return {**interleaved(contenders, repeats), "same": same}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Gauss-Seidel and the longest common subsequence.")
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of the grid (default 4096)")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of each (default 5)")
    parser.add_argument("--only", default="", help="loops whose titles have this in them")
    options = parser.parse_args()
    table = Table(title=f"Chains of dependent iterations, medians (bests) of {options.repeats}")
    ratios = [f"serial/x{w}" for w in WORKERS]
    for head in ("loop", "result", "serial, ms", *(f"Orion x{w}, ms" for w in WORKERS), *ratios):
        table.add_column(head, justify="left" if head in ("loop", "result") else "right")
    chosen = {title: case for title, case in cases(options.size).items() if options.only in title}
    for title, (function, make) in chosen.items():
        found = times(function, make, options.repeats)
        serial, *others = (found[name] for name in ("serial Numba", *(f"Orion x{w}" for w in WORKERS)))
        table.add_row(
            title,
            "same bits" if found["same"] else "WRONG",
            f"{median(serial) * 1e3:.0f}",
            *(f"{median(values) * 1e3:.0f}" for values in others),
            *(f"{median(serial) / median(values):.2f} ({min(serial) / min(values):.2f})" for values in others),
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
