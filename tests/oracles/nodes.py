"""Runs a prepared program on nodes that share nothing but messages, in one process: each has arrays of its own, which
hold what nobody wrote but where the exchange says that a node needs what was there before.

The kernels are run by the interpreter (`tests/oracles/interpreted.py`); a random choice decides which worker goes on
and which message arrives next, those of one sender to one node in their order. All that decides what is sent where is
the runtime's own.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from orion.kernel.calling import FLAG_STRIDE, GO
from orion.runtime.arguments import DataSource, GivenArrays, dense_memory, skeleton_arguments
from orion.runtime.failures import failure_in
from orion.runtime.local_arrays import LocalArray
from orion.runtime.memory import RunMemory, allocate_run_memory
from orion.runtime.parts import LoopPart, loop_parts
from orion.runtime.prepared import PreparedProgram
from orion.runtime.ray.announced import NO_READS, Reads
from orion.runtime.ray.between import nothing_between
from orion.runtime.ray.exchange import ProgramExchange, program_exchange
from orion.runtime.ray.holdings import Holdings
from orion.runtime.ray.inbox import Landing
from orion.runtime.ray.mirrors import Traffic, program_traffic
from orion.runtime.ray.node_worker import NodeWorker
from orion.runtime.ray.orders import CopiedParts, Delivery, Flag, Piece, Results
from orion.runtime.ray.regions import Mask
from orion.runtime.ray.segments import Block
from orion.runtime.ray.up_to_date import UpToDate
from orion.runtime.skeleton import make_skeleton
from orion.runtime.worker import AbortedError
from tests.oracles.interpreted import UNWRITTEN, Order, Turns

MOST_UNDER_WAY = 0.3
"""How often a message arrives before the next tile, where one is under way."""


class Network(Turns):
    """Workers that take turns, and messages under way between nodes."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.under_way: dict[tuple[int, str], deque[Delivery]] = defaultdict(deque)
        self.landings: dict[str, Landing] = {}

    def choose(self) -> int:
        while any(self.under_way.values()):
            able = [number for number, is_ready in self.waiting.items() if is_ready()]
            if able and self.order.random.random() > MOST_UNDER_WAY:
                break
            sender, node = self.order.random.choice([route for route, found in self.under_way.items() if found])
            self.landings[node].put(self.under_way[sender, node].popleft())
        return super().choose()


@dataclass
class Node:
    """One node: what its workers share."""

    arguments: Mapping[str, Any]
    memory: RunMemory

    def array(self, name: str) -> Any:
        return dense_memory(self.arguments[name])


@dataclass
class Earlier:
    """What nodes have from earlier runs on the same arrays: `filled` are the elements that were sent to nodes before
    the last run, by array."""

    arrays: dict[str, dict[str, Any]] = field(default_factory=dict)
    up_to_date: UpToDate = field(default_factory=UpToDate)
    filled: Counter[str] = field(default_factory=Counter)
    blocks: dict[str, Block] = field(default_factory=dict)

    def block(self, name: str, array: Any) -> Block:
        """The block that stands for an array."""
        return self.blocks.setdefault(name, Block(len(self.blocks), 0, array.shape, array.dtype.str))

    def fill(self, node: str, own: dict[str, Any], arguments: Mapping[str, Any], traffic: Traffic) -> None:
        """Send a node what it lacks."""
        for name, array in own.items():
            if not isinstance(arguments[name], LocalArray):
                there, cells = dense_memory(arguments[name]), traffic.exchange.cells[name]
                needed = traffic.shares[node].dense[name]
                for region in cells.regions(self.up_to_date.lacking(node, self.block(name, there), cells, needed)):
                    region.put(array, region.of(there))
                    self.filled[name] += region.elements(there.shape)

    def keep(
        self, held: Mapping[str, Mask], traffic: Traffic, arguments: Mapping[str, Any], driver: str | None
    ) -> None:
        """A run has ended."""
        for name, masks in held.items():
            there = dense_memory(arguments[name])
            block = self.block(name, there)
            written = (section for section in traffic.written if section.array == name)
            if not isinstance(arguments[name], LocalArray) and self.up_to_date.keep_image(block, there, written):
                has = {node: mask for node, mask in zip(traffic.exchange.nodes, masks, strict=True) if node != driver}
                self.up_to_date.keep(block, traffic.exchange.cells[name], has)


