"""A legal way to cut a loop into tiles, as the rules give it and as grids, placements and costs are asked about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A legal way to run a loop: the dimension shared out among workers, and those along which tiles follow another."""

    strategy: str
    space: int
    time: tuple[int, ...] = ()
