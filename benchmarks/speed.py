"""Updates per second of plain SGD: Orion, LIBMF, a Hogwild loop and the hand-written kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import libmf_peer
from hogwild_peer import HogwildSgd
from libmf_peer import Settings
from measure import Measured, Ratio, Results, Trainer, interleaved, seconds
from orion_entry import OrionSgd
from ratings import Ratings
from vector_kernel import VectorSgd

ORION, LIBMF, LIBMF_TUNED = "Orion", "LIBMF", "LIBMF, best grid"
HOGWILD, KERNEL = "Hogwild prange", "hand-written kernel"
TARGETS = {32: 4.0, 100: 2.5}  # times LIBMF, by rank
UNIT = "M updates/s"
COLUMNS = 4  # column blocks of the hand-written kernel's tiles per matrix


def measure_speed(results: Results, size: str, ratings: Ratings, rank: int, repeats: int, epochs: int) -> None:
    """Add the speeds at one rank and their ratios to `results`."""
    benchmark = f"SGD, {size}, K={rank}"
    measures: dict[tuple[str, int], Callable[[], float]] = {}
    for workers in (1, 2):
        orion = OrionSgd(ratings, rank, workers)
        hogwild = HogwildSgd(ratings, rank, workers)
        kernel = VectorSgd(ratings, rank, workers, COLUMNS)
        libmf = Settings(rank, workers)
        measures[ORION, workers] = partial(_speed, orion, orion.ready, len(ratings), epochs)
        measures[LIBMF, workers] = partial(_libmf_speed, ratings, libmf, epochs)
        tuned = libmf_peer.with_best_grid(ratings, libmf)
        measures[LIBMF_TUNED, workers] = partial(_libmf_speed, ratings, tuned, epochs)
        measures[HOGWILD, workers] = partial(_speed, hogwild, partial(hogwild.train, 1), len(ratings), epochs)
        measures[KERNEL, workers] = partial(_speed, kernel, partial(kernel.train, 1), len(ratings), epochs)
    taken = interleaved({f"{name}/{workers}": measure for (name, workers), measure in measures.items()}, repeats)
    entries = {
        (name, workers): Measured(benchmark, name, workers, UNIT, taken[f"{name}/{workers}"])
        for name, workers in measures
    }
    results.measured.extend(entries.values())
    results.ratios.extend(_ratios(rank, entries))


def _ratios(rank: int, entries: dict[tuple[str, int], Measured]) -> list[Ratio]:
    pairs = [
        ((ORION, 2), (LIBMF, 2), TARGETS.get(rank)),
        ((ORION, 2), (LIBMF_TUNED, 2), TARGETS.get(rank)),
        ((ORION, 2), (KERNEL, 2), 0.9),
        ((ORION, 1), (KERNEL, 1), 0.9),
        ((ORION, 2), (HOGWILD, 2), None),
        ((ORION, 2), (ORION, 1), 1.85),
        ((KERNEL, 2), (KERNEL, 1), None),
    ]
    return [Ratio.between(entries[of], entries[over], target) for of, over, target in pairs]


def _speed(trainer: Trainer, ready: Callable[[], None], ratings: int, epochs: int) -> float:
    ready()
    return ratings * epochs / seconds(partial(trainer.train, epochs)) / 1e6


def _libmf_speed(ratings: Ratings, settings: Settings, epochs: int) -> float:
    return libmf_peer.updates_per_second(ratings, settings, epochs) / 1e6