def run_on_nodes(
    prepared: PreparedProgram,
    codes: Sequence[CodeType],
    arguments: Mapping[str, Any],
    order: Order,
    nodes: Sequence[str],
    driver: str | None,
    earlier: Earlier | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    reads: Reads = NO_READS,
) -> tuple[Any, ProgramExchange, int]:
    """Run a program whose worker w is on node `nodes[w]`. The arrays of `driver` are those that are given; where it is
    none of the nodes, results are fetched from the home node. Where the run follows others on the same arrays, nodes
    have what `earlier` says. `meanwhile` is called when workers have ended, before results are fetched. `reads` is what
    tiles read of arrays of which that was listed. Returns the result, the exchange, and the bytes of arrays that were
    sent."""
    dense = {
        argument.name: arguments[argument.name].shape
        for loop in prepared.loops
        for argument in loop.kernel.arguments
        if argument.kind == "array"
    }
    exchange = program_exchange(prepared.loops, prepared.known, nodes, dense, reads)
    traffic = program_traffic(exchange)
    network = Network(order)
    network.wide = frozenset(name for name, value in arguments.items() if isinstance(value, np.int64))
    places: dict[str, Node] = {}
    earlier = Earlier() if earlier is None else earlier
    earlier.filled.clear()
    for name in dense:
        there = dense_memory(arguments[name])
        earlier.up_to_date.look(earlier.block(name, there), there)
    for node in exchange.nodes:
        kept = earlier.arrays.get(node, {})
        own = {} if node == driver else {name: kept.get(name, unwritten(arguments[name])) for name in dense}
        earlier.arrays[node] = {**kept, **own}
        places[node] = Node({**arguments, **own}, allocate_run_memory(prepared))
        earlier.fill(node, own, arguments, traffic)
        arrays = {name: places[node].array(name) for name in dense}
        network.landings[node] = Landing(arrays, places[node].memory, set_now, nothing_between(places[node].memory))
    for name in prepared.written & dense.keys():
        earlier.up_to_date.written(earlier.block(name, dense_memory(arguments[name])))
    errors: list[BaseException] = []
    held: dict[str, Mask] = {}
    returned: list[Any] = []
    sent_bytes: list[int] = []
    skeleton = make_skeleton(prepared)
    given = skeleton_arguments(prepared, arguments)
    holdings = {node: Holdings(exchange) for node in exchange.nodes}
    walks = tuple(network.walk(code, loop.kernel) for code, loop in zip(codes, prepared.loops, strict=True))
    meet = network.meeting()

    def abort() -> None:
        for place in places.values():
            place.memory.abort()

    def body(number: int) -> None:
        node = nodes[number]
        place = places[node]
        orders = [loop.order for loop in exchange.loops]
        parts = loop_parts(prepared, place.memory, walks, [order[number] for order in orders], number, orders)
        arrays = GivenArrays(place.arguments, are_whole=False)
        sent: Counter[str] = Counter()

        def post(
            to: str, flags: tuple[Flag, ...], pieces: tuple[Piece, ...], results: tuple[Results | CopiedParts, ...]
        ) -> None:
            copies = tuple(Piece(piece.region, piece.data.copy()) for piece in pieces)
            delivery = Delivery(1, number, sent[to], flags, copies, results)
            network.under_way[number, to].append(delivery)
            sent[to] += 1

        try:
            for part, loop in zip(parts, exchange.loops, strict=True):
                begin(part, loop.waits, arrays)
            others = tuple(other for other in exchange.nodes if other != node)
            own = {name: place.array(name) for name in dense}
            whole = number, prepared.workers, parts, place.memory, meet, exchange, holdings[node], others, own
            landing = network.landings[node]
            worker = NodeWorker(*whole, landing.between, False, (), post)
            result = skeleton(worker, *given)
            worker.finish()
            sent_bytes.append(worker.sent_bytes)
            if number == 0:
                returned.append(result)
                held.update(worker.held)
        except AbortedError:
            pass
        except BaseException as error:
            errors.append(error)
            abort()

    network.run(body, prepared.workers, abort)
    for place in places.values():
        failure = failure_in(prepared, place.memory)
        if failure is not None:
            raise failure
    if errors:
        raise errors[0]
    assert all((place.memory.control[:, 0] == GO).all() for place in places.values())
    meanwhile()
    if driver not in exchange.nodes:
        home = places[exchange.nodes[0]]
        for region in traffic.written:
            region.put(dense_memory(arguments[region.array]), region.of(home.array(region.array)))
    earlier.keep(held, traffic, arguments, driver)
    return returned[0], exchange, sum(sent_bytes)


def begin(part: LoopPart, waits: Any, arrays: GivenArrays) -> None:
    part.waits = waits
    part.begin(DataSource(part.loop).data(arrays))


def unwritten(argument: Any) -> Any:
    """The memory of an array of the same kind, full of what nobody wrote; zeros where an array is made of these."""
    array = dense_memory(argument)
    if isinstance(argument, LocalArray) and argument.is_zero:
        return np.zeros_like(array)
    return np.full_like(array, UNWRITTEN[array.dtype.kind])


def set_now(tiles: Any, round: int, *rest: Any) -> None:
    """Stands for the walk by which flags are set."""
    done = rest[-2]
    for tile in tiles:
        done[tile * FLAG_STRIDE] = round + 1
