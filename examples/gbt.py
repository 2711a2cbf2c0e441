"""Gradient-boosted trees by histograms, as LightGBM and xgboost (`hist`) grow them.

    python examples/gbt.py                                        # 200,000 generated rows of 28 features, 50 trees
    python examples/gbt.py --objective regression --trees 100
    python examples/gbt.py --data train.tsv --test test.tsv --picture curve.svg
    python examples/gbt.py --backend ray --workers 2

Every feature is cut into at most 256 bins. A tree grows leaf by leaf, the best split first: the rows of a leaf are
partitioned in place, the histograms of gradients of the smaller child are summed up, those of its sibling are what is
left of the parent's, and of both children the best split of each feature is kept. That is one loop over the features,
which are independent of each other; within a feature, sums are added up in the order of the rows. So the trees are the
same, to the bit, on any number of workers. Of equal gains the first feature and the lowest bin win. The plans, printed
before anything runs, say what is parallel: partitioning is not, and takes about a tenth of the time.

Friedman: *Greedy function approximation: a gradient boosting machine*, Annals of Statistics 29, 2001. Ke et al.:
*LightGBM: a highly efficient gradient boosting decision tree*, NIPS 2017.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from gbt_data import LEAST, Rows, auc, generated, labels_for, read_rows
from live import steps
from numpy.typing import NDArray
from options import add_running_options, non_negative, parsed, picture_file, positive, whole
from pictures import save_curves

import orion

BINS = 256
SAMPLE = 200_000
"""The rows from which the bounds of bins are taken."""

Floats = NDArray[np.float64]


# ---------------------------------------------------------------- loops


@orion.parallel_for
def find_bins(bins, features, cuts, counts):
    for f in range(bins.shape[0]):
        for i in range(bins.shape[1]):
            x = features[i, f]
            low = 0
            high = counts[f]
            while low < high:
                middle = (low + high) // 2
                if x <= cuts[f, middle]:
                    high = middle
                else:
                    low = middle + 1
            bins[f, i] = low


@orion.parallel_for
def binary_slopes(slopes, rows, scores, labels):
    total_g, total_h = 0.0, 0.0
    for i in range(len(rows)):
        p = 1.0 / (1.0 + np.exp(-scores[i]))
        slopes[i, 0] = p - labels[i]
        slopes[i, 1] = p * (1.0 - p)
        rows[i] = i
        total_g += slopes[i, 0]
        total_h += slopes[i, 1]
    return total_g, total_h


@orion.parallel_for
def squared_slopes(slopes, rows, scores, labels):
    total = 0.0
    for i in range(len(rows)):
        slopes[i, 0] = scores[i] - labels[i]
        slopes[i, 1] = 1.0
        rows[i] = i
        total += slopes[i, 0]
    return total, float(len(rows))


@orion.parallel_for
def partition(rows, slopes, other_rows, other_slopes, bins, split):
    first, end, feature, place = split[0], split[1], split[2], split[3]
    n = first
    m = 0
    for k in range(first, end):
        i = rows[k]
        g = slopes[k, 0]
        h = slopes[k, 1]
        rows[n] = i  # written on both sides, and kept on one: a processor cannot guess which
        slopes[n, 0] = g
        slopes[n, 1] = h
        other_rows[m] = i
        other_slopes[m, 0] = g
        other_slopes[m, 1] = h
        goes_left = 1 if bins[feature, i] <= place else 0
        n += goes_left
        m += 1 - goes_left
    for k in range(m):
        rows[n + k] = other_rows[k]
        slopes[n + k, 0] = other_slopes[k, 0]
        slopes[n + k, 1] = other_slopes[k, 1]
    return n


@orion.parallel_for
def best_splits(H, gains, places, totals, bins, rows, slopes, at, limits):
    first, end, small, large = at[0], at[1], at[2], at[3]
    # Two features at a time: rows and slopes are read once for both.
    for pair in range(bins.shape[0] // 2):
        one = 2 * pair
        two = 2 * pair + 1
        for b in range(H.shape[2]):
            H[small, one, b, 0] = 0.0
            H[small, one, b, 1] = 0.0
            H[small, two, b, 0] = 0.0
            H[small, two, b, 1] = 0.0
        for k in range(first, end):
            i = rows[k]
            g = slopes[k, 0]
            h = slopes[k, 1]
            b = bins[one, i]
            c = bins[two, i]
            H[small, one, b, 0] += g
            H[small, one, b, 1] += h
            H[small, two, c, 0] += g
            H[small, two, c, 1] += h
        for side in range(2):
            f = 2 * pair + side
            if large != small:
                for b in range(H.shape[2]):
                    H[large, f, b, 0] -= H[small, f, b, 0]
                    H[large, f, b, 1] -= H[small, f, b, 1]
            for child in range(2):
                leaf = at[2 + child]
                total_g, total_h = totals[leaf, 0], totals[leaf, 1]
                least = max(limits[1], limits[2] * total_h / totals[leaf, 2])
                left_g, left_h, best, where = 0.0, 0.0, 0.0, -1
                for b in range(H.shape[2] - 1):
                    left_g += H[leaf, f, b, 0]
                    left_h += H[leaf, f, b, 1]
                    right_h = total_h - left_h
                    if left_h >= least and right_h >= least:
                        right_g = total_g - left_g
                        gain = left_g * left_g / (left_h + limits[0]) + right_g * right_g / (right_h + limits[0])
                        if gain > best:
                            best = gain
                            where = b
                gains[leaf, f] = best - total_g * total_g / (total_h + limits[0])
                places[leaf, f] = where


@orion.parallel_for
def add_leaves(scores, rows, first, end, values):
    for leaf in range(len(values)):
        for k in range(first[leaf], end[leaf]):
            scores[rows[k]] += values[leaf]


@orion.parallel_for
def predict(scores, bins, feature, place, left, right, values):
    for i in range(bins.shape[1]):
        for tree in range(feature.shape[0]):
            node = 0
            while left[tree, node] > 0:
                if bins[feature[tree, node], i] <= place[tree, node]:
                    node = left[tree, node]
                else:
                    node = right[tree, node]
            scores[i] += values[tree, node]


# ---------------------------------------------------------------- trees


@dataclass(frozen=True)
class Options:
    """`least_rows` of a leaf are estimated from the sums of second derivatives, as LightGBM does."""

    trees: int = 50
    leaves: int = 31
    rate: float = 0.1
    ridge: float = 0.0
    least_rows: int = 20
    least_slope: float = 1e-3
    objective: str = "binary"


@dataclass(frozen=True)
class Bins:
    """Where each feature is cut: row f of `cuts` has `counts[f]` bounds, ascending; a value goes into the first bin
    whose bound it does not exceed. What is not a number goes into the last one."""

    cuts: Floats
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, features: Floats) -> Bins:
        """Bounds between distinct values where a feature has at most 255 of them, else quantiles of up to 200,000 of
        its values."""
        cuts = np.full((features.shape[1], BINS - 1), np.inf)
        counts = np.zeros(features.shape[1], np.int64)
        step = -(-len(features) // SAMPLE)
        for f, column in enumerate(features[::step].T):
            values, frequency = np.unique(column[~np.isnan(column)], return_counts=True)
            if len(values) >= BINS:
                wanted = np.arange(1, BINS) * (frequency.sum() / BINS)
                values = values[np.unique(np.searchsorted(np.cumsum(frequency), wanted))]
                bounds = values[: BINS - 1]
            else:
                bounds = (values[1:] + values[:-1]) / 2
            cuts[f, : len(bounds)], counts[f] = bounds, len(bounds)
        return cls(cuts, counts)

    def __call__(self, features: Floats) -> NDArray[np.uint8]:
        """The bins of all values, feature by feature."""
        found = np.empty(features.shape[::-1], np.uint8)
        find_bins(found, features, self.cuts, self.counts)
        return found


@dataclass
class Forest:
    """Trees as arrays: node n of tree t has children `left[t, n]` and `right[t, n]`, 0 where it is a leaf, and goes to
    the left where the bin of `feature[t, n]` is at most `place[t, n]`."""

    feature: NDArray[np.int32]
    place: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: Floats
    start: float = 0.0
    grown: int = 0

    @classmethod
    def empty(cls, options: Options) -> Forest:
        shape = options.trees, 2 * options.leaves - 1
        return cls(*(np.zeros(shape, np.int32) for _ in range(4)), np.zeros(shape))

    def add_to(self, scores: Floats, bins: NDArray[np.uint8], trees: slice) -> None:
        """Add what some trees say to the scores of rows, given as bins."""
        parts = (self.feature, self.place, self.left, self.right, self.values)
        predict(scores, bins, *(part[trees] for part in parts))

    def scores(self, bins: NDArray[np.uint8]) -> Floats:
        """The sum over all trees: log odds, or the predicted number."""
        found = np.full(bins.shape[1], self.start)
        self.add_to(found, bins, slice(0, self.grown))
        return found


class Grower:
    """Grows trees on rows whose features are bins. What it needs is made once."""

    def __init__(self, bins: NDArray[np.uint8], labels: Floats, options: Options) -> None:
        if len(bins) % 2:  # a feature of one value has no split
            bins = np.concatenate([bins, np.zeros_like(bins[:1])])
        features, count = bins.shape
        self.bins, self.labels, self.options = bins, labels, options
        self.rows, self.slopes = np.empty(count, np.int32), np.empty((count, 2), np.float32)
        self.other = np.empty(count, np.int32), np.empty((count, 2), np.float32)
        self.H = np.zeros((options.leaves, features, BINS, 2))
        self.gains, self.places = np.zeros((options.leaves, features)), np.zeros((options.leaves, features), np.int64)
        self.totals = np.zeros((options.leaves, 3))
        self.first, self.end = np.zeros(options.leaves, np.int64), np.zeros(options.leaves, np.int64)
        self.at, self.split = np.zeros(4, np.int64), np.zeros(4, np.int64)
        self.limits = np.array([options.ridge, options.least_slope, options.least_rows])
        self.forest = Forest.empty(options)
        self.forest.start = self._start()
        self.scores = np.full(count, self.forest.start)

    def _start(self) -> float:
        mean = float(self.labels.mean())
        if self.options.objective != "binary":
            return mean
        mean = min(max(mean, 1e-15), 1 - 1e-15)
        return float(np.log(mean / (1.0 - mean)))

    def slopes_loop(self) -> tuple[Any, tuple[Any, ...]]:
        """The loop that computes the derivatives of the loss, with its arguments."""
        loop = binary_slopes if self.options.objective == "binary" else squared_slopes
        return loop, (self.slopes, self.rows, self.scores, self.labels)

    def partition_arguments(self) -> tuple[Any, ...]:
        return (self.rows, self.slopes, *self.other, self.bins, self.split)

    def splits_arguments(self) -> tuple[Any, ...]:
        return (self.H, self.gains, self.places, self.totals, self.bins, self.rows, self.slopes, self.at, self.limits)

    def grow(self) -> None:
        """Grow one more tree, and add it to the scores."""
        loop, arguments = self.slopes_loop()
        self.totals[0] = *loop(*arguments), len(self.rows)
        self.first[0], self.end[0] = 0, len(self.rows)
        self.at[:] = 0, len(self.rows), 0, 0
        best_splits(*self.splits_arguments())
        nodes = [0]
        while len(nodes) < self.options.leaves:
            found = self.gains[: len(nodes)]
            leaf, feature = divmod(int(found.argmax()), found.shape[1])
            if found[leaf, feature] <= 0.0:
                break
            self._split(nodes, leaf, feature)
        tree = self.forest.grown
        g, h, _ = self.totals[: len(nodes)].T
        values = -self.options.rate * g / np.maximum(h + self.options.ridge, 1e-300)
        self.forest.values[tree, nodes] = values
        self.forest.grown += 1
        add_leaves(self.scores, self.rows, self.first[: len(nodes)], self.end[: len(nodes)], values)

    def _split(self, nodes: list[int], leaf: int, feature: int) -> None:
        """Split a leaf, which becomes the left child; the right one is a new leaf. `nodes` are the nodes of leaves."""
        place, new, first, end = int(self.places[leaf, feature]), len(nodes), self.first[leaf], self.end[leaf]
        self.split[:] = first, end, feature, place
        middle = partition(*self.partition_arguments())
        g, h = self.H[leaf, feature, : place + 1].sum(axis=0)
        self.totals[new] = self.totals[leaf] - (g, h, middle - first)
        self.totals[leaf] = g, h, middle - first
        self.first[new], self.end[new], self.end[leaf] = middle, end, middle
        small, large = (leaf, new) if middle - first <= end - middle else (new, leaf)
        if large == new:  # the histograms of the parent stay where it was: they become those of the larger child
            self.H[new] = self.H[leaf]
        self.at[:] = self.first[small], self.end[small], small, large
        best_splits(*self.splits_arguments())
        forest, tree, node = self.forest, self.forest.grown, nodes[leaf]
        forest.feature[tree, node], forest.place[tree, node] = feature, place
        forest.left[tree, node], forest.right[tree, node] = 2 * new - 1, 2 * new
        nodes[leaf] = 2 * new - 1
        nodes.append(2 * new)


def loss(scores: Floats, labels: Floats, objective: str) -> float:
    """The mean of log loss, or of squared errors."""
    if objective == "binary":
        return float(np.logaddexp(0.0, np.where(labels > 0, -scores, scores)).mean())
    return float(((scores - labels) ** 2).mean())


# ---------------------------------------------------------------- the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Gradient-boosted trees by histograms.")
    parser.add_argument("--objective", choices=("binary", "regression"), default="binary")
    parser.add_argument("--rows", type=whole(LEAST), default=200_000, help="generated rows (default: %(default)s)")
    parser.add_argument("--features", type=whole(1), default=28, help="of generated rows (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="train on a file: per line a label, then features, between tabs")
    parser.add_argument("--test", type=Path, help="test on a file of the same form, rather than on a tenth of the rows")
    parser.add_argument("--trees", type=whole(1), default=50, help="(default: %(default)s)")
    parser.add_argument("--leaves", type=whole(2), default=31, help="the most of a tree (default: %(default)s)")
    parser.add_argument("--rate", type=positive, default=0.1, help="the learning rate (default: %(default)s)")
    parser.add_argument("--ridge", type=non_negative, default=0.0, help="L2 penalty of leaves (default: %(default)s)")
    parser.add_argument("--least-rows", type=whole(0), default=20, help="of a leaf (default: %(default)s)")
    parser.add_argument("--picture", type=picture_file(".svg"), help="write the curves of the loss to an SVG file")
    add_running_options(parser)
    options = parsed(parser, arguments)
    if options.test is not None and options.data is None:
        parser.error("--test needs --data")
    return options


def data_of(options: argparse.Namespace) -> tuple[Rows, Rows]:
    """The rows to train on, and those to test on."""
    rows = read_rows(options.data) if options.data else generated(options.rows, options.features, options.seed)
    if options.data is None:
        rows = labels_for(options.objective, rows)
    test = read_rows(options.test) if options.test else None
    if test is not None and test.features.shape[1] != rows.features.shape[1]:
        raise ValueError(f"{options.test} has {test.features.shape[1]} features, not {rows.features.shape[1]}")
    for part, path in ((rows, options.data), (test, options.test)):
        if options.objective == "binary" and part is not None and not np.isin(part.labels, (0.0, 1.0)).all():
            raise ValueError(f"{path}: labels must be 0 or 1; --objective regression takes any numbers")
    if test is not None:
        return rows, test
    if len(rows.labels) < LEAST:
        told = f"{options.data} has {len(rows.labels)} rows, and a tenth is tested on: {LEAST} are needed"
        raise ValueError(f"{told}, or others to test on (--test)")
    return rows.parted(options.seed)


@dataclass
class Trained:
    forest: Forest
    bins: Bins
    train: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)


def run(options: argparse.Namespace) -> Trained:
    rows, test = data_of(options)
    count, width = rows.features.shape
    print(f"{count:,} rows of {width} features, {len(test.labels):,} to test on")
    is_binary = options.objective == "binary"
    if is_binary and test.labels.min() == test.labels.max():
        print(f"all rows to test on have label {test.labels[0]:g}: there is no AUC")
    wanted = Options(
        options.trees, options.leaves, options.rate, options.ridge, options.least_rows, objective=options.objective
    )
    with orion.session(options.backend, options.workers):
        begin = perf_counter()
        bins = Bins.of(rows.features)
        grower, test_bins = Grower(bins(rows.features), rows.labels, wanted), bins(test.features)
        print(f"cut into bins in {perf_counter() - begin:.2f} s\n")
        found = Trained(grower.forest, bins)
        print(best_splits.plan(*grower.splits_arguments()))
        print(f"\n{str(partition.plan(*grower.partition_arguments())).split('; also')[0]}\n")
        print(f"tree    train loss     test loss   {'test AUC' if is_binary else '        '}  milliseconds")
        scores = np.full(len(test.labels), grower.forest.start)
        for tree in steps("trees", options.trees):
            begin = perf_counter()
            grower.grow()
            spent = perf_counter() - begin
            grower.forest.add_to(scores, test_bins, slice(tree - 1, tree))
            found.train.append(loss(grower.scores, rows.labels, options.objective))
            found.test.append(loss(scores, test.labels, options.objective))
            area = f"{auc(scores, test.labels):8.5f}".replace("nan", "  -") if is_binary else " " * 8
            print(
                f"{tree:4d}  {found.train[-1]:12.6f}  {found.test[-1]:12.6f}   {area}  {1e3 * spent:12.1f}",
                flush=True,
            )
    if options.picture:
        curves = {"rows trained on": found.train, "test rows": found.test}
        points = {name: list(enumerate(losses, 1)) for name, losses in curves.items()}
        save_curves(options.picture, points, ("trees", "log loss" if is_binary else "mean of squared errors"))
        print(f"\nwritten to {options.picture}: the loss by trees")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    warnings.simplefilter("ignore", orion.SerialLoopWarning)  # the plans say what is serial
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"gbt.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
