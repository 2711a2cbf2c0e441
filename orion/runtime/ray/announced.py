"""What tiles touch of arrays that several nodes do not have whole, as announcers list it
(`orion.dependence.announcer`).

The driver lists it for all nodes, once for the contents that the arrays of subscripts have: as long as these stay what
they are, so does what was announced (as in the recorded prefetching of Orion, Wei et al., EuroSys 2019).

Of an array that a loop only reads that makes footprints of its tiles, as subscripts do that are known without looking
(`orion.runtime.ray.exchange`). Of one with a buffer all nodes know from the lists which rows who touches, and in which
order tiles need them. A row that a single node touches is moved there for the loop, and brought home at its end; one
that several touch is kept alike on these, and on no others: which is what AdaPM (Renz-Wieland et al., 2022) decides by
announced intents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import prod
from numbers import Number
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from orion.cores import cores
from orion.dataclass import dataclass, replace
from orion.dependence.inspection import OUTSIDE
from orion.errors import OrionError
from orion.plan.plan import FunctionPlan, Served
from orion.runtime.listing import TooManyError, listed
from orion.runtime.prepared import Announcing, PreparedProgram
from orion.runtime.ray.cells import SMALL
from orion.runtime.ray.exchange import ProgramExchange
from orion.runtime.shown import Properties, memory_of
from orion.schedule.footprints import Footprint
from orion.schedule.schedule import Ints, Schedule

Rows = NDArray[np.signedinteger[Any]]

MOST_BOXES = 1 << 20
"""Where tiles read more ranges of an array than that, nodes have it whole."""

PLACE_BYTES, BOX_BYTES = 8, 32
"""What goes beside an element that is sent by itself, and what workers are told of each range that tiles read."""


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
"""Those of all arrays with buffers of a program."""

Reads = Mapping[int, tuple[Footprint, ...]]
"""By loop, what its tiles read of arrays of which that was listed."""

NO_READS: Reads = {}

ReadsOf = Callable[[FunctionPlan, Sequence[Schedule], Sequence[str]], Reads]
"""The same of a planned function, by the schedules of its loops and the nodes of all workers."""


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    """What iterations touch of an array: iteration k has `places[ends[k - 1] : ends[k]]`, each twice the number of an
    element or a row, or one more."""

    ends: Ints
    places: Ints


@dataclass(slots=True, eq=False)
class _Known:
    """What was announced of a program while its arrays of subscripts have the contents that `key` stands for, by what
    `properties` know of these. `lists`, by announcers, are there until all is made of them."""

    properties: Properties
    key: object
    announcing: tuple[Announcing, ...]
    lists: list[_Lists | None]
    reads: Reads
    announcements: Announcements | None = None


class Announcers:
    """What was announced of programs, kept until the contents of their arrays of subscripts change."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[PreparedProgram, _Known] = WeakKeyDictionary()

    def reads(self, prepared: PreparedProgram, nodes: Sequence[str], arguments: Mapping[str, Any]) -> Reads:
        """What tiles of a program read, whose worker w is on node `nodes[w]`: the same value as long as the arrays of
        subscripts are the same."""
        if not any(loop.plan.served or loop.plan.read_in_part for loop in prepared.loops):
            return NO_READS
        known = self._known.get(prepared)
        if known is None:
            announcing = prepared.announcing(arguments)
            properties = Properties(sum(len(one.of.announcer.lists.reads) for one in announcing))
            known = self._known[prepared] = _Known(properties, None, announcing, [], NO_READS)
        names = dict.fromkeys(name for one in known.announcing for name in one.of.announcer.lists.reads)
        versions = tuple(known.properties.version(arguments[name]) for name in names)
        key = versions, _numbers(known.announcing, arguments)
        if known.key != key:
            given = {**arguments, **{name: known.properties.snapshot(arguments[name]) for name in names}}
            known.lists = [_listed(one, given) for one in known.announcing]
            schedules = [loop.schedule for loop in prepared.loops]
            known.reads = _reads(schedules, nodes, known.announcing, known.lists, given)
            known.key, known.announcements = key, None
        return known.reads

    def of(self, prepared: PreparedProgram, exchange: ProgramExchange, arguments: Mapping[str, Any]) -> Announcements:
        """What tiles of a program touch of arrays with buffers, of loops that all nodes run, once `reads` was asked
        for: the same value as long as the arrays of subscripts are the same."""
        known = self._known.get(prepared)
        if known is None:
            return ()
        if known.announcements is None:
            known.announcements = tuple(
                _announced(one, lists, prepared.loops[one.loop].schedule, exchange, arguments)
                for one, lists in zip(known.announcing, known.lists, strict=True)
                if isinstance(one.of, Served) and not exchange.loops[one.loop].is_at_home
            )
            known.lists = []
        return known.announcements


