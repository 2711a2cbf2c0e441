"""What nodes are to fetch of arrays that are served: the rows that tiles of theirs touch, as announcers list them
(`orion.dependence.announcer`), in the order in which tiles need them.

The driver lists them for all nodes, once for the contents that the arrays of subscripts have: as long as these stay
what they are, so does what was announced (as in the recorded prefetching of Orion, Wei et al., EuroSys 2019). From the
lists all nodes know which rows who touches. A row that a single node touches is moved there for the loop, and brought
home at its end; one that several touch is kept alike on these, and on no others: which is what AdaPM (Renz-Wieland et
al., 2022) decides by announced intents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from orion.dependence.inspection import OUTSIDE
from orion.errors import OrionError
from orion.runtime.backend import cores
from orion.runtime.listing import TooManyError, listed
from orion.runtime.prepared import Announcing, PreparedProgram
from orion.runtime.ray.exchange import ProgramExchange
from orion.runtime.shown import Properties
from orion.schedule.schedule import Ints, Schedule

Rows = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Announced:
    """The rows of array number `number` with a buffer that tiles of a loop touch: `rows[n]` those of tiles of node n,
    in the order in which these need them, and `need[t]` how many of the rows of its node tile t needs to be there, 0 on
    the home node, which has all. `count` is how many rows the array has."""

    loop: int
    number: int
    count: int
    rows: tuple[Rows, ...]
    need: Ints

    def of_worker(self) -> Announced:
        """What a worker has to know that fetches nothing itself."""
        return Announced(self.loop, self.number, self.count, (), self.need)


Announcements = tuple[Announced, ...]
"""Those of all loops of a program."""


class Announcers:
    """What was announced of programs, kept until the contents of their arrays of subscripts change."""

    def __init__(self) -> None:
        self._properties = Properties()
        self._known: WeakKeyDictionary[PreparedProgram, tuple[object, Announcements]] = WeakKeyDictionary()

    def of(self, prepared: PreparedProgram, exchange: ProgramExchange, arguments: Mapping[str, Any]) -> Announcements:
        """What tiles of a program touch, of loops that all nodes run: the same value as long as the arrays of
        subscripts are the same."""
        names = dict.fromkeys(name for one in prepared.announcing for name in one.served.announcer.lists.reads)
        key = tuple(self._properties.version(arguments[name]) for name in names)
        known = self._known.get(prepared)
        if known is None or known[0] != key:
            given = {**arguments, **{name: self._properties.snapshot(arguments[name]) for name in names}}
            apart = [one for one in prepared.announcing if not exchange.loops[one.loop].is_at_home]
            one_each = tuple(_announced(one, prepared, exchange, given) for one in apart)
            known = self._known[prepared] = key, one_each
        return known[1]


def _announced(
    one: Announcing, prepared: PreparedProgram, exchange: ProgramExchange, arguments: Mapping[str, Any]
) -> Announced:
    served, loop = one.served, prepared.loops[one.loop]
    count = prod(arguments[served.array].shape[: served.announcer.leading])
    orders = _orders(exchange, one.loop)
    try:
        lists, given = served.announcer.lists, {**arguments, **one.extents}
        ends, places, _ = listed(lists, one.program, given, served.count, cores())
        if places.min(initial=0) == OUTSIDE:  # the loop says so as it is written
            raise TooManyError
    except (TooManyError, OrionError, ArithmeticError):
        return _all_rows(one, count, orders, loop.schedule.tiles)
    return _by_nodes(one, count, orders, loop.schedule, (ends, places))


def _orders(exchange: ProgramExchange, loop: int) -> list[Ints]:
    """The tiles of each node, about as its workers come to them."""
    found = []
    for node in range(len(exchange.nodes)):
        own = [exchange.loops[loop].order[w].tolist() for w, place in enumerate(exchange.place) if place == node]
        turns = (tile for turn in zip_longest(*own) for tile in turn if tile is not None)
        found.append(np.fromiter(turns, np.int64))
    return found


def _all_rows(one: Announcing, count: int, orders: Sequence[Ints], tiles: int) -> Announced:
    """Where nobody can say what tiles touch, they may touch all."""
    rows: tuple[Rows, ...] = tuple(np.arange(count if order.size else 0).astype(_dtype(count)) for order in orders)
    need = np.full(tiles, count, np.int64)
    need[orders[0]] = 0
    return Announced(one.loop, one.served.number, count, rows, need)


def _by_nodes(
    one: Announcing, count: int, orders: Sequence[Ints], schedule: Schedule, accesses: tuple[Ints, Ints]
) -> Announced:
    from orion.kernel.inspector.announced import rows_in_turn

    ends, places = accesses
    dim = one.served.announcer.dim
    edges = np.append(0, ends)[np.clip(schedule.bounds[dim] - one.served.first, 0, one.served.count)]
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)[dim]
    starts, stops = edges[blocks], edges[blocks + 1]
    need, found, seen = np.zeros(schedule.tiles, np.int64), [], np.zeros(count, np.uint8)
    for order in orders:
        most = int(min(count, (stops[order] - starts[order]).sum()))
        rows, own = np.empty(most, _dtype(count)), np.zeros(order.size, np.int64)
        size = rows_in_turn(places, starts[order], stops[order], seen, rows, own)
        found.append(rows[:size].copy())
        need[order] = own
    need[orders[0]] = 0
    return Announced(one.loop, one.served.number, count, tuple(found), need)


def _dtype(count: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64
