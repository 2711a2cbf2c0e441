"""What goes from node to node while a program runs: worked out from its schedules and footprints before it does.

Inside a node workers share memory. Between nodes the data of a tile travels with its flag. Tiles are gone through in a
serial order that keeps every dependence (`Schedule.serial_tiles`), with, for each cell of each array, the tile that
wrote it last and the nodes that have it as it is then: a tile that touches a cell which its node does not have has it
sent by the tile that wrote it last, and waits for that one. This is the last-writer analysis of array dataflow
(Feautrier 1991; Maydan, Amarasinghe and Lam 1993) over cells (`orion.runtime.ray.cells`) and tiles instead of
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
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, replace
from orion.ir.function import in_users_words
from orion.ir.types import Shapes
from orion.plan.plan import LoopPlan
from orion.plan.relaxed import How, why_apart
from orion.runtime.parts import share_of
from orion.runtime.ray.cells import Cells
from orion.runtime.ray.last_writers import ApartError, LastWriters, Send, Usage
from orion.runtime.ray.regions import Mask
from orion.runtime.waits import Waits
from orion.schedule.footprints import Footprint, LoopAccesses, Skew, loop_accesses, with_skews
from orion.schedule.schedule import Ints, Schedule

MOST_CELLS = 1 << 21
"""Of an array with more cells than this less is told apart: no slanting sides of tiles, or nothing at all."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopExchange:
    """The exchange of one loop.

    `order[w]` are the tiles of worker w in the order in which it runs them, and `waits` what tiles wait for: (offsets,
    tiles, lags) as in a schedule; `awaiting` are the tiles that wait for tiles of other workers. `sends` says for a
    tile what is to be sent where when it is done, in each round. `tiles[n]` are the tiles whose elements of the sparse
    array node n needs. `usage` is that of each array.
    `why_at_home`: the home node alone runs it, whose worker 0 then sends what all of them have written, and why; None
    where all nodes do. `rounds_overlap` is False where a round must be done on all nodes before the next one begins.
    `accesses` are those of a loop without tiles that wait, of which less is used in each round than in all rounds
    together (`usage_in_round`).
    """

    order: tuple[Ints, ...]
    waits: Waits
    awaiting: Set[int]
    sends: Mapping[int, tuple[Send, ...]]
    tiles: Mapping[str, Ints]
    usage: Mapping[str, Usage]
    why_at_home: str | None
    rounds_overlap: bool
    accesses: LoopAccesses | None = None

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
    scheduled: Sequence[Scheduled],
    known: Mapping[str, int],
    nodes: Sequence[str],
    shapes: Shapes,
    reads: Mapping[int, Sequence[Footprint]] | None = None,
) -> ProgramExchange:
    """The exchange of a program with these loops, for dense arrays of these shapes, whose worker w is on node
    `nodes[w]`. `known` are the values of the isl parameters that it is for. The home node is that of worker 0. `reads`
    is what tiles of a loop read of arrays of which that was listed, by its number."""
    read = {} if reads is None else reads
    accesses = [loop_accesses(loop.plan, known, shapes, read.get(number, ())) for number, loop in enumerate(scheduled)]
    varying = [
        found.varying(len(loop.plan.nest.dims)) if not loop.schedule.step.any() else frozenset()
        for loop, found in zip(scheduled, accesses, strict=True)
    ]
    cells, prints = _cells_and_prints(scheduled, accesses, varying, shapes, len(nodes))
    names = tuple(dict.fromkeys(nodes))
    place = tuple(names.index(node) for node in nodes)
    loops = []
    for loop, found, by_round, varies in zip(scheduled, prints, accesses, varying, strict=True):
        try:
            one = _shared_out(loop, found, cells, names, place)
        except ApartError as error:
            loops.append(_on_home_node(loop, found, cells, names, place, str(error)))
        else:
            loops.append(replace(one, accesses=_exact(by_round, loop), rounds_overlap=False) if varies else one)
    for number in sorted(_stored_on_one_node(scheduled, loops)):
        loop = scheduled[number]
        assert loop.plan.nest.elements is not None
        why = f"values of the elements of `{loop.plan.nest.elements.array}` are stored, which other nodes would need"
        loops[number] = _on_home_node(loop, prints[number], cells, names, place, why)
    return ProgramExchange(names, place, cells, tuple(loops))


