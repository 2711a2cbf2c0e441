"""How the blocks of a loop's space dimension are dealt out to its workers: in equal shares, or by measured times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass

Ints = NDArray[np.int64]

EVEN_ENOUGH = 1.05
"""Shares are equal where the last worker would be done no later than this times as long after others: times of the same
tiles differ by as much, and what stays where it was need not move."""


@dataclass(frozen=True, slots=True)
class Even:
    """Each worker has as many blocks as any other, give or take one. Where it `follows_times`, calls on several nodes
    deal them out anew when some workers have computed for longer than others."""

    follows_times: bool


@dataclass(frozen=True, slots=True)
class ByTimes:
    """Worker w has `blocks[w]` blocks, at least one, as many as `speeds[w]` says: how much it got done per second in
    the calls before, the fastest having 1. So since call number `since` on these workers, the first one being 1."""

    blocks: tuple[int, ...]
    speeds: tuple[float, ...]
    since: int

    @property
    def follows_times(self) -> bool:
        """It does: with other times there is another deal."""
        return True


Deal = Even | ByTimes


def owners(deal: Deal, blocks: int, workers: int, *, in_turn: bool) -> Ints:
    """The worker of each block, int64 (blocks,): runs of neighbours, or `in_turn`. Shares by times are those of as many
    workers as were measured; any other number of workers has equal ones.

    >>> owners(Even(follows_times=True), 6, 2, in_turn=False).tolist()
    [0, 0, 0, 1, 1, 1]
    >>> by_times = ByTimes((2, 4), (0.5, 1.0), 4)
    >>> owners(by_times, 6, 2, in_turn=False).tolist(), owners(by_times, 6, 2, in_turn=True).tolist()
    ([0, 0, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1])
    """
    numbers = np.arange(blocks)
    if not isinstance(deal, ByTimes) or len(deal.blocks) != workers:
        return numbers % workers if in_turn else numbers * workers // blocks
    owner = np.repeat(np.arange(workers), deal.blocks)
    if not in_turn:
        return owner
    turns = np.concatenate([(np.arange(count) + 0.5) / count for count in deal.blocks])  # evenly spread, each
    return owner[np.lexsort((owner, turns))]


def shares(speeds: Sequence[float], blocks: int) -> tuple[int, ...]:
    """How many of the blocks each worker gets, at least one, so that the last one is done as early as can be: each
    block goes to the worker that would be done with it first.

    >>> shares((1.0, 1.0), 8), shares((0.5, 1.0), 8), shares((0.01, 1.0), 8)
    ((4, 4), (3, 5), (1, 7))
    """
    counts = np.ones(len(speeds), np.int64)
    speed = np.asarray(speeds, np.float64)
    for _ in range(blocks - len(speeds)):
        counts[int(((counts + 1) / speed).argmin())] += 1
    return tuple(counts.tolist())


def dealt_by_times(speeds: Sequence[float], blocks: int, since: int) -> Deal:
    """The deal of so many blocks to workers of these speeds; an even one where that is about as good."""
    even, found = Even(follows_times=True), shares(speeds, blocks)
    equal = np.bincount(owners(even, blocks, len(speeds), in_turn=False), minlength=len(speeds))
    best, at_even = (float((np.array(counts) / speeds).max()) for counts in (found, equal))
    return even if at_even <= EVEN_ENOUGH * best else ByTimes(found, tuple(speeds), since)
