"""What goes from node to node while a loop runs: worked out from its schedule and placements before it does.

Inside a node workers share memory. Between nodes the data of a tile travels with its flag: where a tile of
another node waits for it, the blocks of rotated arrays that both touch are sent, and the flag is set there
once they have arrived. A loop that writes arrays in another way than in blocks of its own (served ones, and
partitioned ones whose blocks overlap) runs on one node, the home node, whose workers then share out the tiles
of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.cost.placement import Placement, PlacementKind
from orion.runtime.prepared import PreparedLoop
from orion.schedule.schedule import Ints, Schedule


def part_of(array: NDArray[Any], axis: int | None, low: int, high: int) -> NDArray[Any]:
    """The part of an array whose index along `axis` is in `low` … `high` - 1, as a view; all of it where
    `axis` is None.
    """
    return array if axis is None else array[(slice(None),) * axis + (slice(low, high),)]


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """The part of a dense array whose index along `axis` is in `low` … `high` - 1; the whole array where
    `axis` is None.
    """

    array: str
    axis: int | None = None
    low: int = 0
    high: int = 0

    def of(self, memory: NDArray[Any]) -> NDArray[Any]:
        """This part of the array, as a view."""
        return part_of(memory, self.axis, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Send:
    """What the worker of a tile sends to a node when the tile is done."""

    node: str
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class LoopExchange:
    """The exchange of one loop.

    `order[w]` are the tiles of worker w in the order in which it runs them. `sends` says for a tile what is
    to be sent where when it is done, in each round. After the loop, worker w holds the last contents of the
    regions `finals[w]`. Before the run, node n needs the regions `needs[n]` of the dense arrays, and the
    elements of `tiles[n]` of the sparse one. `is_gathered`: all workers of the home node have written into
    arrays that worker 0 then holds. `rounds_overlap` is False where a round must be done on all nodes before
    the next one begins.
    """

    order: tuple[Ints, ...]
    sends: Mapping[int, tuple[Send, ...]]
    finals: tuple[tuple[Region, ...], ...]
    needs: Mapping[str, tuple[Region, ...]]
    tiles: Mapping[str, Ints]
    is_gathered: bool
    rounds_overlap: bool


def loop_exchange(loop: PreparedLoop, nodes: Sequence[str]) -> LoopExchange:
    """The exchange of a loop whose worker w is on node `nodes[w]`. The home node is that of worker 0."""
    dense = [p for p in loop.plan.placements if p.array != loop.sparse]
    if loop.schedule.workers > 1 and any(_needs_one_node(placement) for placement in dense):
        return _on_home_node(loop, dense, nodes)
    return _shared_out(loop, dense, nodes)


def _needs_one_node(placement: Placement) -> bool:
    return placement.is_written and (placement.loop_dim is None or placement.halo != (0, 0))


# ------------------------------------------------------------ a loop whose tiles are shared out among nodes


def _shared_out(loop: PreparedLoop, dense: list[Placement], nodes: Sequence[str]) -> LoopExchange:
    schedule = loop.schedule
    blocks = np.indices(schedule.grid).reshape(len(schedule.grid), -1)
    node_of = np.array([nodes[owner] for owner in schedule.owner])
    ranked = schedule.serial_tiles()
    none = np.zeros(0, np.int64)
    # The tiles of an ordered loop wait for the end of the round before through others: no message would be waited for.
    overlap = loop.plan.rounds_overlap and not loop.plan.ordered
    order = tuple(schedule.order[w] if w < schedule.workers else none for w in range(len(nodes)))
    present = sorted(set(node_of))
    needs = {
        node: merged_regions(
            region for p in dense for region in _needed(p, schedule, blocks, ranked, np.flatnonzero(node_of == node))
        )
        for node in present
    }
    return LoopExchange(
        order=order,
        sends=_sends(schedule, dense, blocks, node_of, overlap),
        finals=tuple(_finals(schedule, dense, blocks, ranked, w) for w in range(len(nodes))),
        needs=needs,
        tiles={node: np.flatnonzero(node_of == node) for node in present},
        is_gathered=False,
        rounds_overlap=overlap,
    )


def _needed(placement: Placement, schedule: Schedule, blocks: Ints, ranked: Ints, tiles: Ints) -> list[Region]:
    """What tiles of one node need of an array before the loop: of a written rotated one, the blocks that they
    are the first to use; of any other, all that they touch.
    """
    if placement.loop_dim is None:
        return [Region(placement.array)]
    used = blocks[placement.loop_dim]
    if placement.kind is PlacementKind.ROTATED and placement.is_written:
        _, first = np.unique(used[ranked], return_index=True)
        tiles = np.intersect1d(tiles, ranked[first])
    return [_block(placement, schedule, int(block)) for block in np.unique(used[tiles])]


def _finals(schedule: Schedule, dense: list[Placement], blocks: Ints, ranked: Ints, worker: int) -> tuple[Region, ...]:
    """The blocks of written arrays whose last user is a tile of the worker."""
    found: list[Region] = []
    for placement in (p for p in dense if p.is_written):
        if placement.loop_dim is None:  # the loop runs on one node
            found += [Region(placement.array)] if worker == 0 else []
            continue
        used = blocks[placement.loop_dim][ranked[::-1]]
        values, last = np.unique(used, return_index=True)
        owners = schedule.owner[ranked[::-1][last]]
        found += [_block(placement, schedule, int(block)) for block in values[owners == worker]]
    return merged_regions(found)


def _sends(
    schedule: Schedule, dense: list[Placement], blocks: Ints, node_of: NDArray[np.str_], overlap: bool
) -> dict[int, tuple[Send, ...]]:
    """Flags for all tiles that are waited for on another node; blocks for the next user of a block there.

    A block goes only from a user to the very next one: anything else could overwrite, on its way, what is
    newer.
    """
    wanted: dict[tuple[int, str], set[Region]] = {}
    for tile in range(schedule.tiles):
        for before in schedule.waits[schedule.wait_offsets[tile] : schedule.wait_offsets[tile + 1]]:
            if node_of[before] != node_of[tile]:
                wanted.setdefault((int(before), str(node_of[tile])), set())
    for placement in (p for p in dense if p.kind is PlacementKind.ROTATED and p.is_written):
        assert placement.loop_dim is not None
        for before, tile in _next_users(blocks[placement.loop_dim], schedule.serial_tiles(), overlap):
            if node_of[before] != node_of[tile]:
                block = _block(placement, schedule, int(blocks[placement.loop_dim][tile]))
                wanted[before, str(node_of[tile])].add(block)
    sends: dict[int, tuple[Send, ...]] = {}
    for (tile, node), regions in sorted(wanted.items()):
        sends[tile] = (*sends.get(tile, ()), Send(node, tuple(sorted(regions))))
    return sends


def _next_users(used: Ints, ranked: Ints, overlap: bool) -> Iterator[tuple[int, int]]:
    """(tile, the next tile that uses the same block), the first one of the next round after the last where
    rounds overlap.
    """
    for block in np.unique(used):
        chain = [int(tile) for tile in ranked[used[ranked] == block]]
        yield from pairwise(chain)
        if overlap:
            yield chain[-1], chain[0]


def _block(placement: Placement, schedule: Schedule, block: int) -> Region:
    """What one block of the placement's loop dimension touches of the array."""
    assert placement.loop_dim is not None
    bounds, (below, above) = schedule.bounds[placement.loop_dim], placement.halo
    return Region(placement.array, placement.dim, max(0, int(bounds[block]) + below), int(bounds[block + 1]) + above)


