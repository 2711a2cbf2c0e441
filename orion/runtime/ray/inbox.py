"""What arrives at an actor from workers on other nodes, in the order in which each sent it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Condition
from typing import Any

from numpy.typing import NDArray

from orion.runtime.barrier import set_flag
from orion.runtime.memory import RunMemory
from orion.runtime.parts import Walk
from orion.runtime.ray.orders import BARRIER, Delivery, Flag


@dataclass(frozen=True, eq=False)
class Landing:
    """Where the deliveries of a run go: the memory that this node's workers share."""

    arrays: Mapping[str, NDArray[Any]]
    memory: RunMemory
    meet: Walk

    def put(self, delivery: Delivery) -> None:
        """Copy the data, then set the flags."""
        for piece in delivery.pieces:
            piece.region.of(self.arrays[piece.region.array])[...] = piece.data
        for found in delivery.results:
            self.memory.outputs[found.loop][found.output][found.turn][found.tiles] = found.values
        for flag in delivery.flags:
            self._set(flag)

    def _set(self, flag: Flag) -> None:
        done = self.memory.meeting if flag.loop == BARRIER else self.memory.done[flag.loop]
        set_flag(self.meet, done, flag.tile, flag.round, self.memory.control[flag.loop])


class Inbox:
    """Deliveries may come before this actor has begun the run they belong to, and after it has begun the next
    one: the first wait, the second are dropped.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._run = 0
        self._landing: Landing | None = None
        self._next: dict[int, int] = {}
        self._early: dict[tuple[int, int], Delivery] = {}

    def begin(self, run: int, landing: Landing) -> None:
        """Take the deliveries of a run from now on."""
        with self._changed:
            self._run, self._landing = run, landing
            self._next, self._early = {}, {}
            self._changed.notify_all()

    def deliver(self, delivery: Delivery) -> None:
        """Put a delivery, and those of the same sender that came before their turn, where they belong."""
        with self._changed:
            self._changed.wait_for(lambda: self._run >= delivery.run)
            if self._run > delivery.run or self._landing is None:
                return
            sender = delivery.sender
            self._early[sender, delivery.number] = delivery
            while (found := self._early.pop((sender, self._next.get(sender, 0)), None)) is not None:
                self._landing.put(found)
                self._next[sender] = found.number + 1
