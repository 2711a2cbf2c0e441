"""Measurements by `f.measure(...)`: times of tiles, of starting loops and of barriers. A frozen value."""

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
    """Identity of a planned loop for any number of workers.

    It is the place in the source, the dimensions, the rewrites of its plan (not those made with its body), and the
    number of equal loops before it.
    """

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
    """Measured times of one planned loop on one worker.

    - `name`: the loop. `rounds`: how often enclosing serial loops run it, 1 without any.
    - `sampled`: the numbers of the measured rounds, ascending, int64 of shape (samples,).
    - `seconds`: the times of their tiles, float64 of shape (samples, tiles), in C order of the blocks with these
      `bounds`.
    - `beside`: how many times as long tiles take while all workers run; None where that was not measured.
    - `elements`: those of the sparse array that it iterates over, 0 without one.
    """

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
    """Return the part of each old block that lies in each new one, float64 of shape (new blocks, old blocks). Both
    ranges have one length.

    >>> block_shares(np.array([0, 4, 8]), np.array([0, 2, 8])).tolist()
    [[0.5, 0.0], [0.5, 1.0]]
    """
    old_at, new_at = ((edges.astype(np.float64) - float(edges[0])) / (_length(edges) or 1.0) for edges in (old, new))
    both = np.minimum(new_at[1:, None], old_at[1:]) - np.maximum(new_at[:-1, None], old_at[:-1])
    lengths = np.diff(old_at)
    return np.asarray(np.maximum(both, 0.0) / np.where(lengths > 0, lengths, 1.0), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Measured times of a call, in seconds, by `f.measure(...)`.

    - `function`, `sizes`, `workers`: the function, the sizes of the call, and the number of workers of its tiles.
    - `loops`: the times of each loop's tiles.
    - `call`: the time of a call besides its loops. `wake` is what more it takes on several workers.
    - `begin`: the time to begin a loop in each round. `meet` is what more it takes where all workers wait for each
      other.
    - `run`: how long measuring took.
    - `is_whole`: all rounds and tiles ran. The `rounds` of loops are then those of such a call, even if they depend on
      data.

    `wake` and `meet` are None with one worker.
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
        """Add a measurement. Beyond eight, the oldest is dropped."""
        self.found = [*self.found[-KEPT + 1 :], measurement]

    def keep_kinds(self, measured: MeasuredKinds) -> None:
        """Add a measurement on several memory tiers, and the one that it is based on."""
        self.keep(measured.base)
        self.on_kinds = [*self.on_kinds[-KEPT + 1 :], measured]

    def latest_on_kinds(self, sizes: Sizes, names: Sequence[LoopName]) -> MeasuredKinds | None:
        """Return the latest measurement on several memory tiers with all these loops, preferably of the same sizes."""
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
    """True if two calls have the same shapes, integers and numbers of elements."""
    return _numbers(first) == _numbers(second)


def _numbers(sizes: Sizes) -> tuple[Mapping[str, object], ...]:
    return dict(sizes.shapes), dict(sizes.integers), dict(sizes.counts)