def _stored_on_one_node(scheduled: Sequence[Scheduled], loops: Sequence[LoopExchange]) -> set[int]:
    """The numbers of loops over elements whose values some loop stores, where not all loops over them run in the same
    tiles of the same nodes: values stay on the node that has stored them until the program ends. Iterations touch no
    values of other elements than their own."""
    over: dict[str, list[int]] = {}
    for number, loop in enumerate(scheduled):
        if loop.plan.nest.elements is not None:
            over.setdefault(loop.plan.nest.elements.array, []).append(number)
    found: set[int] = set()
    for own in over.values():
        is_stored = any(scheduled[number].plan.nest.stored for number in own)
        if is_stored and not all(_same_tiles(own[0], number, scheduled, loops) for number in own):
            found.update(number for number in own if not loops[number].is_at_home)
    return found


def _same_tiles(first: int, other: int, scheduled: Sequence[Scheduled], loops: Sequence[LoopExchange]) -> bool:
    """Whether two loops over the same elements run in the same tiles, each on the same node."""
    one, two = scheduled[first], scheduled[other]
    if loops[first].is_at_home or loops[other].is_at_home:
        return False
    bounds = one.schedule.bounds, two.schedule.bounds
    is_same = one.plan.ordered == two.plan.ordered and all(map(np.array_equal, *bounds))
    nodes = loops[first].tiles, loops[other].tiles
    return (
        is_same
        and nodes[0].keys() == nodes[1].keys()
        and all(np.array_equal(tiles, nodes[1][node]) for node, tiles in nodes[0].items())
    )


def _cells_and_prints(
    scheduled: Sequence[Scheduled],
    accesses: Sequence[LoopAccesses],
    varying: Sequence[frozenset[tuple[str, int]]],
    shapes: Shapes,
    workers: int,
) -> tuple[dict[str, Cells], list[tuple[Footprint, ...]]]:
    """The cells of all arrays, and the footprints of all loops: where there would be too many cells of an array,
    without its skews, and where that is too many still, one cell."""
    found = [own.skews(loop.schedule) for loop, own in zip(scheduled, accesses, strict=True)]
    skews = {array: tuple(sorted(frozenset().union(*(own.get(array, ()) for own in found)))) for array in shapes}
    while True:
        prints = [own.at(loop.schedule, {}, skews) for loop, own in zip(scheduled, accesses, strict=True)]
        cells = _cells(scheduled, prints, varying, shapes, workers, skews)
        many = [array for array, own in cells.items() if own.is_more_than(MOST_CELLS)]
        if not any(skews[array] for array in many):
            break
        skews = {array: () if array in many else own for array, own in skews.items()}
    whole = _cells(scheduled, (), (), shapes, workers, skews)
    return {array: whole[array] if array in many else own for array, own in cells.items()}, prints


def _cells(
    scheduled: Sequence[Scheduled],
    prints: Sequence[tuple[Footprint, ...]],
    varying: Sequence[frozenset[tuple[str, int]]],
    shapes: Shapes,
    workers: int,
    skews: Mapping[str, tuple[Skew, ...]],
) -> dict[str, Cells]:
    """The cells of all arrays, for some footprints of each loop."""
    cells = {}
    for array, shape in shapes.items():
        own = [(one.low, one.high) for found in prints for one in found if one.array == array]
        if any(copies.array == array for loop in scheduled for copies in loop.plan.copies):
            own.append(with_skews(*_shares(shape, workers), skews[array]))
        if any(array in one.of_workers for loop in scheduled for one in loop.plan.nest.replicas):
            own.append(with_skews(*_of_workers(shape, workers), skews[array]))
        axes = {axis for found in varying for name, axis in found if name == array}
        cells[array] = Cells.around(array, shape, own, axes, skews[array])
    return cells


