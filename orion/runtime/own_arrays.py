"""What a worker has of its own for arrays with buffers: updates that have not been applied, and notes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.calling import ROUND, WORKER, Argument
from orion.runtime.memory import RunMemory
from orion.runtime.prepared import PreparedLoop

OWN = ("own", "listed", "marks")


class OwnArrays:
    """Those of one worker in loop `number`. They are made when a run begins that needs other ones than that before, and
    are zero at the beginning of each."""

    def __init__(self, loop: PreparedLoop, number: int, worker: int, memory: RunMemory) -> None:
        arguments = [*enumerate(loop.kernel.arguments)]
        places = {one.name: at for at, one in arguments if one.kind == "array"}
        array_of = {name: one.array for one in loop.plan.nest.function.buffered for name in (one.name, *one.snapshots)}
        self._own = [(at, one, places[array_of[one.name]]) for at, one in arguments if one.kind in OWN]
        self._made: dict[int, NDArray[Any]] = {}
        self._given: dict[int, NDArray[Any]] = {}
        if loop.plan.relaxed:
            self._notes = memory.notes[number][worker]
            shared = {"clocks": memory.clocks[number], "locks": memory.locks, "notes": self._notes}
            self._given = {at: shared[one.kind] for at, one in arguments if one.kind in shared}
        self._worker = worker

    def among(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a run with these arrays among them."""
        if not self._given:
            return arguments
        found = list(arguments)
        for at, one, like in self._own:
            found[at] = self._zeroed(at, one, found[like])
        for at, array in self._given.items():
            found[at] = array
        self._notes[:] = 0
        self._notes[WORKER], self._notes[ROUND] = self._worker, -1
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
