"""Partial exchange instead of a shuffle of all: accuracy, bytes, time.

    python -m benchmarks.exchange
    python -m benchmarks.exchange --quick
    python -m benchmarks.exchange --only time

`accuracy`: samples sorted by their labels are cut into 2 to 64 shares, one for each simulated rank of this process.
Before each epoch `shuffle(exchange=q)` is called; then each rank goes through its own share in batches, by plain SGD
from the parameters that all begin the epoch with, and at its end the parameters of the ranks are averaged. Batches,
rate and epochs are the same in all of these trainings, so that more ranks take fewer steps. The accuracy is that of
samples that were held back: means of several seeds, and half of what they differ by. The bytes that the plan predicts
are compared with those of samples that were found in another share than before, in each epoch.

`order`: whether q = 1 gives the same order on any of these numbers of ranks.

`time`: the same samples, as rows of float32, shuffled by Orion in this process, by NumPy out of place, and by Ray Data
(`random_shuffle`, then `materialize`) from and to the blocks of its object store, on as many CPUs as there are. Ray
Data moves rows between processes; Orion moves them in the memory of one. The first shuffle of each is not counted.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import orion
from benchmarks.measure import interleaved, machine, seconds
from orion.cores import cores

RANKS = (2, 4, 8, 16, 32, 64)
PARTS = (0, 0.01, 0.03, 0.1, 0.3, 1)
FEATURES, CLASSES, CLUSTERS, HIDDEN = 32, 10, 4, 32
BATCH, RATE = 10, 0.3

Floats = NDArray[np.float32]
Parameters = list[Floats]


# ---------------------------------------------------------------- samples, models


@dataclass(frozen=True)
class Samples:
    """Samples with labels, the first sorted by them; `held_back` are for the accuracy."""

    inputs: Floats
    labels: NDArray[np.int64]
    held_back: tuple[Floats, NDArray[np.int64]]


def samples(count: int) -> Samples:
    """Classes of several clusters each, which overlap."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CLASSES, CLUSTERS, FEATURES)) * 0.75
    labels = rng.integers(CLASSES, size=count + count // 2)
    inputs = centres[labels, rng.integers(CLUSTERS, size=len(labels))] + rng.standard_normal((len(labels), FEATURES))
    own = np.argsort(labels[:count], kind="stable")
    held_back = inputs[count:].astype(np.float32), labels[count:]
    return Samples(inputs[:count].astype(np.float32)[own], labels[:count][own], held_back)


def regression() -> Parameters:
    """Multinomial logistic regression."""
    return [np.zeros((FEATURES, CLASSES), np.float32), np.zeros((1, CLASSES), np.float32)]


def network() -> Parameters:
    """One hidden layer of rectified units."""
    rng = np.random.default_rng(1)
    return [
        (rng.standard_normal((FEATURES, HIDDEN)) / np.sqrt(FEATURES)).astype(np.float32),
        np.zeros((1, HIDDEN), np.float32),
        (rng.standard_normal((HIDDEN, CLASSES)) / np.sqrt(HIDDEN)).astype(np.float32),
        np.zeros((1, CLASSES), np.float32),
    ]


MODELS: dict[str, Callable[[], Parameters]] = {"logistic regression": regression, "one hidden layer": network}


def scores(model: Parameters, inputs: Floats) -> list[Floats]:
    """What each layer gives, the scores of the classes last; the first axes of all may be ranks."""
    found = [inputs]
    for at in range(0, len(model), 2):
        found.append(found[-1] @ model[at] + model[at + 1])
        if at + 2 < len(model):
            found[-1] = np.maximum(found[-1], 0)
    return found


def descend(model: Parameters, inputs: Floats, labels: NDArray[np.int64]) -> None:
    """A step of SGD for each rank, on a batch of its own: parameters (ranks, …), inputs (ranks, batch, features)."""
    layers = scores(model, inputs)
    given = layers[-1]
    chances = np.exp(given - given.max(axis=-1, keepdims=True))
    chances /= chances.sum(axis=-1, keepdims=True)
    ranks, batch = np.indices(labels.shape)
    chances[ranks, batch, labels] -= 1
    error = chances / labels.shape[1]
    for at in range(len(model) - 2, -1, -2):
        before, weights = layers[at // 2], model[at]
        slope = before.swapaxes(-1, -2) @ error
        bias = error.sum(axis=-2, keepdims=True)
        if at:
            error = (error @ weights.swapaxes(-1, -2)) * (before > 0)
        model[at] = weights - RATE * slope
        model[at + 1] = model[at + 1] - RATE * bias


# ---------------------------------------------------------------- training by simulated ranks


@dataclass(frozen=True)
class Trained:
    """How often a model is right after its epochs, and the bytes of an epoch, as predicted and as counted."""

    accuracy: float
    predicted: tuple[int, ...]
    counted: tuple[int, ...]


def trained(data: Samples, make: Callable[[], Parameters], ranks: int, part: float, seed: int, epochs: int) -> Trained:
    count = len(data.labels)
    inputs, labels, names = orion.array(data.inputs), orion.array(data.labels), orion.array(np.arange(count))
    model, predicted, counted = make(), [], []
    row_bytes = data.inputs[0].nbytes + data.labels.itemsize
    for _ in range(epochs):
        share_of = np.empty(count, np.int64)
        share_of[names.view] = np.arange(count) * ranks // count
        own = [array.plan_shuffle(exchange=part, seed=seed, ranks=ranks) for array in (inputs, labels)]
        for array in (inputs, labels, names):
            array.shuffle(exchange=part, seed=seed, ranks=ranks)
        predicted.append(sum(one.bytes for one in own))
        moved = np.count_nonzero(share_of[names.view] != np.arange(count) * ranks // count)
        counted.append(moved * row_bytes)
        model = epoch_of(model, inputs.view, labels.view, ranks)
    tested, right = data.held_back
    accuracy = float(np.mean(scores(model, tested)[-1].argmax(axis=-1) == right))
    return Trained(accuracy, tuple(predicted), tuple(counted))


def epoch_of(model: Parameters, inputs: Floats, labels: NDArray[np.int64], ranks: int) -> Parameters:
    """The mean of what each rank makes of the parameters with its own share, of equal size."""
    own = [np.repeat(one[None], ranks, axis=0) for one in model]
    inputs, labels = inputs.reshape(ranks, -1, FEATURES), labels.reshape(ranks, -1)
    for first in range(0, labels.shape[1], BATCH):
        descend(own, inputs[:, first : first + BATCH], labels[:, first : first + BATCH])
    return [one.mean(axis=0) for one in own]


def accuracy(count: int, epochs: int, seeds: int) -> Iterator[Table]:
    """A table for each model, and one of bytes."""
    data = samples(count)
    sizes, wrong, epochs_compared = {}, 0, 0
    for name, make in MODELS.items():
        table = Table(title=f"{name}: % right, means of {seeds} seeds; {count:,} samples, {epochs} epochs, local SGD")
        for head in ("exchange", *(f"{ranks} ranks" for ranks in RANKS)):
            table.add_column(head, justify="right")
        for part in PARTS:
            row = []
            for ranks in RANKS:
                runs = [trained(data, make, ranks, part, seed, epochs) for seed in range(seeds)]
                wrong += sum(
                    one != other for run in runs for one, other in zip(run.predicted, run.counted, strict=True)
                )
                epochs_compared += seeds * epochs
                sizes[part, ranks] = median(size for run in runs for size in run.predicted)
                right = [100 * run.accuracy for run in runs]
                row.append(f"{np.mean(right):.1f} ± {(max(right) - min(right)) / 2:.1f}")
            table.add_row(f"{part:g}", *row)
        yield table
    whole = data.inputs.nbytes + data.labels.nbytes
    table = Table(title=f"MB that all ranks send in an epoch (median), of {whole / 1e6:.2f}; predicted ≠ counted in "
                        f"{wrong} of {epochs_compared:,} epochs")  # fmt: skip
    for head in ("exchange", *(f"{ranks} ranks" for ranks in RANKS)):
        table.add_column(head, justify="right")
    for part in PARTS:
        table.add_row(f"{part:g}", *(f"{sizes[part, ranks] / 1e6:.3f}" for ranks in RANKS))
    yield table


def order(count: int) -> str:
    """Whether all ranks in one order have the same order on any number of them, three epochs on."""
    found = []
    for ranks in (1, *RANKS):
        names = orion.array(np.arange(count))
        for _ in range(3):
            names.shuffle(exchange=1, seed=7, ranks=ranks)
        found.append(names.to_numpy())
    same = all(np.array_equal(one, found[0]) for one in found)
    return (
        f"exchange=1 on {', '.join(map(str, (1, *RANKS)))} ranks, three epochs: {'the same order' if same else 'WRONG'}"
    )


# ---------------------------------------------------------------- time


def times(count: int, columns: int, ranks: int, repeats: int) -> Iterator[Table | str]:
    rows = np.random.default_rng(0).random((count, columns), dtype=np.float32)
    mine, theirs = orion.array(rows), rows.copy()

    def by_numpy() -> None:
        nonlocal theirs
        theirs = theirs[np.random.default_rng(0).permutation(count)]

    def by_orion(part: float) -> float:
        return seconds(lambda: mine.shuffle(exchange=part, seed=1, ranks=ranks))

    def of_order(part: float) -> float:
        return seconds(mine.plan_shuffle(exchange=part, seed=1, ranks=ranks).order)

    contenders: dict[str, Callable[[], float]] = {
        **{f"Orion, exchange={part:g}": lambda part=part: by_orion(part) for part in (0, 0.1, 1)},
        "of that, the order alone, exchange=0.1": lambda: of_order(0.1),
        "NumPy, a permutation of all": lambda: seconds(by_numpy),
    }
    theirs_of_ray, end = ray_data(rows, ranks)
    if isinstance(theirs_of_ray, str):
        yield theirs_of_ray
    else:
        contenders["Ray Data, random_shuffle"] = lambda: seconds(theirs_of_ray)
    try:
        for measure in contenders.values():
            measure()
        found = interleaved(contenders, repeats)
    finally:
        end()
    table = Table(title=f"{count:,} rows of {columns} float32 ({rows.nbytes / 1e6:.0f} MB), {ranks} shares or blocks; "
                        f"ms, of {repeats} in turn")  # fmt: skip
    for head in ("", "median", "least"):
        table.add_column(head, justify="right" if head else "left")
    for name, values in found.items():
        table.add_row(name, f"{median(values) * 1e3:.0f}", f"{min(values) * 1e3:.0f}")
    yield table


def ray_data(rows: Floats, blocks: int) -> tuple[Callable[[], Any] | str, Callable[[], None]]:
    """What shuffles these rows by Ray Data, or why nothing does; and what ends Ray."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        return f"Ray Data is left out: {error}", lambda: None
    ray.init(
        address="local", num_cpus=cores(), object_store_memory=max(256 << 20, 6 * rows.nbytes),
        include_dashboard=False, log_to_driver=False, logging_level="ERROR", _node_ip_address="127.0.0.1",
    )  # fmt: skip
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    dataset = ray.data.from_numpy(np.array_split(rows, blocks)).materialize()
    return lambda: dataset.random_shuffle(seed=1).materialize(), ray.shutdown


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description="Partial exchange: accuracy, bytes, and time next to Ray Data.")
    parser.add_argument("--quick", action="store_true", help="fewer samples, two epochs, one seed")
    parser.add_argument("--only", choices=("accuracy", "order", "time"), help="one part")
    parser.add_argument("--repeats", type=int, default=9, help="measurements of times (default 9)")
    options = parser.parse_args()
    count, epochs, seeds = (1280, 2, 1) if options.quick else (12_800, 20, 3)
    console, about = Console(width=130), machine()
    load = ", ".join(f"{one:.1f}" for one in about["load"])
    console.print(f"{about['processor']}, {about['cores']} virtual CPUs, load before {load}, Ray {about['ray']}")
    if options.only in (None, "accuracy"):
        for table in accuracy(count, epochs, seeds):
            console.print(table)
    if options.only in (None, "order"):
        console.print(order(100_003))
    if options.only in (None, "time"):
        for size in (10_000, 50_000) if options.quick else (200_000, 1_000_000):
            for told in times(size, 32, 8, options.repeats):
                console.print(told)


if __name__ == "__main__":
    main()
