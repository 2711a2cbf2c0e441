"""The generated ratings of the examples, for the benchmarks."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from ratings_data import Ratings, generate, split

__all__ = ["Ratings", "generate", "split", "test_rmse"]


def test_rmse(W: Any, H: Any, ratings: Ratings) -> float:
    """Root mean square error of the predictions `W[i] @ H[j]` of ratings, in stars."""
    W, H = np.asarray(W), np.asarray(H)
    total = 0.0
    for start in range(0, len(ratings), 100_000):
        part = ratings.part(slice(start, start + 100_000))
        predicted = np.einsum("nk,nk->n", W[part.users], H[part.items])
        total += float(np.sum((part.stars - predicted) ** 2, dtype=np.float64))
    return (total / len(ratings)) ** 0.5
