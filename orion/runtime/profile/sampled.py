"""A worker that runs a part of a call, and keeps the times of tiles round by round: what `f.measure` runs.

Rounds are run one after the other until the time for them is over; of those that follow only some are, evenly spread.
What a loop that is left out would have computed is missing, so that later values are others than those of a call: it
runs on copies, and times are all that is kept.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.runtime.parts import LoopPart
from orion.runtime.profile.timed import TimedWorker, overhead_of_walk
from orion.runtime.worker import AbortedError

SPREAD = 16
"""How many rounds of a loop are run after the time for all of them is over."""


@dataclass(slots=True, eq=False)
class Sampling:
    """What is to be run in a call, and the times that were taken. Loop k is run in `rounds[k]` rounds, None where that
    depends on data: then nothing is left out, but the call ends when the time is over.

    `until` is when that is (`perf_counter`). Where `is_whole` tiles run at once, every second round, and `totals[k]`
    has for each of these rounds the nanoseconds of a core; else, and in the other rounds, `tiles[k]` has those of each
    tile, in the order of the worker. `run[k]` counts the rounds that went by, `left_out` those that were not run. The
    call `is_over` where it was left before its end. `overheads` are those of walks, as time and of a core.
    """

    rounds: tuple[int | None, ...]
    until: float
    is_whole: bool
    totals: dict[int, dict[int, int]] = field(default_factory=dict)
    tiles: dict[int, dict[int, NDArray[np.int64]]] = field(default_factory=dict)
    run: dict[int, int] = field(default_factory=dict)
    left_out: int = 0
    is_over: bool = False
    overheads: dict[int, tuple[int, int]] = field(default_factory=dict)

    def skips(self, loop: int, round: int) -> bool:
        """Whether a round of a loop is left out. AbortedError where the call ends here."""
        if not round or perf_counter() < self.until:
            return False
        rounds = self.rounds[loop]
        if rounds is None:
            self.left_out += 1
            self.is_over = True
            raise AbortedError
        step = max(1, rounds // SPREAD)
        return bool(round % step > 1)  # two neighbours: one whole, one tile by tile


class SampledWorker(TimedWorker):
    """A worker that runs what its sampling says. `sampling` and `recorder` are set before it runs."""

    sampling: Sampling

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        """Run this worker's part of a loop, or leave it out: its scalars keep their values then."""
        part, sampling = self.parts[number], self.sampling
        round = part.round
        sampling.run[number] = round + 1
        if sampling.skips(number, round):
            sampling.left_out += 1
            part.round += 1
            return tuple(values[source] for _, source, _, _ in part.outputs)
        return super().loop(number, *values)

    def walk_timed(self, part: LoopPart, first: int, last: int) -> None:
        """Run tiles, all at once or one by one, and keep what each took of a core."""
        sums, sampling = self.recorder.of_loop(part), self.sampling
        if part.number not in sampling.overheads:
            sampling.overheads[part.number] = overhead_of_walk(part)
        overhead = sampling.overheads[part.number]
        at_once = (part.round + sampling.is_whole) % 2 if self.workers == 1 else part.loop.plan.takes_tiles
        if at_once:
            before = self._cpu
            self._walk_all(part, sums)
            taken = max(0, self._cpu - before)
            sampling.totals.setdefault(part.number, {})[part.round] = taken
            return
        sums.overhead = overhead
        found = np.zeros(part.tiles.size, np.int64)
        for place in range(first, last):
            if not self._await_tile(part, place) or not self._run_tile(part, sums, place):
                return
            found[place] = self._last_cpu
        sampling.tiles.setdefault(part.number, {})[part.round] = found
