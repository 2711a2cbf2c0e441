"""Matrix factorization by stochastic gradient descent: the serial loop of a textbook, run in parallel by Orion.

    python examples/sgd_mf.py                                        # generated ratings, MovieLens-1M shape
    python examples/sgd_mf.py --ratings ml-1m/ratings.dat --optimizer adagrad
    python examples/sgd_mf.py --ratings ratings.tsv.gz --backend ray --workers 2

A rating r of item j by user i is predicted as the product of row i of W and row j of H. Two ratings of one user, or of
one item, must not be worked on at once: Orion finds that out by itself, and deals out blocks of the ratings so that no
two workers ever share a user or an item. The plan, printed before anything runs, says so.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import median
from time import perf_counter

import numpy as np
from live import extrapolated
from sgd_mf_data import Data, load
from sgd_mf_options import parse_options
from sgd_mf_report import Report, Row

import orion

SAMPLE = 20_000
"""Ratings that serial Python is timed on."""

REPEATS, ENOUGH = 15, 3.0
"""The most trainings of which the median time is taken, and the seconds after which there is no further one."""

TITLES = {"serial": "compiled serial", "threads": "threads", "ray": "Ray"}
BACKENDS = tuple(TITLES)

# ------------------------------------------------------------------------------------------------ the loops


@orion.parallel_for
def sgd(ratings, W, H, step, reg, epochs):
    for _epoch in range(epochs):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            wi = W[i].copy()
            W[i] += step * (err * H[j] - reg * W[i])
            H[j] += step * (err * wi - reg * H[j])


@orion.parallel_for
def adagrad(ratings, W, H, w_seen, h_seen, step, reg, epochs):
    # One step size per row (Chin et al., PAKDD 2015): step / sqrt(mean squared gradients of the error, summed).
    for _epoch in range(epochs):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            w_seen[i] += err * err * (H[j] @ H[j]) / W.shape[1]
            h_seen[j] += err * err * (W[i] @ W[i]) / W.shape[1]
            wi = W[i].copy()
            W[i] += step / np.sqrt(w_seen[i]) * (err * H[j] - reg * W[i])
            H[j] += step / np.sqrt(h_seen[j]) * (err * wi - reg * H[j])


@orion.parallel_for
def rmse(ratings, W, H):
    total = 0.0
    for (i, j), r in ratings:
        total += (r - W[i] @ H[j]) ** 2
    return np.sqrt(total / len(ratings))


# ------------------------------------------------------------------------------------------------ the training


class Training:
    """Factors, the same for the same options, and the loop that trains them on the ratings."""

    def __init__(self, data: Data, options: Namespace) -> None:
        self.data = data
        self.reg = options.reg
        rank, adaptive = options.rank, options.optimizer == "adagrad"
        # Products of rows start near the mean rating. An update changes a product by about step * mean * error in plain
        # SGD, and a row's entries by about step in AdaGrad: the step sizes below do well whatever the scale of ratings.
        level, width = sqrt(max(data.mean, 0.0) / rank), sqrt(data.deviation / rank)
        scale = abs(data.mean) + data.deviation or 1.0
        self.step = options.step or (0.4 * sqrt(scale / rank) if adaptive else 0.08 / scale)
        users, items = data.train.shape
        low, high = level - width, level + width
        self.W = orion.uniform((users, rank), low, high, np.float32, seed=2 * options.seed)
        self.H = orion.uniform((items, rank), low, high, np.float32, seed=2 * options.seed + 1)
        self.loop = adagrad if adaptive else sgd
        self.state = [self.W, self.H]
        if adaptive:
            self.state += [orion.ones(users, dtype=np.float32), orion.ones(items, dtype=np.float32)]

    def plan(self) -> orion.Plan:
        """How the training loop will be run."""
        return self.loop.plan(self.data.train, *self.state, self.step, self.reg, 1)

    def train(self, epochs: int) -> float:
        """Run some epochs in one call; returns the seconds they took."""
        start = perf_counter()
        self.loop(self.data.train, *self.state, self.step, self.reg, epochs)
        return perf_counter() - start

    def errors(self) -> tuple[float, float]:
        """RMSE of the predictions of the train and of the test ratings."""
        return float(rmse(self.data.train, self.W, self.H)), float(rmse(self.data.test, self.W, self.H))


def warm_up(data: Data, options: Namespace) -> float:
    """Plan, compile, and sort the ratings into tiles, on factors that are thrown away; returns the seconds it took."""
    start = perf_counter()
    training = Training(data, options)
    training.train(1)
    training.errors()
    return perf_counter() - start


def train_live(data: Data, options: Namespace, report: Report) -> None:
    """The training as it goes, a line per epoch. `DivergedError` where the errors grow without end."""
    training = Training(data, options)
    report.header()
    report.epoch(0, *training.errors(), None)
    # The line needs W and H after each epoch, hence a call per epoch. `timed` runs all epochs in one call: workers then
    # go from one epoch to the next without coming back here.
    for epoch in report.epochs(options.epochs):
        seconds = training.train(1)
        errors = training.errors()
        report.epoch(epoch, *errors, len(data.train) / seconds)
        if not all(map(isfinite, errors)):
            why = f"step {training.step:.3g} or reg {training.reg:g} is too large for these ratings"
            raise DivergedError(f"the training diverged in epoch {epoch}: {why}")


class DivergedError(Exception):
    """The step size, or the penalty, is too large for these ratings."""


# ------------------------------------------------------------------------------------------------ the comparison


def compare(data: Data, options: Namespace, backend: str, report: Report) -> list[Row]:
    """A row per way to run the same training; only that of `backend` with --no-compare."""
    rows = []
    if options.compare:
        with report.waiting("timing serial Python"):
            rows.append(serial_python(data, options))
    for name in BACKENDS if options.compare else (backend,):
        with report.waiting(f"timing {TITLES[name]}"):
            rows.append(timed_if_possible(data, options, name))
    return rows


def timed_if_possible(data: Data, options: Namespace, backend: str) -> Row:
    """The row of a backend, or why there is none. Errors of a backend that was asked for are raised."""
    try:
        return timed(data, options, backend)
    except orion.OrionError as error:
        if backend == options.backend:
            raise
        return Row(TITLES[backend], note=f"not run: {error}")


def serial_python(data: Data, options: Namespace) -> Row:
    """An epoch of the undecorated function, in the Python interpreter: extrapolated from a sample of the ratings."""
    training = Training(data, options)
    state = [array.to_numpy() for array in training.state]

    def run(count: int) -> None:
        keys = tuple(keys[:count] for keys in data.train.coords)
        sample = orion.sparse(keys, data.train.values[:count], shape=data.train.shape)
        training.loop.serial(sample, *state, training.step, training.reg, 1)

    epoch = extrapolated(run, len(data.train), SAMPLE)
    return Row("serial Python", 1, epoch=epoch.seconds, note=f"an epoch in {epoch}")


def timed(data: Data, options: Namespace, backend: str) -> Row:
    """The whole training in one call on a backend, a few times; the time is that of the loop alone."""
    workers = 1 if backend == "serial" else options.workers
    with orion.session(backend=backend, workers=workers):
        ready = warm_up(data, options)
        seconds: list[float] = []
        while len(seconds) < REPEATS and sum(seconds) < ENOUGH:
            training = Training(data, options)
            seconds.append(training.train(options.epochs))
        _, test_rmse = training.errors()
        used = training.plan().runs_on
    return Row(TITLES[backend], used, ready, median(seconds) / options.epochs, test_rmse)


# ------------------------------------------------------------------------------------------------ the program


def run(options: Namespace, report: Report) -> None:
    """Plan, train, compare."""
    with report.waiting("loading the ratings"):
        data = load(options)
    with orion.session(options.backend, options.workers) as session:
        training, backend = Training(data, options), session.settings.backend
        users, items = data.train.shape
        report.say(f"{len(data.train):,} ratings to train on and {len(data.test):,} to test with ({data.source})")
        report.say(f"{users:,} users x {items:,} items, mean {data.mean:.3f}, standard deviation {data.deviation:.3f}")
        report.say(
            f"{options.optimizer}, rank {options.rank}, step {training.step:.3g}, reg {training.reg:g}, "
            f"on {backend} with {session.workers} workers\n"
        )
        report.say(str(training.plan()))
        with report.waiting("planning, compiling, sorting"):
            seconds = warm_up(data, options)
        report.say(f"\nready after {seconds:.2f} s: workers started, loops planned and compiled, ratings sorted\n")
        train_live(data, options, report)
    report.table(compare(data, options, backend, report), len(data.train))


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 for an error, 130 for Ctrl-C, and 2, by argparse, for wrong options."""
    options = parse_options(arguments)
    try:
        run(options, Report())
    except (orion.OrionError, DivergedError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        orion.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
