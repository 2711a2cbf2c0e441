"""Wrap-around variables given their values anew in each iteration, for several workers.

x = b[-1]                              x = b[-1]
for i in range(n):                     x_first = x
    a[i] = 0.5 * (b[i] + x)            for i in range(n):
    x = b[i]                               if i > 0: x = b[i - 1]
                                           else: x = x_first
                                           a[i] = 0.5 * (b[i] + x)
                                           x = b[i]
"""

from __future__ import annotations

from collections.abc import Mapping

from orion.dataclass import dataclass, replace
from orion.ir.assumed import OfWorkers
from orion.ir.constants import constant_value
from orion.ir.function import Function
from orion.ir.nodes import Assign, Compare, Const, Expr, For, If, Range, Stmt, Var, every
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite, with_new
from orion.ir.spans import with_span
from orion.ir.sums import plus, total
from orion.rewrites.wrap_around.find import WrapAround, wrap_arounds
from orion.typing.expression_types import Typing


def apply(function: Function, typing: Typing) -> tuple[Function, tuple[int, ...]]:
    """The function without its wrap-around variables, and the lines of the loops that it is another for. A loop around
    one of those stays as it is: it has names that nothing is known of yet."""
    taken, changed = {*typing.names}, list[For]()

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(statement, For) or any(_holds(statement, one) for one in changed):
            return (statement,)
        found = wrap_arounds(statement, function, typing)
        if not found:
            return (statement,)
        changed.append(statement)
        return _without(statement, found, taken)

    body = expand(function.body, change)
    assumed = (*function.assumed, *(OfWorkers(loop.index, 2) for loop in changed))  # one worker would compute twice
    return with_new(function, body=body, assumed=assumed), tuple(loop.span.line for loop in changed)


def _holds(loop: For, other: For) -> bool:
    """Whether a loop has another one inside, as it was or changed."""
    return any(inner.index == other.index for inner in every(For, *loop.body))


def _without(loop: For, found: tuple[WrapAround, ...], taken: set[str]) -> tuple[Stmt, ...]:
    """The loop, after statements that keep what the names have before it."""
    space, span = loop.space, loop.span
    assert isinstance(space, Range)
    first = {one.name: fresh(f"{one.name}_first", taken) for one in found}
    writer = _Writer(space, {one.name: one for one in found}, first, taken)
    kept = tuple(Assign(Var(first[name], span), Var(name, span), span) for name in first)
    given = tuple(part for one in found for part in writer.given(one.name, one.name, 0))
    return (*kept, replace(loop, body=(*given, *loop.body)))


@dataclass(frozen=True, slots=True)
class _Writer:
    space: Range
    found: Mapping[str, WrapAround]
    first: Mapping[str, str]
    taken: set[str]

    def given(self, target: str, name: str, back: int) -> tuple[Stmt, ...]:
        """What gives `target` the value of a name at the beginning of the iteration that is so many before."""
        one, span = self.found[name], self.space.span
        inner: list[Stmt] = []
        names: dict[str, str] = {}
        for need in one.needs:
            names[need] = fresh(f"{need}_{back + 2}", self.taken)
            inner += self.given(names[need], need, back + 1)
        value = rewrite(one.value, lambda part: self.earlier(part, names, back + 1))
        then = (*inner, Assign(Var(target, span), with_span(value, span), span))
        orelse = Assign(Var(target, span), Var(self.first[name], span), span)
        return (If(self.is_later(back), then, (orelse,), span),)

    def earlier(self, part: Expr, names: Mapping[str, str], back: int) -> Expr:
        """A part of a value in an iteration that is so many before."""
        if not isinstance(part, Var):
            return part
        if part.name == self.space.var:
            return plus(part, -back * self.step)
        return replace(part, name=names.get(part.name, part.name))

    def is_later(self, back: int) -> Expr:
        """Whether there are more iterations before this one."""
        span, var = self.space.span, Var(self.space.var, self.space.span)
        at = total(self.space.start, Const(back * self.step, span))
        return Compare((">" if self.step > 0 else "<",), (var, with_span(at, span)), span)

    @property
    def step(self) -> int:
        found = constant_value(self.space.step)
        assert found is not None
        return found
