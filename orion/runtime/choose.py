"""The scalars that a loop takes from one of its iterations, from what its tiles took from theirs.

Why this is what the loop as written would take is said in `orion.dependence.choices`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.calling import NOWHERE, Argument
from orion.schedule.schedule import Ints, Schedule

BETTER: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """A choice of a loop: where its scalars and the components of its places are among the outputs of the loop."""

    op: str
    scalars: tuple[int, ...]
    places: tuple[int, ...]


def choices_among(outputs: Sequence[Argument]) -> tuple[Chosen, ...]:
    """The choices that the arguments for the outputs of a loop are about."""
    numbers = dict.fromkeys(output.position for output in outputs if output.kind == "chosen")
    return tuple(_choice(number, outputs) for number in numbers)


def _choice(number: int, outputs: Sequence[Argument]) -> Chosen:
    scalars = tuple(k for k, o in enumerate(outputs) if o.kind == "chosen" and o.position == number)
    first = outputs[scalars[0]]
    places = tuple(k for k, o in enumerate(outputs) if o.kind == "place" and o.name == first.name)
    return Chosen(first.op, scalars, places)


def tile_ranks(schedule: Schedule) -> Ints:
    """The place of each tile in the serial order that an unordered loop equals."""
    ranks = np.empty(schedule.tiles, np.int64)
    ranks[schedule.serial_tiles()] = np.arange(schedule.tiles)
    return ranks


def winner(op: str, values: NDArray[Any], places: Iterable[Ints], ranks: Ints | None) -> int | None:
    """The tile that a choice is taken from; None where no iteration of any tile set it.

    `values` are those of its first scalar, `places` the components of its places. Tiles are compared in the order of
    their places, or of their `ranks`, where the loop may be run in any order.

    >>> places = [np.array([3, NOWHERE, 1])]
    >>> winner(">", np.array([7, 9, 7]), places, None), winner(">=", np.array([7, 9, 7]), places, None)
    (2, 0)
    """
    places = tuple(places)
    taken = np.flatnonzero(places[0] != NOWHERE)
    keys = [place[taken] for place in reversed(places)] if ranks is None else [ranks[taken]]
    tiles = taken[np.lexsort(keys)].tolist()
    if op == "last" or not tiles:
        return tiles[-1] if tiles else None
    best: int = tiles[0]
    for tile in tiles[1:]:
        if BETTER[op](values[tile], values[best]):
            best = tile
    return best
