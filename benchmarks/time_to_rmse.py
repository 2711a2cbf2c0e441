"""Seconds of training to a test RMSE: a user's AdaGrad loop on Orion, LIBMF, and hand-written plain SGD.

Each gets the learning rate and regularisation, of a small grid, with which it takes fewest epochs (LIBMF:
least time). Set-up counts for none: neither tiling and compiling here nor LIBMF's shuffling. Factors start
at random.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from math import inf
from typing import NamedTuple

import libmf_peer
from measure import Measured, Ratio, Results, interleaved, seconds
from orion_entry import OrionAdaGrad
from ratings import Ratings, test_rmse
from vector_kernel import VectorSgd

TARGET_RMSE = 0.72
MOST_EPOCHS = 30
WORKERS = 2


class Choice(NamedTuple):
    """How many epochs a learning rate and regularisation take; inf where they never get there."""

    epochs: float
    rmse: float
    step: float
    reg: float

    def __str__(self) -> str:
        return f"{self.epochs:g} epochs, step {self.step}, reg {self.reg}, RMSE {self.rmse:.4f}"


def measure_time_to_rmse(
    results: Results, size: str, train_set: Ratings, test_set: Ratings, rank: int, repeats: int
) -> None:
    """Add the times to `TARGET_RMSE` at one rank and their ratios to `results`."""
    benchmark = f"test RMSE {TARGET_RMSE}, {size}, K={rank}"
    orion = OrionAdaGrad(train_set, rank, WORKERS)
    orion.start()
    kernel = VectorSgd(train_set, rank, WORKERS)
    orion_choice = fewest_epochs(orion, test_set, (0.1, 0.15, 0.2, 0.25), (0.02, 0.05))
    kernel_choice = fewest_epochs(kernel, test_set, (0.01, 0.02, 0.03, 0.04), (0.02, 0.05))
    libmf = libmf_peer.best_time_to_rmse(train_set, test_set, TARGET_RMSE, rank, WORKERS)
    notes = {
        "Orion AdaGrad": str(orion_choice),
        "LIBMF": f"{libmf.epochs} epochs, {libmf.settings}",
        "hand-written plain SGD": str(kernel_choice),
    }
    measures: dict[str, Callable[[], float]] = {
        "Orion AdaGrad": partial(_training_seconds, orion, orion_choice),
        "LIBMF": partial(libmf_peer.solver_seconds, train_set, libmf.settings, libmf.epochs),
        "hand-written plain SGD": partial(_training_seconds, kernel, kernel_choice),
    }
    taken = interleaved(measures, repeats)
    entries = {name: Measured(benchmark, name, WORKERS, "s", values, notes[name]) for name, values in taken.items()}
    results.measured.extend(entries.values())
    results.ratios.append(Ratio.between(entries["Orion AdaGrad"], entries["LIBMF"], 0.5, at_most=True))


def fewest_epochs(
    trainer: OrionAdaGrad | VectorSgd, test_set: Ratings, steps: tuple[float, ...], regs: tuple[float, ...]
) -> Choice:
    """The learning rate and regularisation that reach the target in fewest epochs."""
    best = Choice(inf, inf, 0, 0)
    for step, reg in product(steps, regs):
        trainer.start_again()
        for epoch in range(1, 1 + int(min(MOST_EPOCHS, best.epochs))):
            trainer.train(1, step, reg)
            rmse = test_rmse(trainer.W, trainer.H, test_set)
            if rmse <= TARGET_RMSE:
                best = min(best, Choice(epoch, rmse, step, reg))
                break
    return best


def _training_seconds(trainer: OrionAdaGrad | VectorSgd, choice: Choice) -> float:
    if choice.epochs == inf:
        return inf
    trainer.start_again()
    return seconds(partial(trainer.train, int(choice.epochs), choice.step, choice.reg))
