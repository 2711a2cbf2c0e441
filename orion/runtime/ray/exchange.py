"""What goes from node to node while a program runs: worked out from its schedules and footprints before it does.

Inside a node workers share memory. Between nodes the data of a tile travels with its flag. Tiles are gone through in a
serial order that keeps every dependence (`Schedule.serial_tiles`), with, for each cell of each array, the tile that
wrote it last and the nodes that have it as it is then: a tile that touches a cell which its node does not have has it
sent by the tile that wrote it last, and waits for that one. This is the last-writer analysis of array dataflow
(Feautrier 1991; Maydan, Amarasinghe and Lam 1993) over cells (`orion.runtime.ray.regions`) and tiles instead of
elements and iterations.

Why that is right, also where a footprint has more than a tile touches. A tile that may write a cell is taken to read it
first: it then has it as it was, and hands on what it does not change. So for each cell the tiles that may write it are
a chain, each waiting for the one before it, and whoever sends the cell has all of it. A tile waits for the sender of
what it touches itself, not by way of others: that one's flag comes with the data. And who may write a cell waits for
the tiles that had it sent to them as it was: so a node gets the contents of a cell in the order in which they were
written, whoever sends them and however late they are, and what arrives overwrites elements that were read before (the
order of true dependences holds over all nodes), or that are the same already.

Tiles of one step have no order between them, and no element of which one writes what another one touches. So each of
them sees what tiles of earlier steps have written. Two that may write the same cell cannot be on different workers: the
loop then runs on one node, the home node, whose workers share out the tiles of all.

Where a loop ends some nodes have cells that others have not: what the next one needs goes on its way before it
(`orion.runtime.ray.holdings`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orion.ir.types import Shapes
from orion.plan.plan import LoopPlan
from orion.runtime.parts import share_of
from orion.runtime.ray.regions import Cells, Mask, Region
from orion.runtime.ray.touches import Touch, touches_of
from orion.runtime.waits import Waits
from orion.schedule.footprints import Footprint, LoopAccesses, loop_accesses
from orion.schedule.schedule import Ints, Schedule

MOST_CELLS = 1 << 19
"""Of an array with more cells than this less is told apart: boxes of tiles instead of slices, or all of it."""


@dataclass(frozen=True, slots=True)
class Send:
    """What the worker of a tile sends to a node when the tile is done."""

    node: str
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """How a loop uses the cells of an array: bool (nodes, *cells) and int16 (*cells).

    `first[n]` are those that node n must have as they are when the loop begins. `writer` is the worker that writes a
    cell last, -1 for one that is not written, and `after[n]` the written ones that node n has after the loop.
    """

    first: Mask
    writer: NDArray[np.int16]
    after: Mask

    @property
    def written(self) -> Mask:
        """The cells that are written."""
        return np.asarray(self.writer >= 0)


@dataclass(frozen=True, slots=True, eq=False)
class LoopExchange:
    """The exchange of one loop.

    `order[w]` are the tiles of worker w in the order in which it runs them, and `waits` what tiles wait for: (offsets,
    tiles, lags) as in a schedule. `sends` says for a tile what is to be sent where when it is done, in each round.
    `tiles[n]` are the tiles whose elements of the sparse array node n needs. `usage` is that of each array.
    `why_at_home`: the home node alone runs it, whose worker 0 then sends what all of them have written, and why; None
    where all nodes do. `rounds_overlap` is False where a round must be done on all nodes before the next one begins.
    `accesses` are those of a loop without tiles that wait, of which less is used in each round than in all rounds
    together (`usage_in_round`).
    """

    order: tuple[Ints, ...]
    waits: Waits
    sends: Mapping[int, tuple[Send, ...]]
    tiles: Mapping[str, Ints]
    usage: Mapping[str, Usage]
    why_at_home: str | None
    rounds_overlap: bool
    accesses: LoopAccesses | None

    @property
    def is_at_home(self) -> bool:
        """Whether the home node alone runs it."""
        return self.why_at_home is not None


@dataclass(frozen=True, slots=True, eq=False)
class ProgramExchange:
    """The exchange of a program on the nodes `nodes`, the home node first; worker w is on node `nodes[place[w]]`."""

    nodes: tuple[str, ...]
    place: tuple[int, ...]
    cells: Mapping[str, Cells]
    loops: tuple[LoopExchange, ...]

    def written(self, array: str) -> Mask:
        """The cells of an array that loops of the program write."""
        found = self.cells[array].none()
        for loop in self.loops:
            if array in loop.usage:
                found |= loop.usage[array].written
        return found

    def needed(self, array: str) -> Mask:
        """The cells of an array that each node has when the program begins, bool (nodes, *cells): all that it reads
        of what was there before, whichever loops run; and at home, where all is brought in the end, all that may be
        written."""
        found = self.cells[array].none(len(self.nodes))
        for loop in self.loops:
            if array in loop.usage:
                found |= loop.usage[array].first
        found[0] |= self.written(array)
        return found


class Scheduled(Protocol):
    """A planned loop with the schedule that it runs by."""

    @property
    def plan(self) -> LoopPlan: ...

    @property
    def schedule(self) -> Schedule: ...


def program_exchange(
    scheduled: Sequence[Scheduled], known: Mapping[str, int], nodes: Sequence[str], shapes: Shapes
) -> ProgramExchange:
    """The exchange of a program with these loops, for dense arrays of these shapes, whose worker w is on node
    `nodes[w]`. `known` are the values of the isl parameters that it is for. The home node is that of worker 0."""
    accesses = [loop_accesses(loop.plan, known, shapes) for loop in scheduled]
    varying = [
        found.varying(len(loop.plan.nest.dims)) if not loop.schedule.step.any() else frozenset()
        for loop, found in zip(scheduled, accesses, strict=True)
    ]
    prints = [found.at(loop.schedule, {}) for loop, found in zip(scheduled, accesses, strict=True)]
    cells = _cells(scheduled, prints, varying, shapes, len(nodes))
    if any(prod(own.shape) > MOST_CELLS for own in cells.values()):  # less exact, and less to go through
        prints = [found.at(loop.schedule, {}, 0) for loop, found in zip(scheduled, accesses, strict=True)]
        cells = _cells(scheduled, prints, varying, shapes, len(nodes))
        whole = _cells(scheduled, (), (), shapes, len(nodes))
        cells = {array: own if prod(own.shape) <= MOST_CELLS else whole[array] for array, own in cells.items()}
    names = tuple(dict.fromkeys(nodes))
    place = tuple(names.index(node) for node in nodes)
    nests = [loop.plan.nest for loop in scheduled]
    stored = {nest.elements.array for nest in nests if nest.elements is not None and nest.stored}
    loops = []
    for loop, found, by_round, varies in zip(scheduled, prints, accesses, varying, strict=True):
        touches = touches_of(found, cells)
        try:
            one = _shared_out(loop, touches, cells, names, place, stored)
        except _ApartError as error:
            loops.append(_on_home_node(loop, touches, cells, names, place, str(error)))
        else:
            loops.append(replace(one, accesses=by_round, rounds_overlap=False) if varies else one)
    return ProgramExchange(names, place, cells, tuple(loops))


def _cells(
    scheduled: Sequence[Scheduled],
    prints: Sequence[tuple[Footprint, ...]],
    varying: Sequence[frozenset[tuple[str, int]]],
    shapes: Shapes,
    workers: int,
) -> dict[str, Cells]:
    """The cells of all arrays, for some footprints of each loop."""
    cells = {}
    for array, shape in shapes.items():
        own = [(one.low, one.high) for found in prints for one in found if one.array == array]
        if any(copies.array == array for loop in scheduled for copies in loop.plan.copies):
            own.append(_shares(shape, workers))
        axes = {axis for found in varying for name, axis in found if name == array}
        cells[array] = Cells.around(array, shape, own, axes)
    return cells


def usage_in_round(
    exchange: ProgramExchange, number: int, schedule: Schedule, values: Mapping[str, object]
) -> Mapping[str, Usage]:
    """What a loop uses in a round in which its scalars have these values, by their names in isl."""
    own = exchange.loops[number]
    if own.accesses is None:
        return own.usage
    by_tiles = {one.array for one in own.accesses.accesses} | own.accesses.private
    found = {array: usage for array, usage in own.usage.items() if array not in by_tiles}  # those with copies
    for one in own.accesses.at(schedule, values):
        cells = exchange.cells[one.array]
        if one.array not in found:
            first = cells.none(len(exchange.nodes))
            found[one.array] = Usage(first, np.full(cells.shape, -1, np.int16), np.zeros_like(first))
        usage = found[one.array]
        low, high = cells.places(one.low, one.high)
        tiles, slices = np.nonzero((low < high).all(axis=-1))
        for tile, owner, box in zip(tiles.tolist(), schedule.owner[tiles].tolist(), slices.tolist(), strict=True):
            window = tuple(map(slice, low[tile, box].tolist(), high[tile, box].tolist()))
            node = exchange.place[owner]
            usage.first[node][window] = True
            if one.is_write:
                usage.writer[window] = owner
                usage.after[:, *window] = False
                usage.after[node][window] = True
    return found


# ------------------------------------------------------------ a loop whose tiles are shared out among nodes


class _ApartError(Exception):
    """A loop cannot be shared out among nodes, and why."""


@dataclass(eq=False)
class _Walk:
    """Tiles gone through in a serial order."""

    schedule: Schedule
    names: Sequence[str]
    place: Sequence[int]
    cells: Mapping[str, Cells]

    def __post_init__(self) -> None:
        schedule, count = self.schedule, len(self.names)
        self.owner = schedule.owner.tolist()
        waiting = np.repeat(np.arange(schedule.tiles), np.diff(schedule.wait_offsets))
        own = (waiting.tolist(), schedule.waits.tolist(), schedule.lags.tolist())
        self.waits = set(zip(*own, strict=True))
        self.sent: dict[tuple[int, int], dict[str, Mask]] = {}
        self.last = {array: np.full(cells.shape, -1, np.int64) for array, cells in self.cells.items()}
        self.holds = {array: cells.none(count) for array, cells in self.cells.items()}
        self.first = {array: cells.none(count) for array, cells in self.cells.items()}
        self.taker = {a: np.full((count, *cells.shape), -1, np.int64) for a, cells in self.cells.items()}
        """For each node the tile for which a cell was sent there since it was written last; -1 where it was not."""

    def go(self, touches: Sequence[Touch], rounds: int) -> None:
        """Go through all tiles, in each round. Those of one step have no order between them: all see what tiles of
        earlier steps have written."""
        ranked = self.schedule.serial_tiles()
        steps = np.split(ranked, np.flatnonzero(np.diff(self.schedule.step[ranked])) + 1)
        if any(not lag and self.schedule.step[before] >= self.schedule.step[tile] for tile, before, lag in self.waits):
            raise _ApartError("tiles wait for each other in another order than that of their steps")
        for number in range(rounds):
            for tiles in steps:
                for touch in touches:
                    present = [tile for tile in tiles.tolist() if touch.window[tile] is not None]
                    for tile in present:
                        self.touch(number, tile, touch)
                    for tile in present:
                        self.write(number, tile, touch, number * self.schedule.tiles + tiles)

    def touch(self, number: int, tile: int, touch: Touch) -> None:
        """A tile touches cells of an array: it comes after those that wrote them last, and has them sent."""
        window, touched = touch.window[tile], touch.touched[tile]
        assert window is not None
        assert touched is not None
        node = self.place[self.owner[tile]]
        last, holds = self.last[touch.array][window], self.holds[touch.array][node][window]
        self.first[touch.array][node][window] |= touched & (last < 0)
        for value in np.unique(last[touched]).tolist():
            round_before, before = divmod(value, self.schedule.tiles)
            if value < 0 or self.owner[before] == self.owner[tile]:
                continue
            self.waits.add((tile, before, number - round_before))
            missing = touched & (last == value) & ~holds
            if missing.any():
                self.taker[touch.array][node][window][missing] = number * self.schedule.tiles + tile
                masks = self.sent.setdefault((before, node), {})
                masks.setdefault(touch.array, self.cells[touch.array].none())[window] |= missing
        holds |= touched

    def write(self, number: int, tile: int, touch: Touch, same_step: Ints) -> None:
        """A tile may write cells of an array. _ApartError where one of another worker may too, in the same step."""
        window, written = touch.window[tile], touch.written[tile]
        assert window is not None
        assert written is not None
        if not written.any():
            return
        last, holds = self.last[touch.array][window], self.holds[touch.array][:, *window]
        beside = np.unique(last[written])
        beside = beside[np.isin(beside, same_step)] % self.schedule.tiles
        if (self.schedule.owner[beside] != self.owner[tile]).any():
            raise _ApartError(
                f"as far as is known, tiles with no order between them write the same elements of `{touch.array}`"
            )
        self.follow_takers(number, tile, self.taker[touch.array][:, *window], written)
        last[written] = number * self.schedule.tiles + tile
        holds[:, written] = False
        holds[self.place[self.owner[tile]]][written] = True

    def follow_takers(self, number: int, tile: int, taker: Ints, written: Mask) -> None:
        """A tile that may write cells comes after those for which they were sent to some node, so that what it sends
        there comes after that. _ApartError where one of them is of the same step."""
        for value in np.unique(taker[:, written]).tolist():
            round_before, before = divmod(value, self.schedule.tiles)
            if value < 0 or self.owner[before] == self.owner[tile]:
                continue
            if number == round_before and self.schedule.step[before] == self.schedule.step[tile]:
                raise _ApartError("as far as is known, tiles with no order between them touch the same elements")
            self.waits.add((tile, before, number - round_before))
        taker[:, written] = -1

    def sends(self) -> dict[int, tuple[Send, ...]]:
        """Flags for all tiles that are waited for on another node, with the cells that go there."""
        for tile, before, _ in self.waits:
            node = self.place[self.owner[tile]]
            if node != self.place[self.owner[before]]:
                self.sent.setdefault((before, node), {})
        found: dict[int, tuple[Send, ...]] = {}
        for (tile, node), masks in sorted(self.sent.items()):
            regions = tuple(region for array in sorted(masks) for region in self.cells[array].regions(masks[array]))
            found[tile] = (*found.get(tile, ()), Send(self.names[node], regions))
        return found

    def all_waits(self) -> Waits:
        """What tiles wait for, as in a schedule."""
        waiting, before, lags = np.array(sorted(self.waits), np.int64).reshape(-1, 3).T
        offsets = np.searchsorted(waiting, np.arange(self.schedule.tiles + 1)).astype(np.int64)
        return offsets, before.copy(), lags.copy()

    def usage(self, array: str, overlap: bool) -> Usage:
        """The use of an array, once all tiles were gone through."""
        last, after = self.last[array], self.holds[array]
        workers = np.append(self.schedule.owner, -1).astype(np.int16)
        written = last >= 0
        writer = np.where(written, workers[last % self.schedule.tiles], -1).astype(np.int16)
        if overlap:  # has been sent for the next round
            after = after | self.first[array]
        return Usage(self.first[array], writer, after & written)


def _shared_out(
    loop: Scheduled,
    touches: Sequence[Touch],
    cells: Mapping[str, Cells],
    names: tuple[str, ...],
    place: Sequence[int],
    stored: Set[str],
) -> LoopExchange:
    """The exchange of a loop on all nodes. _ApartError where it must be on one. `stored` are the sparse arrays of which
    some loop stores values."""
    schedule = loop.schedule
    if loop.plan.takes_tiles:
        raise _ApartError("its workers take tiles from each other, by flags in memory that they share")
    if loop.plan.nest.elements is not None and loop.plan.nest.elements.array in stored:
        raise _ApartError(
            f"values of the elements of `{loop.plan.nest.elements.array}` are stored, which are on one node"
        )
    overlap = loop.plan.rounds_overlap
    used = {touch.array: cells[touch.array] for touch in touches}
    walk = _Walk(schedule, names, place, used)
    walk.go(touches, 1 + overlap)
    none = np.zeros(0, np.int64)
    at = np.array(place)[schedule.owner]
    return LoopExchange(
        order=tuple(schedule.order[w] if w < schedule.workers else none for w in range(len(place))),
        waits=walk.all_waits(),
        sends=walk.sends(),
        tiles={names[node]: np.flatnonzero(at == node) for node in sorted({*at.tolist()})},
        usage={array: walk.usage(array, overlap) for array in used} | dict(_combined(loop, cells, place)),
        why_at_home=None,
        rounds_overlap=overlap,
        accesses=None,
    )


# ------------------------------------------------------------ arrays with copies


def _shares(shape: tuple[int, ...], workers: int) -> tuple[Ints, Ints]:
    """The boxes of an array that each worker combines the copies of, int64 (workers, axes)."""
    low, high = np.zeros((2, workers, len(shape)), np.int64)
    high[:] = shape
    for worker in range(workers):
        low[worker, 0], high[worker, 0] = share_of(shape[0], worker, workers)
    return low, high


def _combined(loop: Scheduled, cells: Mapping[str, Cells], place: Sequence[int]) -> Iterator[tuple[str, Usage]]:
    """The usage of arrays that a loop has copies of: each worker combines its share of the elements into them."""
    for copies in loop.plan.copies:
        own = cells[copies.array]
        first, writer = own.none(max(place) + 1), np.full(own.shape, -1, np.int16)
        low, high = own.places(*_shares(copies.shape, len(place)))
        for worker, node in enumerate(place):
            share = tuple(map(slice, low[worker].tolist(), high[worker].tolist()))
            first[node][share] = True
            writer[share] = worker
        yield copies.array, Usage(first, writer, first)


# ------------------------------------------------------------ a loop on the home node


def _on_home_node(
    loop: Scheduled,
    touches: Sequence[Touch],
    cells: Mapping[str, Cells],
    names: tuple[str, ...],
    place: Sequence[int],
    why: str,
) -> LoopExchange:
    schedule = loop.schedule
    home = [worker for worker, node in enumerate(place) if node == 0]
    ranked = schedule.serial_tiles()
    taken_by = np.array([home[owner % len(home)] for owner in schedule.owner], np.int64)
    return LoopExchange(
        order=tuple(ranked[taken_by[ranked] == w] for w in range(len(place))),
        waits=(schedule.wait_offsets, schedule.waits, schedule.lags),
        sends={},
        tiles={names[0]: np.arange(schedule.tiles)},
        usage=dict(_at_home(loop, touches, cells, len(names))),
        why_at_home=why,
        rounds_overlap=loop.plan.rounds_overlap,
        accesses=None,
    )


def _at_home(
    loop: Scheduled, touches: Sequence[Touch], cells: Mapping[str, Cells], nodes: int
) -> Iterator[tuple[str, Usage]]:
    """The usage of arrays by a loop on the home node. Those with copies have no footprint: all of them is written."""
    for touch in touches:
        own = cells[touch.array]
        first, writer = own.none(nodes), np.full(own.shape, -1, np.int16)
        for window, touched, written in zip(touch.window, touch.touched, touch.written, strict=True):
            if window is not None and touched is not None and written is not None:
                first[0][window] |= touched
                writer[window][written] = 0
        yield touch.array, _held_at_home(first, writer)
    for copies in loop.plan.copies:
        own = cells[copies.array]
        first = own.none(nodes)
        first[0] = True
        yield copies.array, _held_at_home(first, np.zeros(own.shape, np.int16))


def _held_at_home(first: Mask, writer: NDArray[np.int16]) -> Usage:
    after = np.zeros_like(first)
    after[0] = writer >= 0
    return Usage(first, writer, after)
