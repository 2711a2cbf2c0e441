"""The trees of `examples/gbt.py` next to LightGBM's and xgboost's (`hist`): time, and how well they tell rows apart.

    python -m benchmarks.peers.gbt                            # times: 1,000,000 generated rows of 28 features
    python -m benchmarks.peers.gbt --rows-file FILE [FILE …]  # and AUC on rows of files, 5 folds × 5 seeds

The settings are the same for all: 31 leaves, best first, a rate of 0.1, 255 or 256 bins, no penalty, 20 rows in a leaf
at least. xgboost grows leaf by leaf too (`lossguide`), and takes a second derivative of 1 where the others count rows.
Times are for trees, on two threads, in turns, the first ones apart; to cut features into bins is told beside.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median, stdev
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import machine
from benchmarks.peers.contenders import PAUSE
from benchmarks.process import ROOT

sys.path.insert(0, str(ROOT / "examples"))

import gbt
from gbt_data import Floats, Rows, auc, generated, labels_for, read_rows

LEAVES, RATE, LEAST = 31, 0.1, 20
FOLDS, SEEDS = 5, 5
T_95 = 2.064
"""Student's t for 24 degrees of freedom, both sides together 5 %."""

Trainer = Callable[[Floats, Floats, int, int], tuple[Callable[[int], None], Callable[[Floats], Floats]]]
"""From features, labels, the most trees and threads: a function that grows so many more trees, one that predicts."""


def with_orion(features: Floats, labels: Floats, trees: int, threads: int) -> tuple[
    Callable[[int], None], Callable[[Floats], Floats]
]:  # fmt: skip
    bins = gbt.Bins.of(features)
    grower = gbt.Grower(bins(features), labels, gbt.Options(trees, LEAVES, RATE, 0.0, LEAST))

    def grow(count: int) -> None:
        for _ in range(count):
            grower.grow()

    return grow, lambda others: grower.forest.scores(bins(others))


def with_lightgbm(features: Floats, labels: Floats, trees: int, threads: int) -> tuple[
    Callable[[int], None], Callable[[Floats], Floats]
]:  # fmt: skip
    import lightgbm

    given = {
        "objective": "binary", "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": LEAST,
        "num_threads": threads, "verbose": -1, "force_row_wise": len(labels) >= 100_000,
    }  # fmt: skip
    booster = lightgbm.Booster(given, lightgbm.Dataset(features, labels, params=given).construct())

    def grow(count: int) -> None:
        for _ in range(count):
            booster.update()

    return grow, lambda others: booster.predict(others, raw_score=True)


def with_xgboost(features: Floats, labels: Floats, trees: int, threads: int) -> tuple[
    Callable[[int], None], Callable[[Floats], Floats]
]:  # fmt: skip
    import xgboost

    given = {
        "objective": "binary:logistic", "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": LEAVES,
        "max_depth": 0, "eta": RATE, "lambda": 0.0, "min_child_weight": 1.0, "max_bin": 256, "nthread": threads,
    }  # fmt: skip
    data = xgboost.QuantileDMatrix(features, labels, max_bin=256, nthread=threads)
    booster = xgboost.Booster(given, [data])
    grown = [0]

    def grow(count: int) -> None:
        for _ in range(count):
            booster.update(data, grown[0])
            grown[0] += 1

    return grow, lambda others: booster.predict(xgboost.DMatrix(others, nthread=threads), output_margin=True)


def contenders() -> dict[str, Trainer]:
    """Orion, and the peers that are installed; the others are named."""
    found: dict[str, Trainer] = {"Orion": with_orion}
    for name, package, trainer in (("LightGBM", "lightgbm", with_lightgbm), ("xgboost", "xgboost", with_xgboost)):
        if importlib.util.find_spec(package) is None:
            print(f"{name} is left out: the package `{package}` is not installed (`make peers` installs it)")
        else:
            found[name] = trainer
    return found


def times(console: Console, rows: int, trees: int, rounds: int, threads: int) -> None:
    data = labels_for("binary", generated(rows, 28, 0))
    makers = contenders()
    binning: dict[str, float] = {}
    made = {}
    for name, trainer in makers.items():
        with console.status(f"bins of {name}"):
            trainer(data.features[:1000], data.labels[:1000], 1, threads)[0](1)  # compiled, threads started
            begin = perf_counter()
            made[name] = trainer(data.features, data.labels, 1 + trees * rounds, threads)[0]
            binning[name] = perf_counter() - begin
            made[name](1)
    spent: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, grow in made.items():
            time.sleep(PAUSE)
            begin = perf_counter()
            grow(trees)
            spent[name].append((perf_counter() - begin) / trees)
    table = Table("", "ms per tree (median)", "best", "times LightGBM's", "bins, s")
    base = median(spent["LightGBM"]) if "LightGBM" in spent else None
    for name, found in spent.items():
        ratio = "" if base is None else f"{median(found) / base:.2f}"
        table.add_row(name, f"{1e3 * median(found):.1f}", f"{1e3 * min(found):.1f}", ratio, f"{binning[name]:.2f}")
    console.print(f"{rows:,} rows of 28 features, {threads} threads, {rounds} times {trees} trees in turns")
    console.print(table)


def folds(rows: Rows, seed: int) -> list[tuple[Rows, Rows]]:
    """Rows to train on and to test on, for each fold."""
    part = np.random.default_rng(seed).permutation(len(rows.labels)) % FOLDS
    return [
        (Rows(rows.features[part != k], rows.labels[part != k]), Rows(rows.features[part == k], rows.labels[part == k]))
        for k in range(FOLDS)
    ]


def areas(console: Console, rows: Rows, trees: int, threads: int) -> None:
    makers = contenders()
    found: dict[str, list[float]] = {name: [] for name in makers}
    for seed in range(SEEDS):
        for train, test in folds(rows, seed):
            for name, trainer in makers.items():
                grow, predicted = trainer(train.features, train.labels, trees, threads)
                grow(trees)
                found[name].append(auc(np.asarray(predicted(test.features), np.float64), test.labels))
    table = Table("", "mean AUC", "Orion's, less that", "its interval of 95 %")
    for name, values in found.items():
        apart = [mine - theirs for mine, theirs in zip(found["Orion"], values, strict=True)]
        half = T_95 * stdev(apart) / len(apart) ** 0.5
        table.add_row(
            name, f"{mean(values):.5f}", f"{mean(apart):+.5f}", f"{mean(apart) - half:+.5f} … {mean(apart) + half:+.5f}"
        )
    console.print(f"{len(rows.labels):,} rows, {FOLDS} folds × {SEEDS} seeds, {trees} trees")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="Boosted trees next to LightGBM and xgboost.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="generated rows for times; 0: none")
    parser.add_argument("--trees", type=int, default=10, help="trees in one turn (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows-file", type=Path, nargs="+", help="rows for the AUC: a label, then features, by tabs")
    parser.add_argument("--auc-trees", type=int, default=100, help="trees for the AUC (default: %(default)s)")
    options = parser.parse_args()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(machine())
    with orion.session(workers=options.threads):
        if options.rows:
            times(console, options.rows, options.trees, options.rounds, options.threads)
        if options.rows_file:
            parts = [read_rows(path) for path in options.rows_file]
            rows = Rows(np.vstack([one.features for one in parts]), np.concatenate([one.labels for one in parts]))
            areas(console, rows, options.auc_trees, options.threads)


if __name__ == "__main__":
    main()
