"""One worker's parts of the loops of a program: what their walks are called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orion.runtime.arguments import LoopData, read_only
from orion.runtime.memory import RunMemory
from orion.runtime.prepared import OUTPUTS, PreparedLoop, PreparedProgram
from orion.schedule.schedule import Ints, Schedule

Walk = Callable[..., None]

PYTHON_SCALARS: dict[str, Callable[[Any], Any]] = {"int64": int, "float64": float, "bool": bool}


@dataclass(slots=True, eq=False)
class LoopPart:
    """One worker's part of one loop. It is kept from run to run; `begin` makes it ready for one, `end` lets
    go of the arrays.

    `waits` are the last arguments before the kernel's own: wait_offsets, waits, lags, done, control.
    `scalars` are (position among the kernel's arguments, position among the loop's inputs, conversion);
    `outputs` are (position among the kernel's arguments, position among the loop's inputs, reduction operator
    or "", its pair of arrays). `round` counts the rounds of this run. `slice_tiles` is how many tiles are run
    between two looks at what Python has to do; None for all.
    """

    number: int
    loop: PreparedLoop
    walk: Walk
    tiles: Ints
    waits: tuple[Any, ...]
    scalars: tuple[tuple[int, int, Callable[[Any], Any]], ...]
    outputs: tuple[tuple[int, int, str, Any], ...]
    slice_tiles: int | None
    round: int = 0
    leading: tuple[Any, ...] = ()
    template: tuple[Any, ...] = ()

    def begin(self, data: LoopData) -> None:
        """Make ready for a run on these arrays."""
        self.round = 0
        self.leading = (data.extents, *self.waits)
        self.template = data.arguments

    def end(self) -> None:
        """Let go of the arrays."""
        self.leading = self.template = ()

    @property
    def control(self) -> Ints:
        """The control row of the loop."""
        control: Ints = self.waits[-1]
        return control

    def arguments(self, values: tuple[Any, ...]) -> list[Any]:
        """The kernel's arguments for the present round, given the loop's inputs."""
        arguments = list(self.template)
        for position, source, convert in self.scalars:
            arguments[position] = convert(values[source])
        for position, _, _, pair in self.outputs:
            arguments[position] = pair[self.round & 1]
        return arguments


def loop_parts(
    prepared: PreparedProgram,
    memory: RunMemory,
    walks: Sequence[Walk],
    tiles: Sequence[Ints],
    in_slices: bool = False,
) -> tuple[LoopPart, ...]:
    """The parts of a worker that runs `tiles[k]` of loop k, in that order."""
    return tuple(
        _part(number, loop, memory, walks[number], tiles[number], 1 if in_slices else None)
        for number, loop in enumerate(prepared.loops)
    )


def worker_tiles(prepared: PreparedProgram, worker: int, workers: int) -> list[Ints]:
    """The tiles of a worker in each loop. One worker alone takes all, in the serial order."""
    return [_tiles(loop.schedule, worker, workers) for loop in prepared.loops]


def _tiles(schedule: Schedule, worker: int, workers: int) -> Ints:
    if workers == 1:
        return schedule.serial_tiles()
    return schedule.order[worker] if worker < schedule.workers else np.zeros(0, np.int64)


def _part(
    number: int, loop: PreparedLoop, memory: RunMemory, walk: Walk, tiles: Ints, slice_tiles: int | None
) -> LoopPart:
    schedule, inputs = loop.schedule, loop.inputs
    arguments = list(enumerate(loop.kernel.arguments))
    results = [(p, inputs.index(a.name), a.op) for p, a in arguments if a.kind in OUTPUTS]
    return LoopPart(
        number=number,
        loop=loop,
        walk=walk,
        tiles=read_only(tiles),
        waits=(
            read_only(schedule.wait_offsets),
            read_only(schedule.waits),
            read_only(schedule.lags),
            memory.done[number],
            memory.control[number],
        ),
        scalars=tuple((p, inputs.index(a.name), _conversion(a.dtype)) for p, a in arguments if a.kind == "scalar"),
        outputs=tuple((*found, pair) for found, pair in zip(results, memory.outputs[number], strict=True)),
        slice_tiles=slice_tiles,
    )


def _conversion(dtype: str) -> Callable[[Any], Any]:
    return PYTHON_SCALARS.get(dtype, np.dtype(dtype).type)
