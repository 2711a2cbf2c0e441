"""A legal way to cut a loop into tiles, as the rules give it and as grids, placements and costs are asked about it."""

from __future__ import annotations

from enum import StrEnum

from orion.dataclass import dataclass


class Strategy(StrEnum):
    """How the tiles of a loop may follow one another: the names of the strategies of `orion.analysis.rules`."""

    SERIAL = "serial"
    INSPECTED = "inspected"
    WAVEFRONT = "wavefront"
    ND = "nd"
    TWO_D = "2d"
    ONE_D = "1d"
    RELAXED = "relaxed"
    INDEPENDENT = "independent"

    def __repr__(self) -> str:
        return repr(self.value)  # at a prompt it is the string


@dataclass(frozen=True, slots=True)
class Candidate:
    """A legal way to run a loop: the dimension shared out among workers, and those along which tiles follow another."""

    strategy: Strategy
    space: int
    time: tuple[int, ...] = ()
