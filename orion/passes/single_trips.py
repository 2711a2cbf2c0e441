"""Loops over ranges of one trip, which are their bodies.

    def fit(X, w, epochs=1):                  def fit(X, w):
        for epoch in range(epochs):
            for i in range(len(X)):               for i in range(len(X)):
                w[i] += X[i, epoch]                   w[i] += X[i, 0]

A call that leaves `epochs` to its default has one round. A loop of one trip is parallel in name alone: as a loop it
would keep those in it from being shared out. One without loops in it stays, one with a `break` or `continue` of its own
or with a progress bar, and one that gives names to arrays other than new ones, which in its place might be refused.
"""

from __future__ import annotations

from collections.abc import Set

from orion.dataclass import dataclass
from orion.ir.assigned import assigned_places, leaves_loop, own_level
from orion.ir.constants import as_literal, constant_value
from orion.ir.function import Function
from orion.ir.nodes import Assign, Bind, Expr, For, Range, Stmt, Subscript, Tuple, Var, count_names, holds
from orion.ir.rewriting import expand, parts_of, rewrite, with_new
from orion.passes.writes import viewed_names
from orion.typing.expression_types import Typing


def without_single_trips(function: Function, typing: Typing) -> Function:
    """The function with the bodies of such loops in their place."""
    unwrapping = _Unwrapping(function.body, frozenset(bar.line for bar in function.bars), typing)
    return with_new(function, body=expand(function.body, unwrapping.statement))


@dataclass(frozen=True, slots=True)
class _Unwrapping:
    body: tuple[Stmt, ...]
    shown: Set[int]
    """The lines of the loops with progress bars."""
    typing: Typing

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        """A loop of one trip as the statements that it is, any other statement as it is."""
        match statement:
            case For(Range(var, start) as space, body) if _is_single(space) and self.hides_loops(statement):
                return self.once(var, start, body)
            case _:
                return (statement,)

    def hides_loops(self, loop: For) -> bool:
        """Whether there are loops in a loop, and it does nothing that it might not do in the place of the loop."""
        if not holds(For, *loop.body) or loop.span.line in self.shown:
            return False
        if any(leaves_loop(inner) for inner in loop.body):
            return False
        return all(self.is_at_home_anywhere(inner) for inner in own_level(loop.body))

    def is_at_home_anywhere(self, statement: Stmt) -> bool:
        """Whether a statement gives names to nothing but numbers and new arrays like those that have names."""
        match statement:
            case Assign(Var() | Tuple(), value):
                return all(not self.typing.of(part).rank or _is_made(part) for part in parts_of(value))
            case _:
                return not isinstance(statement, Bind)

    def once(self, var: str, start: Expr, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A body with the only value of a loop variable, which it has after the loop, too."""
        value = as_literal(start)
        given = Assign(Var(var, start.span), value, start.span)
        if var in assigned_places(body):
            return (given, *body)

        def valued(part: Expr) -> Expr:
            return value if isinstance(part, Var) and part.name == var else part

        inside = tuple(rewrite(inner, valued) for inner in body)
        is_read_outside = count_names(self.body, var) > count_names(body, var)
        return (given, *inside) if is_read_outside else inside


def _is_made(value: Expr) -> bool:
    """Whether a value is a new array, of arrays and numbers that have names."""
    return not any(viewed_names(value)) and not holds(Subscript, value)


def _is_single(space: Range) -> bool:
    """Whether a range has one number in it.

    >>> from orion.ir.nodes import Const
    >>> from orion.ir.spans import NOWHERE
    >>> zero, one, two = (Const(value, NOWHERE) for value in (0, 1, 2))
    >>> [_is_single(Range("i", zero, stop, step, NOWHERE)) for stop, step in ((one, one), (two, one), (two, two))]
    [True, False, True]
    """
    start, stop, step = map(constant_value, (space.start, space.stop, space.step))
    if start is None or stop is None or not step:
        return False
    return len(range(start, stop, step)) == 1
