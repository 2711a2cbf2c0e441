"""Two trainings that share nothing, one thread each: what a second core of this machine is worth at this moment.

No way to share out one training can gain more from a second thread than two trainings do that have nothing to wait
for and no memory in common. On a shared machine that is often less than 2.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from ratings import Ratings
from vector_kernel import VectorSgd


class IndependentSgd:
    """`workers` trainings by the hand-written kernel, each of half of the ratings and with factors of its own."""

    def __init__(self, ratings: Ratings, rank: int, workers: int) -> None:
        halves = [ratings.part(np.arange(first, len(ratings), 2)) for first in range(workers)]
        self.ratings = sum(len(half) for half in halves)
        self._trainings = [VectorSgd(half, rank, workers=1, seed=seed) for seed, half in enumerate(halves)]
        self._threads = ThreadPoolExecutor(workers)

    def train(self, epochs: int) -> None:
        """Run epochs of all trainings at the same time."""
        for job in [self._threads.submit(training.train, epochs) for training in self._trainings]:
            job.result()
