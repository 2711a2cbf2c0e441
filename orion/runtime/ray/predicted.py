"""What nodes send each other in a run of a program, in bytes: the run without its loops.

The program is gone through as its workers do (`orion.runtime.walk`), with what each loop sends inside and what goes on
its way before it (`orion.runtime.ray.holdings`). Where all numbers of rounds are known that is what a run sends, to the
byte; where a step depends on data nobody knows it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.ir.function import in_users_words
from orion.ir.program import Repeat, RunLoop, Step
from orion.ir.types import Shapes
from orion.plan.plan import Tiled
from orion.runtime.parts import share_of
from orion.runtime.ray.exchange import ProgramExchange, Scheduled, usage_in_round
from orion.runtime.ray.holdings import Holdings, Moves, State
from orion.runtime.ray.last_writers import Send, Usage
from orion.runtime.ray.predicted_meetings import AtMeetings, at_meetings, one_by_one, pulls_of
from orion.runtime.walk import MOST_ROUNDS, ProgramWalk, UnpredictableError, all_steps


@dataclass(eq=False)
class Prediction(ProgramWalk):
    """Goes through a program. `bytes_of` has the sizes of the elements of arrays. `sums[k]` are, of loop k so far: the
    bytes that were sent before and in it; of what was sent before it, and at meetings, those that the busiest node sent
    or was sent, and how often something was. `at_end` are the bytes at the end, `at_end_busiest` those of the busiest
    node."""

    scheduled: Sequence[Scheduled]
    exchange: ProgramExchange
    shapes: Shapes
    bytes_of: Mapping[str, int]
    sums: NDArray[np.int64] = field(init=False)
    at_end: int = 0
    at_end_busiest: int = 0

    def __post_init__(self) -> None:
        self.holdings = Holdings(self.exchange)
        self.state = self.holdings.begin
        self.sums = np.zeros((len(self.scheduled), 3), np.int64)
        self.inside = [self._inside(number) for number in range(len(self.scheduled))]

    @property
    def by_loop(self) -> list[int]:
        """The bytes that were sent before and in each loop."""
        return [int(size) for size in self.sums[:, 0]]

    def go(self, steps: Iterable[Step]) -> int:
        """The bytes of a run. UnpredictableError where they depend on data."""
        self.walk(steps)
        moves, _ = self.holdings.at_end(self.state)
        self.at_end, self.at_end_busiest = self._size(moves), self._busiest(moves)
        return sum(self.by_loop) + self.at_end

    def _loop(self, number: int, rounds: Mapping[str, int]) -> None:
        loop, values = self.scheduled[number], self._known(rounds)
        if loop.plan.relaxed.has_clocks and not self.exchange.loops[number].is_at_home:
            names = in_users_words(
                " and ".join(f"`{one.array}`" for one in loop.plan.nest.buffered), loop.plan.nest.function
            )
            raise UnpredictableError(
                f"how much is sent of updates of {names} depends on how fast workers and links are"
            )
        accesses = self.exchange.loops[number].accesses
        for name in () if accesses is None else accesses.given:
            if name not in values:
                where = f"the loop in line {loop.plan.nest.span.line}"
                raise UnpredictableError(f"what {where} uses depends on `{name}`, which the function computes")
        usage: Mapping[str, Usage] = usage_in_round(self.exchange, number, loop.schedule, values)
        moves, state = self.holdings.before(self.state, number, usage)
        self.state = self.holdings.after(state, number, usage)
        met = self._at_meetings(number)
        size, busiest = self._size(moves) + self.inside[number] + met.bytes, self._busiest(moves) + met.busiest
        self.sums[number] += (size, busiest, bool(moves) + met.meetings)

    def _at_meetings(self, number: int) -> AtMeetings:
        """What workers that meet send in a round. UnpredictableError where that depends on data."""
        loop, place = self.scheduled[number], self.exchange.place
        replicas = loop.plan.nest.replicas
        if not replicas or self.exchange.loops[number].is_at_home:
            return AtMeetings(0, 0, 0)
        tiles = [len(own) > 0 for own in self.exchange.loops[number].order]
        pulls = [*pulls_of(loop.plan, loop.schedule), *[0] * len(place)][: len(place)]
        copy = sum(self._bytes(one.copies) // max(1, self.shapes[one.copies][0]) for one in replicas)
        if replicas[0].policy.pulls_at_home:
            return one_by_one(pulls, place, copy, in_turn=replicas[0].policy.is_in_turn)
        return at_meetings(pulls, tiles, place, copy, sum(self._bytes(name) for one in replicas for name in one.outer))

    def _rounds(self, step: Repeat, trips: range, rounds: Mapping[str, int]) -> None:
        """Go through the rounds; where one begins in a state in which an earlier one began, those that follow are the
        same."""
        repeats = self._repeats(step)
        begun: dict[State, tuple[int, NDArray[np.int64]]] = {}
        at = 0
        while at < len(trips):
            if repeats and self.state in begun:
                first, before = begun[self.state]
                period = at - first
                times = (len(trips) - at) // period
                self.sums += times * (self.sums - before)
                at += times * period
                begun = {}
                if at == len(trips):
                    return
            begun[self.state] = at, self.sums.copy()
            if at > MOST_ROUNDS:
                raise UnpredictableError(f"the loop in line {step.loop.span.line} has too many rounds")
            self._round(step, trips[at], rounds)
            at += 1

    def _repeats(self, step: Repeat) -> bool:
        """Whether all rounds go through the same loops, each of which uses the same cells."""
        inside = [*all_steps(step.steps)]
        loops = [self.exchange.loops[one.number] for one in inside if isinstance(one, RunLoop)]
        return all(loop.accesses is None for loop in loops) and not any(isinstance(one, Repeat) for one in inside)

    # ------------------------------------------------------------ bytes

    def _inside(self, number: int) -> int:
        """The bytes that a round of a loop sends while it runs and when it ends."""
        loop = self.exchange.loops[number]
        sends = sum(self.size_of(send) for found in loop.sends.values() for send in found)
        return sends + sum(self._copies(number))

    def _copies(self, number: int) -> Iterator[int]:
        """The bytes of the copies of each array that go to other nodes."""
        loop, place = self.scheduled[number], self.exchange.place
        if self.exchange.loops[number].is_at_home:
            return
        if not isinstance(loop.plan.tiles, Tiled):
            return
        grid, workers = loop.schedule.grid, len(place)
        of_tiles = np.unravel_index(np.arange(loop.schedule.tiles), grid)[loop.plan.tiles.space]
        _, first = np.unique(of_tiles, return_index=True)
        for copies in loop.plan.copies:
            rows = [0] * (max(place) + 1)
            for worker, node in enumerate(place):
                low, high = share_of(copies.shape[0], worker, workers)
                rows[node] += high - low
            size = self._bytes(copies.array) // max(1, copies.shape[0])
            for owner in loop.schedule.owner[first].tolist():
                yield size * (sum(rows) - rows[place[owner]])

    def _size(self, moves: Moves) -> int:
        return sum(self.size_of(send) for sends in moves for send in sends)

    def _busiest(self, moves: Moves) -> int:
        """The bytes that a node sends or is sent, of the node with most."""
        place, nodes = self.exchange.place, self.exchange.nodes
        sent, got = dict.fromkeys(nodes, 0), dict.fromkeys(nodes, 0)
        for worker, sends in enumerate(moves):
            for send in sends:
                sent[nodes[place[worker]]] += self.size_of(send)
                got[send.node] += self.size_of(send)
        return max(*sent.values(), *got.values()) if moves else 0

    def size_of(self, send: Send) -> int:
        """The bytes of what is sent at once."""
        return sum(r.elements(self.shapes[r.array]) * self.bytes_of[r.array] for r in send.regions)

    def _bytes(self, array: str) -> int:
        size = self.bytes_of[array]
        for length in self.shapes[array]:
            size *= length
        return size