def _numbers(announcing: Sequence[Announcing], arguments: Mapping[str, Any]) -> tuple[object, ...]:
    """The arguments that are numbers in what lists what iterations touch: in subscripts and conditions, say."""
    names = dict.fromkeys(name for one in announcing for name in one.of.announcer.lists.function.params)
    given = [arguments[name] for name in names if name in arguments]
    return tuple((type(one), one) for one in given if isinstance(one, Number | np.generic))


def _listed(one: Announcing, arguments: Mapping[str, Any]) -> _Lists | None:
    """What iterations touch; None where nobody can say: the loop then says what is wrong, as it is written."""
    try:
        given = {**arguments, **one.extents}
        ends, places, _ = listed(one.of.announcer.lists, one.program, given, one.of.count, cores())
    except (TooManyError, OrionError, ArithmeticError):
        return None
    return None if places.min(initial=0) == OUTSIDE else _Lists(ends, places)


def _edges(one: Announcing, lists: _Lists, schedule: Schedule) -> Ints:
    """Where the accesses of each block begin, and of the last one end."""
    of, bounds = one.of, schedule.bounds[one.of.announcer.dim]
    found: Ints = np.append(0, lists.ends)[np.clip(bounds - of.first, 0, of.count)]
    return found


# ---------------------------------------------------------------- arrays that are only read


def reads_of(
    announcing: Sequence[Announcing], schedules: Sequence[Schedule], nodes: Sequence[str], arguments: Mapping[str, Any]
) -> Reads:
    """What tiles read of arrays by what these have for subscripts now, for loops with these schedules. Worker w is on
    node `nodes[w]`."""
    read = [one for one in announcing if not isinstance(one.of, Served)]
    return _reads(schedules, nodes, read, [_listed(one, arguments) for one in read], arguments)


def _reads(
    schedules: Sequence[Schedule],
    nodes: Sequence[str],
    announcing: Sequence[Announcing],
    lists: Sequence[_Lists | None],
    arguments: Mapping[str, Any],
) -> Reads:
    found: dict[int, tuple[Footprint, ...]] = {}
    for one, own in zip(announcing, lists, strict=True):
        if own is None or isinstance(one.of, Served):
            continue
        footprint = _footprint(one, own, schedules[one.loop], nodes, arguments[one.of.array])
        if footprint is not None:
            found[one.loop] = (*found.get(one.loop, ()), footprint)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Ranges:
    """Ranges of the elements that subscripts tell apart, as first and last numbers: none goes on along two rows."""

    first: Ints
    last: Ints


def _footprint(
    one: Announcing, lists: _Lists, schedule: Schedule, nodes: Sequence[str], array: Any
) -> Footprint | None:
    """The footprint of all tiles: ranges along the last axis that tells elements apart. None where there are too many
    of them, or to tell workers of them takes more than a call saves."""
    keyed, shape = one.of.announcer.keyed, array.shape
    extents = [shape[axis] for axis in keyed]
    ranges = _ranges(lists, _edges(one, lists, schedule), extents)
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)[one.of.announcer.dim]
    row_bytes = array.dtype.itemsize * prod(shape) // max(1, prod(extents))
    found, saved = _by_tiles(ranges, blocks, [nodes[owner] for owner in schedule.owner.tolist()], extents, row_bytes)
    boxes = sum(len(own.first) for own in found)
    if boxes > MOST_BOXES or BOX_BYTES * boxes > saved:
        return None
    none = np.zeros(0, np.int64)
    tile = np.repeat(np.arange(schedule.tiles), [len(own.first) for own in found])
    begin = np.concatenate([none, *(own.first for own in found)])
    last = np.concatenate([none, *(own.last for own in found)])
    low, high = np.zeros((2, len(tile), len(shape)), np.int64)
    high[:] = shape
    for axis, at, to in zip(keyed, np.unravel_index(begin, extents), np.unravel_index(last, extents), strict=True):
        low[:, axis], high[:, axis] = at, to + 1
    return Footprint(one.of.array, False, tile, low, high)


def _by_tiles(
    ranges: Sequence[_Ranges], blocks: Ints, nodes: Sequence[str], extents: Sequence[int], row_bytes: int
) -> tuple[list[_Ranges], int]:
    """The ranges of each tile, by its block and its node, which has all where that is no more to send; and how many
    bytes fewer all nodes need than if each had all."""
    size, begins = prod(extents), np.arange(prod(extents[:-1])) * extents[-1]
    whole, has_whole, saved = _Ranges(begins, begins + extents[-1] - 1), set(), 0
    for node in {*nodes}:
        needs = np.zeros(size + 1, np.int32)
        for one in (ranges[block] for block, place in zip(blocks.tolist(), nodes, strict=True) if place == node):
            needs[one.first] += 1
            needs[one.last + 1] -= 1
        is_needed = np.cumsum(needs[:-1]) > 0
        elements = int(np.count_nonzero(is_needed))
        count = np.count_nonzero(np.diff(is_needed, prepend=False) & is_needed)
        places = PLACE_BYTES * elements if elements < SMALL * count else 0
        sent = elements * row_bytes + places
        if sent >= size * row_bytes:
            has_whole.add(node)
        else:
            saved += size * row_bytes - sent
    by_tiles = [
        whole if node in has_whole else ranges[block] for block, node in zip(blocks.tolist(), nodes, strict=True)
    ]
    return by_tiles, saved


