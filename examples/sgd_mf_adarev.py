"""Matrix factorization whose updates may be late, by AdaRevision, next to the exact loop of `sgd_mf.py`.

    python examples/sgd_mf_adarev.py                                   # generated ratings, MovieLens-100k shape
    python examples/sgd_mf_adarev.py --size 1m --max-delay 10000 --picture rmse.svg
    python examples/sgd_mf_adarev.py --ratings ml-1m/ratings.dat --backend ray --workers 2

The exact loop gives each worker blocks of users and items that no other has at that time. Here W and H have buffers:
workers take whatever ratings they like, collect gradients, and apply them some ratings later, with a step size for each
element that takes into account what others did meanwhile (`adaptive.py`). Where nothing is late, `max_delay=0`, the
same loop is run in such blocks, as the exact one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from adaptive import buffer_of
from live import steps, waiting
from options import add_running_options, non_negative, parsed, picture_file, positive, whole
from pictures import save_curves
from ratings_data import SHAPES
from sgd_mf import Training, rmse
from sgd_mf_data import Data, load

import orion

STEP = 0.2
"""An element changes by about so much in its first update, and by less from then on."""


@orion.parallel_for
def collect(ratings, W, H, w_late, h_late, reg):
    for (i, j), r in ratings:
        err = r
        for k in range(W.shape[1]):
            err -= W[i, k] * H[j, k]
        for k in range(W.shape[1]):
            w = W[i, k]
            h = H[j, k]
            w_late[i, k] += reg * w - err * h  # the gradient, half of it: steps are up to what applies it
            h_late[j, k] += reg * h - err * w


class LateTraining:
    """The factors that `sgd_mf.py` begins with, and the loop that collects their gradients in buffers."""

    def __init__(self, data: Data, options: argparse.Namespace, method: str, max_delay: int) -> None:
        self.data, self.reg = data, options.reg
        start = Training(data, options)
        self.W, self.H = start.W.to_numpy(), start.H.to_numpy()
        step = options.step or STEP
        self.late = [buffer_of(method, one, step, max_delay) for one in (self.W, self.H)]

    def arguments(self) -> tuple[Any, ...]:
        return self.data.train, self.W, self.H, *self.late, self.reg

    def plan(self) -> orion.Plan:
        """How the loop will be run."""
        return collect.plan(*self.arguments())

    def train(self, epochs: int) -> float:
        """Run some epochs; returns the seconds they took."""
        start = perf_counter()
        for _ in range(epochs):
            collect(*self.arguments())
        return perf_counter() - start

    def errors(self) -> tuple[float, float]:
        """RMSE of the predictions of the train and of the test ratings."""
        return float(rmse(self.data.train, self.W, self.H)), float(rmse(self.data.test, self.W, self.H))

    def latest(self) -> int:
        """The most iterations that an update was late in the last epoch."""
        return max((one.latest for one in collect.last_run.late), default=0)


@dataclass
class Outcome:
    """RMSE of train and of test ratings before the first epoch and after each, the median seconds of an epoch, and the
    most iterations that an update was late."""

    errors: list[tuple[float, float]] = field(default_factory=list)
    seconds: float = 0.0
    latest: int = 0


def made(name: str, data: Data, options: argparse.Namespace) -> Training | LateTraining:
    """The training of this name, from its beginning; a step size that is given is that of the buffers."""
    if name == "SGD, exact":
        return Training(data, argparse.Namespace(**{**vars(options), "step": None}))
    method = "adagrad" if name.startswith("AdaGrad") else "adarevision"
    return LateTraining(data, options, method, 0 if name.endswith("exact") else options.max_delay)


NAMES = ("SGD, exact", "AdaRevision, exact", "AdaGrad, late", "AdaRevision, late")


def trained(name: str, data: Data, options: argparse.Namespace) -> Outcome:
    with waiting(f"{name}: planning and compiling"):
        made(name, data, options).train(1)  # its factors are thrown away
    training, seconds = made(name, data, options), []
    found = Outcome([training.errors()])
    for _ in steps(f"{name}: epochs", options.epochs):
        seconds.append(training.train(1))
        if isinstance(training, LateTraining):
            found.latest = max(found.latest, training.latest())
        found.errors.append(training.errors())
    found.seconds = median(seconds)
    return found


# ------------------------------------------------------------------------------------------------ the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Matrix factorization by AdaRevision, with updates that may be late.")
    parser.add_argument("--ratings", type=Path, metavar="FILE", help="as of sgd_mf.py (default: generated ratings)")
    parser.add_argument("--size", choices=tuple(SHAPES), help="of generated ratings (default: 100k)")
    parser.add_argument("--rank", type=whole(1), default=8, help="length of a row of W and H (default: %(default)s)")
    parser.add_argument("--epochs", type=whole(1), default=10, help="times through the ratings (default: %(default)s)")
    parser.add_argument("--step", type=positive, help=f"of an element's first update (default: {STEP:g})")
    parser.add_argument("--reg", type=non_negative, default=0.05, help="the penalty on W and H (default: %(default)s)")
    parser.add_argument(
        "--max-delay",
        type=whole(1),
        default=1000,
        metavar="ITERATIONS",
        help="that updates of other workers may be late (default: %(default)s)",
    )
    parser.add_argument("--picture", type=picture_file(".svg"), metavar="FILE", help=".svg: test errors by epochs")
    parser.set_defaults(columns=None, sep=None, test=0.1, optimizer="sgd")
    add_running_options(parser)
    options = parsed(parser, arguments)
    if options.ratings is not None and options.size:
        parser.error("--size is about generated ratings: leave out --ratings")
    options.size = options.size or "100k"
    return options


def show(found: dict[str, Outcome]) -> None:
    width = max(map(len, found)) + 2
    print("\nRMSE of the test ratings\nepoch " + "".join(f"{name:>{width}}" for name in found))
    for number, errors in enumerate(zip(*(one.errors for one in found.values()), strict=True)):
        print(f"{number:5d} " + "".join(f"{test:{width}.6f}" for _, test in errors))
    print("train " + "".join(f"{one.errors[-1][0]:{width}.6f}" for one in found.values()))
    print("ms    " + "".join(f"{1e3 * one.seconds:{width}.2f}" for one in found.values()))
    print("late  " + "".join(f"{one.latest:{width},}" for one in found.values()))
    print("train: the RMSE of the train ratings at the end; ms: the median of epochs; late: the most iterations by")
    print("which an update of another worker was late")


def run(options: argparse.Namespace) -> dict[str, Outcome]:
    data = load(options)
    users, items = data.train.shape
    print(f"{len(data.train):,} ratings to train on and {len(data.test):,} to test with ({data.source})")
    print(f"{users:,} users x {items:,} items, rank {options.rank}")
    with orion.session(options.backend, options.workers):
        for name in (NAMES[0], NAMES[-1]):
            print(f"\n{name}: {made(name, data, options).plan()}", flush=True)
        found = {name: trained(name, data, options) for name in NAMES}
    show(found)
    if options.picture is not None:
        curves = {name: [(k, test) for k, (_, test) in enumerate(one.errors)] for name, one in found.items()}
        save_curves(options.picture, curves, ("epochs", "RMSE of the test ratings"))
        print(f"\n{options.picture}: the errors by epochs")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"sgd_mf_adarev.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
