"""The copies of the driver's segments on other nodes: as large as the driver's, filled only where a node
needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.runtime.profile.records import NONE_SHUFFLED
from orion.runtime.ray.announced import NO_READS, Reads
from orion.runtime.ray.exchange import ProgramExchange, program_exchange
from orion.runtime.ray.expected_shuffles import Expected, ExpectedShuffles, Shuffles
from orion.runtime.ray.group import Group
from orion.runtime.ray.orders import FILL_BYTES, Filling
from orion.runtime.ray.regions import Mask, Region, Section
from orion.runtime.ray.reordered import Reordered, Rows, lacking_rows
from orion.runtime.ray.segments import Block, SegmentName
from orion.runtime.ray.store import LoopBlocks, PlacedRun, Store
from orion.runtime.ray.up_to_date import Part, UpToDate
from orion.schedule.schedule import Ints

Sent = tuple[Block, bytes, int]
"""A block, the tiles of which a node has the elements, and their version."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one node needs before a program runs: cells of dense arrays, bool (*cells), and for each loop the tiles
    whose elements it needs of the sparse array, as int64 and as bytes (None for a loop that it has no part in).
    """

    dense: Mapping[str, Mask]
    tiles: tuple[tuple[Ints, bytes] | None, ...]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What goes between the driver and the nodes of a program, and between these: worked out once, for it takes as long
    as there are tiles. `written` are the regions that come back.
    """

    exchange: ProgramExchange
    shares: Mapping[str, Share]
    written: tuple[Section, ...]


def program_traffic(exchange: ProgramExchange) -> Traffic:
    """The traffic of a program."""
    shares = {}
    needed = {array: exchange.needed(array) for array in exchange.cells}
    for number, node in enumerate(exchange.nodes):
        tiles = [loop.tiles.get(node) for loop in exchange.loops]
        shares[node] = Share(
            dense={array: masks[number] for array, masks in needed.items()},
            tiles=tuple(None if found is None else (found, found.tobytes()) for found in tiles),
        )
    cells = exchange.cells.items()
    written = tuple(region for array, own in cells for region in own.regions(exchange.written(array)))
    return Traffic(exchange, shares, written)


