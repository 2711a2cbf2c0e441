"""Generated ratings: a skewed, noisy, low-rank matrix of the shape of a MovieLens data set.

A rating is ``mean + user bias + item bias + taste . trait + noise``, rounded to half stars between 0.5 and 5.
Users and items are drawn with Zipf-Mandelbrot frequencies (Mandelbrot 1953), each pair at most once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TRUE_RANK = 8  # of the tastes; the biases and the mean add two more
_USER_BIAS, _ITEM_BIAS, _TASTE, _NOISE = 0.40, 0.50, 0.62, 0.64  # standard deviations, in stars
_MEAN = 3.3


@dataclass(frozen=True)
class Shape:
    """How large and how skewed a data set is: id r is drawn in proportion to 1 / (r + offset)**exponent."""

    users: int
    items: int
    ratings: int
    exponents: tuple[float, float]
    offsets: tuple[float, float]


SHAPES = {
    "100k": Shape(943, 1_682, 100_000, (0.9, 1.2), (60, 60)),
    "1m": Shape(6_040, 3_706, 1_000_000, (0.9, 1.2), (60, 120)),
    "10m": Shape(71_567, 10_681, 10_000_000, (0.9, 1.2), (600, 150)),
}


@dataclass(frozen=True)
class Ratings:
    """Ratings as three arrays of one length: user ids, item ids (int32, from 0) and stars (float32)."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    stars: NDArray[np.float32]
    shape: tuple[int, int]

    def __len__(self) -> int:
        return len(self.stars)

    def part(self, chosen: NDArray[np.integer] | slice) -> Ratings:
        """The chosen ratings, in that order, of a matrix of the same shape."""
        return Ratings(self.users[chosen], self.items[chosen], self.stars[chosen], self.shape)


def generate(shape: str | Shape = "1m", seed: int = 0) -> Ratings:
    """Ratings of one of ``SHAPES`` (or of a ``Shape``), in random order; the same for the same seed.

    >>> ratings = generate(Shape(50, 40, 300, (0.9, 1.2), (5, 5)))
    >>> len(ratings), ratings.shape, ratings.users.dtype.name, ratings.stars.dtype.name
    (300, (50, 40), 'int32', 'float32')
    >>> len(set(zip(ratings.users.tolist(), ratings.items.tolist())))
    300
    """
    size = SHAPES[shape] if isinstance(shape, str) else shape
    rng = np.random.default_rng(seed)
    users, items = _pairs(rng, size)
    stars = _stars(rng, size, users, items)
    return Ratings(users, items, stars, (size.users, size.items))


def split(ratings: Ratings, test: float = 0.1, seed: int = 1) -> tuple[Ratings, Ratings]:
    """Random train and test parts; ``test`` is the share of the second.

    >>> train, held_out = split(generate(Shape(50, 40, 300, (0.9, 1.2), (5, 5))), test=0.2)
    >>> len(train), len(held_out)
    (240, 60)
    """
    order = np.random.default_rng(seed).permutation(len(ratings))
    held_out = round(test * len(ratings))
    return ratings.part(order[held_out:]), ratings.part(order[:held_out])


def _pairs(rng: np.random.Generator, size: Shape) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """``size.ratings`` different (user, item) pairs: draw, drop repeats, draw again what is missing."""
    if size.ratings > size.users * size.items // 2:
        raise ValueError(f"{size.ratings} different ratings are too many for {size.users} x {size.items}")
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < size.ratings:
        draws = int(1.3 * (size.ratings - len(keys))) + 100
        users = _zipf(rng, size.users, draws, size.exponents[0], size.offsets[0])
        items = _zipf(rng, size.items, draws, size.exponents[1], size.offsets[1])
        rng.shuffle(items)
        keys = np.sort(np.concatenate([keys, users * size.items + items]))
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    keys = rng.permutation(keys)[: size.ratings]
    # The most frequent users and items get ids from everywhere in the range, as in real data.
    user_ids = rng.permutation(size.users).astype(np.int32)
    item_ids = rng.permutation(size.items).astype(np.int32)
    return user_ids[keys // size.items], item_ids[keys % size.items]


def _zipf(rng: np.random.Generator, n: int, draws: int, exponent: float, offset: float) -> NDArray[np.int64]:
    """``draws`` ids below ``n``, ascending; id ``r`` comes up in proportion to 1 / (r + offset)**exponent."""
    weights = (np.arange(1, n + 1) + offset) ** -exponent
    return np.repeat(np.arange(n), rng.multinomial(draws, weights / weights.sum()))


def _stars(
    rng: np.random.Generator, size: Shape, users: NDArray[np.int32], items: NDArray[np.int32]
) -> NDArray[np.float32]:
    tastes = rng.standard_normal((size.users, _TRUE_RANK), dtype=np.float32)
    traits = rng.standard_normal((size.items, _TRUE_RANK), dtype=np.float32)
    traits *= np.float32(_TASTE / np.sqrt(_TRUE_RANK))
    user_bias = np.float32(_USER_BIAS) * rng.standard_normal(size.users, dtype=np.float32)
    item_bias = np.float32(_ITEM_BIAS) * rng.standard_normal(size.items, dtype=np.float32)
    stars = np.float32(_MEAN) + user_bias[users] + item_bias[items]
    for k in range(_TRUE_RANK):  # by column: no array of ratings x rank
        stars += tastes[users, k] * traits[items, k]
    stars += np.float32(_NOISE) * rng.standard_normal(len(stars), dtype=np.float32)
    return np.clip(np.round(2 * stars) / 2, 0.5, 5).astype(np.float32)
