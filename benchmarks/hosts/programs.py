"""The programs that run on several hosts, on Orion's own arrays: what stays where it is from call to call is not sent
again. Each is made in sizes: at scale 4 nodes send each other about four times the bytes that they do at scale 1."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
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
    """A function, the arguments of calls that take turns, and its size in words."""

    function: Any
    turns: tuple[tuple[Any, ...], ...]
    about: str

    def call(self, number: int) -> None:
        """Call it."""
        self.function(*self.turns[number % len(self.turns)])

    def measure(self) -> None:
        """Measure its loops on the workers of the session, for what its plan says of times."""
        self.function.measure(*self.turns[0])

    def estimate(self, nodes: int, bandwidth: float, latency: float) -> Any:
        """What its plan says of a call on so many nodes, with links of so many bytes per second."""
        return self.function.plan(*self.turns[0]).estimate(nodes=nodes, bandwidth=bandwidth, latency=latency)


@cache
def ratings_of(count: int) -> orion.SparseArray:
    """So many ratings of as many users and items as MovieLens-1M has: the same array for all sizes, so that slow links
    carry it once."""
    found = generate(replace(SHAPES["1m"], ratings=count))
    return orion.sparse((found.users, found.items), found.stars, shape=found.shape)


def sgd_mf(count: int, scale: float) -> Program:
    """So many ratings, 32 factors at scale 1, five epochs in a call."""
    data, factors = ratings_of(count), round(32 * scale)
    rng = np.random.default_rng(0)
    first = np.float32(factors**-0.5)
    W, H = (orion.array(rng.random((n, factors), np.float32) * first) for n in data.shape)
    return Program(sgd, ((data, W, H, np.float32(0.005), np.float32(0.05), 5),), f"{factors} factors")


def sweeps(scale: float) -> Program:
    """Twenty Gauss-Seidel sweeps, over 1024 × 1024 points at scale 1."""
    side = round(1024 * sqrt(scale))
    A = orion.array(np.random.default_rng(0).random((side, side)))
    return Program(gauss_seidel, ((A, 20),), f"{side}² points")


def pagerank(scale: float) -> Program:
    """An iteration, over 200,000 pages with eight links each at scale 1."""
    pages = round(200_000 * scale)
    ranks = Ranks(web(pages, 8, 0), "pull", 0.85)
    first, second, share, links = map(orion.array, (ranks.rank, ranks.other, ranks.share, ranks.links))
    turns = ((second, first), (first, second))
    calls = tuple((new, rank, share, ranks.ptr, ranks.idx, links, 0.85) for new, rank in turns)
    return Program(pull, calls, f"{pages:,} pages")


SCALES = (0.0625, 0.25, 1.0, 4.0)
PROGRAMS: dict[str, Callable[[float], Program]] = {
    "SGD-MF": lambda scale: sgd_mf(1_000_000, scale),
    "SGD-MF, 5 million": lambda scale: sgd_mf(5_000_000, scale),
    "Gauss-Seidel": sweeps,
    "PageRank": pagerank,
}
