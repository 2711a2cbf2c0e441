"""The loop that a Numba user would write: `prange` over the ratings, racing (Hogwild; Recht et al. 2011)."""

from __future__ import annotations

import numba
import numpy as np
from numba import njit, prange
from ratings import Ratings


@njit(parallel=True, fastmath=True)
def hogwild_epoch(users, items, stars, W, H, step, reg):
    for n in prange(len(stars)):
        i = users[n]
        j = items[n]
        dot = np.float32(0)
        for k in range(W.shape[1]):
            dot += W[i, k] * H[j, k]
        err = stars[n] - dot
        for k in range(W.shape[1]):
            w = W[i, k]
            h = H[j, k]
            W[i, k] = w + step * (err * h - reg * w)
            H[j, k] = h + step * (err * w - reg * h)


class HogwildSgd:
    """Ratings in their given (random) order and factors with random start values."""

    def __init__(self, ratings: Ratings, rank: int, workers: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        top = np.float32(rank**-0.5)
        self.ratings, self.workers = ratings, workers
        self.W = rng.random((ratings.shape[0], rank), dtype=np.float32) * top
        self.H = rng.random((ratings.shape[1], rank), dtype=np.float32) * top

    def train(self, epochs: int, step: float = 0.005, reg: float = 0.05) -> None:
        """Run epochs on all workers; W and H change in place."""
        numba.set_num_threads(self.workers)
        data = self.ratings.users, self.ratings.items, self.ratings.stars
        for _ in range(epochs):
            hogwild_epoch(*data, self.W, self.H, np.float32(step), np.float32(reg))
