"""Rounds of a loop that differ in turn, written out one after the other.

    for t in range(a, b, s):      for t in range(a, b - s, 2 * s):
        A, B, A, B, …                 A with t, B with t + s
                                  rounds = max(0, (b - a + s - 1) // s)
                                  if rounds % 2 > 0:
                                      A with t = a + (rounds - rounds % 2) * s

Rounds that come first, and never again, stand before the loop, each if there is such a round.
"""

from __future__ import annotations

from collections.abc import Callable

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_names, leaves_loop
from orion.ir.constants import constant_value
from orion.ir.exposed import exposed_reads
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Dim,
    Expr,
    For,
    If,
    Node,
    Pass,
    Range,
    Stmt,
    Unary,
    Var,
    While,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.rewriting import rewrite
from orion.ir.spans import with_span
from orion.ir.sums import plus
from orion.source import Span
from orion.typing.value_type import ValueType

Block = tuple[Stmt, ...]


def is_counted(loop: For | While, future: Block) -> bool:
    """Whether all rounds of a loop are run, as many as its range has, with a step that is a positive number; and its
    variable is not read after it."""
    if not isinstance(loop, For) or not isinstance(loop.space, Range) or any(map(leaves_loop, loop.body)):
        return False
    space, changed = loop.space, assigned_names(loop.body)
    bounds = [part for bound in (space.start, space.stop) for part in walk(bound)]
    plain = all(isinstance(part, Const | Var | Dim | Binary | Unary) or _is_length(part) for part in bounds)
    fixed = (names_in(space.start, space.stop) | {space.var}).isdisjoint(changed)
    is_read = space.var in exposed_reads(future, ())
    return plain and fixed and not is_read and isinstance(step := constant_value(space.step), int) and step > 0


def _is_length(part: Node) -> bool:
    return isinstance(part, Call) and part.function == "len"


def as_integer(bound: Expr, kind: ValueType) -> Expr:
    """A bound as the Python integer that `range` makes of it: what is computed with it must not wrap around where it is
    one of NumPy's narrower or unsigned ones.

    >>> from orion.ir.printer import print_expr
    >>> from orion.ir.spans import NOWHERE
    >>> print_expr(as_integer(Var("T", NOWHERE), ValueType("uint8")))
    'int(T)'
    """
    return bound if kind.dtype == "int64" else Call("int", (bound,), bound.span)


@dataclass(frozen=True, slots=True)
class Rounds:
    """`head` is the loop with an empty body, its bounds Python's integers. `body(k)` writes out round k, `rest(k)` what
    comes after k rounds; after the last of `count` rounds comes round `cycle` again. `scalar` gives new names."""

    head: For
    count: int
    cycle: int
    body: Callable[[int], Block]
    rest: Callable[[int], Block]
    scalar: Callable[[str], str]

    @property
    def space(self) -> Range:
        assert isinstance(self.head.space, Range)
        return self.head.space

    @property
    def span(self) -> Span:
        return self.head.span

    @property
    def step(self) -> int:
        step = constant_value(self.space.step)
        assert isinstance(step, int)
        return step

    def written(self) -> Block:
        return self.first(0, self.space.start)

    def first(self, number: int, start: Expr) -> Block:
        """Round `number` and those after it, where it never comes again."""
        if number == self.cycle:
            return self.cycles(start)
        then = (*self.placed(number, start), *self.first(number + 1, self.plus(start, self.step)))
        low, high = constant_value(start), constant_value(self.space.stop)
        if isinstance(low, int) and isinstance(high, int):
            return then if low < high else self.rest(number)
        return (If(Compare(("<",), (start, self.space.stop), self.span), then, self.rest(number), self.span),)

    def cycles(self, start: Expr) -> Block:
        """The rounds that come again and again, from where the variable has a value on."""
        period = self.count - self.cycle
        here = Var(self.space.var, self.span)
        body = tuple(new for k in range(period) for new in self.placed(self.cycle + k, self.plus(here, k * self.step)))
        stop = self.plus(self.space.stop, -(period - 1) * self.step)
        space = replace(self.space, start=start, stop=stop, step=Const(period * self.step, self.span))
        loop = replace(self.head, space=space, body=body)
        if period == 1:
            return (loop, *self.rest(self.cycle))
        low, high = constant_value(start), constant_value(self.space.stop)
        if isinstance(low, int) and isinstance(high, int):
            trips = len(range(low, high, self.step))
            done = trips - trips % period
            left = [new for k in range(trips % period) for new in self.placed(self.cycle + k, self.at(start, done + k))]
            return (loop, *left, *self.rest(self.cycle + trips % period))
        return (loop, *self.ends(start, period))

    def ends(self, start: Expr, period: int) -> Block:
        """The rounds that are left where their number is no multiple of the period."""
        span, name = self.span, self.scalar("rounds")
        rounds = Var(name, span)
        length = self.space.stop if constant_value(start) == 0 else Binary("-", self.space.stop, start, span)
        if self.step > 1:
            length = Binary("//", self.plus(length, self.step - 1), Const(self.step, span), span)
        counted = Assign(rounds, Call("max", (Const(0, span), length), span), span)
        over = Binary("%", rounds, Const(period, span), span)
        found = self.rest(self.cycle + period - 1)
        for k in reversed(range(period - 1)):
            done = Binary("-", rounds, over, span)
            here = self.at(start, self.plus(done, k))
            then = (*self.placed(self.cycle + k, here), *found)
            found = (If(Compare((">",), (over, Const(k, span)), span), then, self.rest(self.cycle + k), span),)
        return (counted, *found)

    def placed(self, number: int, place: Expr) -> Block:
        """A round in which the variable has this value."""
        name = self.space.var

        def change(expr: Expr) -> Expr:
            return place if isinstance(expr, Var) and expr.name == name else expr

        body = self.body(number) or (Pass(self.span),)
        is_plain = isinstance(place, Var) and place.name == name
        return body if is_plain else tuple(rewrite(statement, change) for statement in body)

    def at(self, start: Expr, rounds: Expr | int) -> Expr:
        """The value of the variable after so many rounds."""
        if isinstance(rounds, int):
            return self.plus(start, rounds * self.step)
        step = Const(self.step, self.span)
        moved = rounds if self.step == 1 else Binary("*", rounds, step, self.span)
        return moved if constant_value(start) == 0 else Binary("+", start, moved, self.span)

    def plus(self, expr: Expr, number: int) -> Expr:
        return with_span(plus(expr, number), self.span) if number else expr
