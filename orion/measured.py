"""What `f.measure(...)` has measured: times of tiles, of starting loops and of meeting. A frozen value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from orion.cost.sizes import Sizes
from orion.dataclass import dataclass, field
from orion.inspect.text.words import counted
from orion.plan.deferred_bodies import DEFERRED
from orion.plan.plan import LoopPlan
from orion.printable import printable
from orion.schedule.schedule import Ints, Schedule
from orion.simulate import Seconds
from orion.source import Span

if TYPE_CHECKING:
    from orion.kinds.measured import MeasuredKinds

KEPT = 8
"""How many measurements of a function are kept for arguments of the same types."""


@dataclass(frozen=True, slots=True)
class LoopName:
    """Which planned loop of a function it is, for any number of workers: its place in the source, its dimensions, the
    rewrites that it was planned by (not those that are made with its body), and how many like that come before it."""

    span: Span
    dims: tuple[str, ...]
    rewrites: tuple[str, ...]
    number: int


def loop_names(loops: Sequence[LoopPlan]) -> Iterator[LoopName]:
    """The names of the planned loops of a program."""
    seen: Counter[tuple[Span, tuple[str, ...], tuple[str, ...]]] = Counter()
    for loop in loops:
        key = loop.nest.span, loop.nest.dims, tuple(one for one in loop.rewrites if one not in DEFERRED)
        yield LoopName(*key, seen[key])
        seen[key] += 1


@dataclass(frozen=True, slots=True, eq=False)
class LoopSpeeds:
    """The times of one planned loop on one worker. It was run in `rounds` rounds of the serial loops around it, 1 where
    there are none; `sampled`, int64 (samples,), are the numbers of those that were measured, ascending, and `seconds`,
    float64 (samples, tiles), the times of their tiles, in C order of the grid of blocks with these `bounds`. `beside`
    is how many times as long tiles take where all workers of the measurement run at once, None where that was not
    measured. `elements` are those of the sparse array that it goes over, 0 where it goes over none."""

    name: LoopName
    rounds: int
    bounds: tuple[Ints, ...]
    sampled: Ints
    seconds: Seconds
    beside: float | None
    elements: int

    @property
    def seconds_per_round(self) -> float:
        """The mean time of a round on one worker, over the rounds that were measured."""
        return float(self.seconds.sum(axis=1).mean())

    def in_tiles_of(self, schedule: Schedule, elements: int) -> Seconds:
        """The times for the tiles of another schedule of the same loop, float64 (samples, tiles).

        Inside of a tile that was measured the time is taken to be even. At other sizes blocks are those at the same
        part of the range, and an iteration takes as long.
        """
        grid = tuple(len(edges) - 1 for edges in self.bounds)
        found = self.seconds.reshape(-1, *grid)
        scale = 1.0
        for dim, (old, new) in enumerate(zip(self.bounds, schedule.bounds, strict=True)):
            shares = block_shares(old, new)
            found = np.moveaxis(np.tensordot(found, shares, axes=(dim + 1, 1)), -1, dim + 1)
            scale *= _length(new) / (_length(old) or 1.0)
        if self.elements:
            scale = elements / self.elements
        return scale * found.reshape(len(self.sampled), -1)


def _length(edges: Ints) -> float:
    return float(edges[-1]) - float(edges[0])


def block_shares(old: Ints, new: Ints) -> Seconds:
    """Which part of each old block lies in each new one, float64 (new blocks, old blocks), both ranges as long.

    >>> block_shares(np.array([0, 4, 8]), np.array([0, 2, 8])).tolist()
    [[0.5, 0.0], [0.5, 1.0]]
    """
    old_at, new_at = ((edges.astype(np.float64) - float(edges[0])) / (_length(edges) or 1.0) for edges in (old, new))
    both = np.minimum(new_at[1:, None], old_at[1:]) - np.maximum(new_at[:-1, None], old_at[:-1])
    lengths = np.diff(old_at)
    return np.asarray(np.maximum(both, 0.0) / np.where(lengths > 0, lengths, 1.0), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """What was measured of a call of a function, for these `sizes`, with tiles for `workers` workers.

    Seconds: `call`, of what a call takes beside its loops, and `wake`, what that takes more on `workers` workers;
    `begin`, of beginning a loop in each round, and `meet`, what that takes more where all workers wait for each other.
    `wake` and `meet` are None with one worker. `run` is what measuring took.
    `is_whole`: all rounds and tiles were run, so that the `rounds` of loops are those of a call with such arguments,
    also where they depend on data.
    """

    function: str
    sizes: Sizes
    workers: int
    loops: tuple[LoopSpeeds, ...]
    call: float
    wake: float | None
    begin: float
    meet: float | None
    run: float
    is_whole: bool

    def __repr__(self) -> str:
        return f"<orion.Measurement of {self.function}: {counted(len(self.loops), 'loop')}, {self.run:.3g} s>"

    def __str__(self) -> str:
        meet = "not measured" if self.meet is None else f"{self.meet * 1e6:.3g} µs"
        lines = [
            f"{self.function}: measured in {self.run:.3g} s, in tiles for {counted(self.workers, 'worker')}.",
            f"A call {self.call * 1e6:.3g} µs, a loop's begin {self.begin * 1e6:.3g} µs, meeting {meet}.",
        ]
        for loop in self.loops:
            sampled = f"{len(loop.sampled)} of {counted(loop.rounds, 'round')}"
            per = f"{loop.seconds_per_round * 1e3:.4g} ms in {counted(loop.seconds.shape[1], 'tile')}"
            beside = "" if loop.beside is None else f", {loop.beside:.3g} times as long beside other workers"
            dims = ", ".join(loop.name.dims)
            lines.append(f"  line {loop.name.span.line}, over ({dims}): {per}, {sampled}{beside}")
        return printable("\n".join(lines))


@dataclass(slots=True, eq=False)
class Measurements:
    """The measurements of a function for arguments of the same types, the latest last."""

    found: list[Measurement] = field(default_factory=list)
    on_kinds: list[MeasuredKinds] = field(default_factory=list)

    def keep(self, measurement: Measurement) -> None:
        """Add one; the oldest goes where there are many."""
        self.found = [*self.found[-KEPT + 1 :], measurement]

    def keep_kinds(self, measured: MeasuredKinds) -> None:
        """Add one on several kinds of memory, with what it is based on."""
        self.keep(measured.base)
        self.on_kinds = [*self.on_kinds[-KEPT + 1 :], measured]

    def latest_on_kinds(self, sizes: Sizes, names: Sequence[LoopName]) -> MeasuredKinds | None:
        """The latest on several kinds of memory that has all these loops; of the same sizes, if there is one."""
        having = [one for one in self.on_kinds if {*names} <= {loop.name for loop in one.loops}]
        same = [one for one in having if same_sizes(one.base.sizes, sizes)]
        return next((found[-1] for found in (same, having) if found), None)

    def latest(self, sizes: Sizes, names: Sequence[LoopName]) -> Measurement | None:
        """The latest measurement that has all these loops; of the same sizes, if there is one. Else the latest at
        all, None where there is none."""
        having = [one for one in self.found if {*names} <= {loop.name for loop in one.loops}]
        same = [one for one in having if same_sizes(one.sizes, sizes)]
        return next((found[-1] for found in (same, having, self.found) if found), None)


def same_sizes(first: Sizes, second: Sizes) -> bool:
    """Whether two calls have the same shapes, integers and numbers of elements."""
    return _numbers(first) == _numbers(second)


def _numbers(sizes: Sizes) -> tuple[Mapping[str, object], ...]:
    return dict(sizes.shapes), dict(sizes.integers), dict(sizes.counts)
