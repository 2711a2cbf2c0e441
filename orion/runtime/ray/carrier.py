"""What brings updates that may be late to other nodes, while a loop runs: a thread of the first worker of each node.

Each node has arrays with buffers as its workers have updated them; what the others lack of that, its carrier sends
them, and adds what they send (`orion.kernel.support.carried`). Clocks go with it: first a carrier reads those of the
workers of its node, then it sends all that has changed, and then those clocks. So whoever sees the clock of a worker
on another node has all updates that it tells of, and the bound is that of one node (`orion.kernel.support.buffers`).

It sends all so when a worker of its node has come half as far as updates may be late since it did so last, or, where
workers rest between tiles, a quarter, and when they begin tiles or end them. Between, as
far as the link has time, it sends single rows if it is told which come first (`orion.pacing`; managed communication:
Wei et al., SoCC 2015). These need no clocks, as updates may always come earlier than they must.

Where workers rest between tiles, nodes also tell each other which clocks they have (`orion.runtime.ray.acknowledged`).

Of an array that is served a node has what its tiles announce (`orion.runtime.ray.announced`): the home node sends it
these rows while its workers compute, in the order in which tiles need them, which wait for them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, replace
from orion.kernel.calling import CLOCK_STRIDE, ROUND_BITS
from orion.plan.relaxed import How, RelaxedArray
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart
from orion.runtime.profile.records import NONE_FETCHED, NONE_SENT
from orion.runtime.ray.acknowledged import NO_ACKS, Acknowledged, Acks
from orion.runtime.ray.beside import Beside
from orion.runtime.ray.carried import Carried, Told, carried_announced, carried_posted, carried_whole, least_of
from orion.runtime.ray.orders import Delivery, FedRows, Flag, LateRows, clock_of
from orion.runtime.ray.received import Receive, Received, received_by
from orion.schedule.schedule import Ints

IDLE_SECONDS = 0.001
"""How long a carrier sleeps that has nothing to do."""

SHARE_OF_LOOKS = 0.05
"""Looking for what is to be sent takes at most this share of the time that it takes to send what is found."""

MOST_UNSENT = 2
"""A node is sent what tiles of its will need while less than so many messages are on their way to it."""


@dataclass(frozen=True)
class Line:
    """The way to another node: `send` hands over a delivery, `unsent` are the bytes that the other end has not got."""

    send: Callable[[Delivery], object]
    unsent: Callable[[], int]


@dataclass(frozen=True, eq=False)
class OfProgram:
    """What carriers know of a program: `told` says of arrays that are served, by (loop, number), how many rows they
    have and of which this node tells others; `receives`, by loops, what applies updates that are no sums."""

    told: Mapping[tuple[int, int], tuple[int, Told]]
    receives: Mapping[int, Receive]


NOTHING_KNOWN = OfProgram({}, {})


class Carrier(Beside):
    """The carrier of a node in run `run`, whose workers are `here`; worker w of the run is on number `place[w]` of the
    `nodes`. It numbers its
    deliveries for itself, as `sender`, which is the number of no worker. `home` is the home node."""

    def __init__(
        self,
        run: int,
        sender: int,
        here: Sequence[int],
        nodes: Sequence[str],
        place: Sequence[int],
        memory: RunMemory,
        arrays: Mapping[str, NDArray[Any]],
        lines: Mapping[str, Line],
        fail: Callable[[BaseException], object],
        home: str,
        program: OfProgram,
    ) -> None:
        super().__init__("orion-carrier", memory, fail)
        self._run, self._sender = run, sender
        self._here, self._home, self._is_home = np.array(here, np.int64), home, 0 in here
        self._nodes, self._place = nodes, place
        self._acks: Acknowledged | None = None
        self._program = program
        self._arrays, self._lines = arrays, lines
        self._lock = Lock()
        self._carried: dict[int, Carried] = {}
        self._loop = -1
        self._received: Received | None = None
        self._numbers = Counter[str]()
        self._told = np.zeros(len(self._here), np.int64)
        """The clocks that the others have been told."""
        self._free_at = 0.0
        """When the bandwidth that the user has given has room again."""
        self.sent = NONE_SENT
        """What it has sent in this run, to all nodes."""
        self.fetched = NONE_FETCHED
        """What it was sent in this run of rows that tiles have announced."""
        self.fed_bytes = 0
        """The contents of rows that it has sent to nodes whose tiles have announced them."""
        self._began = 0.0

    # ------------------------------------------------------------ a round of a loop

    def begin(self, part: LoopPart) -> None:
        """Be ready for a round: nobody has begun it on any node."""
        relaxed = part.loop.plan.relaxed
        with self._lock:
            self._loop = part.number
            receive = self._program.receives.get(part.number)
            self._received = None if receive is None else received_by(part, receive)
            self._carried = dict(self._arrays_of(part.number, relaxed.arrays))
        self._get_ready()
        self._memory.fetched[part.number][:] = 0
        self._done = (part.round + 1) << ROUND_BITS
        self._told[:] = part.round << ROUND_BITS  # not even that they have begun
        self._step = max(1, relaxed.max_delay // 2)
        self._acks = None
        if part.loop.plan.counts_on:
            shown = self._memory.clocks[part.number], self._memory.notes[part.number]
            where = self._place, self._here
            self._acks = Acknowledged(part.number, part.round, *shown, *where, relaxed.max_delay)
        self._began = time.monotonic()  # until `go`: the home node may be through the barrier before this one is

    def _get_ready(self) -> None:
        """Compile what is needed while the loop runs, or take it from the disk."""
        for one in self._carried.values():
            self._changed(one)
            none = np.zeros(0, np.int64), np.zeros((0, one.width), one.now.dtype)
            self._take(one, *none)
            self.add(self._loop, one.number, *none)

    def go(self) -> None:
        self._began = time.monotonic()
        super().go()

    def add(self, loop: int, number: int, rows: Ints, told: NDArray[Any]) -> None:
        """Add what another node has sent."""
        with self._lock:
            self._add(self._known(loop)[number], rows, told)

    def add_fed(self, loop: int, number: int, first: int, values: NDArray[Any]) -> None:
        """Add what rows are that tiles have announced, from number `first` of them on; tiles wait for them."""
        from orion.kernel.support.carried import set_clock

        with self._lock:
            one = self._known(loop)[number]
            self._add(one, one.told.fetches[first : first + len(values)], values)
            at = first + len(values)
            if at == len(one.told.fetches):
                one.choice.least = least_of(one.now.reshape(-1, one.width)[one.told.rows])
            self._note_fetched(values, is_last=at == len(one.told.fetches))
            set_clock(self._memory.fetched[loop], number, at)

    def _add(self, one: Carried, rows: Ints, told: NDArray[Any]) -> None:
        from orion.kernel.support.carried import add

        if one.one.buffered.apply is not None:
            assert self._received is not None
            self._received.apply(one.one, one.width, one.axis, rows, told)
            return
        shared = one.together, self._memory.locks, self._memory.control[self._loop]
        add(one.now, one.base, one.width, one.axis, rows, told, *shared)

    def _known(self, loop: int) -> Mapping[int, Carried]:
        if loop != self._loop:
            raise ValueError(f"updates of loop {loop} while loop {self._loop} runs")
        return self._carried

    def like(self, loop: int, number: int) -> Carried:
        """The array with this number in the loop under way."""
        return self._known(loop)[number]

    def set_clock(self, loop: int, worker: int, value: int) -> None:
        """Note how far a worker of another node is, all of whose updates until then are here; or what stands for a
        worker has to say (`ack_of`)."""
        from orion.kernel.support.carried import set_clock

        acks = self._acks
        if acks is not None and acks.loop != loop:
            acks = None
        if worker >= 0:
            set_clock(self._memory.clocks[loop], worker, value)
            if acks is not None:
                acks.note_clock(worker, value)
        elif acks is not None:
            acks.note(worker, value)

    def _arrays_of(self, loop: int, arrays: Sequence[RelaxedArray]) -> Iterator[tuple[int, Carried]]:
        """The arrays that are brought to other nodes, or from there."""
        for number, one in enumerate(arrays):
            array, announced = self._arrays[one.buffered.array], self._program.told.get((loop, number))
            posted = self._memory.posted[loop]
            if ("posted", one.buffered.name) in posted:
                size = posted["posted", one.buffered.name].size
                shape = (*array.shape[:-1], size // max(1, prod(array.shape[:-1])))  # rows may be padded
                yield number, carried_posted(number, one, posted, shape)
            elif announced is not None:
                yield number, carried_announced(number, one, array, *announced)
            elif one.how is not How.READ:
                yield number, carried_whole(number, one, array)

    def _note_fetched(self, values: NDArray[Any], *, is_last: bool) -> None:
        """Note rows that have come; the last ones were waited for from the begin on."""
        before, seconds = self.fetched, time.monotonic() - self._began if is_last and self._began else 0.0
        self.fetched = replace(
            before,
            rows=before.rows + len(values),
            bytes=before.bytes + values.nbytes,
            messages=before.messages + 1,
            seconds=before.seconds + seconds,
        )

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        """Send, until all has been sent and the workers of this node have done the round."""
        from orion.kernel.support.carried import read_clocks

        clocks, found = self._memory.clocks[self._loop], np.zeros_like(self._told)
        while not self._is_left():
            acks = None if self._acks is None else self._acks.due()  # before clocks are read: who has later ones saw it
            read_clocks(clocks, self._here, found)
            has_fed = self._feed()
            if self._must_tell(found) or (acks is not None and acks.is_due and (found < self._done).any()):
                self._send_all(found, NO_ACKS if acks is None else acks)
                self._told[:] = found
            elif (found >= self._done).all() and self._has_fed_all():
                return
            elif not self._send_some() and not has_fed:
                time.sleep(IDLE_SECONDS)

    def _feed(self) -> bool:
        """Send nodes the next of the rows that their tiles have announced, where the links have time. Whether any were
        sent."""
        has_sent = False
        for one in self._carried.values():
            for node, feed in one.feeds.items():
                line = self._lines[node]
                if feed.is_over or line.unsent() > MOST_UNSENT * one.sending.batch:
                    continue
                first, values = feed.next(one.fed_rows_of_batch)
                self._deliver(node, (), (FedRows(self._loop, one.number, first, values),))
                self.fed_bytes += values.nbytes
                has_sent = True
        return has_sent

    def _has_fed_all(self) -> bool:
        return all(feed.is_over for one in self._carried.values() for feed in one.feeds.values())

    def _must_tell(self, clocks: Ints) -> bool:
        """Whether a worker has done the round, or come half as far as updates may be late, since the others were told.
        One that has no iterations is past all from the beginning."""
        is_done = clocks >= self._done
        if self._acks is not None:
            return self._acks.must_tell(clocks, self._told)
        return bool(np.where(is_done, self._told < self._done, clocks - self._told >= self._step).any())

    def _send_all(self, clocks: Ints, acks: Acks) -> None:
        """Send all that has changed, then the clocks that were read before that, and then those of others that had come
        before they were read. When all workers of all nodes have
        done a round the home node sends no changes: whoever needs the arrays after it is sent them as the home node has
        them, by all. Until then others may still read."""
        everybody = self._memory.clocks[self._loop][::CLOCK_STRIDE]
        is_last = self._is_home and bool((clocks >= self._done).all()) and bool((everybody >= self._done).all())
        for one in () if is_last else self._carried.values():
            chosen = self._changed(one)
            for start in range(0, len(chosen), one.rows_of_batch):
                self._send_rows(one, chosen[start : start + one.rows_of_batch])
                self._let_go(one.sending.batch)
            if (clocks >= self._done).all():
                self._bring_home(one)
        flags = tuple(
            Flag(clock_of(self._loop), worker, clock)
            for worker, clock in zip(self._here.tolist(), clocks.tolist(), strict=True)
        )
        for node in self._lines:
            self._send_to(node, (*flags, *self._acks_for(node, clocks, acks)), ())
        if self._acks is not None:
            self._acks.told(acks, clocks)
        self._note(flushes=1)

    def _acks_for(self, node: str, clocks: Ints, acks: Acks) -> Iterator[Flag]:
        """What a node is told of its clocks, and asked for of these."""
        if self._acks is not None and (clocks < self._done).any():  # else the clocks say more
            place = self._nodes.index(node)
            for number, clock in (*acks.of.get(place, ()), *self._acks.asks(place, clocks)):
                yield Flag(clock_of(self._loop), number, clock)

    def _bring_home(self, one: Carried) -> None:
        """Send the home node what has changed of rows that no other node touches."""
        from orion.kernel.support.carried import weigh

        weights = np.zeros(len(one.told.last))
        with self._lock:
            weigh(one.now, one.base, one.width, 1.0, one.told.last, weights)
        rows = one.told.last[weights > 0]
        for start in range(0, len(rows), one.rows_of_batch):
            part = rows[start : start + one.rows_of_batch]
            told = self._taken(one, part)
            self._send_to(self._home, (), (LateRows(self._loop, one.number, part, told),))
            self._note(rows=len(part), bytes=told.nbytes)
            self._let_go(one.sending.batch)

    def _send_some(self) -> bool:
        """Send the rows that come first, if the link has time for any. Whether it had, and there were any."""
        has_sent = False
        for one in self._carried.values():
            if not one.sending.order or not self._may_send(one):
                continue
            begun = time.perf_counter_ns()
            self._changed(one)
            chosen = one.choice.first(one.rows_of_batch * one.choice.batches)
            looked = time.perf_counter_ns() - begun
            for start in range(0, len(chosen), one.rows_of_batch):
                if start and not self._may_go_on(one):
                    break
                count = self._send_rows(one, chosen[start : start + one.rows_of_batch])
                if one.sending.bandwidth:
                    size = count * one.row_bytes
                    self._free_at = max(self._free_at, time.monotonic()) + size / one.sending.bandwidth
                self._note(early=count)
                has_sent = True
            one.choice.note_look(looked, time.perf_counter_ns() - begun, SHARE_OF_LOOKS)
        return has_sent

    def _may_go_on(self, one: Carried) -> bool:
        """Wait until the link has time for more of what was looked for; False where that is of no use any more."""
        while not self._is_left():
            if self._must_tell(self._memory.clocks[self._loop][self._here * CLOCK_STRIDE]):
                return False
            if self._acks is not None and self._acks.due().is_due:
                return False
            if self._may_send(one):
                return True
            time.sleep(IDLE_SECONDS / 4)
        return False

    def _may_send(self, one: Carried) -> bool:
        """Whether the bandwidth that the user has given has room, and the link has less than half a message."""
        if one.sending.bandwidth and time.monotonic() < self._free_at:
            return False
        return all(line.unsent() <= one.sending.batch // 2 for line in self._lines.values())

    def _changed(self, one: Carried) -> Ints:
        """The rows of which there is something to be told, by their places in `told.rows`; their importance is
        noted."""
        from orion.kernel.support.carried import weigh

        begun = time.perf_counter_ns()
        with self._lock:
            weigh(one.now, one.base, one.width, one.choice.least, one.told.rows, one.choice.weights)
        self._note(looking=(time.perf_counter_ns() - begun) / 1e9)
        return one.choice.changed()

    def _send_rows(self, one: Carried, chosen: Ints) -> int:
        """Tell the nodes that touch them of rows, by their places in `told.rows`. How many were sent to all of them."""
        told, count = self._taken(one, one.told.rows[chosen]), 0
        one.choice.told(chosen)
        for node in self._lines:
            wanted = one.wanted(node, chosen)
            rows, values = one.told.rows[chosen[wanted]], told[wanted]
            if len(rows):
                self._send_to(node, (), (LateRows(self._loop, one.number, rows, values),))
                self._note(rows=len(rows), bytes=values.nbytes)
                count += len(rows)
        return count

    def _taken(self, one: Carried, rows: Ints) -> NDArray[Any]:
        """What is to be told of some rows, which others know from now on."""
        told = np.empty((len(rows), one.width), one.now.dtype)
        return one.with_snapshots(rows, told, lambda: self._take(one, rows, told))

    def _take(self, one: Carried, rows: Ints, told: NDArray[Any]) -> None:
        from orion.kernel.support.carried import take

        with self._lock:
            take(one.now, one.base, one.width, rows, told)

    def _send_to(self, node: str, flags: tuple[Flag, ...], late: tuple[LateRows, ...]) -> None:
        self._deliver(node, flags, late)
        self._note(messages=1)

    def _deliver(self, node: str, flags: tuple[Flag, ...], rows: tuple[LateRows | FedRows, ...]) -> None:
        self._lines[node].send(Delivery(self._run, self._sender, self._numbers[node], flags, (), rows))
        self._numbers[node] += 1

    def _note(self, **more: Any) -> None:
        self.sent = replace(self.sent, **{name: getattr(self.sent, name) + count for name, count in more.items()})

    def _let_go(self, batch: int) -> None:
        """Wait until there is less than two messages on their way to each node."""
        while any(line.unsent() > 2 * batch for line in self._lines.values()) and not self._is_left():
            time.sleep(IDLE_SECONDS / 4)


def idle_carrier(memory: RunMemory) -> Carrier:
    """One that brings nothing anywhere: of loops without such updates."""
    return Carrier(0, 0, (0,), ("",), (0,), memory, {}, {}, lambda error: None, "", NOTHING_KNOWN)