class Mirrors:
    """The nodes of a group, other than the driver's, with the segments that each has copies of.

    Elements of sparse arrays are sent once, and again when values were stored: `_sent` are the blocks of which a node
    has the elements of some tiles, with the version of these. Of dense arrays that is sent which is not `up_to_date`;
    `_shuffles` says how the rows of each had been shuffled then, and `shuffled` what of a shuffle came to nodes with
    the last call.
    """

    def __init__(self, group: Group, store: Store) -> None:
        self._group = group
        self._store = store
        self._names: dict[str, dict[int, SegmentName]] = {node: {} for node in group.nodes if node != group.driver_node}
        self._sent: dict[str, set[Sent]] = {node: set() for node in self._names}
        self.up_to_date = UpToDate()
        self._shuffles: dict[Block, Shuffles] = {}
        self._expected = ExpectedShuffles(group)
        self._in_order: list[Block] = []
        """Arrays of which nodes are put into another order before the run that is being prepared."""
        self.shuffled = NONE_SHUFFLED
        self._traffic: WeakKeyDictionary[PreparedProgram, Traffic] = WeakKeyDictionary()
        self._reads: WeakKeyDictionary[PreparedProgram, Reads] = WeakKeyDictionary()

    def names(self, node: str) -> Mapping[int, SegmentName]:
        """How segments are opened on a node."""
        return self._names.get(node, self._store.names)

    def forget(self, segments: Sequence[int]) -> None:
        """Segments that are gone; the actors are told with their next order."""
        if not segments:
            return
        self.up_to_date.forget(segments)
        self._expected.pause()
        gone = [block for block in self._shuffles if block.segment in segments]
        self._expected.drop(gone)
        for block in gone:
            del self._shuffles[block]
        for node, names in self._names.items():
            for segment in segments:
                names.pop(segment, None)
            self._sent[node] = {key for key in self._sent[node] if key[0].segment not in segments}

    def read(self, prepared: PreparedProgram, reads: Reads) -> None:
        """Note what tiles of a program read of arrays of which that was listed."""
        if self._reads.get(prepared, NO_READS) is not reads:
            self._reads[prepared] = reads
            self._traffic.pop(prepared, None)

    def prepare(self, prepared: PreparedProgram, run_memory: int, placed: PlacedRun) -> None:
        """Bring the nodes of a run what their workers need before it."""
        remote = [node for node in self._nodes(prepared) if node in self._names]
        self._expected.pause()
        self.shuffled = NONE_SHUFFLED
        if remote:
            reordered: dict[str, list[Filling]] = {node: [] for node in remote}
            self._in_order = []
            try:
                for name in placed.own:
                    self._reorder(placed, name, reordered)
                    self.up_to_date.look(placed.dense[name], self._array(placed.dense[name]))
                self._fill(prepared, run_memory, placed, reordered)
            except BaseException:  # nobody knows which nodes have put rows in order
                for block in self._in_order:
                    self.up_to_date.written(block)
                raise
        for name in prepared.written & placed.dense.keys():
            self.up_to_date.written(placed.dense[name])

    def send_ahead(self, prepared: PreparedProgram, placed: PlacedRun) -> None:
        """While a program runs, send its nodes the rows that the next shuffles of its arrays will bring them, as far as
        these can be expected. It goes on until the next run is prepared, or `close`."""
        remote = [node for node in self._nodes(prepared) if node in self._names]
        for name in placed.own if remote else ():
            block, shapes = placed.dense[name], placed.shapes
            before, image = self._shuffles.get(block), self.up_to_date.image(block)
            if name in prepared.written:
                self._expected.forget(block)
            if before is None or not before.is_regular or image is None or name in prepared.written:
                continue
            assert before.last is not None
            expected, now = before.last.next(), self.up_to_date.changes(block)
            if self._expected.is_worth_it(block, expected, now):
                least = len(image) / (2 * len(set(self._group.nodes)))  # of batches little is known
                rows = {node: self._rows_of(prepared, placed, node, name) for node in remote}
                had = {node: own for node, own in rows.items() if own.sum() >= least}
                self._expected.expect(block, expected, image, now, shapes[name][-1], had)
        self._expected.go()

    def close(self) -> None:
        """Send nothing more."""
        self._expected.pause()

    def _rows_of(self, prepared: PreparedProgram, placed: PlacedRun, node: str, name: str) -> Mask:
        """The rows of an array that a node has once it is ready for a run, bool (rows,)."""
        traffic, block, count = self._traffic_of(prepared, placed), placed.dense[name], placed.shapes[name][0]
        found = self.up_to_date.rows_of(node, block, count)
        needed = traffic.shares[node].dense.get(name)
        return found if needed is None else found | Part(traffic.exchange.cells[name], needed).whole_rows(count)

    def _reorder(self, placed: PlacedRun, name: str, fillings: dict[str, list[Filling]]) -> None:
        """Where an array was shuffled since nodes were last brought up to date, add to their `fillings` what gives them
        the new order. More shuffles than one, or what else was written, shows when the array is looked at."""
        block, (count, last) = placed.dense[name], placed.own[name]
        before = self._shuffles.get(block)
        if before is not None and before.count == count:
            return
        self._shuffles[block] = Shuffles.after(before, count, last)
        expected = self._expected.take(block)
        is_used = expected is not None and expected.is_of(last, self.up_to_date.changes(block))
        had: Mapping[str, Mask] = {}
        if before is not None and last is not None and (count, len(self._array(block))) == (
            before.count + 1, last.elements,
        ):  # fmt: skip
            order = expected.order if expected is not None and is_used else last.order()
            self._in_order.append(block)
            had = self.up_to_date.shuffled(block, order, fillings)
            for node, rows in had.items():
                fillings[node].append(Filling(block, Reordered.of(last, rows), self._array(block)[:0]))
                ahead, places = expected if is_used else None, lacking_rows(order, rows)
                fillings[node] += self._rows_in_order(block, places, ahead, node, placed.shapes[name])
        if expected is not None:
            for node in fillings.keys() - (had.keys() if is_used else set()):
                fillings[node].append(Filling(block, expected.taken_by(node, is_used=False), self._array(block)[:0]))

    def _rows_in_order(
        self, block: Block, places: Ints, ahead: Expected | None, node: str, shape: tuple[int, ...]
    ) -> Iterator[Filling]:
        """What a node is sent for places of an array in a new order: first that it takes what was sent ahead."""
        array, left = self._array(block), places
        if ahead is not None:
            yield Filling(block, ahead.taken_by(node, is_used=True), array[:0])
            left = np.setdiff1d(places, ahead.places_of(node), assume_unique=True)
        self.shuffled = self.shuffled.and_of(len(places), len(places) - len(left))
        some = max(1, FILL_BYTES * len(array) // max(1, array.nbytes))
        for rows in (Rows(left[low : low + some], shape[-1]) for low in range(0, len(left), some)):
            yield Filling(block, rows, rows.of(array))

    def _fill(
        self, prepared: PreparedProgram, run_memory: int, placed: PlacedRun, reordered: Mapping[str, Sequence[Filling]]
    ) -> None:
        """Send nodes what they lack, after rows that they put in order."""
        shares = self._traffic_of(prepared, placed).shares
        fillings, new = {}, {}
        for node in reordered:
            self._create(node, {run_memory, *placed.segments()})
            new[node] = self._missing(prepared, shares[node], node, placed)
            elements = [filling for parts in new[node].values() for filling in parts]
            fillings[node] = (*reordered[node], *self._dense(prepared, node, placed), *elements)
        self._group.make_ready(run_memory, fillings, prepared.workers)
        for node in reordered:
            fresh = {key[:2] for key in new[node]}
            self._sent[node] = {key for key in self._sent[node] if key[:2] not in fresh} | new[node].keys()

    def fetch(self, prepared: PreparedProgram, placed: PlacedRun) -> None:
        """Bring back what a run has written, where it is not on the driver's node: the home node has all of it, but for
        values of elements, which the nodes have that have stored them.
        """
        home = self._group.nodes[0]
        for node in self._nodes(prepared):
            if node not in self._names:
                continue
            parts: list[tuple[Block, Section]] = []
            if node == home:
                written = self._traffic_of(prepared, placed).written
                parts += [(placed.dense[region.array], region) for region in written]
            parts += self._stored_on(node, prepared, placed)
            for (block, region), data in zip(parts, self._group.read(node, parts) if parts else (), strict=True):
                region.put(self._array(block), data)
        self._keep_stored(prepared, placed)

    def _stored_on(self, node: str, prepared: PreparedProgram, placed: PlacedRun) -> list[tuple[Block, Section]]:
        """The parts of blocks of values that a node has stored."""
        found: dict[Block, list[tuple[Block, Section]]] = {}
        shares = self._traffic_of(prepared, placed).shares[node].tiles if prepared.stored else ()
        for loop, tiles, blocks in zip(prepared.loops, shares, placed.loops, strict=False):
            if tiles is None or blocks.extents is None:
                continue
            for block in _stored_blocks(loop, blocks):
                ranges = _ranges(self._array(blocks.extents), tiles[0])
                found[block] = [(block, Region("", ((low, high),))) for low, high in ranges]
        return [part for parts in found.values() for part in parts]

    def _keep_stored(self, prepared: PreparedProgram, placed: PlacedRun) -> None:
        """Keep in mind that each node has the values that it has stored, as the driver does now."""
        for node in [node for node in self._nodes(prepared) if node in self._names] if prepared.stored else ():
            shares = self._traffic_of(prepared, placed).shares[node].tiles
            for loop, tiles, blocks in zip(prepared.loops, shares, placed.loops, strict=True):
                version = placed.stored.get(loop.sparse or "")
                if tiles is not None and blocks.extents is not None and version is not None:
                    own = blocks.extents, *_element_blocks(loop, blocks)
                    self._sent[node] |= {(block, tiles[1], version) for block in own}

    def keep(self, prepared: PreparedProgram, placed: PlacedRun, held: Mapping[str, Mask]) -> None:
        """Keep in mind what nodes have after a run, `held` by their places in the exchange: nothing where that is
        empty, as all was on the driver's node."""
        for name, masks in held.items() if self._names else ():
            traffic, block = self._traffic_of(prepared, placed), placed.dense[name]
            if name in placed.local:
                continue
            written = (section for section in traffic.written if section.array == name)
            if name not in placed.own or self.up_to_date.keep_image(block, self._array(block), written):
                places = zip(traffic.exchange.nodes, masks, strict=True)
                has = {node: mask for node, mask in places if node in self._names}
                self.up_to_date.keep(block, traffic.exchange.cells[name], has)

    def _nodes(self, prepared: PreparedProgram) -> list[str]:
        return list(dict.fromkeys(self._group.nodes[: prepared.workers]))

    def exchange_of(self, prepared: PreparedProgram, placed: PlacedRun) -> ProgramExchange | None:
        """What the nodes of a program send each other; None where all its workers are on the driver's node."""
        is_here = self._nodes(prepared) == [self._group.driver_node]
        return None if is_here else self._traffic_of(prepared, placed).exchange

    def _traffic_of(self, prepared: PreparedProgram, placed: PlacedRun) -> Traffic:
        found = self._traffic.get(prepared)
        if found is None:
            nodes = self._group.nodes[: prepared.workers]
            reads = self._reads.get(prepared, NO_READS)
            exchange = program_exchange(prepared.loops, prepared.known, nodes, placed.shapes, reads)
            found = self._traffic[prepared] = program_traffic(exchange)
        return found

    def _create(self, node: str, segments: set[int]) -> None:
        sizes = {number: self._store.names[number].size for number in segments - self._names[node].keys()}
        if sizes:
            self._names[node] |= self._group.create(node, sizes, self._store.anonymous, self._store.storage)

    # ------------------------------------------------------------ what a node needs

    def _dense(self, prepared: PreparedProgram, node: str, placed: PlacedRun) -> Iterator[Filling]:
        """The parts of dense arrays that a node needs and does not have. Arrays without contents are not sent."""
        traffic = self._traffic_of(prepared, placed)
        for name, needed in traffic.shares[node].dense.items():
            if name in placed.local:
                continue
            block, cells = placed.dense[name], traffic.exchange.cells[name]
            for region in cells.regions(self.up_to_date.lacking(node, block, cells, needed)):
                yield Filling(block, region, region.of(self._array(block)))

    def _missing(
        self, prepared: PreparedProgram, share: Share, node: str, placed: PlacedRun
    ) -> dict[Sent, list[Filling]]:
        """The elements of the node's tiles that it does not have yet, by what they are noted as once it has them. Of
        those that it has it may have been sent some for other tiles: it is dealt others when shares change."""
        found: dict[Sent, list[Filling]] = {}
        for loop, tiles, blocks in zip(prepared.loops, share.tiles, placed.loops, strict=True):
            if blocks.extents is None or tiles is None:
                continue
            offsets = self._array(blocks.extents)
            for block in (blocks.extents, *_element_blocks(loop, blocks)):
                key = block, tiles[1], blocks.version
                if key in self._sent[node] or key in found:
                    continue
                sent = [own for one, own, version in (*self._sent[node], *found) if (one, version) == key[::2]]
                if block is blocks.extents:
                    found[key] = [] if sent else [Filling(block, Region(""), offsets)]
                else:
                    array, has = self._array(block), np.frombuffer(b"".join(sent), np.int64)
                    parts = _ranges(offsets, tiles[0][~np.isin(tiles[0], has)])
                    found[key] = [Filling(block, Region("", ((low, high),)), array[low:high]) for low, high in parts]
        return found

    def _array(self, block: Block) -> NDArray[Any]:
        return self._store.array(block)


def _stored_blocks(loop: PreparedLoop, blocks: LoopBlocks) -> Iterator[Block]:
    """The blocks of the values of elements that the loop stores."""
    for argument, block in zip(loop.kernel.arguments, blocks.arguments, strict=True):
        if argument.kind == "value" and argument.writeable and isinstance(block, Block):
            yield block


def _element_blocks(loop: PreparedLoop, blocks: LoopBlocks) -> Iterator[Block]:
    """The blocks of the keys and values that a loop uses."""
    for argument, block in zip(loop.kernel.arguments, blocks.arguments, strict=True):
        if argument.kind in ("key", "value") and isinstance(block, Block):
            yield block


def _ranges(offsets: NDArray[np.int64], tiles: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The ranges of elements of tiles, neighbours joined."""
    breaks = np.flatnonzero(np.diff(tiles) != 1) + 1
    for run in np.split(tiles, breaks):
        if run.size:
            yield int(offsets[run[0]]), int(offsets[run[-1] + 1])
