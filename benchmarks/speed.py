"""Updates per second of plain SGD: Orion, LIBMF, a Hogwild loop and the hand-written kernel.

Next to them stand independent trainings, one per worker: what they gain from a second worker is the machine's limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import libmf_peer
from hogwild_peer import HogwildSgd
from independent import IndependentSgd
from libmf_peer import Settings
from measure import Measured, Ratio, Results, Trainer, interleaved, seconds
from orion_entry import OrionSgd
from ratings import Ratings
from vector_kernel import VectorSgd

ORION, LIBMF, LIBMF_TUNED = "Orion", "LIBMF", "LIBMF, best grid"
HOGWILD, KERNEL, INDEPENDENT = "Hogwild prange", "hand-written kernel", "independent trainings"
TARGETS = {32: 4.0, 100: 2.5}  # times LIBMF, by rank
UNIT = "M updates/s"


def measure_speed(results: Results, size: str, ratings: Ratings, rank: int, repeats: int, epochs: int) -> None:
    """Add the speeds at one rank and their ratios to `results`."""
    benchmark = f"SGD, {size}, K={rank}"
    measures: dict[tuple[str, int], Callable[[], float]] = {}
    for workers in (1, 2):
        orion = OrionSgd(ratings, rank, workers)
        hogwild = HogwildSgd(ratings, rank, workers)
        kernel = VectorSgd(ratings, rank, workers)
        libmf = Settings(rank, workers)
        measures[ORION, workers] = partial(_orion_speed, orion, len(ratings), epochs)
        measures[LIBMF, workers] = partial(_libmf_speed, ratings, libmf, epochs)
        tuned = libmf_peer.with_best_grid(ratings, libmf)
        measures[LIBMF_TUNED, workers] = partial(_libmf_speed, ratings, tuned, epochs)
        measures[HOGWILD, workers] = partial(_speed, hogwild, len(ratings), epochs)
        measures[KERNEL, workers] = partial(_speed, kernel, len(ratings), epochs)
        apart = IndependentSgd(ratings, rank, workers)
        measures[INDEPENDENT, workers] = partial(_speed, apart, apart.ratings, epochs)
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
        ((INDEPENDENT, 2), (INDEPENDENT, 1), None),
    ]
    return [Ratio.between(entries[of], entries[over], target) for of, over, target in pairs]


def _speed(trainer: Trainer, ratings: int, epochs: int) -> float:
    """Of the second of two trainings: threads are awake, and caches hold what they can."""
    trainer.train(epochs)
    return ratings * epochs / seconds(partial(trainer.train, epochs)) / 1e6


def _orion_speed(trainer: OrionSgd, ratings: int, epochs: int) -> float:
    trainer.start()
    return _speed(trainer, ratings, epochs)


def _libmf_speed(ratings: Ratings, settings: Settings, epochs: int) -> float:
    libmf_peer.updates_per_second(ratings, settings, epochs)
    return libmf_peer.updates_per_second(ratings, settings, epochs) / 1e6
