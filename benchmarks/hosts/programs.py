"""The programs that run on several hosts, on Orion's own arrays: what stays where it is from call to call is not sent
again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import orion
from benchmarks.process import ROOT

sys.path.insert(0, str(ROOT / "examples"))

from graph_data import web
from pagerank import Ranks, pull
from ratings_data import SHAPES, generate
from sgd_mf import sgd


@orion.parallel_for
def gauss_seidel(A, sweeps):
    for _sweep in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@dataclass(frozen=True)
class Program:
    """A function, and the arguments of calls that take turns."""

    function: Any
    turns: tuple[tuple[Any, ...], ...]

    def call(self, number: int) -> None:
        """Call it."""
        self.function(*self.turns[number % len(self.turns)])

    def estimate(self, nodes: int) -> Any:
        """What its plan says of a call on so many nodes."""
        return self.function.plan(*self.turns[0]).estimate(nodes=nodes)


def sgd_mf(count: int) -> Program:
    """So many ratings of as many users and items as MovieLens-1M has, 32 factors, five epochs in a call."""
    ratings = generate(replace(SHAPES["1m"], ratings=count))
    rng = np.random.default_rng(0)
    W, H = (orion.array(rng.random((n, 32), np.float32) * np.float32(32**-0.5)) for n in ratings.shape)
    data = orion.sparse((ratings.users, ratings.items), ratings.stars, shape=ratings.shape)
    return Program(sgd, ((data, W, H, np.float32(0.005), np.float32(0.05), 5),))


def sweeps() -> Program:
    """Twenty Gauss-Seidel sweeps over 1024 × 1024 points."""
    return Program(gauss_seidel, ((orion.array(np.random.default_rng(0).random((1024, 1024))), 20),))


def pagerank() -> Program:
    """An iteration over 200,000 pages with eight links each."""
    ranks = Ranks(web(200_000, 8, 0), "pull", 0.85)
    first, second, share, links = map(orion.array, (ranks.rank, ranks.other, ranks.share, ranks.links))
    turns = ((second, first), (first, second))
    return Program(pull, tuple((new, rank, share, ranks.ptr, ranks.idx, links, 0.85) for new, rank in turns))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "SGD-MF": lambda: sgd_mf(1_000_000),
    "SGD-MF, 5 million": lambda: sgd_mf(5_000_000),
    "Gauss-Seidel": sweeps,
    "PageRank": pagerank,
}
