"""Sparse logistic regression by stochastic gradient descent: exactly, and with updates that may be late.

    python examples/slr.py                                    # generated samples
    python examples/slr.py a9a --passes 20 --picture loss.svg # a file of LIBSVM
    python examples/slr.py --max-delay 100 --backend ray --workers 2

Two samples with a feature in common both read and write its weight, and which ones have is only known from the arrays.
Orion looks at these (`exact`) and keeps the order of such samples: the weights have the bits of the serial loop. Where
most samples share frequent features hardly two may run at once, as the plan says. Gradient descent also bears updates
that are some samples late: those of `w_late`, an `orion.buffer` of `w`, are collected by each worker and applied every
so often, and samples need not wait for each other.

How updates are applied is a function: they are added, or scaled for each weight by AdaGrad or by AdaRevision, which
takes into account what others did between reading and updating (`adaptive.py`). Each is shown next to its serial run.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from adaptive import buffer_of
from live import steps, waiting
from numpy.typing import NDArray
from options import add_running_options, parsed, picture_file, positive, whole
from pictures import save_curves
from slr_data import Samples, generated, hold_out, read

import orion

STEPS = {"sgd": 0.5, "adagrad": 0.3, "adarevision": 0.3}
"""Step sizes that do well on the generated samples and on those of a9a; SGD's is for samples of length 1."""

# ------------------------------------------------------------------------------------------------ the loops


@orion.parallel_for
def exact(indptr, indices, values, labels, w, step):
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            w[indices[p]] -= step * g * values[p]


@orion.parallel_for
def descend(indptr, indices, values, labels, w, w_late, step):
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            w_late[indices[p]] -= step * g * values[p]


@orion.parallel_for
def collect(indptr, indices, values, labels, w, w_late):
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            w_late[indices[p]] += g * values[p]  # the gradient alone: steps are up to the function that applies it


@orion.parallel_for
def log_loss(indptr, indices, values, labels, w):
    total = 0.0
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += w[indices[p]] * values[p]
        total += max(z, 0.0) + np.log1p(np.exp(-abs(z))) - labels[s] * z
    return total / labels.size


# ------------------------------------------------------------------------------------------------ the training


class Training:
    """Weights, zero at first, and the loop that trains them. `max_delay` None is the exact loop, without a buffer."""

    def __init__(self, samples: Samples, method: str, step: float, max_delay: int | None) -> None:
        self.samples = samples
        self.w: NDArray[np.float64] = np.zeros(samples.features)
        self.loop: Any
        self.more: tuple[Any, ...]
        if max_delay is None:
            self.loop, self.more = exact, (step,)
        elif method == "sgd":
            self.loop, self.more = descend, (orion.buffer(self.w, max_delay=max_delay), step)
        else:
            self.loop, self.more = collect, (buffer_of(method, self.w, step, max_delay),)

    def plan(self) -> orion.Plan:
        """How a pass will be run; of the exact loop, by what its arrays hold."""
        found: orion.Plan = self.loop.plan(*self.samples.arrays, self.w, *self.more, inspect=self.loop is exact)
        return found

    def one_pass(self) -> float:
        """Go through all samples; returns the seconds it took."""
        start = perf_counter()
        self.loop(*self.samples.arrays, self.w, *self.more)
        return perf_counter() - start

    def loss(self, samples: Samples) -> float:
        """The mean log loss."""
        return float(log_loss(*samples.arrays, self.w))


def step_of(method: str, samples: Samples, given: float | None) -> float:
    """The step size: a step of SGD changes the product of weights and a sample by the square of its length."""
    if given is not None:
        return given
    squares = float(np.square(samples.values, dtype=np.float64).sum()) / len(samples)
    return STEPS[method] / squares if method == "sgd" and squares else STEPS[method]


@dataclass(frozen=True)
class Way:
    """A way to train; a serial one is on one worker, with nothing late."""

    name: str
    method: str
    is_serial: bool
    max_delay: int | None


def ways(max_delay: int) -> list[Way]:
    """Those that are shown, each after the serial run that it stands next to."""
    found = [Way("SGD, serial", "sgd", True, None), Way("SGD, exact", "sgd", False, None)]
    for method, name in (("sgd", "SGD"), ("adagrad", "AdaGrad"), ("adarevision", "AdaRevision")):
        if method != "sgd":
            found.append(Way(f"{name}, serial", method, True, 0))
        found.append(Way(f"{name}, late", method, False, max_delay))
    return found


