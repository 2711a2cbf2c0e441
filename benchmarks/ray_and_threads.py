"""A training run of ten epochs on Ray actors, next to the same run on threads of one process."""

from __future__ import annotations

from functools import partial

from measure import Measured, Ratio, Results, interleaved, seconds
from orion_entry import OrionSgd
from ratings import Ratings

EPOCHS = 10
WORKERS = 2


def measure_ray(results: Results, size: str, ratings: Ratings, rank: int, repeats: int) -> None:
    """Add the times of both and their ratio to `results`."""
    benchmark = f"{EPOCHS} epochs, {size}, K={rank}"
    trainers = {name: OrionSgd(ratings, rank, WORKERS, name) for name in ("threads", "ray")}
    taken = interleaved({name: partial(_training_seconds, trainer) for name, trainer in trainers.items()}, repeats)
    entries = {name: Measured(benchmark, name, WORKERS, "s", values) for name, values in taken.items()}
    results.measured.extend(entries.values())
    results.ratios.append(Ratio.between(entries["ray"], entries["threads"], 1.1, at_most=True))


def _training_seconds(trainer: OrionSgd) -> float:
    """The second run's time in a session: workers are started, kernels compiled, ratings in tiles."""
    trainer.start()
    trainer.train(EPOCHS)
    return seconds(partial(trainer.train, EPOCHS))