# ------------------------------------------------------------ a loop on the home node


def _on_home_node(loop: PreparedLoop, dense: list[Placement], nodes: Sequence[str]) -> LoopExchange:
    schedule = loop.schedule
    home = [w for w, node in enumerate(nodes) if node == nodes[0]]
    ranked = schedule.serial_tiles()
    taken_by = np.array([home[owner % len(home)] for owner in schedule.owner])
    regions = tuple(Region(p.array) for p in dense)
    written = tuple(Region(p.array) for p in dense if p.is_written)
    return LoopExchange(
        order=tuple(ranked[taken_by[ranked] == w] for w in range(len(nodes))),
        sends={},
        finals=tuple(written if w == 0 else () for w in range(len(nodes))),
        needs={nodes[0]: regions},
        tiles={nodes[0]: np.arange(schedule.tiles)},
        is_gathered=len(home) > 1,
        rounds_overlap=loop.plan.rounds_overlap,
    )


# ------------------------------------------------------------ regions


def merged_regions(regions: Iterable[Region]) -> tuple[Region, ...]:
    """The same parts of arrays in as few regions: neighbours joined; the whole array where it is among them,
    or where regions lie along different axes.

    >>> merged_regions([Region("H", 0, 0, 4), Region("H", 0, 4, 6), Region("W", 0, 2, 3), Region("W")])
    (Region(array='H', axis=0, low=0, high=6), Region(array='W', axis=None, low=0, high=0))
    """
    by_array: dict[str, list[Region]] = {}
    for region in regions:
        by_array.setdefault(region.array, []).append(region)
    return tuple(joined for array, parts in sorted(by_array.items()) for joined in _joined(array, parts))


def _joined(array: str, parts: list[Region]) -> list[Region]:
    axes = {part.axis for part in parts}
    if None in axes or len(axes) > 1:
        return [Region(array)]
    found: list[Region] = []
    for part in sorted(parts):
        if part.high <= part.low:
            continue
        if found and part.low <= found[-1].high:
            found[-1] = Region(array, part.axis, found[-1].low, max(found[-1].high, part.high))
        else:
            found.append(part)
    return found
