"""Recommendations from what users liked, by Bayesian personalised ranking: users exactly, items a little late.

    python examples/bpr.py                                       # generated likes
    python examples/bpr.py --rank 32 --max-delay 2000 --picture auc.svg
    python examples/bpr.py --backend ray --workers 2

There are no ratings, only pairs of a user and an item that the user liked. For each of them an item is drawn that this
user has not liked, by `orion.random`, whose numbers are those of the pair and of the epoch on any number of workers; a
step makes the product of factors of the liked item greater than that of the other one. (Rendle, Freudenthaler, Gantner,
Schmidt-Thieme: *BPR: Bayesian personalized ranking from implicit feedback*, UAI 2009.)

Two pairs of one user both write the user's factors: pairs are shared out by users, and these are exact. Any two pairs
may draw the same item, so that no order is left to run them in at once. The factors of items have an `orion.buffer`:
each worker collects its steps, and applies them so many pairs later at most.

AUC is the share of items that a user has not liked which have a smaller product than one that was held out, over all
users: 0.5 by chance, 1 at best. It stands next to that of the serial run, and of items ranked by how many like them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from live import steps, waiting
from numpy.typing import NDArray
from options import add_running_options, non_negative, parsed, picture_file, positive, whole
from pictures import save_curves

import orion

DRAWS = 8
"""So many items are drawn for a pair at most; where the user liked all of them the pair is left out this time."""

# ------------------------------------------------------------------------------------------------ the loops


def has_liked(ptr, items, u, j):
    """Whether item j is one of the sorted `items[ptr[u] : ptr[u + 1]]`."""
    low, high = ptr[u], ptr[u + 1]
    while low < high:
        middle = (low + high) // 2
        if items[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low < ptr[u + 1] and items[low] == j


@orion.parallel_for
def rank_pairs(likes, ptr, items, W, H, h_late, step, reg, seed):
    for (u, i), _ in likes:
        j = orion.random.integers(0, H.shape[0], seed, u, i, 0)
        draws = 1
        while draws < DRAWS and has_liked(ptr, items, u, j):
            j = orion.random.integers(0, H.shape[0], seed, u, i, draws)
            draws += 1
        if not has_liked(ptr, items, u, j):
            x = 0.0
            for k in range(W.shape[1]):
                x += W[u, k] * (H[i, k] - H[j, k])
            g = 1.0 / (1.0 + np.exp(x))
            for k in range(W.shape[1]):
                w = W[u, k]
                more = H[i, k]
                less = H[j, k]
                W[u, k] += step * (g * (more - less) - reg * w)
                h_late[i, k] += step * (g * w - reg * more)
                h_late[j, k] -= step * (g * w + reg * less)


@orion.parallel_for
def auc(held, ptr, items, W, H):
    total = 0.0
    for u in range(len(held)):
        own = W[u] @ H[held[u]]
        below = 0
        others = 0
        for j in range(H.shape[0]):
            if j != held[u] and not has_liked(ptr, items, u, j):
                others += 1
                below += W[u] @ H[j] < own
        total += below / max(others, 1)
    return total / len(held)


# ------------------------------------------------------------------------------------------------ the likes


@dataclass(frozen=True)
class Likes:
    """User u liked `items[ptr[u] : ptr[u + 1]]`, in ascending order, and `held[u]`, which is held out."""

    ptr: NDArray[np.int64]
    items: NDArray[np.int64]
    held: NDArray[np.int64]
    shape: tuple[int, int]

    def pairs(self) -> Any:
        """The likes as a sparse array."""
        users = np.repeat(np.arange(self.shape[0]), np.diff(self.ptr))
        return orion.sparse((users, self.items), np.ones(len(self.items), np.uint8), shape=self.shape)


def generated(users: int, items: int, each: int, seed: int) -> Likes:
    """Every user likes `each` items and one more, which is held out: more often those of many tastes, and those of
    this user's own, which are drawn from a model of eight factors."""
    rng = np.random.default_rng(seed)
    tastes, traits = rng.standard_normal((users, 8)), rng.standard_normal((items, 8))
    scores = 0.7 * tastes @ traits.T + 1.0 * rng.standard_normal(items)
    drawn = np.argpartition(-(scores + rng.gumbel(size=scores.shape)), each, axis=1)[:, : each + 1]
    drawn = rng.permuted(drawn, axis=1)
    ptr = orion.freeze(np.arange(users + 1) * each)
    return Likes(ptr, orion.freeze(np.sort(drawn[:, :each], axis=1).ravel()), drawn[:, each].copy(), (users, items))


def popularity(likes: Likes) -> float:
    """AUC where all users have the same ranks: by how many like an item."""
    often = np.bincount(likes.items, minlength=likes.shape[1]).astype(np.float32)[:, None]
    return float(auc(likes.held, likes.ptr, likes.items, np.ones((likes.shape[0], 1), np.float32), often))


# ------------------------------------------------------------------------------------------------ the training


