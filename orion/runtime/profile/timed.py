"""A worker that takes the times of its tiles: they are walked one at a time, by the same compiled code.

Before a tile that waits for others the worker waits by the walk of the barrier, so that waiting and computing are
apart. Where tiles are short this would take longer than they do: most rounds are then walked as without a profile, and
what is not computing by the times of the others is waiting. In some rounds of a loop whose tiles do not wait for each
other one tile of worker 0 runs while the others stand still: how much longer the same tile takes beside them says how
far they share what they run on.
"""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from orion.kernel.calling import GO
from orion.runtime.arguments import read_only
from orion.runtime.parts import LoopPart
from orion.runtime.profile.recorder import Recorder, TileSums
from orion.runtime.profile.records import BARRIER, Part
from orion.runtime.waits import Waits
from orion.runtime.worker import Worker
from orion.schedule.schedule import Ints

if TYPE_CHECKING:
    Base = Worker
else:
    Base = object

SAMPLED = 4
"""Of so many rounds, counted over calls, one has a tile that runs alone."""

LOCK_NS = 100_000
"""A thread that comes out of a tile may have to wait for the interpreter, which it would not without a profile. Where
it had no core for less than this, that is not a part of the tile; a thread that another one takes the core from has
none for some milliseconds."""

SHORT_NS, TIMED = 50_000, 12
"""Of loops with shorter tiles only three in so many rounds are walked tile by tile, the second with a tile that runs
alone."""


