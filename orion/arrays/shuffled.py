"""Arrays whose rows or elements change places from epoch to epoch: what users call, and how rows move in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from math import isfinite
from numbers import Integral, Rational, Real
from operator import index
from threading import current_thread, main_thread
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from orion.arrays.base import DistArray
from orion.arrays.exchange import Exchange, Ints
from orion.arrays.partition import even_bounds
from orion.arrays.permuted import checked_seed
from orion.arrays.storage import SESSION
from orion.aside import Aside
from orion.errors import ArgumentError, describe
from orion.tracebacks import ends_in_users_line

LEAST_ROOM = 1 << 20
"""Bytes that rows are moved through at least."""

NARROW = 16
"""Rows of so few bytes are copied at once: to move them part by part takes as many bytes for where each of them is."""

LAST_EPOCH = 2**64 - 1


class Shuffled(DistArray):
    """Array with an order of rows, or of elements, that may change from epoch to epoch."""

    _last_shuffle: Exchange | None = None

    @property
    def last_shuffle(self) -> Exchange | None:
        """Record of the array's last `shuffle` (`orion.arrays.exchange.Exchange`), None before the first."""
        return self._last_shuffle

    @ends_in_users_line
    def shuffle(self, exchange: float, seed: int, *, ranks: int | None = None, epoch: int | None = None) -> Self:
        """Shuffle the rows of a dense array, or the elements of a sparse one, in place; return the array itself. Call
        it before each epoch.

        - `exchange`: the part of each share that moves to other shares, from 0 to 1. 0 only shuffles within shares. 1
          gives one random order of all rows, the same for any number of ranks. A decimal fraction counts as written:
          0.29 of 100 is 29.
        - `seed`: an integer from 0 on.
        - `ranks`: the number of equal shares, from 1 to the number of rows; by default the workers of the session.
        - `epoch`: from 0 to 2⁶⁴ - 1. By default 0 for the first shuffle of an array, then one more than the last.
          Checkpoints and saved arrays keep it, with the order.

        Each share is first shuffled by itself. Then ⌊exchange · n⌋ rows of each share change places with those of
        others, along permutations of the ranks; n is the size of the smallest share. Every rank sends as many rows as
        it receives (`orion.arrays.exchange` has the rule, and its source). `last_shuffle` has the numbers: `sent` per
        rank, and `bytes`.

        The order depends on the number of rows and these arguments alone, on any machine. Equal calls thus shuffle
        samples and their labels alike.

        A loop over rows then has other rows in each worker's blocks. An unordered loop over a sparse array has another
        order within each tile; keys decide the tile. `coords` and `values` have the new order, too, and rows move in
        memory, so that views show it.

        Memory: for dense rows the exchanged part, or 1 MiB, and 8 to 24 bytes per row. For a sparse array, both orders.
        An error or Ctrl-C leaves the array unshuffled, or shuffled as a whole.

        Errors: `ArgumentError` for other arguments, and for an array without rows, with fewer rows than ranks, or in
        read-only memory.

        >>> from orion.arrays.dense import array
        >>> X = array([[0, 0], [1, 1], [2, 2], [3, 3]])
        >>> X.shuffle(exchange=0.5, seed=7, ranks=2).to_numpy()[:, 0]
        array([2, 0, 1, 3])
        >>> X.last_shuffle
        Exchange(epoch 0, 0.5 of 2 shares with seed 7: 2 of 4 elements sent, 32 bytes)
        """
        self._reorder(self.plan_shuffle(exchange, seed, ranks=ranks, epoch=epoch))
        return self

    @ends_in_users_line
    def plan_shuffle(
        self, exchange: float, seed: int, *, ranks: int | None = None, epoch: int | None = None
    ) -> Exchange:
        """Return the record of a `shuffle` with these arguments: how many elements each rank would send, and the bytes.

        It changes nothing, and reads no contents.

        >>> from orion.arrays.dense import zeros
        >>> zeros((1000, 8)).plan_shuffle(exchange=0.1, seed=7, ranks=4)
        Exchange(epoch 0, 0.1 of 4 shares with seed 7: 81 of 1,000 elements sent, 5,184 bytes)
        """
        part, found = checked_part(exchange), checked_seed(seed)
        count = len(self) if self.ndim else 0
        if not count:
            what = f"{self!r} has nothing to shuffle"
            raise ArgumentError(describe(what, hint="shuffle an array that has rows, or elements"))
        shares = np.diff(even_bounds(count, checked_ranks(ranks, count)))
        last = self._last_shuffle
        number = (0 if last is None else last.epoch + 1) if epoch is None else _checked_epoch(epoch)
        return Exchange.of(tuple(shares.tolist()), part, found, number, self._element_bytes)

    def shuffled_like(self, other: object) -> None:
        """Continue counting epochs from the last shuffle of another array, whose contents this one has taken over."""
        self._last_shuffle = other._last_shuffle if isinstance(other, Shuffled) else None

    @property
    @abstractmethod
    def _element_bytes(self) -> int:
        """Bytes of a row or an element, without padding."""

    @abstractmethod
    def _reorder(self, exchange: Exchange) -> None:
        """Give the array the order of an exchange, and record it: both, or neither."""


# ---------------------------------------------------------------- what users give


