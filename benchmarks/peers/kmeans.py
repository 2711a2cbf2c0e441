"""k-means by Lloyd's algorithm: the loops of `examples/kmeans.py`, scikit-learn's KMeans and Numba.

    python -m benchmarks.peers.kmeans                    # from the project's folder
    python -m benchmarks.peers.kmeans --only 200000x16x20 --repeats 9

All get the same points and first centres (k-means++, as the example chooses them), move the centres as many times,
and end by finding every point's nearest centre and the sum of the squares of the distances, which has to be the same to
1e-6. scikit-learn does that in `fit` with `tol=0`, and ends earlier where no point changes its centre any more: this
is an error here. `fit` also looks at its arguments and subtracts the mean from a copy of the points, which counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.measure import Measured, machine
from benchmarks.process import ROOT

from .contenders import Contender, in_turns, installed, show, table, threads_of_numba, workers_of_orion

sys.path.insert(0, str(ROOT / "examples"))

from kmeans import Points, add_up, assign, first_centres, generated

Ints = NDArray[np.int64]
CASES = ((200_000, 16, 20), (200_000, 64, 100))  # points, numbers of a point, centres
AGREE = 1e-6  # relative

# ---------------------------------------------------------------- by hand, in Numba


def step(points: Points, centres: Points, labels: Ints, sums: Points, counts: Ints) -> float:
    """One pass over the points as one writes it for Numba: by blocks, each with sums and counts of its own."""
    blocks, n, width = len(sums), points.shape[0], points.shape[1]
    inertia = 0.0
    for b in numba.prange(blocks):
        sums[b] = 0.0
        counts[b] = 0
        part = 0.0
        for i in range(n * b // blocks, n * (b + 1) // blocks):
            best = np.inf
            chosen = 0
            for k in range(centres.shape[0]):
                d = 0.0
                for j in range(width):
                    off = points[i, j] - centres[k, j]
                    d += off * off
                if d < best:
                    best = d
                    chosen = k
            labels[i] = chosen
            part += best
            counts[b, chosen] += 1
            for j in range(width):
                sums[b, chosen, j] += points[i, j]
        inertia += part
    return inertia


REORDERED = {"reassoc", "contract"}  # sums in vectors, by one operation; all of fastmath has no infinity
serial_step = numba.njit(fastmath=REORDERED)(step)
parallel_step = numba.njit(fastmath=REORDERED, parallel=True)(step)

# ---------------------------------------------------------------- the contenders


@dataclass(frozen=True, eq=False)
class Case:
    """Points, the first centres, and how often these move."""

    points: Points
    first: Points
    iterations: int

    @classmethod
    def of_size(cls, count: int, width: int, clusters: int, iterations: int, seed: int) -> Case:
        points = generated(count, width, clusters, seed)
        return cls(points, first_centres(points, clusters, seed + 1), iterations)

    def by_orion(self, iterations: int) -> float:
        """The iterations of `examples/kmeans.py`."""
        centres, labels = self.first, np.zeros(len(self.points), np.int64)
        for _ in range(iterations):
            assign(labels, self.points, centres)
            sums, counts = np.zeros_like(centres), np.zeros(len(centres), np.int64)
            add_up(sums, counts, labels, self.points)
            centres = moved(centres, sums, counts)
        return float(assign(labels, self.points, centres))

    def by_numba(self, one: Callable[..., float], blocks: int) -> float:
        centres, labels = self.first, np.zeros(len(self.points), np.int64)
        sums, counts = np.zeros((blocks, *centres.shape)), np.zeros((blocks, len(centres)), np.int64)
        for _ in range(self.iterations):
            one(self.points, centres, labels, sums, counts)
            centres = moved(centres, sums.sum(axis=0), counts.sum(axis=0))
        return one(self.points, centres, labels, sums, counts)

    def by_sklearn(self) -> float:
        from sklearn.cluster import KMeans

        model = KMeans(
            len(self.first), init=self.first, n_init=1, max_iter=self.iterations, tol=0.0, algorithm="lloyd"
        ).fit(self.points)
        if model.n_iter_ != self.iterations:
            raise SystemExit(f"scikit-learn ends after {model.n_iter_} iterations: ask for no more than these")
        return float(model.inertia_)

    def contenders(self) -> Iterator[Contender]:
        does = f"{self.iterations} iterations: two loops, distances as they are written"
        for workers in (1, 2):
            within = partial(workers_of_orion, workers, partial(self.by_orion, 1))
            yield Contender("Orion", workers, partial(self.by_orion, self.iterations), does, within)
        does = f"{self.iterations} iterations by hand: one loop, distances as they are written"
        yield Contender("Numba", 1, partial(self.by_numba, serial_step, 1), does)
        within = partial(threads_of_numba, 2)
        yield Contender("Numba prange", 2, partial(self.by_numba, parallel_step, 2), does, within)
        if not (installed("sklearn", "scikit-learn") and installed("threadpoolctl", "threadpoolctl")):
            return
        from threadpoolctl import threadpool_limits

        does = f"fit, {self.iterations} iterations: distances by matrix products (BLAS) of 256 points each"
        for workers in (1, 2):
            yield Contender("scikit-learn", workers, self.by_sklearn, does, partial(threadpool_limits, workers))


def moved(centres: Points, sums: Points, counts: Ints) -> Points:
    """The means of the points of each centre; a centre without points stays."""
    found: Points = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    return found


# ---------------------------------------------------------------- the command


def compared(size: tuple[int, int, int], options: argparse.Namespace) -> tuple[list[Measured], Table]:
    case = Case.of_size(*size, options.iterations, options.seed)
    contenders = list(case.contenders())
    inertias = {one.title: one.result() for one in contenders}
    expected = inertias["Numba ×1"]
    for title, inertia in inertias.items():
        if abs(inertia - expected) > AGREE * expected:
            raise SystemExit(f"{title} finds {inertia!r}, Numba {expected!r}: not the same to {AGREE}")
    measured = in_turns(name_of(size), contenders, options.repeats)
    title = "k-means of {:,} points of {} numbers, {} centres".format(*size)
    shown = {title: f"{inertia:.9g}" for title, inertia in inertias.items()}
    return measured, table(f"{title}; medians of {options.repeats}", measured, "inertia", shown)


def name_of(size: Sequence[int]) -> str:
    return "x".join(map(str, size))


def parse() -> argparse.Namespace:
    names = [name_of(size) for size in CASES]
    parser = argparse.ArgumentParser(description="k-means by Orion, scikit-learn and Numba.")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="SIZE", help=", ".join(names))
    parser.add_argument("--iterations", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="measurements of each contender")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.iterations < 1 or options.repeats < 1:
        parser.error("iterations and repeats must be 1 at least")
    return options


def main() -> None:
    options, before = parse(), machine()
    found = [compared(size, options) for size in CASES if name_of(size) in options.only]
    show("kmeans", [one for _, one in found], [each for measured, _ in found for each in measured], before)


if __name__ == "__main__":
    main()