def usage_in_round(
    exchange: ProgramExchange, number: int, schedule: Schedule, values: Mapping[str, object]
) -> Mapping[str, Usage]:
    """What a loop uses in a round in which its scalars have these values, by their names in isl."""
    own = exchange.loops[number]
    if own.accesses is None:
        return own.usage
    by_tiles = {one.array for one in own.accesses.accesses} | {one.array for one in own.accesses.read}
    by_tiles |= own.accesses.private
    found = {array: usage for array, usage in own.usage.items() if array not in by_tiles}  # those with copies
    skews = {array: cells.skews for array, cells in exchange.cells.items()}
    for one in own.accesses.at(schedule, values, skews):
        cells = exchange.cells[one.array]
        if one.array not in found:
            first = cells.none(len(exchange.nodes))
            found[one.array] = Usage(first, np.full(cells.shape, -1, np.int16), np.zeros_like(first))
        usage = found[one.array]
        for box in np.flatnonzero((one.low < one.high).all(axis=-1)).tolist():
            window, owner = cells.window(one.low[box], one.high[box]), int(schedule.owner[one.tile[box]])
            node = exchange.place[owner]
            usage.first[node][window] = True
            if one.is_write:
                usage.writer[window] = owner
                usage.after[:, *window] = False
                usage.after[node][window] = True
    return found


# ------------------------------------------------------------ a loop whose tiles are shared out among nodes


def _shared_out(
    loop: Scheduled,
    prints: Sequence[Footprint],
    cells: Mapping[str, Cells],
    names: tuple[str, ...],
    place: Sequence[int],
) -> LoopExchange:
    """The exchange of a loop on all nodes. ApartError where it must be on one."""
    schedule = loop.schedule
    _refuse_late(loop)
    late = _late_names(loop)
    prints = [one for one in prints if one.array not in late]
    overlap = loop.plan.rounds_overlap and not late
    used = {one.array: cells[one.array] for one in prints}
    walk = LastWriters(schedule, names, place, used)
    walk.go(prints, 1 + overlap)
    waits, none = walk.waits(), np.zeros(0, np.int64)
    at = np.array(place)[schedule.owner]
    return LoopExchange(
        order=tuple(schedule.order[w] if w < schedule.workers else none for w in range(len(place))),
        waits=waits,
        awaiting=_awaiting(waits, schedule),
        sends=walk.sends(),
        tiles={names[node]: np.flatnonzero(at == node) for node in sorted({*at.tolist()})},
        usage={
            **{array: walk.usage(array, overlap) for array in used},
            **dict(_combined(loop, cells, place)),
            **dict(_kept_alike(loop, cells, len(names))),
            **dict(_mirrored(loop, cells, place)),
        },
        why_at_home=None,
        rounds_overlap=overlap,
    )


def _refuse_late(loop: Scheduled) -> None:
    """ApartError where there are updates that may be late, and cannot go from node to node."""
    plan = loop.plan
    if not plan.nest.late:
        return
    arrays = " and ".join(f"`{one.array}`" for one in plan.nest.late)
    why = why_apart(plan.relaxed, plan.takes_tiles)
    told = f"updates of {arrays} may be late, and {why}" if why else ""
    if told:
        raise ApartError(in_users_words(told, plan.nest.function))


def _late_names(loop: Scheduled) -> Set[str]:
    """What updates that may be late have to do with: which tiles touch which of its elements does not matter."""
    return {name for one in loop.plan.nest.late for name in one.names}


def _exact(accesses: LoopAccesses, loop: Scheduled) -> LoopAccesses:
    """The accesses of a loop without those to arrays with buffers, or with copies for workers."""
    late = _late_names(loop)
    return replace(accesses, accesses=tuple(one for one in accesses.accesses if one.array not in late))


def _kept_alike(loop: Scheduled, cells: Mapping[str, Cells], nodes: int) -> Iterator[tuple[str, Usage]]:
    """The usage of arrays with buffers, which all nodes have, and update (`orion.runtime.ray.carrier`). Sums are of
    another order on each of them: what the home node has counts in the end. Of those that are served nodes are sent
    what they need while the loop runs."""
    served = {one.array for one in loop.plan.served}
    written: dict[str, bool] = {}
    for one in loop.plan.relaxed.arrays:
        for name in (one.buffered.array, *one.buffered.helpers):
            is_written = one.how is not How.READ and name in one.buffered.changed
            written[name] = written.get(name, False) or is_written
    for name, is_written in written.items():
        own = cells[name]
        first = own.none(nodes)
        first[: 1 if name in served else nodes] = True
        yield name, _held_at_home(first, np.full(own.shape, 0 if is_written else -1, np.int16))