@dataclass(frozen=True)
class Outcome:
    """The mean log losses before the first pass and after each; of those held out at the end; the median seconds of a
    pass; and the most iterations that an update was late, of runs of which that is known."""

    losses: list[float]
    held_out: float
    seconds: float
    latest: int | None


@contextmanager
def running(way: Way) -> Iterator[None]:
    """The session for a way to train, one of its own for a serial way, without the warning that what is to be serial is
    so."""
    with orion.session("serial", 1) if way.is_serial else nullcontext(), warnings.catch_warnings():
        if way.is_serial or way.max_delay is None:  # the plan that is printed says why
            warnings.simplefilter("ignore", orion.SerialLoopWarning)
        yield


def train(way: Way, samples: Samples, held: Samples, options: argparse.Namespace) -> Outcome:
    step = step_of(way.method, samples, options.step)
    with running(way):
        with waiting(f"{way.name}: planning and compiling"):
            Training(samples, way.method, step, way.max_delay).one_pass()  # its weights are thrown away
        training = Training(samples, way.method, step, way.max_delay)
        losses, seconds, latest = [training.loss(samples)], [], None
        for _ in steps(f"{way.name}: passes", options.passes):
            seconds.append(training.one_pass())
            for one in training.loop.last_run.late:
                latest = max(latest or 0, one.latest)
            losses.append(training.loss(samples))
        return Outcome(losses, training.loss(held), median(seconds), latest)


# ------------------------------------------------------------------------------------------------ the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Sparse logistic regression by stochastic gradient descent.")
    parser.add_argument("file", type=Path, nargs="?", help="of LIBSVM, with labels of two kinds (default: generated)")
    parser.add_argument("--samples", type=whole(10), default=100_000, help="to generate (default: %(default)s)")
    parser.add_argument("--features", type=whole(1), default=20_000, help="of generated ones (default: %(default)s)")
    parser.add_argument("--each", type=whole(1), default=20, help="features of a sample (default: %(default)s)")
    parser.add_argument("--passes", type=whole(1), default=10, help="through all samples (default: %(default)s)")
    parser.add_argument("--step", type=positive, help=f"(default: {', '.join(f'{k} {v:g}' for k, v in STEPS.items())})")
    parser.add_argument(
        "--max-delay",
        type=whole(1),
        default=1000,
        metavar="ITERATIONS",
        help="that updates of other workers may be late (default: %(default)s)",
    )
    parser.add_argument("--picture", type=picture_file(".svg"), metavar="FILE", help=".svg: the losses by passes")
    add_running_options(parser)
    return parsed(parser, arguments)


def show(found: dict[str, Outcome]) -> None:
    """The losses of all ways to train side by side, and what each pass took."""
    width = max(map(len, found)) + 2
    print("\nmean log loss of the samples\npass " + "".join(f"{name:>{width}}" for name in found))
    for number, losses in enumerate(zip(*(one.losses for one in found.values()), strict=True)):
        print(f"{number:4d} " + "".join(f"{loss:{width}.6f}" for loss in losses))
    print("held " + "".join(f"{one.held_out:{width}.6f}" for one in found.values()))
    print("ms   " + "".join(f"{1e3 * one.seconds:{width}.2f}" for one in found.values()))
    late = ("" if one.latest is None else f"{one.latest:,}" for one in found.values())
    print("late " + "".join(f"{text:>{width}}" for text in late))
    print("held: the loss of samples that were held out; ms: the median of passes; late: the most iterations by which")
    print("an update of another worker was late")


def run(options: argparse.Namespace) -> dict[str, Outcome]:
    if options.file is None:
        given = generated(options.samples, options.features, options.each, options.seed)
    else:
        given = read(options.file, options.seed)
    samples, held = hold_out(given)
    print(f"{given.about}: {len(samples):,} samples and {len(held):,} held out, {samples.features:,} features")
    print(f"{len(samples.values) / len(samples):.1f} features each")
    all_ways = ways(options.max_delay)
    with orion.session(options.backend, options.workers):  # one for all ways: Ray takes seconds to start
        for way in (all_ways[1], all_ways[2]):
            with running(way):
                step = step_of(way.method, samples, options.step)
                print(f"\n{way.name}: {Training(samples, way.method, step, way.max_delay).plan()}", flush=True)
        found = {way.name: train(way, samples, held, options) for way in all_ways}
    show(found)
    if options.picture is not None:
        curves = {name: [*enumerate(one.losses)] for name, one in found.items() if name != "SGD, exact"}
        save_curves(options.picture, curves, ("passes", "mean log loss"))
        print(f"\n{options.picture}: the losses by passes; those of the exact run are those of the serial one")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"slr.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