def checked_part(given: object) -> Fraction:
    """Return a part of a share as an exact number; floats are their shortest decimal fractions.

    >>> checked_part(0.29), checked_part(1)
    (Fraction(29, 100), Fraction(1, 1))
    """
    is_number = isinstance(given, Real) and not isinstance(given, bool) and isfinite(given)
    if not is_number or not 0 <= given <= 1:  # type: ignore[operator]
        hint = "0 shuffles each share by itself, 1 all rows together, 0.1 exchanges a tenth of each share"
        raise ArgumentError(describe(f"exchange={given!r} is no number from 0 to 1", hint=hint))
    if isinstance(given, Rational):
        return Fraction(int(given.numerator), int(given.denominator))
    return Fraction(repr(float(given)))  # type: ignore[arg-type]


def checked_ranks(given: object, count: int) -> int:
    """The number of shares of so many rows; that of the session's workers where it is None."""
    if given is None:
        ranks: int = import_module(SESSION).planned_workers()[0]
        told = f"the session has {ranks} workers"
    else:
        if not isinstance(given, Integral) or isinstance(given, bool) or given < 1:
            hint = "give a whole number from 1 on, or leave it out for the workers of the session"
            raise ArgumentError(describe(f"ranks={given!r} is no number of shares", hint=hint))
        ranks, told = int(given), f"ranks={given}"
    if ranks > count:
        what = f"{count} rows or elements cannot be cut into {ranks} shares"
        raise ArgumentError(describe(what, why=told, hint=f"say ranks={count}, or fewer"))
    return ranks


def _checked_epoch(given: object) -> int:
    try:
        found = index(given)  # type: ignore[arg-type]
    except TypeError:
        found = -1
    if not 0 <= found <= LAST_EPOCH:
        hint = "leave it out: then epochs are counted"
        raise ArgumentError(describe(f"epoch={given!r} is no integer from 0 to 2**64 - 1", hint=hint))
    return found


# ---------------------------------------------------------------- kept in files


def shuffle_to_plain(array: Shuffled) -> dict[str, Any] | None:
    """The last shuffle of an array as plain numbers, None where there was none."""
    last = array.last_shuffle
    if last is None:
        return None
    names = ("slots", "is_whole", "seed", "epoch", "fraction")
    return {"ranks": last.ranks, **{name: getattr(last, name) for name in names}}


def shuffled_as_told(array: Shuffled, told: dict[str, Any] | None) -> None:
    """Have an array keep a last shuffle, as `shuffle_to_plain` gives it. ValueError for what cannot be one."""
    if told is None:
        return
    count, ranks = len(array), told["ranks"]
    kinds = {"ranks": int, "slots": int, "is_whole": bool, "seed": int, "epoch": int, "fraction": float}
    wrong = [name for name, kind in kinds.items() if type(told[name]) is not kind]
    if wrong or not 1 <= ranks <= count or not 0 <= told["slots"] <= count // ranks or told["seed"] < 0:
        raise ValueError("its last shuffle is none of such an array")
    if not 0 <= told["epoch"] <= LAST_EPOCH or not 0 <= told["fraction"] <= 1:
        raise ValueError("its last shuffle is none of such an array")
    counts = tuple(np.diff(even_bounds(count, ranks)).tolist())
    own = {name: told[name] for name in ("slots", "is_whole", "seed", "epoch", "fraction")}
    array._last_shuffle = Exchange(counts, element_bytes=array._element_bytes, **own)


# ---------------------------------------------------------------- how rows move


def as_a_whole(work: Callable[[], None]) -> None:
    """Do work that must not be interrupted: what a signal handler raises meanwhile is raised when it is done."""
    if current_thread() is not main_thread():
        work()
        return
    doing = Aside(work)
    raised: BaseException | None = None
    while not doing.is_done or raised is None:
        try:
            doing.result()
            break
        except BaseException as error:
            if doing.is_done:
                raise
            raised = raised or error
    if raised is not None:
        raise raised


def move_rows(rows: NDArray[Any], order: Ints, room: int) -> None:
    """Put the rows of an array into another order, in place: row `order[i]` moves to position i.

    Wide rows need `room` bytes, or LEAST_ROOM, for moving rows, and 16 bytes per row. Positions are filled part by
    part. Rows that leave a part go to the positions that its new rows come from. `place_of` has the position of each
    row, `row_at` the row at each position.

    >>> rows = np.arange(6)
    >>> move_rows(rows, np.array([3, 0, 5, 1, 4, 2]), 0)
    >>> rows
    array([3, 0, 5, 1, 4, 2])
    """
    count, size = len(rows), rows.nbytes // max(1, len(rows))
    if size <= NARROW or rows.nbytes <= max(room, LEAST_ROOM):
        rows[...] = rows[order]
        return
    part = max(1, max(room, LEAST_ROOM) // (2 * size))
    place_of, row_at = np.arange(count), np.arange(count)
    for low in range(0, count, part):
        high = min(low + part, count)
        sources = place_of[order[low:high]]
        arriving = rows[sources]
        is_free = np.ones(high - low, dtype=bool)
        is_free[sources[sources < high] - low] = False
        leaving, left = low + np.flatnonzero(is_free), sources[sources >= high]
        rows[left] = rows[leaving]
        row_at[left] = row_at[leaving]
        place_of[row_at[left]] = left
        rows[low:high] = arriving
