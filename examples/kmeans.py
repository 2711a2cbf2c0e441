"""k-means by Lloyd's algorithm: every point goes to the nearest centre, every centre to the mean of its points.

    python examples/kmeans.py                                # 200,000 generated points of 16 numbers, 20 centres
    python examples/kmeans.py --points 50000 --clusters 64 --backend ray --workers 2

Points choose their centres independently of each other; sums of points are shared out by their numbers, each worker
adding up some of those of all points in their order, so that results are the same on any number of workers. The plan,
printed before anything runs, says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from live import steps
from numpy.typing import NDArray
from options import add_running_options, non_negative, parsed, whole

import orion

Points = NDArray[np.float64]


@orion.parallel_for
def assign(labels, points, centres):
    inertia = 0.0
    for i in range(points.shape[0]):
        best = np.inf
        chosen = 0
        for k in range(centres.shape[0]):
            d = 0.0
            for j in range(points.shape[1]):
                d += (points[i, j] - centres[k, j]) ** 2
            if d < best:
                best = d
                chosen = k
        labels[i] = chosen
        inertia += best
    return inertia


@orion.parallel_for
def add_up(sums, counts, labels, points):
    for i in range(points.shape[0]):
        counts[labels[i]] += 1
        for j in range(points.shape[1]):
            sums[labels[i], j] += points[i, j]


def generated(count: int, width: int, clusters: int, seed: int) -> Points:
    """Points around centres of their own."""
    rng = np.random.default_rng(seed)
    centres = 6.0 * rng.standard_normal((clusters, width))
    found: Points = centres[rng.integers(0, clusters, count)] + rng.standard_normal((count, width))
    return found


def first_centres(points: Points, clusters: int, seed: int) -> Points:
    """Centres far from each other: each is a point, with a probability by the square of its distance to those before
    (Arthur, Vassilvitskii: *k-means++*, SODA 2007)."""
    rng = np.random.default_rng(seed)
    found = [points[rng.integers(len(points))]]
    distance = ((points - found[0]) ** 2).sum(axis=1)
    for _ in range(clusters - 1):
        found.append(points[rng.choice(len(points), p=distance / distance.sum())])
        distance = np.minimum(distance, ((points - found[-1]) ** 2).sum(axis=1))
    return np.array(found)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="k-means by Lloyd's algorithm.")
    parser.add_argument("--points", type=whole(1), default=200_000, help="(default: %(default)s)")
    parser.add_argument("--width", type=whole(1), default=16, help="numbers of a point (default: %(default)s)")
    parser.add_argument("--clusters", type=whole(1), default=20, help="(default: %(default)s)")
    parser.add_argument("--iterations", type=whole(1), default=50, help="the most of them (default: %(default)s)")
    parser.add_argument(
        "--tolerance",
        type=non_negative,
        default=1e-6,
        help="the gain to stop at, as a share of the inertia (default: %(default)s)",
    )
    add_running_options(parser)
    options = parsed(parser, arguments)
    if options.clusters > options.points:
        parser.error(f"--clusters {options.clusters} is more than --points {options.points}")
    return options


def ending(iterations: int, gain: float, tolerance: float) -> str:
    """How the iterations ended; the gain of the last one is a share of the inertia."""
    if iterations == 1 and gain > tolerance:
        return "not converged: a second iteration is needed to see a gain"
    told = "converged" if gain <= tolerance else "not converged"
    return f"{told} after {iterations} iterations: the gain is {gain:.3g} of the inertia, --tolerance {tolerance:g}"


def run(options: argparse.Namespace) -> tuple[Points, float]:
    points = generated(options.points, options.width, options.clusters, options.seed)
    centres = first_centres(points, options.clusters, options.seed + 1)
    labels, inertia = np.zeros(len(points), np.int64), np.inf
    print(f"{len(points):,} points of {options.width} numbers, {options.clusters} centres")
    with orion.session(options.backend, options.workers):
        print(f"\n{assign.plan(labels, points, centres)}\n")
        print("iteration              inertia          gain   milliseconds")
        for iteration in steps("iterations", options.iterations):
            begin, before = perf_counter(), inertia
            inertia = float(assign(labels, points, centres))
            sums, counts = np.zeros_like(centres), np.zeros(len(centres), np.int64)
            add_up(sums, counts, labels, points)
            centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
            spent, gain = 1e3 * (perf_counter() - begin), before - inertia
            told = f"{gain:12.4g}" if iteration > 1 else " " * 12
            print(f"{iteration:9d}  {inertia:19,.4f}  {told}  {spent:13.2f}", flush=True)
            share = gain / inertia if inertia else 0.0
            if share <= options.tolerance:
                break
    print(f"\n{ending(iteration, share, options.tolerance)}")
    return centres, inertia


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (ValueError, orion.OrionError) as error:
        print(f"kmeans.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
