"""What arrives at an actor from workers on other nodes, in the order in which each sent it.

It comes through connections (`orion.runtime.ray.links`), and as calls of Ray where none can be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.kernel.calling import FLAG_STRIDE
from orion.runtime.barrier import set_flag
from orion.runtime.memory import RunMemory
from orion.runtime.parts import Meet
from orion.runtime.ray.between import Between
from orion.runtime.ray.orders import (
    BARRIER,
    CLOCKS,
    MEETINGS,
    Brought,
    CopiedParts,
    Delivery,
    FedRows,
    Flag,
    LateRows,
    Results,
    clock_of,
    meeting_of,
)


@dataclass(frozen=True, eq=False)
class Landing:
    """Where the deliveries of a run go: the memory that this node's workers share."""

    arrays: Mapping[str, NDArray[Any]]
    memory: RunMemory
    meet: Meet
    between: Between

    def put(self, delivery: Delivery) -> None:
        """Copy the data, then set the flags."""
        for piece in delivery.pieces:
            piece.region.put(self.arrays[piece.region.array], piece.data)
        for found in delivery.results:
            match found:
                case Results():
                    self.memory.outputs[found.loop][found.output][found.turn][found.tiles] = found.values
                case CopiedParts():
                    copies = self.memory.copies[found.loop][found.copy][found.turn]
                    copies[found.blocks, found.first : found.first + found.values.shape[1]] = found.values
                case LateRows():
                    self.between.carrier.add(found.loop, found.array, found.rows, found.values)
                case FedRows():
                    self.between.carrier.add_fed(found.loop, found.array, found.first, found.values)
                case Brought():
                    room = self.between.pulling(found.loop).room
                    array, index = room(found.loop, found.replica, found.meeting, found.workers)
                    array[index] = found.values
        for flag in delivery.flags:
            self.set(flag)

    @property
    def workers(self) -> int:
        """The number of workers of the run."""
        return self.memory.meeting.size // (2 * FLAG_STRIDE)

    def set(self, flag: Flag) -> None:
        """Set a flag or a clock, once all is there that it tells of."""
        if flag.loop <= MEETINGS:
            loop = meeting_of(flag.loop)
            self.between.pulling(loop).note(loop, flag.tile, flag.round)
            return
        if flag.loop <= CLOCKS:
            self.between.carrier.set_clock(clock_of(flag.loop), flag.tile, flag.round)
            return
        done = self.memory.meeting if flag.loop == BARRIER else self.memory.done[flag.loop]
        set_flag(self.meet, done, flag.tile, flag.round, self.memory.control[flag.loop])


class EarlyError(Exception):
    """A message is of a run that has not begun here."""


class Inbox:
    """Deliveries and aborts reach a run while it lasts, and no other. Those that come before it are kept for it,
    those that come after it (it failed, and not everybody knew) are dropped.

    Runs are numbered from 1 on, and their numbers rise.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._run = self._over = 0
        self._landing: Landing | None = None
        self._error: BaseException | None = None
        self._next: dict[int, int] = {}
        self._kept: dict[tuple[int, int, int], Delivery] = {}

    def begin(self, run: int, landing: Landing) -> None:
        """Put the deliveries of a run where they belong, from now on and those that have come already."""
        with self._lock:
            self._run, self._landing, self._error, self._next = run, landing, None, {}
            for sender in {sender for number, sender, _ in self._kept if number == run}:
                self._put_in_turn(sender)

    def end(self, run: int) -> BaseException | None:
        """Take nothing more for a run. Returns what went wrong with a delivery of it, if anything did."""
        with self._lock:
            self._over, self._landing = run, None
            self._kept = {key: delivery for key, delivery in self._kept.items() if key[0] > run}
            error, self._error = self._error, None
            return error

    def deliver(self, delivery: Delivery) -> None:
        """Put a delivery, and those of the same sender that came before their turn, where they belong."""
        with self._lock:
            if delivery.run > self._over:
                self._kept[delivery.run, delivery.sender, delivery.number] = delivery
                if delivery.run == self._run:
                    self._put_in_turn(delivery.sender)

    @contextmanager
    def during(self, run: int) -> Iterator[Landing | None]:
        """Where messages of a run go, which does not end meanwhile; None where it is over, or has failed. EarlyError
        where it has not begun."""
        with self._lock:
            if run > max(self._run, self._over):
                raise EarlyError
            yield self._landing if run == self._run else None

    def fail(self, run: int, error: BaseException) -> None:
        """End a run, unless it is over: a message cannot be put where it belongs."""
        with self._lock:
            if run == self._run:
                self._fail(error)

    def lose(self, worker: int, error: BaseException) -> None:
        """End the run under way where a worker takes part in it, from which nothing can come any more."""
        with self._lock:
            if self._landing is not None and worker < self._landing.workers:
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._landing is not None:
            self._landing.memory.abort()
            self._error, self._landing = error, None

    def abort(self, run: int, memory: RunMemory) -> None:
        """Make the workers that share `memory` leave a run, unless it is over: then they may be in the next one."""
        with self._lock:
            if run > self._over:
                memory.abort()

    def _put_in_turn(self, sender: int) -> None:
        """Put what has come from a sender, up to the first delivery that is missing. One that cannot be put ends
        the run.
        """
        while self._landing is not None:
            found = self._kept.pop((self._run, sender, self._next.get(sender, 0)), None)
            if found is None:
                return
            try:
                self._landing.put(found)
            except BaseException as error:
                self._fail(error)
            self._next[sender] = found.number + 1
