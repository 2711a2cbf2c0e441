"""Goes through a program as its workers do, from loop to loop, without running any."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

from orion.cost.extents import evaluated
from orion.dataclass import dataclass, field
from orion.ir.assigned import assigned_names
from orion.ir.nodes import Break, Continue, For, Return, Stmt, every, names_in
from orion.ir.program import Branch, Repeat, RunLoop, Scalars, Step, blocks_of
from orion.ir.rewriting import is_raised
from orion.sets.names import isl_name

MOST_ROUNDS = 100_000
"""Serial loops of more rounds than this are not gone through to their end, unless they repeat themselves."""


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps with all that are inside of them."""
    for step in steps:
        yield step
        for block in blocks_of(step):
            yield from all_steps(block)


def _changed(steps: Iterable[Step]) -> set[str]:
    """The scalars that statements between loops give other values, or loops."""
    found: set[str] = set()
    for step in all_steps(steps):
        if isinstance(step, Scalars):
            found |= set(assigned_names(step.body))
        elif isinstance(step, Repeat) and isinstance(step.loop, For):
            found |= set(assigned_names(step.loop.body))
    return found


class UnpredictableError(Exception):
    """What a program does depends on data, and how."""


@dataclass(eq=False)
class ProgramWalk(ABC):
    """Goes through a program. `known` are values of names in isl."""

    known: Mapping[str, int]
    last: Step | None = field(init=False, default=None)
    changed: frozenset[str] = field(init=False, default=frozenset())

    def walk(self, steps: Iterable[Step]) -> None:
        """Go through all steps. UnpredictableError where it depends on data which those are."""
        steps = tuple(steps)
        self.last = steps[-1] if steps else None
        self.changed = frozenset(map(isl_name, _changed(steps)))
        self._steps(steps, {})

    @abstractmethod
    def _loop(self, number: int, rounds: Mapping[str, int]) -> None:
        """A planned loop is run, in these rounds of the serial loops around it."""

    @abstractmethod
    def _rounds(self, step: Repeat, trips: range, rounds: Mapping[str, int]) -> None:
        """The rounds of a serial loop are gone through."""

    def _steps(self, steps: Iterable[Step], rounds: Mapping[str, int]) -> None:
        for step in steps:
            match step:
                case RunLoop(number):
                    self._loop(number, rounds)
                case Repeat():
                    self._rounds(step, self._trips(step, rounds), rounds)
                case Branch(statement):
                    raise UnpredictableError(f"the `if` in line {statement.span.line} decides which loops run")
                case Scalars(body):
                    self._scalars(step, body)

    def _round(self, step: Repeat, trip: int, rounds: Mapping[str, int]) -> None:
        """Go through one round of a serial loop."""
        variable = {} if step.space is None else {isl_name(step.space.var): trip}
        self._steps(step.steps, {**rounds, **variable})

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
        ends = [one for one in ends if not (isinstance(one, Return) and is_raised(one.value))]
        if ends:
            line = ends[0].span.line
            raise UnpredictableError(
                f"whether the statement in line {line} ends a round, or the function, is not known"
            )

    def _known(self, rounds: Mapping[str, int]) -> dict[str, int]:
        """The values of names that are the same in the whole function, and those of rounds."""
        return {**{name: value for name, value in self.known.items() if name not in self.changed}, **rounds}


@dataclass(eq=False)
class RoundCount(ProgramWalk):
    """Counts how often each loop of a program is run."""

    counts: list[int]

    def _loop(self, number: int, rounds: Mapping[str, int]) -> None:
        self.counts[number] += 1

    def _rounds(self, step: Repeat, trips: range, rounds: Mapping[str, int]) -> None:
        """Rounds that all do the same are counted at once."""
        if step.space is not None and step.space.var not in _names_of_ranges(step.steps):
            before = list(self.counts)
            for trip in trips[:1]:
                self._round(step, trip, rounds)
            pairs = zip(before, self.counts, strict=True)
            self.counts[:] = [old + (new - old) * len(trips) for old, new in pairs]
            return
        if len(trips) > MOST_ROUNDS:
            raise UnpredictableError(f"the loop in line {step.loop.span.line} has too many rounds")
        for trip in trips:
            self._round(step, trip, rounds)


def _names_of_ranges(steps: Iterable[Step]) -> set[str]:
    """The names in the ranges of serial loops."""
    spaces = [step.space for step in all_steps(steps) if isinstance(step, Repeat)]
    return {name for one in spaces if one is not None for name in names_in(one.start, one.stop, one.step)}


def count_rounds(steps: Iterable[Step], known: Mapping[str, int], loops: int) -> tuple[int, ...]:
    """How often each of the loops of a program is run in a call. UnpredictableError where that depends on data."""
    walk = RoundCount(known, [0] * loops)
    walk.walk(steps)
    return tuple(walk.counts)
