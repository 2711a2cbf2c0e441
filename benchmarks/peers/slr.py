"""Logistic regression by stochastic gradient descent: the loops of `examples/slr.py`, scikit-learn and Numba.

    python -m benchmarks.peers.slr                    # from the project's folder
    python -m benchmarks.peers.slr --file a9a --step 0.02 --max-delay 1000

All go through the same samples (CSR, float32) in the same order, as often, with the same step and no penalty, from
weights of zero. Who has one worker ends with the same loss, to 1e-4; who has two, and updates that are late or lost, is
refused where the loss is more than 1 % greater. scikit-learn's `SGDClassifier` does its passes in one `fit`, which also
looks at its arguments; that counts, and Orion's calls, one for each pass, do too.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import orion
from benchmarks.measure import machine
from benchmarks.process import ROOT

from .contenders import Contender, in_turns, installed, show, table, threads_of_numba, workers_of_orion

sys.path.insert(0, str(ROOT / "examples"))

from slr import descend, exact
from slr_data import Samples, generated, read

Weights = NDArray[np.floating[Any]]
LOOSE, CLOSE = 1e-2, 1e-4  # relative
DELAYS = (1_000, 4_000)
"""Further `max_delay` of Orion's, on two workers."""

# ---------------------------------------------------------------- by hand, in Numba


def one_pass(indptr, indices, values, labels, w, step):
    """A pass as one writes it for Numba; with `prange` workers overwrite each other's updates (Hogwild)."""
    for s in numba.prange(labels.size):
        z = np.float32(0.0)
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = np.float32(step) * (np.float32(1.0) / (np.float32(1.0) + np.exp(-z)) - np.float32(labels[s]))
        for p in range(indptr[s], indptr[s + 1]):
            w[indices[p]] -= g * values[p]


serial_pass = numba.njit(fastmath={"reassoc", "contract"})(one_pass)
parallel_pass = numba.njit(fastmath={"reassoc", "contract"}, parallel=True)(one_pass)

# ---------------------------------------------------------------- the contenders


@dataclass(frozen=True, eq=False)
class Case:
    """Samples, a step size, and how often all go through them."""

    samples: Samples
    step: float
    passes: int

    def zeros(self) -> Weights:
        return np.zeros(self.samples.features, np.float32)

    def by_orion(self, max_delay: int | None, passes: int) -> Weights:
        """The passes of `examples/slr.py`; without a buffer where `max_delay` is None."""
        w = self.zeros()
        late = None if max_delay is None else orion.buffer(w, max_delay=max_delay)
        for _ in range(passes):
            if late is None:
                exact(*self.samples.arrays, w, self.step)
            else:
                descend(*self.samples.arrays, w, late, self.step)
        return w

    def by_numba(self, one: Callable[..., None]) -> Weights:
        w = self.zeros()
        for _ in range(self.passes):
            one(*self.samples.arrays, w, self.step)
        return w

    def by_sklearn(self, matrix: Any) -> Weights:
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(
            loss="log_loss", penalty=None, learning_rate="constant", eta0=self.step, shuffle=False,
            fit_intercept=False, max_iter=self.passes, tol=None,
        )  # fmt: skip
        found: Weights = model.fit(matrix, self.samples.labels).coef_[0]
        return found

    def orions(self, name: str, workers: int, max_delay: int | None) -> Contender:
        within = partial(workers_of_orion, workers, partial(self.by_orion, max_delay, 1))
        does = "the exact loop, on one worker" if max_delay is None else f"updates at most {max_delay:,} samples late"
        return Contender(name, workers, partial(self.by_orion, max_delay, self.passes), does, within)

    def contenders(self, max_delay: int) -> Iterator[Contender]:
        for workers in (1, 2):
            yield self.orions("Orion", workers, max_delay)
        for delay in DELAYS:
            if delay != max_delay:
                yield self.orions(f"Orion, {delay:,} late", 2, delay)
        yield self.orions("Orion, exact", 1, None)
        yield Contender("Numba", 1, partial(self.by_numba, serial_pass), "by hand")
        within = partial(threads_of_numba, 2)
        yield Contender("Numba prange", 2, partial(self.by_numba, parallel_pass), "updates may be lost", within)
        if not installed("sklearn", "scikit-learn"):
            return
        samples = self.samples
        parts = samples.values, samples.indices.astype(np.int32), samples.indptr.astype(np.int32)
        for dtype in (np.float32, np.float64):
            matrix = scipy.sparse.csr_matrix(parts, shape=(len(samples), samples.features)).astype(dtype)
            name = "scikit-learn" if dtype is np.float32 else "scikit-learn, float64"
            yield Contender(name, 1, partial(self.by_sklearn, matrix), "SGDClassifier.fit")


def loss_of(samples: Samples, w: Weights) -> float:
    """The mean log loss."""
    rows = np.repeat(np.arange(len(samples)), np.diff(samples.indptr))
    z = np.bincount(rows, w.astype(np.float64)[samples.indices] * samples.values, len(samples))
    return float(np.logaddexp(0.0, z).mean() - (samples.labels * z).mean())


def check(losses: dict[str, float]) -> None:
    """SystemExit where a contender ends with a greater loss than the loop by hand."""
    expected = losses["Numba ×1"]
    for title, loss in losses.items():
        if not loss <= expected * (1.0 + (CLOSE if title.endswith("×1") else LOOSE)):
            raise SystemExit(f"{title} ends with a loss of {loss:.6f}, Numba with {expected:.6f}: not the same work")


# ---------------------------------------------------------------- the command


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Logistic regression by Orion, scikit-learn and Numba.")
    parser.add_argument("--file", type=Path, help="samples in the format of LIBSVM (default: generated)")
    parser.add_argument("--samples", type=int, default=400_000, help="to generate (default: %(default)s)")
    parser.add_argument("--features", type=int, default=20_000, help="(default: %(default)s)")
    parser.add_argument("--each", type=int, default=20, help="features of a sample (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--step", type=float, default=0.5, help="(default: %(default)s)")
    parser.add_argument("--max-delay", type=int, default=10_000, help="of Orion's buffer (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="measurements of each contender")
    options = parser.parse_args()
    if min(options.passes, options.max_delay, options.repeats, options.samples, options.features, options.each) < 1:
        parser.error("all numbers must be 1 at least")
    return options


def main() -> None:
    options, before = parse(), machine()
    warnings.simplefilter("ignore", orion.SerialLoopWarning)  # the exact loop
    if options.file is not None:
        samples = read(options.file, 0)
    else:
        samples = generated(options.samples, options.features, options.each, 0)
    case = Case(samples, options.step, options.passes)
    contenders = list(case.contenders(options.max_delay))
    losses = {one.title: loss_of(samples, one.result()) for one in contenders}
    check(losses)
    measured = in_turns("slr", contenders, options.repeats)
    title = f"{options.passes} passes through {len(samples):,} samples, {len(samples.values):,} values"
    shown = {title: f"{loss:.6f}" for title, loss in losses.items()}
    show("slr", [table(f"{title}; medians of {options.repeats}", measured, "loss", shown)], measured, before)


if __name__ == "__main__":
    main()