class Timed(Base):
    """What a worker does besides, as the first base class of one. `recorder` is set before it runs."""

    recorder: Recorder

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        """Run this worker's part of a loop, and note what it took."""
        recorder, part = self.recorder, self.parts[number]
        before, sent, round = recorder.waited, recorder.sends, part.round
        self._compute = self._cpu = 0
        start = perf_counter_ns()
        try:
            return super().loop(number, *values)
        finally:
            waited, sends = recorder.waited - before, recorder.sends - sent
            end = perf_counter_ns()
            found = Part(number, round, start, end, part.tiles.size, self._compute, self._cpu, waited, sends)
            recorder.part(found)

    def _wait(self, tiles: Ints, round: int, waits: Waits, done: Ints, control: Ints) -> None:
        start = perf_counter_ns()
        try:
            super()._wait(tiles, round, waits, done, control)
        finally:
            self.recorder.wait(BARRIER, start, perf_counter_ns())

    def walk_timed(self, part: LoopPart, first: int, last: int) -> None:
        """Run tiles `first` … `last` - 1 of this worker's order. Where the loop is left, so does this."""
        sums = self.recorder.of_loop(part)
        if self.takes_tiles(part):
            return self._walk_all(part, sums)
        if first == 0:
            self._walks_whole = self._is_whole(part)
        if self._walks_whole:
            return self._walk_whole(part, first, last)
        if first == 0:
            sums.rounds += 1
            sums.overhead, part.tile_ns = overhead_of_walk(part), 0
        before = self._cpu
        is_sampled = self._is_sampled(part)
        for place in range(first, last):
            if is_sampled and place == 1:
                self._stand_still(part)
            if not self._await_tile(part, place) or not self._run_tile(part, sums, place):
                return None
            if place == 1 and self.number == 0 and (is_sampled or part.round or self.recorder.number):
                self._note_sample(sums, is_sampled)
        part.tile_ns = (part.tile_ns or 0) + self._cpu - before
        return None

    # ------------------------------------------------------------ one tile

    def _await_tile(self, part: LoopPart, place: int) -> bool:
        """Wait for what a tile waits for; False where the loop was left."""
        (offsets, waits, lags), control = part.waiting, part.control
        tile = part.tiles.item(place)
        low, high = offsets.item(tile), offsets.item(tile + 1)
        if low == high or self._meet is None:
            return True
        start = perf_counter_ns()
        self.wait_for_some(part, (low, high), waits, lags)
        self.recorder.wait(part.number, start, perf_counter_ns())
        return bool(control.item(0) == GO)

    def _run_tile(self, part: LoopPart, sums: TileSums, place: int) -> bool:
        tile = part.tiles[place : place + 1]
        start, cpu = perf_counter_ns(), thread_time_ns()
        part.run(tile)
        used, taken = thread_time_ns() - cpu, perf_counter_ns() - start
        taken, used = max(0, taken - sums.overhead[0]), max(0, used - sums.overhead[1])
        if taken - used < LOCK_NS:
            taken = used
        sums.compute[place] += taken
        sums.cpu[place] += used
        self._compute += taken
        self._cpu += used
        self._last_cpu = used
        return bool(part.control.item(0) == GO)

    # ------------------------------------------------------------ several tiles at once

    def _is_whole(self, part: LoopPart) -> bool:
        """Whether the tiles of this round are walked at once, as they are so short that workers would wait for what
        taking their times costs."""
        is_due = (self.recorder.number + part.round) % TIMED < 3
        return part.tile_ns is not None and not is_due and part.tile_ns < SHORT_NS * part.tiles.size

    def _walk_whole(self, part: LoopPart, first: int, last: int) -> None:
        """Run tiles at once: what they took when they were walked one by one is computing, the rest waiting."""
        assert part.tile_ns is not None
        start = perf_counter_ns()
        part.run(part.tiles[first:last])
        taken = perf_counter_ns() - start
        computed = min(taken, part.tile_ns * (last - first) // part.tiles.size)
        self._compute += computed
        self._cpu += computed
        self.recorder.waited += taken - computed

    def _walk_all(self, part: LoopPart, sums: TileSums) -> None:
        """All tiles of a round that workers take from each other: waiting is in what they take."""
        sums.rounds += 1
        start, cpu = perf_counter_ns(), thread_time_ns()
        part.run(part.walked)
        used, taken = thread_time_ns() - cpu, perf_counter_ns() - start
        self._compute += taken
        self._cpu += used

    # ------------------------------------------------------------ one tile alone

    def _is_sampled(self, part: LoopPart) -> bool:
        """Whether a tile of worker 0 runs alone in this round: all workers find the same."""
        loop = part.loop
        return (
            (self.recorder.number + part.round) % SAMPLED == 1
            and self.samples_alone()
            and 1 < self.workers == loop.schedule.workers
            and not loop.schedule.waits.size
            and loop.has_tiles_everywhere(self.workers)
            and all(tiles.size > 1 for tiles in loop.schedule.order)
        )

    def takes_tiles(self, part: LoopPart) -> bool:
        """Whether this worker takes tiles of others."""
        return part.loop.plan.takes_tiles

    def samples_alone(self) -> bool:
        """Whether the workers of a run can stand still for one: they must see each other's flags at once."""
        return True

    def _stand_still(self, part: LoopPart) -> None:
        """Worker 0 waits until the others have run their first tile; these wait for its second one."""
        order = part.loop.schedule.order
        found = [tiles.item(0) for tiles in order[1:]] if self.number == 0 else [order[0].item(1)]
        waits = read_only(np.array(found, np.int64))
        lags = read_only(np.zeros(len(found), np.int64))
        self.wait_for_some(part, (0, len(found)), waits, lags)

    def _note_sample(self, sums: TileSums, is_alone: bool) -> None:
        before = sums.alone if is_alone else sums.together
        least = min(before or self._last_cpu, self._last_cpu)
        if is_alone:
            sums.alone = least
        else:
            sums.together = least


class TimedWorker(Timed, Worker):
    """A worker of this machine that takes times."""

    def walk(self, part: LoopPart) -> None:
        """Run the tiles of this worker in the present round, one at a time."""
        self.walk_timed(part, 0, part.tiles.size)
        self.check(part)


def overhead_of_walk(part: LoopPart) -> tuple[int, int]:
    """What calling the walk takes, without tiles: as time, and of a core."""
    found = []
    for _ in range(5):
        start, cpu = perf_counter_ns(), thread_time_ns()
        part.run(part.tiles[:0])
        used, taken = thread_time_ns() - cpu, perf_counter_ns() - start
        found.append((taken, used))
    return min(taken for taken, _ in found), min(used for _, used in found)
