"""The scalars that a loop gives values only in the iteration that ends it.

    for i in range(n):
        if a[i] == x:
            at = i                  at, found: no iteration but the one that comes to the `break` first
            found = True            in the order of the loop has a value of these
            break

Let iteration e be the first that comes to the `break`. As written, those after e do not run. Where iterations write no
array and read nothing of one another, the loop may be cut into tiles all the same, each of which ends with its own
first such iteration: what tiles after that of e find does not count, and tiles before it are whole. A scalar has the
value that the tile of e ends with, for which it is enough that

    s is assigned on a way through the body  ⇒  that way ends in the `break`                            (*)

Before e it is then what it was before the loop, which every tile begins with. Sums, extremes and last values are put
together from the tiles up to that of e. Source: Rauchwerger and Padua, *Parallelizing while loops for multiprocessor
systems*, IPPS 1995, for loops whose iterations after the exit may be run, as they have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from orion.dataclass import dataclass
from orion.ir.assigned import assigned_by, own_level
from orion.ir.nodes import (
    Assign,
    Break,
    Compare,
    Const,
    Continue,
    Expr,
    For,
    If,
    Return,
    Stmt,
    Var,
    While,
    every,
)  # fmt: skip

MAX_WAYS = 64
"""The most states that ways through a body are in between two statements; bodies with more are not looked at."""


def ends_early(body: Iterable[Stmt]) -> bool:
    """Whether the first iteration that comes to a `break` of a loop with this body ends it, while others may run."""
    return any(isinstance(one, Break) and one.is_first for one in own_level(body))


def set_at_exit(name: str, body: tuple[Stmt, ...]) -> bool:
    """Whether (*) holds of a scalar: no iteration goes on to the next one after giving it a value.

    Ways through the body are followed with the numbers that names have on them, since an inner loop that is left by a
    `return` of the source gives a name a number, which is tested after it (`orion.passes.leaving`).
    """
    follower = _Follower(name, _tested(body))
    try:
        ends = follower.block(body, frozenset({_Way()}))
    except _TooManyWaysError:
        return False
    return not any(way.is_set for way in ends | follower.going_on)


def _tested(body: tuple[Stmt, ...]) -> frozenset[str]:
    """The names that are compared with a number to leave a loop."""
    tests = (one.test for one in every(If, *body) if any(isinstance(inner, Break) for inner in own_level(one.body)))
    return frozenset(found[0] for test in tests if (found := _compared(test)) is not None)


def _compared(test: Expr) -> tuple[str, bool, object] | None:
    """The name that is compared with a number, whether they are to be equal, and the number."""
    match test:
        case Compare(("==" | "!=" as op,), (Var(name), Const(value))):
            return name, op == "==", value
        case _:
            return None


class _TooManyWaysError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Way:
    """Ways that have come to the same place: whether they give the scalar a value, and the numbers that names have."""

    is_set: bool = False
    numbers: frozenset[tuple[str, object]] = frozenset()

    def with_number(self, name: str, number: object) -> _Way:
        rest = frozenset(pair for pair in self.numbers if pair[0] != name)
        return _Way(self.is_set, rest if number is None else rest | {(name, number)})


Ways = frozenset[_Way]
NO_WAYS: Ways = frozenset()


@dataclass(slots=True)
class _Follower:
    """Follows ways through a body; `going_on` are those that come to a `continue` of the loop, `leaving` those that
    come to the `break` of the loop around where they are."""

    name: str
    tested: Set[str]
    going_on: Ways = NO_WAYS
    leaving: Ways = NO_WAYS

    def block(self, body: Iterable[Stmt], ways: Ways) -> Ways:
        """The ways that come to the end of the statements."""
        for statement in body:
            ways = self.statement(statement, ways)
            if len(ways) > MAX_WAYS:
                raise _TooManyWaysError
        return ways

    def statement(self, statement: Stmt, ways: Ways) -> Ways:
        match statement:
            case If(test, body, orelse):
                return self.block(body, _where(test, ways, True)) | self.block(orelse, _where(test, ways, False))
            case For() | While():
                return self.loop(statement, ways)
            case Break():
                self.leaving |= ways
                return NO_WAYS
            case Continue():
                self.going_on |= ways
                return NO_WAYS
            case Return():
                return NO_WAYS
            case _:
                return self.assigned(statement, ways)

    def loop(self, loop: For | While, ways: Ways) -> Ways:
        """The ways that come out of an inner loop, after any number of trips."""
        around = self.going_on, self.leaving
        self.going_on = self.leaving = NO_WAYS
        before: Ways = NO_WAYS
        while ways != before:
            before = ways
            begun = self.assigned(loop, ways) if isinstance(loop, For) else ways
            ways = ways | self.block(loop.body, begun) | self.going_on
            if len(ways) > MAX_WAYS:
                raise _TooManyWaysError
        ways |= self.leaving
        self.going_on, self.leaving = around
        return ways

    def assigned(self, statement: Stmt, ways: Ways) -> Ways:
        """The ways after what a statement itself assigns."""
        names = frozenset(assigned_by(statement))
        found = ways
        if self.name in names:
            found = frozenset(_Way(True, way.numbers) for way in found)
        for name in names & self.tested:
            number = _number(statement)
            found = frozenset(way.with_number(name, number) for way in found)
        return found


def _number(statement: Stmt) -> object:
    """The number that a statement gives a name; None where it is not known."""
    match statement:
        case Assign(Var(), Const(value)) if value is not None:
            return value
        case _:
            return None


def _where(test: Expr, ways: Ways, wanted: bool) -> Ways:
    """The ways on which a test may be as wanted."""
    found = _compared(test)
    if found is None:
        return ways
    name, is_equal, number = found
    return frozenset(way for way in ways if _may(dict(way.numbers), name, is_equal == wanted, number))


def _may(numbers: dict[str, object], name: str, is_equal: bool, number: object) -> bool:
    return name not in numbers or (numbers[name] == number) == is_equal