def _mirrored(loop: Scheduled, cells: Mapping[str, Cells], place: Sequence[int]) -> Iterator[tuple[str, Usage]]:
    """The usage of arrays with copies for workers. Where workers meet all nodes pull all copies together alike
    (`orion.runtime.ray.meetings`); where each pulls its own the home node has the array and pulls for all
    (`orion.runtime.ray.centre`). A node brings the copies of its own workers. Those of others come when they are
    pulled, to the home node all; how often they go on from there, and with which momentum, their own nodes alone
    know."""
    order, nodes = loop.schedule.order, max(place) + 1
    for one in loop.plan.nest.replicas:
        for array in (one.array, *one.outer):
            has_it = np.ones((nodes, *cells[array].shape), np.bool_)
            has_it[1:] = not one.policy.pulls_at_home
            yield array, Usage(has_it, np.zeros(cells[array].shape, np.int16), has_it)
        for array in one.of_workers:
            own = cells[array]
            first, writer = own.none(nodes), np.full(own.shape, -1, np.int16)
            for worker in (worker for worker, tiles in enumerate(order) if len(tiles)):
                row = own.in_rows(worker, worker + 1)
                first[place[worker]].reshape(-1)[row] = True
                writer.reshape(-1)[row] = worker
            after = first.copy()
            after[0] |= (writer >= 0) & (array == one.copies)
            yield array, Usage(first, writer, after)


def _of_workers(shape: tuple[int, ...], workers: int) -> tuple[Ints, Ints]:
    """The boxes of an array that has a part for each worker, int64 (workers, axes)."""
    low, high = np.zeros((2, min(workers, shape[0]), len(shape)), np.int64)
    high[:] = shape
    low[:, 0] = np.arange(len(low))
    high[:, 0] = low[:, 0] + 1
    return low, high


def _awaiting(waits: Waits, schedule: Schedule) -> Set[int]:
    """The tiles that wait for tiles of other workers."""
    offsets, before, _ = waits
    tiles = np.repeat(np.arange(schedule.tiles), np.diff(offsets))
    return {*tiles[schedule.owner[tiles] != schedule.owner[before]].tolist()}


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
        low, high = with_skews(*_shares(copies.shape, len(place)), own.skews)
        for worker, node in enumerate(place):
            if (low[worker] >= high[worker]).any():
                continue
            share = own.window(low[worker], high[worker])
            first[node][share] = True
            writer[share] = worker
        yield copies.array, Usage(first, writer, first)


# ------------------------------------------------------------ a loop on the home node


def _on_home_node(
    loop: Scheduled,
    prints: Sequence[Footprint],
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
        awaiting=frozenset(),
        sends={},
        tiles={names[0]: np.arange(schedule.tiles)},
        usage=dict(_at_home(loop, prints, cells, len(names))),
        why_at_home=why,
        rounds_overlap=loop.plan.rounds_overlap,
    )


def _at_home(
    loop: Scheduled, prints: Sequence[Footprint], cells: Mapping[str, Cells], nodes: int
) -> Iterator[tuple[str, Usage]]:
    """The usage of arrays by a loop on the home node. Those with copies have no footprint: all of them is written."""
    for array in dict.fromkeys(one.array for one in prints):
        own = cells[array]
        first, writer = own.none(nodes), np.full(own.shape, -1, np.int16)
        for one in prints:
            if one.array == array:
                _, touched = own.inside(one.low, one.high)
                first[0].reshape(-1)[touched] = True
                writer.reshape(-1)[touched if one.is_write else []] = 0
        yield array, _held_at_home(first, writer)
    for copies in loop.plan.copies:
        own = cells[copies.array]
        first = own.none(nodes)
        first[0] = True
        yield copies.array, _held_at_home(first, np.zeros(own.shape, np.int16))


def _held_at_home(first: Mask, writer: NDArray[np.int16]) -> Usage:
    after = np.zeros_like(first)
    after[0] = writer >= 0
    return Usage(first, writer, after)