def _ranges(lists: _Lists, edges: Ints, extents: Sequence[int]) -> list[_Ranges]:
    """What each block touches."""
    from orion.kernel.inspector.announced import rows_in_turn

    size, found = prod(extents), []
    seen, need = np.zeros(size, np.uint8), np.zeros(1, np.int64)
    rows = np.empty(int(min(size, np.diff(edges).max(initial=0))), np.int64)
    for block in range(len(edges) - 1):
        count = rows_in_turn(lists.places, edges[block : block + 1], edges[block + 1 : block + 2], seen, rows, need)
        own = np.sort(rows[:count])
        begins = np.append(True, (np.diff(own) != 1) | (own[1:] % max(1, extents[-1]) == 0))[:count]
        first = np.flatnonzero(begins)
        found.append(_Ranges(own[first], own[np.append(first[1:], count) - 1] if count else own))
    return found


# ---------------------------------------------------------------- arrays with buffers


def _announced(
    one: Announcing,
    lists: _Lists | None,
    schedule: Schedule,
    exchange: ProgramExchange,
    arguments: Mapping[str, Any],
) -> Announced:
    served = one.of
    assert isinstance(served, Served)
    count = prod(arguments[served.array].shape[: served.leading])
    orders = _orders(exchange, one.loop)
    if lists is None:
        return _as_stored(_all_rows(one.loop, served.number, count, orders, schedule.tiles), served, arguments)
    return _as_stored(_by_nodes(one, served.number, count, orders, schedule, lists), served, arguments)


def _as_stored(announced: Announced, served: Served, arguments: Mapping[str, Any]) -> Announced:
    """The same by the rows that memory has, where rows are single elements and the last axis is padded."""
    shape, stored = arguments[served.array].shape, memory_of(arguments[served.array]).shape
    if served.leading < len(shape) or shape == stored:
        return announced
    rows = tuple(own // shape[-1] * stored[-1] + own % shape[-1] for own in announced.rows)
    return replace(announced, count=prod(stored), rows=rows)


def _orders(exchange: ProgramExchange, loop: int) -> list[Ints]:
    """The tiles of each node, about as its workers come to them."""
    found = []
    for node in range(len(exchange.nodes)):
        own = [exchange.loops[loop].order[w].tolist() for w, place in enumerate(exchange.place) if place == node]
        turns = (tile for turn in zip_longest(*own) for tile in turn if tile is not None)
        found.append(np.fromiter(turns, np.int64))
    return found


def _all_rows(loop: int, number: int, count: int, orders: Sequence[Ints], tiles: int) -> Announced:
    """Where nobody can say what tiles touch, they may touch all."""
    rows: tuple[Rows, ...] = tuple(np.arange(count if order.size else 0).astype(_dtype(8 * count)) for order in orders)
    need = np.full(tiles, count, np.int64)
    need[orders[0]] = 0
    return Announced(loop, number, count, rows, need)


def _by_nodes(
    one: Announcing, number: int, count: int, orders: Sequence[Ints], schedule: Schedule, lists: _Lists
) -> Announced:
    from orion.kernel.inspector.announced import rows_in_turn

    edges = _edges(one, lists, schedule)
    blocks = np.unravel_index(np.arange(schedule.tiles), schedule.grid)[one.of.announcer.dim]
    starts, stops = edges[blocks], edges[blocks + 1]
    need, seen = np.zeros(schedule.tiles, np.int64), np.zeros(count, np.uint8)
    found: list[Rows] = []
    for order in orders:
        most = int(min(count, (stops[order] - starts[order]).sum()))
        rows, own = np.empty(most, np.int64), np.zeros(order.size, np.int64)
        size = rows_in_turn(lists.places, starts[order], stops[order], seen, rows, own)
        found.append(rows[:size].astype(_dtype(8 * count)))
        need[order] = own
    need[orders[0]] = 0
    return Announced(one.loop, number, count, tuple(found), need)


def _dtype(count: int) -> type[np.int32] | type[np.int64]:
    """What has numbers up to that: rows of elements of 8 bytes may be padded to 8 times as many."""
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64