class Ranking:
    """Factors of users and of items, random at first."""

    def __init__(self, likes: Likes, options: argparse.Namespace, max_delay: int) -> None:
        self.likes, self.pairs, self.options, self.epochs = likes, likes.pairs(), options, 0
        rng = np.random.default_rng((options.seed, 1))  # other numbers than those that the likes are drawn by
        self.W, self.H = (0.1 * rng.standard_normal((n, options.rank)).astype(np.float32) for n in likes.shape)
        self.late = orion.buffer(self.H, max_delay=max_delay)

    def arguments(self) -> tuple[Any, ...]:
        """Of the next epoch."""
        likes, given = self.likes, self.options
        seed = given.seed * 2**32 + self.epochs
        return self.pairs, likes.ptr, likes.items, self.W, self.H, self.late, given.step, given.reg, seed

    def train(self) -> float:
        """Go through all pairs; returns the seconds it took."""
        start = perf_counter()
        rank_pairs(*self.arguments())
        self.epochs += 1
        return perf_counter() - start

    def auc(self) -> float:
        return float(auc(self.likes.held, self.likes.ptr, self.likes.items, self.W, self.H))


@dataclass(frozen=True)
class Outcome:
    """AUC before the first epoch and after each, the median seconds of an epoch, the most pairs by which a step of
    another worker was late, and the factors."""

    curve: list[float]
    seconds: float
    latest: int
    ranking: Ranking


def trained(name: str, likes: Likes, options: argparse.Namespace, max_delay: int) -> Outcome:
    with waiting(f"{name}: planning and compiling"):
        Ranking(likes, options, max_delay).train()  # its factors are thrown away
    ranking = Ranking(likes, options, max_delay)
    curve, seconds, latest = [ranking.auc()], [], 0
    for _ in steps(f"{name}: epochs", options.epochs):
        seconds.append(ranking.train())
        latest = max([latest, *(one.latest for one in rank_pairs.last_run.late)])
        curve.append(ranking.auc())
    return Outcome(curve, median(seconds), latest, ranking)


# ------------------------------------------------------------------------------------------------ the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Bayesian personalised ranking, with factors of items that are late.")
    parser.add_argument("--users", type=whole(1), default=4000, help="(default: %(default)s)")
    parser.add_argument("--items", type=whole(2), default=2000, help="(default: %(default)s)")
    parser.add_argument("--likes", type=whole(1), default=40, help="of each user (default: %(default)s)")
    parser.add_argument("--rank", type=whole(1), default=16, help="length of a row of factors (default: %(default)s)")
    parser.add_argument("--epochs", type=whole(1), default=12, help="times through the likes (default: %(default)s)")
    parser.add_argument("--step", type=positive, default=0.1, help="(default: %(default)s)")
    parser.add_argument("--reg", type=non_negative, default=0.01, help="the penalty on factors (default: %(default)s)")
    parser.add_argument(
        "--max-delay",
        type=whole(1),
        default=10_000,
        metavar="PAIRS",
        help="that steps of other workers may be late (default: %(default)s)",
    )
    parser.add_argument("--picture", type=picture_file(".svg"), metavar="FILE", help=".svg: AUC by epochs")
    add_running_options(parser, last_seed=2**31 - 1)
    options = parsed(parser, arguments)
    if options.likes + 2 > options.items:
        parser.error(f"--likes {options.likes}, one held out and one not liked are more than --items {options.items}")
    return options


def show(found: dict[str, Outcome]) -> None:
    """AUC of both runs side by side, and what an epoch took."""
    print("\nAUC of what was held out\nepoch " + "".join(f"{name:>10}" for name in found))
    for number, row in enumerate(zip(*(one.curve for one in found.values()), strict=True)):
        print(f"{number:5d} " + "".join(f"{value:10.4f}" for value in row))
    print("ms    " + "".join(f"{1e3 * one.seconds:10.2f}" for one in found.values()))
    print("late  " + "".join(f"{one.latest:10,}" for one in found.values()))
    print("ms: the median of epochs; late: the most pairs by which a step of another worker was late")


def run(options: argparse.Namespace) -> dict[str, Outcome]:
    likes = generated(options.users, options.items, options.likes, options.seed)
    print(
        f"{len(likes.items):,} likes of {options.items:,} items by {options.users:,} users; one more of each held out"
    )
    found = {}
    with orion.session("serial", 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", orion.SerialLoopWarning)  # it is to be so
        found["serial"] = trained("serial", likes, options, 0)
    with orion.session(options.backend, options.workers):
        with waiting("ranking by popularity"):
            level = popularity(likes)
        print(f"AUC of items ranked by how many like them: {level:.4f}")
        print(f"\n{rank_pairs.plan(*Ranking(likes, options, options.max_delay).arguments())}", flush=True)
        found["late"] = trained("late", likes, options, options.max_delay)
    show(found)
    if options.picture is not None:
        curves = {name: [*enumerate(one.curve)] for name, one in found.items()}
        save_curves(options.picture, curves, ("epochs", "AUC"), {f"by popularity: {level:.4f}": level})
        print(f"\n{options.picture}: AUC by epochs, and that of popularity, dashed")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"bpr.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
