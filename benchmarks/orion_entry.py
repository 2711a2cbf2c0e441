"""Orion's entries: the plain loops that a user writes, SGD and AdaGrad, on the session's workers."""

from __future__ import annotations

import numpy as np
from ratings import Ratings

import orion


@orion.parallel_for(require_parallel=True)
def sgd(ratings, W, H, step, reg, epochs):
    for _epoch in range(epochs):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            wi = W[i].copy()
            W[i] += step * (err * H[j] - reg * W[i])
            H[j] += step * (err * wi - reg * H[j])


@orion.parallel_for(require_parallel=True)
def adagrad(ratings, W, H, w_seen, h_seen, step, reg, epochs):
    for _epoch in range(epochs):
        for (i, j), r in ratings:
            err = r - W[i] @ H[j]
            w_seen[i] += err * err * (H[j] @ H[j]) / W.shape[1]
            h_seen[j] += err * err * (W[i] @ W[i]) / W.shape[1]
            wi = W[i].copy()
            W[i] += step / np.sqrt(w_seen[i]) * (err * H[j] - reg * W[i])
            H[j] += step / np.sqrt(h_seen[j]) * (err * wi - reg * H[j])


class OrionSgd:
    """Ratings and factors as Orion's arrays, trained on a number of workers of one backend."""

    def __init__(self, ratings: Ratings, rank: int, workers: int, backend: str = "threads", seed: int = 0) -> None:
        self.rank, self.workers, self.backend, self.seed = rank, workers, backend, seed
        self.shape = ratings.shape
        self.ratings = orion.sparse((ratings.users, ratings.items), ratings.stars, shape=ratings.shape)
        self.start_again()

    def start_again(self) -> None:
        """Random factors, the same each time."""
        rng = np.random.default_rng(self.seed)
        top = np.float32(self.rank**-0.5)
        rows, columns = self.shape
        self.W = orion.array(rng.random((rows, self.rank), dtype=np.float32) * top)
        self.H = orion.array(rng.random((columns, self.rank), dtype=np.float32) * top)
        self.w_seen = orion.ones(rows, dtype=np.float32)
        self.h_seen = orion.ones(columns, dtype=np.float32)

    def start(self) -> None:
        """Start a session with these workers."""
        orion.shutdown()
        orion.init(backend=self.backend, workers=self.workers)

    def train(self, epochs: int, step: float = 0.005, reg: float = 0.05) -> None:
        """Epochs of plain SGD; W and H change in place."""
        sgd(self.ratings, self.W, self.H, np.float32(step), np.float32(reg), epochs)


class OrionAdaGrad(OrionSgd):
    """The same with one AdaGrad step size per row (as LIBMF has; Chin et al. 2015)."""

    def train(self, epochs: int, step: float = 0.15, reg: float = 0.02) -> None:
        sums = self.w_seen, self.h_seen
        adagrad(self.ratings, self.W, self.H, *sums, np.float32(step), np.float32(reg), epochs)
