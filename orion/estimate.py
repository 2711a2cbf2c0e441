"""What a plan will take on several nodes: bytes between them, memory on each, and which loops use one node alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from orion.inspect.text.words import counted
from orion.ir.types import ArrayType
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.runtime.ray.exchange import program_exchange
from orion.runtime.ray.predicted import Prediction
from orion.runtime.walk import UnpredictableError
from orion.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class LoopEstimate:
    """What one planned loop takes: `line` of the source and `dims`, the number of `nodes` that run tiles of it, the
    `bytes` that go between nodes before and in it, all rounds together (None where nobody knows before the run), and
    `why_one_node`, where it is one of several."""

    line: int
    dims: tuple[str, ...]
    nodes: int
    bytes: int | None
    why_one_node: str | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call takes on `workers` workers shared out evenly among `nodes` nodes.

    `bytes` are the contents of arrays that go from node to node, in all (None where that depends on data: `unknown`
    says on what); what the driver sends at the beginning and gets at the end is not among them, nor are flags and
    headers. `bytes_at_end` of them bring what was written to the first node. `memory` has for each node the bytes of
    dense arrays that it works on.
    """

    workers: int
    nodes: int
    bytes: int | None
    bytes_at_end: int | None
    loops: tuple[LoopEstimate, ...]
    memory: tuple[int, ...]
    unknown: str | None

    def __str__(self) -> str:
        sent = f"{self.bytes:,} bytes" if self.bytes is not None else f"an unknown number of bytes ({self.unknown})"
        where = f"On {counted(self.workers, 'worker')}, {counted(self.nodes, 'node')}"
        lines = [f"{where}: {sent} from node to node."]
        for loop in self.loops:
            size = "" if loop.bytes is None else f", {loop.bytes:,} bytes"
            why = "" if loop.why_one_node is None else f": {loop.why_one_node}"
            lines.append(f"  line {loop.line}, over ({', '.join(loop.dims)}): {counted(loop.nodes, 'node')}{size}{why}")
        if self.bytes_at_end:
            lines.append(f"  at the end, to the first node: {self.bytes_at_end:,} bytes")
        sizes = ", ".join(f"{size:,}" for size in self.memory)
        return "\n".join([*lines, f"Dense arrays on each node: {sizes} bytes."])


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned loop and its schedule."""

    plan: LoopPlan
    schedule: Schedule


def estimated(
    function: FunctionPlan, known: Mapping[str, int], schedules: Mapping[int, Schedule], nodes: int
) -> Estimate:
    """The estimate for a planned function whose loops have these schedules, by their numbers."""
    loops = [Planned(loop, schedules[number]) for number, loop in enumerate(function.loops)]
    kinds = {name: kind for name, kind in function.types if isinstance(kind, ArrayType)}
    dtypes = {name: kind.dtype for name, kind in kinds.items()}
    dtypes |= {one.name: one.dtype for one in function.program.function.local_arrays}
    shapes = {name: shape for name, shape in function.sizes.shapes.items() if name in dtypes}
    sizes = {name: np.dtype(dtype).itemsize for name, dtype in dtypes.items()}
    workers = max((loop.schedule.workers for loop in loops), default=1)
    place = [f"{worker * nodes // workers}" for worker in range(workers)]
    exchange = program_exchange(loops, known, place, shapes)
    prediction = Prediction(known, loops, exchange, shapes, sizes)
    unknown = None
    try:
        total: int | None = prediction.go(function.program.steps)
    except UnpredictableError as error:
        total, unknown = None, str(error)
    found = [
        LoopEstimate(
            loop.plan.nest.span.line, loop.plan.nest.dims, len(one.tiles),
            None if total is None else size, one.why_at_home if len(exchange.nodes) > 1 else None,
        )
        for loop, one, size in zip(loops, exchange.loops, prediction.by_loop, strict=True)
    ]  # fmt: skip
    memory = [0] * len(exchange.nodes)
    for array, shape in shapes.items():
        for node, needed in enumerate(exchange.needed(array)):
            elements = sum(region.elements(shape) for region in exchange.cells[array].regions(needed))
            memory[node] += min(elements, prod(shape)) * sizes[array]
    at_end = None if total is None else prediction.at_end
    return Estimate(workers, len(exchange.nodes), total, at_end, tuple(found), tuple(memory), unknown)
