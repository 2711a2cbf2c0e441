"""What brings updates that may be late to other nodes, while a loop runs: a thread of the first worker of each node.

Each node has arrays with buffers as its workers have updated them; what the others lack of that, its carrier sends
them, and adds what they send (`orion.kernel.support.carried`). Clocks go with it: first a carrier reads those of the
workers of its node, then it sends all that has changed, and then those clocks. So whoever sees the clock of a worker
on another node has all updates that it tells of, and the bound is that of one node (`orion.kernel.support.buffers`).

It sends all so when a worker of its node has come half as far as updates may be late since it did so last. Between, as
far as the link has time, it sends single rows if it is told which come first (`orion.pacing`; managed communication:
Wei et al., SoCC 2015). These need no clocks, as updates may always come earlier than they must.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.sending import Sending
from orion.kernel.calling import CLOCK_STRIDE, GO, ROUND_BITS
from orion.plan.relaxed import How, RelaxedArray
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart
from orion.runtime.profile.records import NONE_SENT
from orion.runtime.ray.choice import Choice
from orion.runtime.ray.orders import Delivery, Flag, LateRows, clock_of
from orion.runtime.worker import AbortedError
from orion.schedule.schedule import Ints

IDLE_SECONDS = 0.001
"""How long a carrier sleeps that has nothing to do."""

SHARE_OF_LOOKS = 0.05
"""Looking for what is to be sent takes at most this share of the time that it takes to send what is found."""

SHORT_RUN = 64
"""The elements of a row of an array of one dimension."""


@dataclass(frozen=True)
class Line:
    """The way to another node: `send` hands over a delivery, `unsent` are the bytes that the other end has not got."""

    send: Callable[[Delivery], object]
    unsent: Callable[[], int]


@dataclass(frozen=True, eq=False)
class Carried:
    """An array that is kept alike on all nodes, as rows: `now` and `base` are its elements in their memory."""

    number: int
    now: NDArray[Any]
    base: NDArray[Any]
    width: int
    together: int
    sending: Sending
    choice: Choice

    @property
    def row_bytes(self) -> int:
        """The bytes of a row and of its number."""
        return self.width * self.now.dtype.itemsize + 8

    @property
    def rows_of_batch(self) -> int:
        """The rows of a message."""
        return max(1, self.sending.batch // self.row_bytes)


class Carrier:
    """The carrier of a node in run `run`, whose workers are `here`. It numbers its deliveries for itself, as `sender`,
    which is the number of no worker. `fail` ends the run with an error."""

    def __init__(
        self,
        run: int,
        sender: int,
        here: Sequence[int],
        memory: RunMemory,
        arrays: Mapping[str, NDArray[Any]],
        lines: Mapping[str, Line],
        fail: Callable[[BaseException], object],
    ) -> None:
        self._run, self._sender = run, sender
        self._here, self._is_home = np.array(here, np.int64), 0 in here
        self._memory, self._arrays, self._lines, self._fail = memory, arrays, lines, fail
        self._lock = Lock()
        self._carried: dict[int, Carried] = {}
        self._loop = -1
        self._thread: Thread | None = None
        self._over = Event()
        self._number = 0
        self._told = np.zeros(len(self._here), np.int64)
        """The clocks that the others have been told."""
        self._free_at = 0.0
        """When the bandwidth that the user has given has room again."""
        self.sent = NONE_SENT
        """What it has sent in this run, to all nodes."""

    # ------------------------------------------------------------ a round of a loop

    def begin(self, part: LoopPart) -> None:
        """Be ready for a round: nobody has begun it on any node."""
        relaxed = part.loop.plan.relaxed
        with self._lock:
            self._loop = part.number
            self._carried = {
                number: self._of(number, one) for number, one in enumerate(relaxed.arrays) if one.how is not How.READ
            }
        self._get_ready()
        self._done = (part.round + 1) << ROUND_BITS
        self._told[:] = part.round << ROUND_BITS  # not even that they have begun
        self._step = max(1, relaxed.max_delay // 2)

    def _get_ready(self) -> None:
        """Compile what is needed while the loop runs, or take it from the disk."""
        for one in self._carried.values():
            self._changed(one)
            none = np.zeros(0, np.int64), np.zeros((0, one.width), one.now.dtype)
            self._take(one, *none)
            self.add(self._loop, one.number, *none)

    def go(self) -> None:
        """Send, from now on: all nodes are ready."""
        self._over.clear()
        self._thread = Thread(target=self._serve, name="orion-carrier", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until all has been sent, once the workers of this node have done the round."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def stop(self) -> None:
        """End in the middle of a round that is left."""
        self._over.set()
        self.wait()

    def add(self, loop: int, number: int, rows: Ints, told: NDArray[Any]) -> None:
        """Add what another node has sent."""
        from orion.kernel.support.carried import add

        with self._lock:
            if loop != self._loop:
                raise ValueError(f"updates of loop {loop} while loop {self._loop} runs")
            one = self._carried[number]
            add(one.now, one.base, one.width, rows, told, one.together, self._memory.locks, self._memory.control[loop])

    def like(self, loop: int, number: int) -> Carried:
        """The array with this number in the loop under way."""
        if loop != self._loop:
            raise ValueError(f"updates of loop {loop} while loop {self._loop} runs")
        return self._carried[number]

    def set_clock(self, loop: int, worker: int, value: int) -> None:
        """Note how far a worker of another node is, all of whose updates until then are here."""
        from orion.kernel.support.carried import set_clock

        set_clock(self._memory.clocks[loop], worker, value)

    def _of(self, number: int, one: RelaxedArray) -> Carried:
        array = self._arrays[one.buffered.array]
        width = array.shape[-1] if array.ndim > 1 else min(SHORT_RUN, max(1, array.size))
        now = array.reshape(-1)
        base = now.copy()
        choice = Choice(one.buffered.sending, -(-now.size // width), least_of(base))
        return Carried(number, now, base, width, elements_together(one, array.shape), one.buffered.sending, choice)

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        try:
            self._send_until_done()
        except AbortedError:
            pass  # why the run is left is known
        except BaseException as error:
            self._fail(error)

    def _send_until_done(self) -> None:
        from orion.kernel.support.carried import read_clocks

        clocks, found = self._memory.clocks[self._loop], np.zeros_like(self._told)
        while not self._is_left():
            read_clocks(clocks, self._here, found)
            if self._must_tell(found):
                self._send_all(found)
                self._told[:] = found
                if (found >= self._done).all():
                    return
            elif not self._send_some():
                time.sleep(IDLE_SECONDS)

    def _must_tell(self, clocks: Ints) -> bool:
        """Whether a worker has done the round, or come half as far as updates may be late, since the others were told.
        One that has no iterations is past all from the beginning."""
        is_done = clocks >= self._done
        return bool(np.where(is_done, self._told < self._done, clocks - self._told >= self._step).any())

    def _is_left(self) -> bool:
        return self._over.is_set() or bool((self._memory.control[:, 0] != GO).any())

    def _send_all(self, clocks: Ints) -> None:
        """Send all that has changed, and then the clocks that were read before that. When all workers of all nodes have
        done a round the home node sends no changes: whoever needs the arrays after it is sent them as the home node has
        them, by all. Until then others may still read."""
        everybody = self._memory.clocks[self._loop][::CLOCK_STRIDE]
        is_last = self._is_home and bool((clocks >= self._done).all()) and bool((everybody >= self._done).all())
        for one in () if is_last else self._carried.values():
            rows = self._changed(one)
            for start in range(0, len(rows), one.rows_of_batch):
                self._send_rows(one, rows[start : start + one.rows_of_batch])
                self._let_go(one.sending.batch)
        flags = tuple(
            Flag(clock_of(self._loop), worker, clock)
            for worker, clock in zip(self._here.tolist(), clocks.tolist(), strict=True)
        )
        self._send(flags, ())
        self._note(flushes=1)

    def _send_some(self) -> bool:
        """Send the rows that come first, if the link has time for any. Whether it had, and there were any."""
        has_sent = False
        for one in self._carried.values():
            if not one.sending.order or not self._may_send(one):
                continue
            begun = time.perf_counter_ns()
            self._changed(one)
            rows = one.choice.first(one.rows_of_batch * one.choice.batches)
            looked = time.perf_counter_ns() - begun
            for start in range(0, len(rows), one.rows_of_batch):
                if start and not self._may_go_on(one):
                    break
                part = rows[start : start + one.rows_of_batch]
                self._send_rows(one, part)
                if one.sending.bandwidth:
                    size = len(part) * one.row_bytes * len(self._lines)
                    self._free_at = max(self._free_at, time.monotonic()) + size / one.sending.bandwidth
                self._note(early=len(part) * len(self._lines))
                has_sent = True
            one.choice.note_look(looked, time.perf_counter_ns() - begun, SHARE_OF_LOOKS)
        return has_sent

    def _may_go_on(self, one: Carried) -> bool:
        """Wait until the link has time for more of what was looked for; False where that is of no use any more."""
        while not self._is_left():
            if self._must_tell(self._memory.clocks[self._loop][self._here * CLOCK_STRIDE]):
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
        """The rows of which there is something to be told; their importance is noted."""
        from orion.kernel.support.carried import weigh

        begun = time.perf_counter_ns()
        with self._lock:
            weigh(one.now, one.base, one.width, one.choice.least, one.choice.weights)
        self._note(looking=(time.perf_counter_ns() - begun) / 1e9)
        return one.choice.changed()

    def _send_rows(self, one: Carried, rows: Ints) -> None:
        told = np.empty((len(rows), one.width), one.now.dtype)
        self._take(one, rows, told)
        one.choice.told(rows)
        self._send((), (LateRows(self._loop, one.number, rows, told),))
        self._note(rows=len(rows) * len(self._lines), bytes=told.nbytes * len(self._lines))

    def _take(self, one: Carried, rows: Ints, told: NDArray[Any]) -> None:
        from orion.kernel.support.carried import take

        with self._lock:
            take(one.now, one.base, one.width, rows, told)

    def _send(self, flags: tuple[Flag, ...], late: tuple[LateRows, ...]) -> None:
        delivery = Delivery(self._run, self._sender, self._number, flags, (), late)
        self._number += 1
        for line in self._lines.values():
            line.send(delivery)
        self._note(messages=len(self._lines))

    def _note(self, **more: Any) -> None:
        self.sent = replace(self.sent, **{name: getattr(self.sent, name) + count for name, count in more.items()})

    def _let_go(self, batch: int) -> None:
        """Wait until there is less than two messages on their way to each node."""
        while any(line.unsent() > 2 * batch for line in self._lines.values()) and not self._is_left():
            time.sleep(IDLE_SECONDS / 4)


def idle_carrier(memory: RunMemory) -> Carrier:
    """One that brings nothing anywhere: of loops without such updates."""
    return Carrier(0, 0, (0,), memory, {}, {}, lambda error: None)


def elements_together(one: RelaxedArray, shape: tuple[int, ...]) -> int:
    """How many neighbouring elements have a lock together while updates are applied (`orion.kernel.emit.flush`)."""
    from orion.kernel.support.carried import AT_ONCE, RUNS

    if one.how is How.AT_ONCE:
        return AT_ONCE
    if one.how is How.DENSE and one.leading == len(shape):
        return RUNS
    return int(np.prod(shape[max(1, one.leading) :], dtype=np.int64))


def least_of(base: NDArray[Any]) -> float:
    """What values are taken for at least, in importance: a hundredth of their mean size, or 1 where all are 0."""
    with np.errstate(all="ignore"):
        mean = float(np.abs(base.astype(np.float64)).mean()) / 100 if base.size else 0.0
    return mean if 0 < mean < np.inf else 1.0
