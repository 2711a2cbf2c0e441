"""The scalars that a loop takes from one of its iterations, from what its tiles took from theirs.

Why this is what the loop as written would take is said in `orion.dependence.choices` and
`orion.dependence.early_exits`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.kernel.calling import ANEW, NOWHERE, Argument
from orion.passes.extremes import AGAINST, NANS_WIN
from orion.schedule.schedule import Ints, Schedule

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """A choice of a loop: where its scalars and the components of its places are among the outputs of the loop, and
    what says whether it has begun anew, if anything does."""

    op: str
    scalars: tuple[int, ...]
    places: tuple[int, ...]
    anew: int | None


def choices_among(outputs: Sequence[Argument]) -> tuple[Chosen, ...]:
    """The choices that the arguments for the outputs of a loop are about."""
    numbers = dict.fromkeys(output.position for output in outputs if output.kind == "chosen")
    return tuple(_choice(number, outputs) for number in numbers)


def _choice(number: int, outputs: Sequence[Argument]) -> Chosen:
    scalars = tuple(k for k, o in enumerate(outputs) if o.kind == "chosen" and o.position == number)
    first = outputs[scalars[0]]
    places = tuple(k for k, o in enumerate(outputs) if o.kind == "place" and o.name == first.name and o.op != ANEW)
    anew = (k for k, o in enumerate(outputs) if o.kind == "place" and o.name == first.name and o.op == ANEW)
    return Chosen(first.op, scalars, places, next(anew, None))


def tile_ranks(schedule: Schedule) -> Ints:
    """The place of each tile in the serial order that an unordered loop equals."""
    ranks = np.empty(schedule.tiles, np.int64)
    ranks[schedule.serial_tiles()] = np.arange(schedule.tiles)
    return ranks


def last_tile(outputs: Iterable[tuple[int, int, str, Any]], turn: int) -> int | None:
    """The first tile that has ended its loop, from the outputs of the loop; None where none has.

    >>> last_tile([(0, 0, "ended", np.array([[0, 0, 0], [0, 1, 1]]))], turn=1)
    1
    """
    for _, _, op, pair in outputs:
        if op == "ended":
            tiles = np.flatnonzero(pair[turn] == 1)
            return int(tiles[0]) if tiles.size else None
    return None


def counted(last: int | None) -> int | None:
    """How many tiles count, in the order of their numbers, where this one has ended the loop; None for all."""
    return None if last is None else last + 1


def is_taken(op: str, new: Any, old: Any) -> bool:
    """Whether a value is taken in place of the one before, by an op of `orion.passes.extremes`.

    >>> [is_taken(op, 1.0, float("nan")) for op in ("<", "!<", "n<")]
    [False, True, False]
    >>> [is_taken(op, float("nan"), 1.0) for op in ("<", "!<", "n<")]
    [False, True, True]
    """
    if op.startswith(AGAINST):
        return not COMPARE[op[1:]](new, old)
    return bool(COMPARE[op.removeprefix(NANS_WIN)](new, old) or (op.startswith(NANS_WIN) and new != new))


def winner(op: str, values: NDArray[Any], places: Iterable[Ints], ranks: Ints | None) -> int | None:
    """The tile that a choice is taken from; None where no iteration of any tile set it.

    `values` are those of its first scalar, `places` the components of its places. Tiles are compared in the order of
    their places, or of their `ranks`, where the loop may be run in any order.

    >>> places = [np.array([3, NOWHERE, 1])]
    >>> winner(">", np.array([7, 9, 7]), places, None), winner(">=", np.array([7, 9, 7]), places, None)
    (2, 0)
    """
    tiles = _in_order(places, ranks)
    if op == "last" or not tiles:
        return tiles[-1] if tiles else None
    best = tiles[0]
    for tile in tiles[1:]:
        if is_taken(op, values[tile], values[best]):
            best = tile
    return best


def winner_anew(
    op: str, values: NDArray[Any], places: Iterable[Ints], ranks: Ints | None, anew: Ints, start: Any
) -> int | None:
    """The same for a choice that a NaN makes begin anew, which it did in the tiles that `anew` has a 1 for. `start` is
    what it was before the loop; None where no tile has anything better.

    >>> places, anew = [np.array([0, 4, 8])], np.array([0, 1, 0])
    >>> winner_anew("!<", np.array([9.0, 2.0, 1.0]), places, None, anew, 5.0)
    1
    """
    best = None
    for tile in _in_order(places, ranks):
        if anew[tile] or is_taken(op, values[tile], start if best is None else values[best]):
            best = tile
    return best


def _in_order(places: Iterable[Ints], ranks: Ints | None) -> list[int]:
    """The tiles that set a choice, in the order of their places or ranks."""
    places = tuple(places)
    taken = np.flatnonzero(places[0] != NOWHERE)
    keys = [place[taken] for place in reversed(places)] if ranks is None else [ranks[taken]]
    found: list[int] = taken[np.lexsort(keys)].tolist()
    return found
