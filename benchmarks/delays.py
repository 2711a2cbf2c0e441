"""AdaRevision next to AdaGrad where gradients are late, and how late updates of buffers are.

    python -m benchmarks.delays                       # from the project's folder; `make delays` does the same
    python -m benchmarks.delays --samples 100000 --delays 0 1000 --runs 10

Sparse logistic regression of `examples/slr.py`, from weights of zero, by the functions of `examples/adaptive.py`. Each
method has the best step size of a grid at each delay, as in McMahan & Streeter (NIPS 2014), and besides the one that is
best at delay 0. Twice:

- *in threads*: an `orion.buffer` with this `max_delay`, on so many threads (8, which take turns on the cores that there
  are). How late updates of others were when workers began a piece of iterations is noted by Orion, in iterations of the
  one that made them: the most, and the median of all pieces. Of W workers W - 1 may be as late, so that a gradient may
  be W - 1 times as many samples late. Losses are medians of runs, as no two are alike.
- *one by one*: a loop by hand in which each gradient is applied exactly so many samples after the weights were read for
  it, as the paper has it.

Then the most that any update was late when an iteration read, of runs with random work in each iteration; that is seen
by readers, and not told by Orion (`latest` in `tests/test_buffers.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import machine
from benchmarks.process import ROOT

sys.path.insert(0, str(ROOT / "examples"))

from adaptive import METHODS, buffer_of
from slr import log_loss
from slr_data import Samples, generated, read

DELAYS = (0, 100, 1_000, 10_000)
STEPS = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
READ, READERS = (1, 7, 100, 1_000), 3
"""The `max_delay` of the runs in which readers look, and their workers."""

FOLDER = ROOT / "benchmarks" / "results"

# ---------------------------------------------------------------- in threads


@orion.parallel_for
def collect(indptr, indices, values, labels, v, late, step):
    """As in `examples/slr.py`, for weights `step * v`: both methods change weights in proportion to their step, so that
    those with a step of 1 do for all, and nothing is compiled again."""
    for s in range(labels.size):
        z = 0.0
        for p in range(indptr[s], indptr[s + 1]):
            z += step * v[indices[p]] * values[p]
        g = 1.0 / (1.0 + np.exp(-z)) - labels[s]
        for p in range(indptr[s], indptr[s + 1]):
            late[indices[p]] += g * values[p]


@dataclass
class Lateness:
    """How late updates were: the most, and the median of all pieces of iterations."""

    latest: int = 0
    median: int = 0


def in_threads(samples: Samples, method: str, step: float, delay: int, passes: int, seen: Lateness) -> float:
    """The loss after so many passes."""
    v = np.zeros(samples.features)
    late, pieces = buffer_of(method, v, 1.0, delay), []
    for _ in range(passes):
        collect(*samples.arrays, v, late, step)
        for one in collect.last_run.late:
            seen.latest = max(seen.latest, one.latest)
            pieces += [(first + last) // 2 for first, last, count in one.histogram for _ in range(count)]
    seen.median = int(median(pieces)) if pieces else 0
    return float(log_loss(*samples.arrays, step * v))


# ---------------------------------------------------------------- one by one


@njit
def delayed(indptr, indices, values, labels, w, total, z, most, step, delay, is_revised):  # type: ignore[no-untyped-def]
    """A pass in which gradients are applied `delay` samples after the weights were read for them."""
    n, room = labels.size, 0
    for s in range(n):
        room = max(room, indptr[s + 1] - indptr[s])
    slopes, befores = np.zeros(delay + 1), np.zeros((delay + 1, room))
    for t in range(n + delay):
        if t < n:
            product, place = 0.0, t % (delay + 1)
            for p in range(indptr[t], indptr[t + 1]):
                product += w[indices[p]] * values[p]
                befores[place, p - indptr[t]] = total[indices[p]]
            slopes[place] = 1.0 / (1.0 + np.exp(-product)) - labels[t]
        s = t - delay
        if s < 0:
            continue
        place = s % (delay + 1)
        for p in range(indptr[s], indptr[s + 1]):
            j, g = indices[p], slopes[place] * values[p]
            meanwhile = total[j] - befores[place, p - indptr[s]] if is_revised else 0.0
            larger = step / np.sqrt(most[j])
            z[j] += g * g + 2.0 * g * meanwhile
            most[j] = max(most[j], z[j])
            smaller = step / np.sqrt(most[j])
            w[j] += (larger - smaller) * meanwhile - smaller * g
            total[j] += g


def one_by_one(samples: Samples, method: str, step: float, delay: int, passes: int, seen: Lateness) -> float:
    """The loss after so many passes."""
    w, total, z, most = (np.full(samples.features, start) for start in (0.0, 0.0, 1.0, 1.0))
    for _ in range(passes):
        delayed(*samples.arrays, w, total, z, most, step, delay, method == "adarevision")
    seen.latest = seen.median = delay
    return float(log_loss(*samples.arrays, w))


# ---------------------------------------------------------------- the comparison


@dataclass(frozen=True)
class Row:
    """A method at a delay: the best step size and its loss, the least and the most of the runs, and the loss with the
    step size that is best without delay; and how late updates were in the runs with the best one."""

    how: str
    method: str
    delay: int
    step: float
    loss: float
    least: float
    most: float
    loss_of_first_step: float
    latest: int
    median: int


Train = Callable[[Samples, str, float, int, int, Lateness], float]


def row_of(how: Train, samples: Samples, method: str, delay: int, first: float | None, options: Any) -> Row:
    """`first` is the step size that is best without delay, if that is known."""
    repeats = options.repeats if how is in_threads else 1
    losses, seen = {}, {}
    for step in STEPS:
        seen[step] = Lateness()
        losses[step] = [how(samples, method, step, delay, options.passes, seen[step]) for _ in range(repeats)]
    best = min(STEPS, key=lambda step: median(losses[step]))
    found, late = losses[best], seen[best]
    at_first = median(losses[best if first is None else first])
    name = how.__name__.replace("_", " ")
    return Row(name, method, delay, best, median(found), min(found), max(found), at_first, late.latest, late.median)


def compared(samples: Samples, options: argparse.Namespace) -> list[Row]:
    """All delays by both methods in both ways."""
    found = []
    for how in (one_by_one, in_threads):
        first: dict[str, float] = {}
        for delay in options.delays:
            for method in METHODS:
                found.append(row_of(how, samples, method, delay, first.get(method), options))
                first.setdefault(method, found[-1].step)
                print(found[-1], file=sys.stderr, flush=True)
    return found


def table_of(rows: Sequence[Row]) -> Table:
    """A line for each delay: both methods side by side."""
    found = Table(title="mean log loss; smaller is better", title_justify="left")
    heads = ["late by", "delay", "the most seen", "median seen"]
    heads += [f"{method} {what}" for what in ("loss", "step", "first step") for method in METHODS]
    for head in (*heads, "gain of AdaRevision"):
        found.add_column(head, justify="left" if head == "late by" else "right")
    pairs = [(one, other) for one in rows for other in rows if (one.how, one.delay) == (other.how, other.delay)]
    for one, other in pairs:
        if (one.method, other.method) == METHODS:
            both = (one, other)
            found.add_row(
                one.how,
                f"{one.delay:,}",
                " / ".join(f"{row.latest:,}" for row in both),
                " / ".join(f"{row.median:,}" for row in both),
                *(f"{row.loss:.5f} ({row.least:.5f}-{row.most:.5f})" for row in both),
                *(f"{row.step:g}" for row in both),
                *(f"{row.loss_of_first_step:.5f}" for row in both),
                f"{100 * (1 - other.loss / one.loss):+.2f} %",
            )
    return found


# ---------------------------------------------------------------- what readers see


def seen_by_readers(runs: int) -> dict[int, int]:
    """By `max_delay`, the most iterations that an update was late when an iteration read, of so many runs."""
    from tests.test_buffers import latest

    with orion.session("threads", READERS, force_parallel=True):
        return {delay: max(latest(READERS, delay, seed=seed) for seed in range(runs)) for delay in READ}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="AdaRevision and AdaGrad where gradients are late.")
    parser.add_argument("--file", type=Path, help="samples in the format of LIBSVM (default: generated)")
    parser.add_argument("--samples", type=int, default=400_000, help="(default: %(default)s)")
    parser.add_argument("--features", type=int, default=20_000, help="(default: %(default)s)")
    parser.add_argument("--each", type=int, default=20, help="features of a sample (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--delays", type=int, nargs="+", default=DELAYS, help="(default: 0 100 1000 10000)")
    parser.add_argument("--workers", type=int, default=8, help="threads (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs in threads of each (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=100, help="in which readers look (default: %(default)s)")
    options = parser.parse_args()
    if min(options.samples, options.features, options.each, options.passes, options.repeats, options.runs) < 1:
        parser.error("all numbers but delays must be 1 at least")
    if min(options.delays) < 0 or options.workers < 2:
        parser.error("delays are 0 or more, and two workers are needed for any to be")
    return options


def main() -> None:
    options, before = parse(), machine()
    if options.file is not None:
        samples = read(options.file, 0)
    else:
        samples = generated(options.samples, options.features, options.each, 0)
    with orion.session("threads", options.workers, force_parallel=True):
        rows = compared(samples, options)
    console = Console(width=None if sys.stdout.isatty() else 220)
    console.print(table_of(rows))
    seen = seen_by_readers(options.runs)
    for delay, most in seen.items():
        held = "held" if most <= delay else "NOT HELD"
        console.print(f"max_delay={delay:,}: the most seen by readers in {options.runs} runs is {most:,}: {held}")
    load = f"load {before['load'][0]:.2f} before and {os.getloadavg()[0]:.2f} after"
    console.print(f"{before['processor']}, {before['cores']} cores; {load}", highlight=False)
    FOLDER.mkdir(exist_ok=True)
    facts = {
        "machine": before,
        "options": {k: str(v) for k, v in vars(options).items()},
        "rows": [asdict(row) for row in rows],
        "readers": seen,
    }
    (FOLDER / "delays.json").write_text(json.dumps(facts, indent=1) + "\n")
    if any(most > delay for delay, most in seen.items()):
        raise SystemExit("an update was later than `max_delay`")


if __name__ == "__main__":
    main()
