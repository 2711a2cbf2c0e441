"""One worker of a run: what the skeleton calls to run its part of each loop.

All workers run the same skeleton with the same scalars, so that each finds by itself, and like all others,
where a barrier is needed: before a loop that touches what another loop wrote since the last barrier (or
writes what another one touched), before a repeated loop whose rounds may not overlap, and where a loop has
results. Where that can be had by waiting for the tiles of the loop before, it is (see `orion.runtime.waits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from orion.kernel.calling import GO
from orion.kernel.instructions import ENDLESS
from orion.runtime.arguments import read_only
from orion.runtime.barrier import make_barrier
from orion.runtime.choose import counted, last_tile, winner, winner_anew
from orion.runtime.combine import FUNCTIONS, after_loop, combine
from orion.runtime.followed.part import FollowedPart, Following
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart, Meet
from orion.runtime.prepared import conflict
from orion.runtime.waits import Waits, waits_between, with_lag
from orion.schedule.schedule import Ints

NO_BLOCK = read_only(np.zeros(0, np.int64))
"""The block of a barrier."""


class AbortedError(Exception):
    """Another worker failed, or the run was interrupted: this worker leaves the program."""


class FinishedError(Exception):
    """This worker has nothing more to do in the program; worker 0 computes what it returns."""


class Worker:
    """Worker `number` of `workers`, for one run. `meet` is the walk of the barrier, None for one worker. The other
    workers leave after their part of loop `last`, where that is not None."""

    def __init__(
        self,
        number: int,
        workers: int,
        parts: tuple[LoopPart, ...],
        memory: RunMemory,
        meet: Meet | None,
        followed: tuple[FollowedPart, ...] = (),
        last: int | None = None,
    ) -> None:
        self.number = number
        self.workers = workers
        self.parts = parts
        self.followed = followed
        self.memory = memory
        self._meet = meet
        self.barriers = 0
        self.pending: list[LoopPart] = []
        self._before: LoopPart | None = None
        self._last = None if number == 0 else last

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        """Run this worker's part of a loop; `values` are its inputs. Returns the new values of its outputs."""
        part = self.parts[number]
        if self.workers > 1:
            self._keep_order(part)
            self._before = part
        part.begin_round(values)
        if self.number == 0:
            part.begin_results(values)
        for one in part.copied:
            one.begin(part.round & 1)
        if part.tiles.size:
            self.walk(part)
        self.after_tiles(part)
        if number == self._last:
            raise FinishedError
        results = self._results(part, values) if part.outputs or part.copied else ()
        part.round += 1
        return results

    def walk(self, part: LoopPart) -> None:
        """Run the tiles of this worker in the present round of a loop. AbortedError where the loop was left."""
        part.run(part.walked)
        self.check(part)

    def check(self, part: LoopPart) -> None:
        """AbortedError, for all workers, where a loop was left."""
        if part.control.item(0) != GO:
            self.memory.abort()
            raise AbortedError

    def follow(self, number: int, *values: Any) -> tuple[Any, ...] | None:
        """Run this worker's part of followed steps. The values of the variables that they change; None where only
        Python can do what they do with these values: nothing is done then."""
        following = self.begin_following(number, values)
        if following is None:
            return None
        self.go_on(number, following)
        return following.found()

    def begin_following(self, number: int, values: Sequence[Any]) -> Following | None:
        """Followed steps that are about to begin, with these values; None where they cannot be followed."""
        variant = self.followed[number].steps.variant_for(values)
        if variant is None:
            return None
        try:
            return Following(variant, values)
        except OverflowError:
            return None

    def go_on(self, number: int, following: Following, starts: int = ENDLESS) -> None:
        """Go on with followed steps until they are done, or so many loops were started."""
        part = self.followed[number]
        if self.pending:
            self.meet()
        walked = make_barrier(self.workers).walked_by(self.number)
        meeting = (NO_BLOCK, NO_BLOCK, *walked, self.memory.meeting, self.memory.control[-1])
        self.barriers = part.go_on(following, meeting, (self.number, self.barriers), starts)
        if any(loop.control.item(0) != GO for loop in part.parts) or self.memory.control.item(-1, 0) != GO:
            self.memory.abort()
            raise AbortedError
        self._before = None
        if self.workers > 1 and following.is_done:
            self.pending = [self.parts[loop] for loop in sorted(part.steps.followed.open)]

    def after_tiles(self, part: LoopPart) -> None:
        """Called when this worker has done its tiles of a round, if it has any."""

    # ------------------------------------------------------------ meeting the other workers

    def meet(self, finished: LoopPart | None = None) -> None:
        """Wait for all workers: what they wrote before is seen by all after, the outputs of the loop that was
        just `finished` too. AbortedError where the run was aborted.
        """
        tiles, offsets, waits, lags = make_barrier(self.workers).walked_by(self.number)
        self._wait(tiles, self.barriers, (offsets, waits, lags), self.memory.meeting, self.memory.control[-1])
        self.barriers += 1
        self.pending.clear()

    def _wait(self, tiles: Ints, round: int, waits: Waits, done: Ints, control: Ints) -> None:
        """Wait for flags. AbortedError where the run was aborted."""
        assert self._meet is not None
        self._meet(tiles, round, *waits, done, control)
        if control.item(0) != GO:
            raise AbortedError

    def wait_for_some(self, part: LoopPart, between: tuple[int, int], waits: Ints, lags: Ints) -> None:
        """Wait for some of the entries of `waits` in the present round of a loop, by its spare tile. Where the loop is
        left, so does this."""
        assert self._meet is not None
        spare = part.loop.schedule.tiles
        offsets = np.zeros(spare + 2, np.int64)
        offsets[spare:] = between
        tile = read_only(np.array([spare], np.int64))
        self._meet(tile, part.round, read_only(offsets), waits, lags, *part.flags)

    def _keep_order(self, part: LoopPart) -> None:
        """Wait, or have the loop wait, for what was run since the last barrier, where it must."""
        repeated = part in self.pending
        waits = None
        if any(other is not part and conflict(other.loop, part.loop) for other in self.pending):
            waits = self.waits_after(self._before, part)
            if waits is None:
                self.meet()
            self.pending.clear()
        elif repeated and not self.may_overlap(part):
            self.meet()
        part.wait_for(waits)
        if part not in self.pending:
            self.pending.append(part)

    def waits_after(self, before: LoopPart | None, part: LoopPart) -> Waits | None:
        """What the tiles of a loop wait for in order to come after the loop that was run before it, with all that came
        before that one; None where the workers must meet."""
        if before is None or before.all_tiles is None or part.all_tiles is None or before.copied:
            return None
        lag = part.round + 1 - before.round
        if before.number not in part.after:
            loops, first = [one.loop for one in self.parts], int(part.tiles[0])
            part.after[before.number] = waits_between(loops, (before.number, part.number), before.tiles, first, lag)
        waits = part.after[before.number]
        return None if waits is None else with_lag(waits, lag)

    def wait_for_all(self, part: LoopPart) -> None:
        """Wait for the outputs of the loop that was just run by all workers."""
        if part.all_tiles is None or part.copied:
            self.meet(part)
        else:
            tiles, waits = part.all_tiles
            self._wait(tiles, part.round, waits, *part.flags)
            self.pending.clear()

    def may_overlap(self, part: LoopPart) -> bool:
        """Whether a loop may begin its next round before all workers have finished this one."""
        return part.loop.plan.rounds_overlap

    def finish(self) -> None:
        """Called at the end of the skeleton."""

    def _results(self, part: LoopPart, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.workers > 1:
            self.wait_for_all(part)
        self._combine(part, part.round & 1)
        return self.results_of(part, values)

    def results_of(self, part: LoopPart, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of the round of a loop that all workers have done."""
        turn = part.round & 1
        last = last_tile(part.outputs, turn)
        found = _chosen(part, values, last)
        for number, (_, source, op, pair) in enumerate(part.outputs):
            if op in FUNCTIONS:
                found[number] = combine(op, values[source], pair[turn][: counted(last)])
            elif not op:
                found[number] = pair[turn][0]
        for one in part.accumulations:
            own = [part.outputs[number] for number in one.outputs]
            partials = [pair[turn] for _, _, _, pair in own]
            result = one.result([values[source] for _, source, _, _ in own], partials, counted(last))
            found |= zip(one.outputs, result, strict=True)
        starts = {number: values[part.outputs[number][1]] for number in sorted(found)}
        ends = starts if part.is_empty else found
        return tuple(after_loop(start, ends[number], part.outside[number]) for number, start in starts.items())

    def _combine(self, part: LoopPart, turn: int) -> None:
        """Combine this worker's share of the arrays that the loop has copies of: it then writes them once more."""
        share = self.share(part)
        for one in part.copied if share else ():
            one.combine(turn, part.template[one.array], *share)
        if part.copied and self.workers > 1:
            self.pending.append(part)

    def share(self, part: LoopPart) -> tuple[int, ...]:
        """Which share of the elements this worker combines of arrays that a loop has copies of, and of how many shares;
        nothing where it has none."""
        return self.number, self.workers


def _chosen(part: LoopPart, values: tuple[Any, ...], last: int | None) -> dict[int, Any]:
    """The scalars that a loop took from one of its iterations, by their numbers among its outputs. `last` is the tile
    that has ended it, if one has."""
    turn, found = part.round & 1, {}
    for choice in part.choices:
        arrays = [pair[turn][: counted(last)] for _, _, _, pair in part.outputs]
        best, places = choice.scalars[0], [arrays[k] for k in choice.places]
        if choice.op == "first":
            tile = last
        elif choice.anew is None:
            tile = winner(choice.op, arrays[best], places, part.ranks)
        else:
            start = values[part.outputs[best][1]]
            tile = winner_anew(choice.op, arrays[best], places, part.ranks, arrays[choice.anew], start)
        for number in choice.scalars:
            start = values[part.outputs[number][1]]
            found[number] = start if tile is None else arrays[number][tile]
    return found
