"""Statements on scalars, and where control goes, as instructions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce

from orion.dataclass import dataclass, field
from orion.ir.nodes import Assign, Break, Continue, Expr, For, If, Pass, Range, Stmt, Tuple, Update, Var, While
from orion.kernel import instructions as do
from orion.runtime.followed.expressions import (
    FLOATS,
    INTEGERS,
    MIXED,
    WHOLES,
    ExpressionWriter,
    NotFollowedError,
    Number,
    Type,
    Value,
    Whole,
)  # fmt: skip


@dataclass
class ScalarWriter(ExpressionWriter):
    """Writes statements. `_loops` are those that writing is in, outermost first."""

    _loops: list[_Leaving] = field(default_factory=list)

    def statements(self, body: Iterable[Stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Stmt) -> None:
        """Write a statement."""
        self.at(statement)
        match statement:
            case Assign(Var(name), value):
                self.put(name, self.value(value))
            case Assign(Tuple(targets), Tuple(items)) if len(targets) == len(items):
                self._together(targets, items)
            case Update(Var(name), op, value):
                self.put(name, self._binary(op, self.variable(name), self.value(value)))
            case If(test, body, orelse):
                self.branch(test, lambda: self.statements(body), lambda: self.statements(orelse))
            case While(test, body):
                self.during(test, lambda: self.statements(body))
            case For(Range() as space, body):
                self.trips(space, lambda: self.statements(body))
            case Break():
                self._leave(self._loop.breaks)
            case Continue():
                self._leave(self._loop.continues)
            case Pass():
                pass
            case _:
                raise NotFollowedError

    def _together(self, targets: Sequence[Expr], items: Sequence[Expr]) -> None:
        kept = []
        for item in items:
            value = self.value(item)
            register, tag = self.new(), self.new()
            self.add(do.COPY, register, value.register)
            if value.tag:
                self.add(do.COPY, tag, value.tag)
            kept.append(Value(register, value.kind, tag))
        for target, value in zip(targets, kept, strict=True):
            if not isinstance(target, Var):
                raise NotFollowedError
            self.put(target.name, value)

    # ---------------------------------------------------------------- where control goes

    @property
    def _loop(self) -> _Leaving:
        if not self._loops:
            raise NotFollowedError
        return self._loops[-1]

    def _leave(self, ways: list[_Way]) -> None:
        ways.append(_Way(self.add(do.JUMP), dict(self.kinds)))
        self.kinds = {UNREACHED: MIXED}

    def branch(self, test: Expr, then: Callable[[], None], orelse: Callable[[], None]) -> None:
        """One of two sides, by a test."""
        self.at(test)
        others = self.test(test, False)
        before = dict(self.kinds)
        then()
        after, end = self.kinds, self.add(do.JUMP)
        self.land(others)
        self.kinds = before
        orelse()
        self.land([end])
        self.kinds = self.joined(after, self.kinds)

    def during(self, test: Expr, body: Callable[[], None]) -> None:
        """Rounds for as long as a test holds."""

        def rounds() -> None:
            self.at(test)
            head = len(self.rows)
            self._loop.breaks += [_Way(jump, dict(self.kinds)) for jump in self.test(test, False)]
            body()
            self._again(do.JUMP, head)

        self._rounds(rounds)

    def trips(self, space: Range, body: Callable[[], None]) -> None:
        """Rounds through a range."""
        first = self.new(3)
        for place, bound in enumerate((space.start, space.stop, space.step)):
            value = self.value(bound)
            if value.kind not in INTEGERS:
                raise NotFollowedError
            self.add(do.COPY, first + place, value.register)

        def rounds() -> None:
            head = self.add(do.TRIP, first, first + 1)
            self._loop.breaks.append(_Way(head, dict(self.kinds)))
            self.put(space.var, Value(first, int))
            body()
            self._again(do.NEXT, first, first + 1, head)

        self._rounds(rounds)

    def joined(self, one: Mapping[str, Type], other: Mapping[str, Type]) -> dict[str, Type]:
        """The classes of variables where two ways come together."""
        if UNREACHED in one or UNREACHED in other:
            return dict(other if UNREACHED in one else one)
        return {name: self._joined(name, one.get(name, MIXED), other.get(name, MIXED)) for name in {**one, **other}}

    def _joined(self, name: str, *kinds: Type) -> Type:
        if kinds[0] is kinds[1]:
            return kinds[0]
        for several, alike in ((Whole, WHOLES), (Number, FLOATS)):
            if {*kinds} <= {*alike}:
                self.tag_of(name)
                return several
        return MIXED

    def as_number(self, name: str) -> None:
        """Have a variable hold a float's bits, whatever number it is."""
        if self.kinds.get(name) in WHOLES:
            self.add(do.EXACT, self.home(name), self.home(name))
            self.kinds[name] = Number

    def _again(self, *back: int) -> None:
        """Go back to the first row of a round, by this instruction."""
        self._land(self._loop.continues)
        for name in self._loop.numbers:
            self.as_number(name)
        self._loop.heads.append(dict(self.kinds))
        self.add(*back)

    def _land(self, ways: Iterable[_Way]) -> None:
        for way in ways:
            self.land([way.row])
            self.kinds = self.joined(self.kinds, way.kinds)

    def _rounds(self, rounds: Callable[[], None]) -> None:
        """Write a loop: again with other classes of variables at its head, until these are those after a round too."""
        rows, entered, place = len(self.rows), dict(self.kinds), self._at
        numbers: set[str] = set()
        while True:
            for name in sorted(numbers):
                self.as_number(name)
            before = dict(self.kinds)
            self._loops.append(_Leaving(numbers))
            rounds()
            loop = self._loops.pop()
            after = reduce(self.joined, loop.heads, before)
            changed = [name for name, kind in after.items() if before.get(name, MIXED) is not kind]
            if not changed:
                break
            for name in changed:
                kinds = {one.get(name, MIXED) for one in (entered, *loop.heads) if UNREACHED not in one}
                entered[name] = after[name]
                if after[name] is MIXED and name not in numbers and kinds <= {*WHOLES, *FLOATS}:
                    self.tag_of(name)
                    numbers.add(name)
                    entered[name] = before[name]
                elif after[name] is MIXED:
                    numbers.discard(name)
            del self.rows[rows:], self.places[rows:]
            self.kinds, self._at = dict(entered), place
        self.kinds = {UNREACHED: MIXED}
        self._land(loop.breaks)


UNREACHED = ""
"""A name that is among those of a place that no row comes to by itself."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A jump out of a loop, or to its end, and the classes of variables where it is taken."""

    row: int
    kinds: Mapping[str, Type]


@dataclass(slots=True)
class _Leaving:
    """The jumps of a loop that is being written, and the classes of variables wherever it goes back to its head."""

    numbers: Collection[str]
    breaks: list[_Way] = field(default_factory=list)
    continues: list[_Way] = field(default_factory=list)
    heads: list[Mapping[str, Type]] = field(default_factory=list)
