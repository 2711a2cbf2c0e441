"""Updates of other nodes that are no sums: they are applied as those of a worker are, by the function of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.calling import NOTES_SIZE, Argument
from orion.plan.relaxed import How, RelaxedArray
from orion.runtime.parts import LoopPart
from orion.schedule.schedule import Ints

Receive = Callable[..., bool]
"""What applies the updates that it finds: the function `receive` of a kernel (`orion.kernel.calling.KernelSource`)."""


class Received:
    """What has come of a loop, as a worker of its own has it that makes no iterations; `arguments` are those of its
    kernel, each with what a worker of this node is given for it."""

    def __init__(self, receive: Receive, arguments: Sequence[tuple[Argument, Any]], control: Ints) -> None:
        self._receive, self._control = receive, control
        self._passed = [_own(argument, given) for argument, given in arguments]
        self._places = {
            (argument.kind, argument.name): found for (argument, _), found in zip(arguments, self._passed, strict=True)
        }

    def apply(self, one: RelaxedArray, width: int, axis: int, rows: Ints, told: NDArray[Any]) -> None:
        """Apply updates of some rows of an array, of `width` elements each, and after these as many of each snapshot.
        Its last axis has `axis` elements, and more if it is padded."""
        pending = self._places["own", one.buffered.name]
        row, column = np.nonzero(told[:, :width])
        line, at = np.divmod(rows[row] * width + column, axis)
        elements = line * pending.shape[-1] + at
        for k, name in enumerate((one.buffered.name, *one.buffered.snapshots)):
            self._places["own", name].reshape(-1)[elements] = told[row, k * width + column]
        if one.how is How.LISTED:
            self._list(one, pending.shape, elements)
        self._receive(*self._passed, self._control)

    def _list(self, one: RelaxedArray, shape: tuple[int, ...], elements: Ints) -> None:
        """List the parts of the array that these elements are in."""
        listed, marks = (self._places[kind, one.buffered.name] for kind in ("listed", "marks"))
        parts = np.unique(elements // prod(shape[max(1, one.leading) :]))
        listed[0], listed[1 : 1 + len(parts)] = len(parts), parts
        marks[parts] = 1


def received_by(part: LoopPart, receive: Receive) -> Received:
    """What is received in a run of a loop."""
    kernel = part.loop.kernel
    arguments = [(kernel.arguments[place], part.template[place]) for place in kernel.receives]
    return Received(receive, arguments, part.control)


def _own(argument: Argument, given: Any) -> Any:
    """What is passed for an argument: arrays that all workers share as they are."""
    match argument.kind:
        case "own" | "listed" | "marks":
            return np.zeros_like(given)
        case "posted" | "posted marks":
            return given[:0]  # other nodes were told by the one that it comes from
        case "notes":
            return np.zeros(NOTES_SIZE, np.int64)
        case _:
            return given
