"""Parts of expressions as statements of their own before them.

    s = (rank[idx] * w).sum()               taken = rank[idx]
                                            s = (taken * w).sum()
    a, b = find(p, a), find(p, b)           find_1 = find(p, a)
                                            find_2 = find(p, b)
                                            a, b = find_1, find_2

That is right for what is evaluated whenever the statement is, once: not for what `and`, `or` or `if … else` may leave
out. It is right where what is evaluated before, and stays in the statement, does not change the part and is not changed
by it: nothing has written arrays before any part, nothing has read them before one that writes. A test of a `while` is
evaluated anew in each round: the loop then is `while True`, which the test leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orion.dataclass import dataclass, field, fields, replace
from orion.ir.nodes import (
    Assign,
    Break,
    Call,
    Choose,
    Compare,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    Logic,
    Range,
    Return,
    Stmt,
    Subscript,
    Unary,
    Update,
    While,
    every,
)  # fmt: skip
from orion.ir.rewriting import EXPRESSIONS, rewrite

Lift = Callable[[Any, list[Stmt]], Expr]
"""What stands in place of an expression, after statements that are added to a list."""

UNSURE = "it may not be evaluated whenever the statement is"
CHANGED = "a function of your own that is called before it may change what it is made of"
"""Why an expression must stay."""


@dataclass(slots=True)
class Lifter:
    """`is_lifted` tells which expressions are to be statements, `lift` makes them; `instead` gives what stands for one
    that must stay, from it and why, or raises. `writes` tells of a call whether it may write an array.

    Of the statement at hand, `before` are the statements to be run first; what was evaluated and stays in it `has_read`
    arrays, `has_written` some.
    """

    is_lifted: Callable[[Expr], bool]
    lift: Lift
    instead: Callable[[Expr, str], Expr]
    writes: Callable[[Call], bool]
    before: list[Stmt] = field(default_factory=list)
    has_read: bool = False
    has_written: bool = False

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for statement in body for new in self.statement(statement))

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        """The statement, with what is to be run before it."""
        self.before, self.has_written = [], False
        self.has_read = isinstance(statement, Update) and isinstance(statement.target, Subscript)
        found = self.headed(statement)
        before = tuple(self.before)
        match found:
            case If(_, body, orelse):
                return (*before, replace(found, body=self.block(body), orelse=self.block(orelse)))
            case While(test, body, span) if before:
                leave = If(Unary("not", test, span), (Break(span),), (), span)
                return (While(Const(True, span), (*before, leave, *self.block(body)), span),)
            case For(_, body) | While(_, body):
                return (*before, replace(found, body=self.block(body)))
            case _:
                return (*before, found)

    def headed(self, statement: Stmt) -> Stmt:
        """The statement with its own expressions, not those in its blocks, in the order in which they are evaluated."""
        match statement:
            case If(test) | While(test):
                return replace(statement, test=self.sure(test))
            case For(Range(_, start, stop, step) as space):
                start, stop, step = self.sure(start), self.sure(stop), self.sure(step)
                return replace(statement, space=replace(space, start=start, stop=stop, step=step))
            case Assign(target, value) | Update(target, _, value):
                value = self.sure(value)
                return replace(statement, target=self.target(target), value=value)
            case Evaluate(value) | Return(value) if value is not None:
                return replace(statement, value=self.sure(value))
            case _:
                return statement

    def target(self, target: Any) -> Any:
        """A target: what its subscripts are made of is evaluated; it is no value itself."""
        return self.parts(target) if isinstance(target, Subscript) else target

    def sure(self, expr: Expr) -> Expr:
        """An expression that is evaluated, innermost parts first."""
        read, written = self.has_read, self.has_written
        match expr:
            case Logic(_, operands):
                return replace(expr, operands=(self.sure(operands[0]), *map(self.unsure, operands[1:])))
            case Choose(test, then, orelse):
                test = self.sure(test)
                return replace(expr, test=test, then=self.unsure(then), orelse=self.unsure(orelse))
            case Compare(_, operands) if len(operands) > 2:
                first = [self.sure(one) for one in operands[:2]]
                return replace(expr, operands=(*first, *map(self.unsure, operands[2:])))
        is_lifted, changed = self.is_lifted(expr), self.parts(expr)
        if is_lifted and not written and not (read and self.may_write(changed)):
            self.has_read, self.has_written = read, written
            return self.lift(changed, self.before)
        self.note(changed)
        return self.instead(changed, CHANGED) if is_lifted else changed

    def note(self, expr: Expr) -> None:
        """Note what an expression does that stays."""
        self.has_read = self.has_read or isinstance(expr, Subscript | Call)
        self.has_written = self.has_written or (isinstance(expr, Call) and self.writes(expr))

    def may_write(self, expr: Expr) -> bool:
        return any(map(self.writes, every(Call, expr)))

    def parts(self, expr: Any) -> Any:
        names = [one.name for one in fields(expr) if one.name not in ("span", "base")]
        return replace(expr, **{name: self.part(getattr(expr, name)) for name in names})

    def part(self, value: Any) -> Any:
        if isinstance(value, EXPRESSIONS):
            found: Any = value
            return self.sure(found)
        return tuple(self.part(item) for item in value) if isinstance(value, tuple) else value

    def unsure(self, expr: Expr) -> Expr:
        """An expression that may not be evaluated."""
        self.has_read, self.has_written = True, self.has_written or self.may_write(expr)
        return rewrite(expr, lambda part: self.instead(part, UNSURE) if self.is_lifted(part) else part)
