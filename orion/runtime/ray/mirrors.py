"""The copies of the driver's segments on other nodes: as large as the driver's, filled only where a node
needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.runtime.ray.exchange import LoopExchange, loop_exchange, merged_regions
from orion.runtime.ray.group import Group
from orion.runtime.ray.orders import Filling
from orion.runtime.ray.segments import Block, SegmentName
from orion.runtime.ray.store import LoopBlocks, PlacedRun, Store


class Mirrors:
    """The nodes of a group, other than the driver's, with the segments that each has copies of."""

    def __init__(self, group: Group, store: Store) -> None:
        self._group = group
        self._store = store
        self._names: dict[str, dict[int, SegmentName]] = {node: {} for node in group.nodes if node != group.driver_node}
        self._elements: dict[str, set[tuple[int, int]]] = {node: set() for node in self._names}

    def names(self, node: str) -> Mapping[int, SegmentName]:
        """How segments are opened on a node."""
        return self._names.get(node, self._store.names)

    def forget(self, segments: tuple[int, ...]) -> None:
        """Segments that are gone; the actors are told with their next order."""
        for node, names in self._names.items():
            for segment in segments:
                names.pop(segment, None)
            self._elements[node] = {key for key in self._elements[node] if key[0] not in segments}

    def prepare(self, prepared: PreparedProgram, run_memory: int, placed: PlacedRun) -> None:
        """Bring the nodes of a run what their workers need before it."""
        nodes = self._group.nodes[: prepared.workers]
        remote = [node for node in dict.fromkeys(nodes) if node in self._names]
        if not remote:
            return
        exchange = [loop_exchange(loop, nodes) for loop in prepared.loops]
        fillings = {}
        for node in remote:
            self._create(node, {run_memory, *placed.segments()})
            dense = self._dense(exchange, node, placed)
            fillings[node] = (*dense, *self._sparse(prepared, exchange, node, placed))
        self._group.fill(run_memory, fillings)

    def fetch(self, prepared: PreparedProgram, placed: PlacedRun) -> None:
        """Bring back what a run has written, where it is not on the driver's node: the home node has all of
        it.
        """
        nodes = self._group.nodes[: prepared.workers]
        if nodes[0] not in self._names:
            return
        exchange = (loop_exchange(loop, nodes) for loop in prepared.loops)
        regions = merged_regions(region for loop in exchange for finals in loop.finals for region in finals)
        parts = [(placed.dense[region.array], region) for region in regions]
        for (block, region), data in zip(parts, self._group.read(nodes[0], parts), strict=True):
            region.of(self._array(block))[...] = data

    def _create(self, node: str, segments: set[int]) -> None:
        sizes = {number: self._store.names[number].size for number in segments - self._names[node].keys()}
        if sizes:
            created = self._group.create(node, sizes, self._store.anonymous)
            self._names[node] |= created
            if not self._store.anonymous:
                self._group.attach(node, created)

    # ------------------------------------------------------------ what a node needs

    def _dense(self, exchange: list[LoopExchange], node: str, placed: PlacedRun) -> Iterator[Filling]:
        needs = merged_regions(region for loop in exchange for region in loop.needs.get(node, ()))
        for region in needs:
            block = placed.dense[region.array]
            yield Filling(block, region.axis, region.low, region.high, region.of(self._array(block)))

    def _sparse(
        self, prepared: PreparedProgram, exchange: list[LoopExchange], node: str, placed: PlacedRun
    ) -> Iterator[Filling]:
        """The elements of the node's tiles. They never change: each loop's are sent once."""
        for loop, share, blocks in zip(prepared.loops, exchange, placed.loops, strict=True):
            if blocks.extents is None or node not in share.tiles:
                continue
            key = blocks.extents.segment, hash(share.tiles[node].tobytes())
            if key not in self._elements[node]:
                self._elements[node].add(key)
                yield from self._elements_of(loop, blocks, blocks.extents, share.tiles[node])

    def _elements_of(
        self, loop: PreparedLoop, blocks: LoopBlocks, extents: Block, tiles: NDArray[np.int64]
    ) -> Iterator[Filling]:
        offsets = self._array(extents)
        yield Filling(extents, None, 0, 0, offsets)
        for argument, block in zip(loop.kernel.arguments, blocks.arguments, strict=True):
            if argument.kind in ("key", "value") and isinstance(block, Block):
                array = self._array(block)
                for low, high in _ranges(offsets, tiles):
                    yield Filling(block, 0, low, high, array[low:high])

    def _array(self, block: Block) -> NDArray[Any]:
        return self._store.array(block)


def _ranges(offsets: NDArray[np.int64], tiles: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The ranges of elements of tiles, neighbours joined."""
    breaks = np.flatnonzero(np.diff(tiles) != 1) + 1
    for run in np.split(tiles, breaks):
        if run.size:
            yield int(offsets[run[0]]), int(offsets[run[-1] + 1])
