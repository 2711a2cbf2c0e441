"""What nodes send each other in a run of a program, in bytes: the run without its loops.

The program is gone through as its workers do, from loop to loop, with what each loop sends inside and what goes on its
way before it (`orion.runtime.ray.holdings`). Where all numbers of rounds are known that is what a run sends, to the
byte; where a step depends on data nobody knows it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from orion.cost.extents import evaluated
from orion.ir.assigned import assigned_names
from orion.ir.nodes import Break, Continue, For, Return, Stmt, every
from orion.ir.program import Branch, Repeat, RunLoop, Scalars, Step, blocks_of
from orion.ir.types import Shapes
from orion.plan.plan import Tiled
from orion.runtime.parts import share_of
from orion.runtime.ray.exchange import ProgramExchange, Scheduled, usage_in_round
from orion.runtime.ray.holdings import Holdings, Moves, State
from orion.runtime.ray.last_writers import Send, Usage
from orion.sets.names import isl_name

MOST_ROUNDS = 100_000
"""Serial loops of more rounds than this are not gone through to their end, unless they repeat themselves."""


def _all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps with all that are inside of them."""
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from _all_steps(block)


def _changed(steps: Iterable[Step]) -> set[str]:
    """The scalars that statements between loops give other values, or loops."""
    found: set[str] = set()
    for step in _all_steps(steps):
        if isinstance(step, Scalars):
            found |= set(assigned_names(step.body))
        elif isinstance(step, Repeat) and isinstance(step.loop, For):
            found |= set(assigned_names(step.loop.body))
    return found


class UnpredictableError(Exception):
    """What is sent depends on data, and how."""


@dataclass(eq=False)
class Prediction:
    """Goes through a program. `known` are values of names in isl; `bytes_of` the sizes of the elements of arrays.
    `by_loop[k]` are the bytes that were sent before and in loop k so far, and `at_end` those at the end."""

    scheduled: Sequence[Scheduled]
    exchange: ProgramExchange
    known: Mapping[str, int]
    shapes: Shapes
    bytes_of: Mapping[str, int]
    by_loop: list[int] = field(init=False)
    at_end: int = 0

    def __post_init__(self) -> None:
        self.holdings = Holdings(self.exchange)
        self.state = self.holdings.begin
        self.by_loop = [0] * len(self.scheduled)
        self.inside = [self._inside(number) for number in range(len(self.scheduled))]
        self.last: Step | None = None
        self.changed: frozenset[str] = frozenset()

    def go(self, steps: Iterable[Step]) -> int:
        """The bytes of a run. UnpredictableError where they depend on data."""
        steps = tuple(steps)
        self.last = steps[-1] if steps else None
        self.changed = frozenset(map(isl_name, _changed(steps)))
        self._steps(steps, {})
        self.at_end = self._size(self.holdings.at_end(self.state)[0])
        return sum(self.by_loop) + self.at_end

    def _steps(self, steps: Iterable[Step], rounds: Mapping[str, int]) -> None:
        for step in steps:
            match step:
                case RunLoop(number):
                    self._loop(number, rounds)
                case Repeat():
                    self._repeat(step, rounds)
                case Branch(statement):
                    raise UnpredictableError(f"the `if` in line {statement.span.line} decides which loops run")
                case Scalars(body):
                    self._scalars(step, body)

    def _loop(self, number: int, rounds: Mapping[str, int]) -> None:
        loop, values = self.scheduled[number], self._known(rounds)
        accesses = self.exchange.loops[number].accesses
        for name in () if accesses is None else accesses.given:
            if name not in values:
                where = f"the loop in line {loop.plan.nest.span.line}"
                raise UnpredictableError(f"what {where} uses depends on `{name}`, which the function computes")
        usage: Mapping[str, Usage] = usage_in_round(self.exchange, number, loop.schedule, values)
        moves, state = self.holdings.before(self.state, number, usage)
        self.state = self.holdings.after(state, number, usage)
        self.by_loop[number] += self._size(moves) + self.inside[number]

    def _repeat(self, step: Repeat, rounds: Mapping[str, int]) -> None:
        """Go through the rounds; where one begins in a state in which an earlier one began, those that follow are the
        same."""
        trips, repeats = self._trips(step, rounds), self._repeats(step)
        begun: dict[State, tuple[int, list[int]]] = {}
        at = 0
        while at < len(trips):
            if repeats and self.state in begun:
                first, before = begun[self.state]
                period = at - first
                times = (len(trips) - at) // period
                self.by_loop = [now + times * (now - then) for now, then in zip(self.by_loop, before, strict=True)]
                at += times * period
                begun = {}
                if at == len(trips):
                    return
            begun[self.state] = at, list(self.by_loop)
            if at > MOST_ROUNDS:
                raise UnpredictableError(f"the loop in line {step.loop.span.line} has too many rounds")
            variable = {} if step.space is None else {isl_name(step.space.var): trips[at]}
            self._steps(step.steps, {**rounds, **variable})
            at += 1

    def _trips(self, step: Repeat, rounds: Mapping[str, int]) -> range:
        space, known = step.space, self._known(rounds)
        bounds = [] if space is None else [evaluated(part, known) for part in (space.start, space.stop, space.step)]
        found = [bound for bound in bounds if bound is not None]
        if len(found) < 3 or not found[2]:
            raise UnpredictableError(f"the number of rounds of the loop in line {step.loop.span.line} is not known")
        return range(*found)

    def _scalars(self, step: Scalars, body: Sequence[Stmt]) -> None:
        """UnpredictableError where statements between loops may end a round, or the function."""
        ends: list[Stmt] = [*every((Break, Continue), *body)]
        if step is not self.last or not isinstance(body[-1], Return):
            ends += every(Return, *body)
        else:
            ends += every(Return, *body[:-1])
        if ends:
            line = ends[0].span.line
            raise UnpredictableError(
                f"whether the statement in line {line} ends a round, or the function, is not known"
            )

    def _known(self, rounds: Mapping[str, int]) -> dict[str, int]:
        """The values of names that are the same in the whole function, and those of rounds."""
        return {**{name: value for name, value in self.known.items() if name not in self.changed}, **rounds}

    def _repeats(self, step: Repeat) -> bool:
        """Whether all rounds go through the same loops, each of which uses the same cells."""
        inside = [*_all_steps(step.steps)]
        loops = [self.exchange.loops[one.number] for one in inside if isinstance(one, RunLoop)]
        return all(loop.accesses is None for loop in loops) and not any(isinstance(one, Repeat) for one in inside)

    # ------------------------------------------------------------ bytes

    def _inside(self, number: int) -> int:
        """The bytes that a round of a loop sends while it runs and when it ends."""
        loop = self.exchange.loops[number]
        sends = sum(self._of(send) for found in loop.sends.values() for send in found)
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
        return sum(self._of(send) for sends in moves for send in sends)

    def _of(self, send: Send) -> int:
        return sum(r.elements(self.shapes[r.array]) * self.bytes_of[r.array] for r in send.regions)

    def _bytes(self, array: str) -> int:
        size = self.bytes_of[array]
        for length in self.shapes[array]:
            size *= length
        return size
