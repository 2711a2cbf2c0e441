"""What a Ray actor does: it is one worker, keeps what it has compiled and mapped, and runs its part of
programs.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field, replace
from orion.kernel.calling import GO, Walk, tile_boxes
from orion.own_threads import OwnPool
from orion.runtime.arguments import LoopData, order_of, read_only
from orion.runtime.blas import limited_walks
from orion.runtime.failures import failure_in
from orion.runtime.followed.part import FollowedPart, followed_of, followed_parts
from orion.runtime.memory import RunMemory, allocate_run_memory
from orion.runtime.parts import LoopPart, Meet, loop_parts, worker_tiles
from orion.runtime.prepared import PreparedProgram
from orion.runtime.profile.recorder import Recorder
from orion.runtime.profile.timed import TimedWorker
from orion.runtime.ray.actor_memory import ActorMemory
from orion.runtime.ray.announced import Announcements
from orion.runtime.ray.between import Between
from orion.runtime.ray.brings import Nodes
from orion.runtime.ray.carried import told_announced
from orion.runtime.ray.carrier import NOTHING_KNOWN, Carrier, Line, OfProgram
from orion.runtime.ray.centre import Centre
from orion.runtime.ray.cluster import answer_of, own_address
from orion.runtime.ray.exchange import ProgramExchange
from orion.runtime.ray.greeting import Address, connected
from orion.runtime.ray.holdings import Holdings
from orion.runtime.ray.inbox import Inbox, Landing
from orion.runtime.ray.lines import read_message, write_message
from orion.runtime.ray.links import Link, Receiver, connect
from orion.runtime.ray.meetings import Meetings
from orion.runtime.ray.node_worker import NodeWorker
from orion.runtime.ray.orders import Delivery, Order, Outcome, Ready, RunOrder
from orion.runtime.ray.overlapped_centre import OverlappedCentre
from orion.runtime.ray.posts import Posts, Way, size_of
from orion.runtime.ray.same_programs import own_versions
from orion.runtime.ray.segments import (
    Arena,
    Block,
)
from orion.runtime.ray.store import LoopBlocks
from orion.runtime.ray.timed import TimedNodeWorker
from orion.runtime.skeleton import Skeleton, make_skeleton
from orion.runtime.worker import AbortedError, Worker

DELIVER = "deliver"
"""The concurrency group of the methods that are called while an actor runs a program."""


@dataclass(frozen=True, eq=False)
class ActorProgram:
    """A program as one actor keeps it."""

    prepared: PreparedProgram
    skeleton: Skeleton
    memory: RunMemory
    exchange: ProgramExchange | None
    holdings: Holdings | None
    parts: tuple[LoopPart, ...]
    boxes: tuple[NDArray[np.int64] | None, ...]
    meet: Meet
    followed: tuple[FollowedPart, ...]
    of_carrier: OfProgram = NOTHING_KNOWN
    announced: Announcements = ()
    _uncompiled: list[Skeleton] = field(default_factory=list)

    def uncompiled(self) -> Skeleton:
        """The skeleton that starts each loop itself: what a profile sees."""
        if not self._uncompiled:
            self._uncompiled.append(make_skeleton(self.prepared))
        return self._uncompiled[0]


class WorkerActor(ActorMemory):
    """One worker of a group. `connect` says which."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._nodes: tuple[str, ...] = ()
        self._actors: tuple[Any, ...] = ()
        self._programs: dict[int, ActorProgram] = {}
        self._inbox = Inbox()
        self._connections: Receiver | None = None
        self._links: dict[int, Link | None] = {}
        self._late_links: dict[int, Link | None] = {}
        self._between: Between | None = None
        self._pipes = (-1, -1)
        self._recorder: Recorder | None = None

    def connect(self, number: int, nodes: tuple[str, ...], actors: tuple[Any, ...]) -> int:
        """Be worker `number` of a group whose worker w is `actors[w]`, on node `nodes[w]`. Returns the process id."""
        self._number, self._nodes, self._actors = number, nodes, actors
        return os.getpid()

    def versions(self) -> dict[str, str]:
        """Those of what must be the same here as in the driver."""
        return own_versions()

    # ------------------------------------------------------------ a run

    def run(self, order: Order) -> Outcome:
        """Do what an order says: run this worker's part of a program, or make ready for it."""
        if order is None:
            return Outcome()
        if isinstance(order, Ready):
            return self._make_ready(order)
        try:
            outcome = self._run(order)
        except BaseException as error:
            outcome = Outcome(error=_sendable(error))
        failed = self._inbox.end(order.run)
        self._wake_receiver()
        if self._recorder is not None:
            outcome, self._recorder = replace(outcome, measured=self._recorder.sendable()), None
        return outcome if failed is None else replace(outcome, error=outcome.error or _sendable(failed))

    def _make_ready(self, order: Ready) -> Outcome:
        try:
            self._fill(order)
        except BaseException as error:
            return Outcome(error=_sendable(error))
        return Outcome()

    def open_pipes(self, orders: str, outcomes: str) -> None:
        """Take orders from a pipe of the driver's, and put outcomes into another."""
        self._pipes = os.open(orders, os.O_RDONLY), os.open(outcomes, os.O_WRONLY)

    def connect_orders(self, address: Address) -> None:
        """Take orders through a connection to the driver, and put outcomes into it. OSError where there can be none."""
        made = connected(address, self._number)
        made.settimeout(None)
        descriptor = made.detach()
        self._pipes = descriptor, os.dup(descriptor)

    def serve(self) -> None:
        """Do what comes through the pipe or the connection, until the driver closes it. However this ends, the driver
        sees it: the way back is closed.
        """
        orders, outcomes = self._pipes
        try:
            with suppress(EOFError, OSError):
                while True:
                    write_message(outcomes, self._answer(read_message(orders)))
        finally:
            os.close(orders)
            os.close(outcomes)

    def _answer(self, order: bytes) -> bytes:
        """Run a pickled order and return its pickled outcome. What cannot be pickled is an error of the run."""
        try:
            return pickle.dumps(self.run(pickle.loads(order)), pickle.HIGHEST_PROTOCOL)
        except BaseException as error:
            return pickle.dumps(Outcome(error=_sendable(error)), pickle.HIGHEST_PROTOCOL)

    def deliver(self, delivery: Delivery) -> None:
        """Take what a worker on another node has sent to this one."""
        self._inbox.deliver(delivery)
        self._arrived(delivery.sender, delivery.number, size_of(delivery))

    def abort(self, program: int, run: int) -> None:
        """Make this node's workers leave a run of a program."""
        known = self._programs.get(program)
        if known is not None:
            self._inbox.abort(run, known.memory)

    def _run(self, order: RunOrder) -> Outcome:
        self._forget(order)
        self.attach({number: name for number, name in order.segments.items() if number not in self._memory})
        program = self._program(order)
        try:
            barriers = self._gather(program)
            if order.measured is not None:
                self._recorder = Recorder(self._number, order.measured, self._nodes[self._number])
            for part, blocks, boxes in zip(program.parts, order.loops, program.boxes, strict=True):
                part.begin(self._data(part, blocks, boxes))
            worker = self._worker(program, order)
            worker.barriers = barriers
            skeleton = program.skeleton if order.measured is None else program.uncompiled()
            returned = skeleton(worker, *order.given)
            worker.finish()
            if not isinstance(worker, NodeWorker):
                return Outcome(returned)
            held = {} if self._number else worker.held
            busy = tuple([one.nanoseconds for one in worker.busy])
            notes = program.memory.own_notes(self._number)
            carrier, brought = worker.between.carrier, worker.between.brought
            carried, sent = carrier.sent, worker.sent_bytes + carrier.sent.bytes + carrier.fed_bytes + brought.bytes
            fetched = replace(carrier.fetched, waited=worker.waited / 1e9)
            return Outcome(returned, None, False, sent, busy, held, None, notes, carried, fetched, brought)
        except AbortedError:
            return Outcome(error=failure_in(program.prepared, program.memory), left=True)
        except BaseException as error:
            program.memory.abort()
            return Outcome(error=failure_in(program.prepared, program.memory) or _sendable(error))
        finally:
            if self._between is not None:
                self._between.stop()
                self._between = None
            for part in program.parts:
                part.end()

    def _gather(self, program: ActorProgram) -> int:
        """Wait until all workers of a run on one node are there: none begins before (`Group.run`). The barriers that
        it took; those of several nodes were asked."""
        workers = program.prepared.workers
        if workers == 1 or len({*self._nodes[:workers]}) > 1:
            return 0
        worker = Worker(self._number, workers, program.parts, program.memory, program.meet)
        worker.meet()
        return worker.barriers

    def _worker(self, program: ActorProgram, order: RunOrder) -> Worker:
        workers = program.prepared.workers
        nodes = self._nodes[:workers]
        here = self._nodes[self._number]
        others = tuple(sorted(set(nodes) - {here}))
        if not others and self._recorder is None:
            return Worker(self._number, workers, program.parts, program.memory, program.meet, program.followed)
        if not others:
            return self._timed(TimedWorker(self._number, workers, program.parts, program.memory, program.meet))
        assert program.exchange is not None
        assert program.holdings is not None
        arrays = self._dense(program, order)
        between = self._between = self._make_between(program, order, arrays, others)
        self._inbox.begin(order.run, Landing(arrays, program.memory, program.meet, between))
        self._wake_receiver()
        receivers = {node: self._receiver(nodes, node) for node in others}
        self._connect_to(receivers.values(), self._links)
        ways = {
            node: self._way(worker, sorted(arrays), program.memory, self._links) for node, worker in receivers.items()
        }
        post = Posts(order.run, self._number, ways, self._recorder)
        given = (
            self._number, workers, program.parts, program.memory, program.meet,
            program.exchange, program.holdings, others, arrays, between,
            nodes.index(here) == self._number, program.announced,
        )  # fmt: skip
        return NodeWorker(*given, post) if self._recorder is None else self._timed(TimedNodeWorker(*given, post))

    def _timed(self, worker: TimedWorker | TimedNodeWorker) -> Worker:
        assert self._recorder is not None
        worker.recorder = self._recorder
        return worker

    def _receiver(self, nodes: tuple[str, ...], node: str) -> int:
        """The worker on a node that takes what this one sends there: always the same one."""
        there = [worker for worker, place in enumerate(nodes) if place == node]
        return there[self._number % len(there)]

    def _make_between(
        self, program: ActorProgram, order: RunOrder, arrays: dict[str, NDArray[Any]], others: tuple[str, ...]
    ) -> Between:
        """What brings late updates and copies to other nodes, to the first workers there, by connections of its own; on
        the first worker of a node, where there are such."""
        nodes = self._nodes[: program.prepared.workers]
        here = [worker for worker, node in enumerate(nodes) if node == self._nodes[self._number]]
        firsts = {}
        if here[0] == self._number and any(goes_apart(program, part) for part in program.parts):
            firsts = {node: nodes.index(node) for node in others}
        self._connect_to(firsts.values(), self._late_links)
        lines = {
            node: Line(
                self._way(worker, sorted(arrays), program.memory, self._late_links), unsent_of(self._late_links[worker])
            )
            for node, worker in firsts.items()
        }
        workers, exchange, memory = program.prepared.workers, program.exchange, program.memory
        assert exchange is not None
        fail = partial(self._inbox.fail, order.run)
        among = Nodes(exchange.nodes, exchange.place, exchange.place[self._number], lines)
        sender, home = workers + self._number, exchange.nodes[0]
        where = exchange.nodes, exchange.place
        carrier = Carrier(order.run, sender, here, *where, memory, arrays, lines, fail, home, program.of_carrier)
        given = among, memory, arrays, fail
        meetings = Meetings(order.run, sender + workers, *given)
        centre = Centre(order.run, sender + 2 * workers, *given)
        return Between(carrier, meetings, centre, OverlappedCentre(order.run, sender + 3 * workers, *given))

    def _connect_to(self, workers: Iterable[int], links: dict[int, Link | None]) -> None:
        """Have connections to workers as far as possible, all made at once: those that cannot be may take seconds."""
        new = [worker for worker in workers if worker not in links]
        if new:
            with OwnPool(len(new)) as pool:
                links.update(zip(new, pool.map(self._link, new), strict=True))

    def _way(self, worker: int, arrays: list[str], memory: RunMemory, links: dict[int, Link | None]) -> Way:
        """How deliveries get to a worker on another node: through a connection, as calls of Ray where there is none."""
        link = links[worker]
        if link is None:
            return delivery_method(self._actors[worker]).remote  # type: ignore[no-any-return]
        return lambda delivery: link.send(delivery, arrays, lambda: bool((memory.control[:, 0] != GO).any()))

    def _link(self, worker: int) -> Link | None:
        """A connection to a worker; None where it cannot be made, which is not tried again."""
        try:
            address = answer_of(self._actors[worker].listen.options(concurrency_group=DELIVER).remote())
            return None if address is None else connect(address, self._number, worker)
        except OSError:
            return None

    def listen(self) -> Address | None:
        """Take connections of workers on other nodes. Returns where; None where that is not possible."""
        if self._connections is None:
            try:
                self._connections = Receiver(own_address(), self._inbox, self._arrived)
            except OSError:
                return None
        return self._connections.address

    def _arrived(self, sender: int, number: int, size: int) -> None:
        """Note a message that is where it belongs."""
        recorder = self._recorder
        if recorder is not None:
            recorder.arrive(sender, number, size)

    def _wake_receiver(self) -> None:
        if self._connections is not None:
            self._connections.wake()

    # ------------------------------------------------------------ programs and arrays

    def _program(self, order: RunOrder) -> ActorProgram:
        if order.prepared is not None:
            known = self._load(order.prepared, order.exchange, order.memory)
        else:
            known = self._programs[order.program]
        if order.announced is not None:
            known = self._with_announced(known, order.announced)
        self._programs[order.program] = known
        return known

    def _with_announced(self, program: ActorProgram, announced: Announcements) -> ActorProgram:
        """A program whose tiles have announced what they touch."""
        told = {}
        if program.exchange is not None and any(one.rows for one in announced):
            nodes, own = program.exchange.nodes, program.exchange.place[self._number]
            told = {(one.loop, one.number): (one.count, told_announced(one, nodes, own)) for one in announced}
        return replace(program, announced=announced, of_carrier=replace(program.of_carrier, told=told))

    def _load(self, prepared: PreparedProgram, exchange: ProgramExchange | None, segment: int) -> ActorProgram:
        from orion.kernel.build.compile import compile_kernel
        from orion.kernel.build.walker import meeting_walk

        kernels = [compile_kernel(loop.kernel) for loop in prepared.loops]
        walks = self._walks(prepared, exchange, [kernel.walk for kernel in kernels])
        meet = meeting_walk()
        memory = allocate_run_memory(prepared, Arena(segment, self._memory[segment]).allocate, posts=True)
        is_alone = len(set(self._nodes[: prepared.workers])) == 1
        alone = [is_alone or exchange is None or exchange.loops[k].is_at_home for k in range(len(prepared.loops))]
        memory = memory.without_posts(alone)
        if exchange is None:
            parts = loop_parts(
                prepared, memory, walks, worker_tiles(prepared, self._number, prepared.workers), self._number
            )
        else:
            orders = [loop.order for loop in exchange.loops]
            parts = loop_parts(prepared, memory, walks, [order[self._number] for order in orders], self._number, orders)
            for part, loop in zip(parts, exchange.loops, strict=True):
                offsets, waits, lags = map(read_only, loop.waits)
                part.waits = (offsets, waits, lags)
                part.own.is_unbound &= is_alone or loop.is_at_home
                part.own.is_apart = part.loop.plan.counts_on and not (is_alone or loop.is_at_home)
                here = [worker for worker, place in enumerate(exchange.place) if place == exchange.place[self._number]]
                part.own.here = here[0], here[-1] + 1
        # what other nodes wait for is sent between walks
        followed = followed_of(prepared) if is_alone else ()
        return ActorProgram(
            prepared=prepared,
            skeleton=make_skeleton(prepared, [one.followed for one in followed]),
            memory=memory,
            exchange=exchange,
            holdings=None if exchange is None or is_alone else Holdings(exchange),
            parts=parts,
            boxes=tuple(None if loop.sparse else read_only(tile_boxes(loop.schedule)) for loop in prepared.loops),
            meet=meet,
            followed=followed_parts(followed, parts),
            of_carrier=OfProgram({}, {number: one.receive for number, one in enumerate(kernels) if one.has_receive}),
        )

    def _walks(self, prepared: PreparedProgram, exchange: ProgramExchange | None, walks: list[Walk]) -> list[Walk]:
        """The walks of loops, with BLAS limited to this worker's share of the cores of its node."""
        here = [worker for worker, node in enumerate(self._nodes) if node == self._nodes[self._number]]
        of_nodes = None if exchange is None else [loop.order for loop in exchange.loops]
        orders = of_nodes or [loop.schedule.order for loop in prepared.loops]
        return limited_walks(prepared.loops, walks, [[order[w] for w in here if w < len(order)] for order in orders])

    def _forget(self, order: RunOrder) -> None:
        for program in order.ended:
            self._programs.pop(program, None)
        self._drop(order.dropped)

    def _data(self, part: LoopPart, blocks: LoopBlocks, boxes: NDArray[np.int64] | None) -> LoopData:
        extents = boxes if blocks.extents is None else read_only(self._array(blocks.extents))
        assert extents is not None
        values: list[Any] = []
        for argument, found in zip(part.loop.kernel.arguments, blocks.arguments, strict=True):
            if isinstance(found, Block):
                array = self._array(found)
                values.append(array if argument.kind in ("array", "value") and argument.writeable else read_only(array))
            elif argument.kind == "order":
                values.append(read_only(order_of(part.loop.plan)))
            else:
                values.append(found)
        return LoopData(extents, tuple(values))

    def _dense(self, program: ActorProgram, order: RunOrder) -> dict[str, NDArray[Any]]:
        """The dense arrays of a run by name."""
        found = {}
        for loop, blocks in zip(program.prepared.loops, order.loops, strict=True):
            for argument, block in zip(loop.kernel.arguments, blocks.arguments, strict=True):
                if argument.kind == "array" and isinstance(block, Block):
                    found[argument.name] = self._array(block)
        return found


def delivery_method(actor: Any) -> Any:
    """The method of another actor that takes deliveries, while it runs a program."""
    return actor.deliver.options(concurrency_group=DELIVER)


def goes_apart(program: ActorProgram, part: LoopPart) -> bool:
    """Whether updates of a loop that may be late, or copies of arrays, go from node to node."""
    plan, exchange = part.loop.plan, program.exchange
    is_late = plan.relaxed.has_clocks or bool(plan.nest.replicas)
    return is_late and exchange is not None and not exchange.loops[part.number].is_at_home


def unsent_of(link: Link | None) -> Callable[[], int]:
    """What says how many bytes of a connection the other end has not got; calls of Ray say nothing."""
    return (lambda: 0) if link is None else link.unsent


def _sendable(error: BaseException) -> BaseException:
    """The error with its traceback as a note; one that cannot be pickled as a RuntimeError with its text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"in a Ray actor:\n{text}")
    return error
