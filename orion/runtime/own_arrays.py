"""What a worker has of its own: updates of arrays with buffers that have not been applied, its copies of replicated
arrays, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.errors import ArgumentError, describe
from orion.ir.function import Buffered
from orion.kernel.calling import (
    ACKS,
    CLOCK_STRIDE,
    END_HERE,
    FIRST_HERE,
    LAST,
    PAST_ALL,
    ROUND,
    UNBOUND,
    WORKER,
    Argument,
)
from orion.runtime.prepared import PreparedLoop
from orion.schedule.schedule import Ints

OWN = ("own", "listed", "marks")


class OwnArrays:
    """Those of one worker in a loop, beside the clocks, locks and notes that it `shared` with others, and the updates
    that are `posted` for other nodes; `orders` are the tiles of all workers. Those that are parts of arrays that all
    workers are given are these; others are made when a run begins that needs other ones than that before, and are zero
    at the beginning of each."""

    def __init__(
        self,
        loop: PreparedLoop,
        worker: int,
        shared: tuple[Ints, Ints, Ints],
        posted: Mapping[tuple[str, str], NDArray[Any]],
        orders: Sequence[Ints],
    ) -> None:
        arguments = [*enumerate(loop.kernel.arguments)]
        places = {one.name: at for at, one in arguments if one.kind == "array"}
        like, rows = _like(loop), _rows(loop)
        own = [(at, one) for at, one in arguments if one.kind in OWN]
        self._rows = [(at, places[rows[one.name]]) for at, one in own if one.name in rows]
        self._own = [(at, one, places[like[one.name]]) for at, one in own if one.name not in rows]
        self._made: dict[int, NDArray[Any]] = {}
        self._given: dict[int, NDArray[Any]] = {}
        if loop.plan.nest.late:
            self._clocks, locks, notes = shared
            self._notes = notes[worker]
            named = {"clocks": self._clocks, "locks": locks, "notes": self._notes}
            self._given = {at: named[one.kind] for at, one in arguments if one.kind in named}
            kept = [(at, (one.kind, one.name)) for at, one in arguments]
            self._given |= {at: posted[key] for at, key in kept if key in posted}
            idle = (k for k in range(self._clocks.size // CLOCK_STRIDE) if k >= len(orders) or not len(orders[k]))
            self._idle = [k * CLOCK_STRIDE for k in idle]
            self._last = int(orders[worker][-1]) if worker < len(orders) and len(orders[worker]) else -1
        self._worker = worker
        self.is_unbound = not loop.plan.relaxed.has_delays
        """Updates are seen by all at once: on one node."""
        self.is_apart = False
        """Updates go to other nodes, too, and their workers rest between tiles."""
        self.here = 0, len(orders)
        """The first worker of this node, and the one after the last."""

    def among(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a run with these arrays among them."""
        if not self._given:
            return arguments
        found = list(arguments)
        for at, source in self._rows:
            if self._worker >= len(found[source]):
                what = f"there are copies of an array for {len(found[source])} workers, and more run"
                raise ArgumentError(describe(what, hint="call the function itself: that has copies made"))
            found[at] = found[source][self._worker]
        for at, one, like in self._own:
            found[at] = self._zeroed(at, one, found[like])
        for at, array in self._given.items():
            found[at] = array
        self._clocks[self._idle] = PAST_ALL  # whoever comes first says so
        self._notes[:] = 0
        self._notes[WORKER], self._notes[ROUND], self._notes[LAST] = self._worker, -1, self._last
        self._notes[UNBOUND] = self.is_unbound
        self._notes[ACKS] = self.is_apart
        self._notes[FIRST_HERE], self._notes[END_HERE] = self.here
        return tuple(found)

    def _zeroed(self, at: int, argument: Argument, like: NDArray[Any]) -> NDArray[Any]:
        shape: tuple[int, ...] = like.shape
        if argument.kind != "own":
            shape = (prod(shape[: argument.position]) + (argument.kind == "listed"),)
        made = self._made.get(at)
        if made is None or made.shape != shape:
            made = self._made[at] = np.zeros(shape, argument.dtype)
        else:
            made[...] = 0
        return made


def _like(loop: PreparedLoop) -> dict[str, str]:
    """The arrays that a worker's own ones have the shapes of."""
    return {name: one.array for one in loop.plan.nest.function.late for name in one.own}


def _rows(loop: PreparedLoop) -> dict[str, str]:
    """The arrays of all workers' that a worker's own ones are parts of."""
    found = {}
    for one in loop.plan.nest.function.late:
        if not isinstance(one, Buffered):
            found[one.name] = one.copies
            if one.momentum:
                found[one.velocity] = one.velocities
    return found
