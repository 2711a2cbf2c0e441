"""Estimate of a plan: time, bytes between nodes, memory of each node, and the loops that use one node alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, fields
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from orion.cost.sizes import Sizes
from orion.dataclass import dataclass
from orion.errors import PlanError, describe
from orion.inspect.text.words import bytes_in_words, counted, time_in_words
from orion.inspect.tree.view import Seconds, seconds_of
from orion.ir.program import Step
from orion.ir.types import ArrayType, Shapes
from orion.kinds.best import MEASURE as MEASURE_KINDS
from orion.kinds.best import Best, best_placement, checked_placement, proposal, room_of
from orion.kinds.measured import MeasuredKinds
from orion.measured import LoopName, Measurement, Measurements, loop_names
from orion.plan.plan import FunctionPlan, LoopPlan
from orion.plan.shares import runs_alone
from orion.predicted_times import (
    MEASURE,
    LoopSeconds,
    Simulated,
    Times,
    UnknownTimesError,
    on_one_node,
    overlapping_loops,
    seconds_on_one_node,
)
from orion.printable import printable
from orion.runtime.ray.announced import NO_READS, ReadsOf
from orion.runtime.ray.exchange import LoopExchange, ProgramExchange, program_exchange
from orion.runtime.ray.predicted import Prediction
from orion.runtime.walk import UnpredictableError
from orion.schedule.schedule import Schedule
from orion.simulate import Network, TileGraph

if TYPE_CHECKING:
    from orion.planned import Plan

BANDWIDTH, LATENCY = 1e9, 1e-4
"""What is taken for the network where nothing is given: bytes per second (10 Gbit/s, less what protocols take), and
seconds from one actor to another."""

SENDING = 1.5e-4
"""What it takes a worker to send a message, and another process to take it: about so much longer than through a plain
socket a small message takes (0.09 to 0.16 ms in runs of `make transports` on an EPYC of the Zen 4 kind)."""

IN_FILES = (
    "no page of a file is in memory when a call begins, it ends in files, and pages are given up in between, to be "
    "read again, as with all arrays in files",
)
"""What is assumed of arrays on kinds of memory."""


@dataclass(frozen=True, slots=True)
class LoopEstimate:
    """Predicted cost of one planned loop; part of an `Estimate`.

    - `line`, `dims`: its line in the source and the names of its loop dimensions.
    - `nodes`: the number of nodes that run tiles of it; `why_one_node` gives the reason for one of several.
    - `bytes`: those sent between nodes before and in the loop, over all rounds; None where they depend on data.
    - `rounds`: how often it runs.
    - `seconds`: those of all rounds, waiting included; None where `Estimate.unmeasured` gives the reason.
    """

    line: int
    dims: tuple[str, ...]
    nodes: int
    bytes: int | None
    why_one_node: str | None
    rounds: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Predicted time, traffic and memory of a call on some workers and nodes. `plan.estimate(workers=64, nodes=8)`
    makes one.

    - `workers`, `nodes`: the workers, shared out evenly among the nodes.
    - `bytes`: contents of arrays sent between nodes, in all. None where that depends on data, as `unknown` says. It has
      neither message headers nor what the driver sends first and gets last.
    - `bytes_at_end`: the part of `bytes` that brings written data to the first node.
    - `loops`: a `LoopEstimate` per planned loop.
    - `memory`: per node, the bytes of dense arrays that it works on.
    - `seconds`: those of the call, by what `f.measure(...)` has measured. None where times are not known; `unmeasured`
      says why, and what to call.
    - `seconds_on_one`: those of the same tiles on one worker.
    - `assumed`: sentences about what the prediction takes for granted.
    - `placement`: the memory tier of each array, where one was asked for.

    >>> import numpy as np, orion
    >>> @orion.parallel_for
    ... def halve(a):
    ...     for i in range(a.shape[0]):
    ...         a[i] = 0.5 * a[i]
    >>> estimate = halve.plan(np.ones(1000)).estimate()
    >>> estimate.nodes, estimate.bytes, estimate.memory, estimate.seconds
    (1, 0, (8000,), None)
    """

    workers: int
    nodes: int
    bytes: int | None
    bytes_at_end: int | None
    loops: tuple[LoopEstimate, ...]
    memory: tuple[int, ...]
    unknown: str | None
    seconds: float | None
    seconds_on_one: float | None
    unmeasured: str | None
    assumed: tuple[str, ...]
    placement: Mapping[str, str]
    _on_kinds: MeasuredKinds | None = field(repr=False)
    _placed: Callable[[Mapping[str, str]], Estimate] = field(repr=False)

    def best(self, capacity: Mapping[str, int | str] | None = None) -> Best:
        """Propose a memory tier for each array, so that a call takes the least time on one worker.

        - `capacity`: bytes per tier, as numbers or texts such as "2GB". A tier that is not named has room for all
          arrays.

        Returns the `placement`, its `estimate` on these workers, and its reasons; `print` shows them.

        Errors: `PlanError` where the tiers have too little room, a tier is unknown, or none was measured
        (`f.measure(..., kinds=...)`).

        >>> import numpy as np, orion, tempfile
        >>> @orion.parallel_for
        ... def halve(a, b):
        ...     for i in range(a.shape[0]):
        ...         a[i] = 0.5 * b[i]
        >>> a, b = np.ones(20_000), np.ones(20_000)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     measured = halve.measure(a, b, kinds={"dram": None, "file": folder})
        >>> best = halve.plan(a, b).estimate().best(capacity={"dram": "200kB"})
        >>> sorted(best.placement.values())
        ['dram', 'file']
        """
        if self._on_kinds is None:
            raise PlanError(f"times are not known on any kind of memory: {MEASURE_KINDS}")
        room = room_of(self._on_kinds, {} if capacity is None else capacity)
        placement = best_placement(self._on_kinds, room)
        return proposal(self._on_kinds, placement, room, self._placed(placement))

    @property
    def speedup(self) -> float | None:
        """Predicted speedup over the same tiles on one worker; None where times are not known."""
        if self.seconds is None or self.seconds_on_one is None:
            return None
        return self.seconds_on_one / self.seconds

    @property
    def memory_per_worker(self) -> int:
        """Bytes of dense arrays per worker, on the node that has most of them."""
        place = [worker * self.nodes // self.workers for worker in range(self.workers)]
        return max((-(-size // max(1, place.count(node))) for node, size in enumerate(self.memory)), default=0)

    def __str__(self) -> str:
        sent = f"{self.bytes:,} bytes" if self.bytes is not None else f"an unknown number of bytes ({self.unknown})"
        where = f"On {counted(self.workers, 'worker')}, {counted(self.nodes, 'node')}"
        on = ", ".join(f"`{name}` on {kind}" for name, kind in self.placement.items())
        placed = [f"With {on}."] if on else []
        lines = [f"{where}: {sent} from node to node.", *placed, self._time(), *map(_loop_text, self.loops)]
        if self.bytes_at_end:
            lines.append(f"  at the end, to the first node: {self.bytes_at_end:,} bytes")
        sizes = ", ".join(f"{size:,}" for size in self.memory)
        lines.append(f"Dense arrays on each node: {sizes} bytes; per worker at most {self.memory_per_worker:,}.")
        return printable("\n".join([*lines, *(f"Assumed: {one}." for one in self.assumed)]))

    def _time(self) -> str:
        if self.seconds is None or self.speedup is None:
            return f"Time: unknown; {self.unmeasured}."
        return f"Time: {time_in_words(self.seconds * 1e9)}, {self.speedup:.3g} times as fast as on one worker."

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain dicts, lists, strings and numbers: its fields, `speedup` and
        `memory_per_worker`."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("_")}
        own |= {"loops": tuple(asdict(loop) for loop in self.loops), "placement": dict(self.placement)}
        return {**own, "speedup": self.speedup, "memory_per_worker": self.memory_per_worker}

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)


def _loop_text(loop: LoopEstimate) -> str:
    time = "" if loop.seconds is None else f", {time_in_words(loop.seconds * 1e9)}"
    size = "" if loop.bytes is None else f", {loop.bytes:,} bytes"
    why = "" if loop.why_one_node is None else f": {loop.why_one_node}"
    return f"  line {loop.line}, over ({', '.join(loop.dims)}): {counted(loop.nodes, 'node')}{time}{size}{why}"


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned loop and its schedule."""

    plan: LoopPlan
    schedule: Schedule


@dataclass(frozen=True, eq=False)
class Untimed:
    """All of an estimate but times: a planned function on the nodes of `exchange`, the `bytes` between them (None where
    that depends on data: `unknown` says on what), and the `memory` of each. It is the same for all placements of arrays
    on kinds of memory."""

    function: FunctionPlan
    sizes: Sizes
    loops: tuple[Planned, ...]
    workers: int
    exchange: ProgramExchange
    prediction: Prediction
    bytes: int | None
    unknown: str | None
    memory: tuple[int, ...]

    @cached_property
    def names(self) -> tuple[LoopName, ...]:
        return tuple(loop_names(self.function.loops))

    @cached_property
    def simulated(self) -> Sequence[Simulated]:
        """The loops as they are simulated, with what goes between nodes. UnknownTimesError where that is unknown."""
        if self.unknown is not None:
            raise UnknownTimesError(f"what goes between nodes is not known before the run: {self.unknown}")
        return _on_nodes(self.function, self.loops, self.prediction)


def untimed(
    function: FunctionPlan, sizes: Sizes, schedules: Mapping[int, Schedule], reads: ReadsOf, nodes: int
) -> Untimed:
    """Return what an estimate needs except times, for loops with these schedules, by number, on so many nodes.

    On several nodes, `reads` lists what tiles read of arrays that nodes have only in part.
    """
    loops = tuple(Planned(loop, schedules[number]) for number, loop in enumerate(function.loops))
    dtypes = {name: kind.dtype for name, kind in function.types if isinstance(kind, ArrayType)}
    dtypes |= {one.name: one.dtype for one in function.program.function.local_arrays}
    shapes = {name: shape for name, shape in function.sizes.shapes.items() if name in dtypes}
    of_elements = {name: np.dtype(dtype).itemsize for name, dtype in dtypes.items()}
    workers = max((loop.schedule.workers for loop in loops), default=1)
    place = [f"{worker * nodes // workers}" for worker in range(workers)]
    is_listed = len({*place}) > 1 and any(loop.plan.read_in_part for loop in loops)
    read = reads(function, [loop.schedule for loop in loops], place) if is_listed else NO_READS
    exchange = program_exchange(loops, sizes.known, place, shapes, read)
    prediction = Prediction(sizes.known, loops, exchange, shapes, of_elements)
    total, unknown = _sent(prediction, function.program.steps)
    memory = tuple(_memory(exchange, shapes, of_elements))
    return Untimed(function, sizes, loops, workers, exchange, prediction, total, unknown, memory)


def estimated(plan: Untimed, measurements: Measurements, network: Network, placement: Mapping[str, str]) -> Estimate:
    """The estimate for a plan. PlanError where there is a `placement` with an array or a kind of memory that was not
    measured."""
    used, prediction = len(plan.exchange.nodes), plan.prediction
    on_kinds = measurements.latest_on_kinds(plan.sizes, plan.names)
    full = checked_placement(on_kinds, placement) if placement else {}
    if on_kinds is not None and full:
        measurement: Measurement | None = on_kinds.placed(full)
    else:
        measurement = measurements.latest(plan.sizes, plan.names)
    times, unmeasured = None, f"nothing was measured: {MEASURE}"
    if measurement is not None:
        times = Times(plan.function, plan.sizes, plan.workers, used, measurement, network)
    found: tuple[LoopSeconds, ...] | None = None
    if times is not None:
        try:
            found = times.of_loops(plan.simulated)
        except UnknownTimesError as error:
            unmeasured = str(error)
    return Estimate(
        plan.workers,
        used,
        plan.bytes,
        None if plan.bytes is None else prediction.at_end,
        tuple(_loop_estimates(plan.loops, plan.exchange, prediction if plan.bytes is not None else None, found)),
        plan.memory,
        plan.unknown,
        *_seconds(times, found, plan.workers, prediction),
        None if found is not None else unmeasured,
        () if times is None or found is None else (*times.assumed(), *(IN_FILES if full else ())),
        full,
        on_kinds,
        lambda other: estimated(plan, measurements, network, other),
    )


def _sent(prediction: Prediction, steps: Sequence[Step]) -> tuple[int | None, str | None]:
    """The bytes that go from node to node, or why nobody knows them."""
    if len(prediction.exchange.nodes) == 1:  # on one nothing is sent
        return 0, None
    try:
        return prediction.go(steps), None
    except UnpredictableError as error:
        return None, str(error)


def _memory(exchange: ProgramExchange, shapes: Shapes, of_elements: Mapping[str, int]) -> list[int]:
    """The bytes of the dense arrays that each node works on."""
    memory = [0] * len(exchange.nodes)
    for array, shape in shapes.items():
        for node, needed in enumerate(exchange.needed(array)):
            elements = sum(region.elements(shape) for region in exchange.cells[array].regions(needed))
            memory[node] += min(elements, prod(shape)) * of_elements[array]
    return memory


def _seconds(
    times: Times | None, found: Sequence[LoopSeconds] | None, workers: int, prediction: Prediction
) -> tuple[float | None, float | None]:
    """The seconds of a call, and those on one worker."""
    if times is None or found is None:
        return None, None
    at_end = times.network.seconds(prediction.at_end_busiest) if prediction.at_end else 0.0
    seconds = times.of_call(workers) + sum(one.seconds for one in found) + at_end
    return seconds, times.of_call(1) + sum(one.on_one for one in found)


def _loop_estimates(
    loops: Sequence[Planned],
    exchange: ProgramExchange,
    prediction: Prediction | None,
    found: Sequence[LoopSeconds] | None,
) -> list[LoopEstimate]:
    several = len(exchange.nodes) > 1
    return [
        LoopEstimate(
            loop.plan.nest.span.line,
            loop.plan.nest.dims,
            len(one.tiles),
            None if prediction is None else prediction.by_loop[number],
            one.why_at_home if several else None,
            None if found is None else found[number].rounds,
            None if found is None else found[number].seconds,
        )
        for number, (loop, one) in enumerate(zip(loops, exchange.loops, strict=True))
    ]


# ---------------------------------------------------------------- what is simulated


def _on_nodes(function: FunctionPlan, loops: Sequence[Planned], prediction: Prediction) -> list[Simulated]:
    """The loops as they are simulated, with what goes between nodes."""
    exchange = prediction.exchange
    if len(exchange.nodes) == 1:
        return on_one_node(function, {number: loop.schedule for number, loop in enumerate(loops)})
    overlap = overlapping_loops(function)
    found = []
    for number, (loop, one) in enumerate(zip(loops, exchange.loops, strict=True)):
        _, moved, moves = prediction.sums[number].tolist()
        graph = _graph(loop.schedule, one, prediction)
        overlaps = number in overlap and one.rounds_overlap
        found.append(Simulated(graph, loop.schedule, moved, moves, overlaps))
    return found


def _graph(schedule: Schedule, one: LoopExchange, prediction: Prediction) -> TileGraph:
    """The tiles of a loop on several nodes."""
    exchange = prediction.exchange
    owner = np.zeros(schedule.tiles, np.int64)
    for worker, tiles in enumerate(one.order):
        owner[tiles] = worker
    numbers = {node: number for number, node in enumerate(exchange.nodes)}
    sends = {
        tile: [(numbers[send.node], prediction.size_of(send)) for send in found] for tile, found in one.sends.items()
    }
    return TileGraph(schedule.serial_tiles(), owner, exchange.place, one.waits, sends, takes_tiles=False)


# ---------------------------------------------------------------- memory, and more workers


def refuse_memory(estimate: Estimate, memory: int, others: Sequence[Estimate]) -> None:
    """PlanError where a node has fewer bytes than it needs for dense arrays. `others` are the estimates for more nodes
    than that, which may say how many are enough."""
    most = max(estimate.memory, default=0)
    if most <= memory:
        return
    node = estimate.memory.index(most)
    what = f"node {node} of {estimate.nodes} needs {most:,} bytes for dense arrays, and has memory={memory:,}"
    why = f"that is {bytes_in_words(most - memory)} too much; the arrays on each node: " + ", ".join(
        f"{size:,}" for size in estimate.memory
    )
    fits = next((one for one in others if max(one.memory) <= memory), None)
    if fits is not None:
        hint = f"with nodes={fits.nodes} no node needs more than {max(fits.memory):,} bytes"
    elif len(others) and max(others[-1].memory) < most:
        hint = f"more nodes alone do not help: with {others[-1].nodes} it is still {max(others[-1].memory):,} bytes"
    else:
        hint = (
            "more nodes do not help: what is written comes to the first node in the end; use smaller arrays, or dtypes"
        )
    raise PlanError(describe(what, why=why, hint=hint))


@dataclass(frozen=True, slots=True)
class Scaling:
    """Predicted seconds of a call on 1, 2, 4, … workers of one node. `plan.scaling()` makes one.

    - `points`: pairs of workers and seconds. The numbers of workers are powers of two.

    >>> scaling = Scaling(((1, 8.0), (2, 4.1), (4, 4.0)))
    >>> scaling.pays_up_to
    2
    >>> print(scaling)
    workers       time  speedup
          1      8.0 s        1
          2      4.1 s     1.95
          4      4.0 s        2
    More than 2 workers do not pay.
    """

    points: tuple[tuple[int, float], ...]

    @property
    def pays_up_to(self) -> int | None:
        """Number of workers from which on twice as many save less than 5 % of the time; None if all save more."""
        for (workers, seconds), (_, doubled) in zip(self.points, self.points[1:], strict=False):
            if doubled > 0.95 * seconds:
                return workers
        return None

    def __str__(self) -> str:
        first = self.points[0][1]
        lines = [
            f"{workers:>7,} {time_in_words(seconds * 1e9):>10} {first / seconds:>8.3g}"
            for workers, seconds in self.points
        ]
        stop = self.pays_up_to
        end = "More workers pay up to the end." if stop is None else f"More than {counted(stop, 'worker')} do not pay."
        return printable("\n".join(["workers       time  speedup", *lines, end]))


def scaled(
    function: FunctionPlan, sizes: Sizes, schedules: Mapping[int, Schedule], measurements: Measurements
) -> float:
    """Return the predicted seconds of a plan on one node. PlanError where they are not known."""
    measurement = measurements.latest(sizes, [*loop_names(function.loops)])
    if measurement is None:
        raise PlanError(f"times are not known, as nothing was measured: {MEASURE}")
    try:
        return seconds_on_one_node(function, sizes, schedules, measurement)
    except UnknownTimesError as error:
        raise PlanError(f"times are not known: {error}") from None


def predicted_seconds(plan: Plan) -> tuple[Seconds | None, str]:
    """Return the seconds predicted from measurements, or the reason why they are not known.

    Without measurements, both are empty: such a prediction may be many times off, and no view shows it.
    """
    if not plan.measurements.found:
        return None, ""
    try:
        found = plan.estimate()
    except PlanError as error:
        return None, str(error).splitlines()[0]
    if found.seconds is None:
        return None, found.unmeasured or ""
    loops = zip(plan.with_bodies().loops, found.loops, strict=True)
    each = [(loop.nest.span, one.seconds or 0.0, runs_alone(loop, plan.sizes.workers)) for loop, one in loops]
    return seconds_of(found.seconds, each), ""
