"""Seconds of the loops of a plan, by what `f.measure(...)` has measured and the simulation of their schedules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, log2

from orion.cost.sizes import Sizes
from orion.dataclass import dataclass
from orion.ir.program import Repeat, RunLoop, Step, blocks_of
from orion.measured import LoopName, LoopSpeeds, Measurement, loop_names, same_sizes
from orion.plan.plan import FunctionPlan, Inspected
from orion.runtime.walk import UnpredictableError, count_rounds
from orion.schedule.schedule import Schedule
from orion.simulate import Network, RoundTimes, TileGraph, time_of_rounds

MEASURE = "call `f.measure(...)` with such arguments first"

ORDERS = 4
"""Messages between nodes of a call, one after the other: be ready, an answer, the order, and the outcome."""


class UnknownTimesError(Exception):
    """Why times are not known, and what to do about it."""


@dataclass(frozen=True, slots=True)
class LoopSeconds:
    """All rounds of a loop: how many, their seconds, and those of the same tiles on one worker."""

    rounds: int
    seconds: float
    on_one: float


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """A loop as it is simulated: the tiles, what goes between nodes before its rounds (bytes of the busiest node, and
    how often), and whether its rounds may overlap."""

    tiles: TileGraph
    schedule: Schedule
    moved: int
    moves: int
    overlap: bool


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """What is predicted with: the plan of a function for `sizes`, on `workers` workers of `nodes` nodes, and what was
    measured."""

    function: FunctionPlan
    sizes: Sizes
    workers: int
    nodes: int
    measurement: Measurement
    network: Network

    def of_loops(self, loops: Sequence[Simulated]) -> tuple[LoopSeconds, ...]:
        """The seconds of each loop. UnknownTimesError where they are not known."""
        names = tuple(loop_names(self.function.loops))
        speeds = [self._speeds(name) for name in names]
        counts = self._rounds(names)
        return tuple(
            self._of_loop(number, loop, found, count)
            for number, (loop, found, count) in enumerate(zip(loops, speeds, counts, strict=True))
        )

    def _speeds(self, name: LoopName) -> LoopSpeeds:
        for loop in self.measurement.loops:
            if loop.name == name and loop.seconds.size:
                return loop
        others = f"on {self.workers} workers" if self.workers > 1 else "on one worker"
        raise UnknownTimesError(
            f"the plan {others} has a loop from line {name.span.line} that was not measured: call `f.measure(...)` "
            f"inside of `with orion.session(workers={self.workers}):`"
        )

    def _rounds(self, names: Sequence[LoopName]) -> tuple[int, ...]:
        """How often each loop is run: as the program says or, where that depends on data, as it was measured."""
        try:
            return count_rounds(self.function.program.steps, self.sizes.known, len(names))
        except UnpredictableError as error:
            known = {loop.name: loop.rounds for loop in self.measurement.loops}
            if self.measurement.is_whole and same_sizes(self.measurement.sizes, self.sizes):
                return tuple(known[name] for name in names)
            hint = "call `f.measure(..., seconds=...)` with these arguments, and enough seconds for a whole call"
            raise UnknownTimesError(f"how often loops run is not known ({error}): {hint}") from None

    def _of_loop(self, number: int, loop: Simulated, speeds: LoopSpeeds, rounds: int) -> LoopSeconds:
        elements = self.function.loops[number].nest.elements
        count = 0 if elements is None else self.sizes.counts[elements.array]
        each = speeds.in_tiles_of(loop.schedule, count)
        begin = self.measurement.begin
        runs = RoundTimes(each, speeds.sampled, speeds.rounds, rounds, loop.overlap)
        serial = runs.over_all(each.sum(axis=1), rounds) + rounds * begin
        taken = time_of_rounds(loop.tiles, runs, self._beside(speeds, loop), self.network)
        meetings = min(rounds, 1) if loop.overlap else rounds
        moved = self.network.seconds(loop.moved, loop.moves)
        return LoopSeconds(rounds, taken + rounds * begin + meetings * self._meet() + moved, serial)

    def _beside(self, speeds: LoopSpeeds, loop: Simulated) -> float:
        """How many times as long tiles take beside those of the other workers of a node."""
        most = max((loop.tiles.place.count(node) for node in {*loop.tiles.place}), default=1)
        if speeds.beside is None or self.measurement.workers == 1:
            return 1.0
        return 1.0 + (speeds.beside - 1.0) * min(1.0, (most - 1) / (self.measurement.workers - 1))

    def _meet(self) -> float:
        """What all workers take to wait for each other: it grows with the logarithm of their number."""
        if self.workers == 1:
            return 0.0
        latency = self.network.latency if self.nodes > 1 else 0.0
        return (self.measurement.meet or 0.0) * log2(self.workers) / log2(max(2, self.measurement.workers)) + latency

    def of_call(self, workers: int) -> float:
        """What a call takes beside its loops: waking workers one after the other, as threads are woken, and between
        nodes two orders with their answers."""
        others = (workers - 1) / max(1, self.measurement.workers - 1)
        orders = ORDERS * self.network.latency if self.nodes > 1 and workers > 1 else 0.0
        return self.measurement.call + (self.measurement.wake or 0.0) * others + orders

    def assumed(self) -> tuple[str, ...]:
        """What is taken for granted, as sentences."""
        measured, found = self.measurement, list[str]()
        if not same_sizes(measured.sizes, self.sizes):
            found.append("an iteration takes as long as at the other sizes that were measured")
        if self.workers > 1:
            found.append("each worker has a core of its own that is as fast as the one that was measured")
            unknown = measured.workers == 1 or any(loop.beside is None for loop in measured.loops)
            if unknown:
                found.append("workers do not slow each other down, which was not measured")
            elif self.workers > measured.workers:
                beside = f"workers slow each other down as the {measured.workers} that were measured do"
                found.append(f"{beside}, and meet in a time that grows with the logarithm of their number")
            if measured.meet is None:
                found.append("meeting takes no time, as one worker alone was measured")
        if self.nodes > 1:
            bandwidth, latency = self.network.bandwidth / 1e9, self.network.latency * 1e6
            sending = self.network.sending * 1e6
            what = f"after {latency:.3g} µs, and to send a message takes a worker {sending:.3g} µs"
            found.append(f"between nodes go {bandwidth:.3g} GB per second and node, {what}")
        if any(isinstance(loop.tiles, Inspected) for loop in self.function.loops):
            found.append("iterations of loops in tiles that were found by looking at subscripts take the same time")
        return tuple(found)


def overlapping_loops(function: FunctionPlan) -> frozenset[int]:
    """The loops whose rounds may overlap: each the only one in a serial loop."""
    return frozenset(number for number in _alone(function.program.steps) if function.loops[number].rounds_overlap)


def _alone(steps: Iterable[Step]) -> Iterable[int]:
    for step in steps:
        match step:
            case Repeat(_, (RunLoop(number),)):
                yield number
            case _:
                for block in blocks_of(step):
                    yield from _alone(block)


def on_one_node(function: FunctionPlan, schedules: Mapping[int, Schedule]) -> list[Simulated]:
    """The loops of a plan as they are simulated on one node."""
    overlap = overlapping_loops(function)
    return [
        Simulated(TileGraph.of(schedules[number]), schedules[number], 0, 0, number in overlap)
        for number in range(len(function.loops))
    ]


def seconds_on_one_node(
    function: FunctionPlan, sizes: Sizes, schedules: Mapping[int, Schedule], measurement: Measurement
) -> float:
    """The seconds of a call of a plan, whose loops have these schedules, on one node. UnknownTimesError where they are
    not known."""
    workers = max((schedule.workers for schedule in schedules.values()), default=1)
    times = Times(function, sizes, workers, 1, measurement, Network(inf, 0.0, 0.0))
    found = times.of_loops(on_one_node(function, schedules))
    return times.of_call(workers) + sum(one.seconds for one in found)
