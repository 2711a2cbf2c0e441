"""Parts of expressions as statements of their own before them.

    s = (rank[idx] * w).sum()        taken = rank[idx]
                                     s = (taken * w).sum()

That is right for what is evaluated whenever the statement is, once: not for what `and`, `or` or `if … else` may leave
out. A test of a `while` is evaluated anew in each round: the loop then is `while True`, which the test leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from orion.ir.nodes import (
    Assign,
    Break,
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
    walk,
)  # fmt: skip
from orion.ir.rewriting import EXPRESSIONS, rewrite

Lift = Callable[[Any, list[Stmt]], Expr]
"""What stands in place of an expression, after statements that are added to a list."""


@dataclass(frozen=True, slots=True)
class Lifter:
    """`is_lifted` tells which expressions are to be statements, `lift` makes them; `instead` gives what stands for one
    that may not be evaluated, or raises."""

    is_lifted: Callable[[Expr], bool]
    lift: Lift
    instead: Callable[[Expr], Expr]
    before: list[Stmt] = field(default_factory=list)

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for statement in body for new in self.statement(statement))

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        """The statement, with what is to be run before it."""
        match statement:
            case If(test, body, orelse):
                before, test = self.lifted(test)
                return (*before, replace(statement, test=test, body=self.block(body), orelse=self.block(orelse)))
            case While(test, body, span):
                before, test = self.lifted(test)
                if not before:
                    return (replace(statement, body=self.block(body)),)
                leave = If(Unary("not", test, span), (Break(span),), (), span)
                return (While(Const(True, span), (*before, leave, *self.block(body)), span),)
            case For(Range(_, start, stop, step) as space, body):
                (first, start), (second, stop), (third, step) = map(self.lifted, (start, stop, step))
                space = replace(space, start=start, stop=stop, step=step)
                return (*first, *second, *third, replace(statement, space=space, body=self.block(body)))
            case For(_, body):
                return (replace(statement, body=self.block(body)),)
            case Assign(target, value) | Update(target, _, value):
                first, target = self.targets(target)
                before, value = self.lifted(value)
                return (*before, *first, replace(statement, target=target, value=value))
            case Evaluate(value) | Return(value) if value is not None:
                before, value = self.lifted(value)
                return (*before, replace(statement, value=value))
            case _:
                return (statement,)

    def targets(self, target: Any) -> tuple[tuple[Stmt, ...], Any]:
        """A target with its subscripts' parts lifted; the target itself is no value."""
        if isinstance(target, Subscript):
            found = [self.lifted(part) for part in target.index]
            before = tuple(new for one, _ in found for new in one)
            return before, replace(target, index=tuple(part for _, part in found)) if before else target
        return (), target

    def lifted(self, expr: Expr) -> tuple[tuple[Stmt, ...], Expr]:
        """What is to be run first, and what is left of an expression."""
        if not any(isinstance(part, EXPRESSIONS) and self.is_lifted(part) for part in walk(expr)):  # type: ignore[arg-type]
            return (), expr
        before: list[Stmt] = []
        found = self.sure(expr, before)
        return tuple(before), found

    def sure(self, expr: Expr, before: list[Stmt]) -> Expr:
        """An expression that is evaluated, innermost parts first."""
        match expr:
            case Logic(_, operands):
                rest = map(self.unsure, operands[1:])
                return replace(expr, operands=(self.sure(operands[0], before), *rest))
            case Choose(test, then, orelse):
                return replace(expr, test=self.sure(test, before), then=self.unsure(then), orelse=self.unsure(orelse))
            case Compare(_, operands) if len(operands) > 2:
                first = [self.sure(one, before) for one in operands[:2]]
                return replace(expr, operands=(*first, *map(self.unsure, operands[2:])))
        names = [one.name for one in fields(expr) if one.name not in ("span", "base")]
        changed = replace(expr, **{name: self.part(getattr(expr, name), before) for name in names})
        return self.lift(changed, before) if self.is_lifted(changed) else changed

    def part(self, value: Any, before: list[Stmt]) -> Any:
        if isinstance(value, EXPRESSIONS):
            found: Any = value
            return self.sure(found, before)
        return tuple(self.part(item, before) for item in value) if isinstance(value, tuple) else value

    def unsure(self, expr: Expr) -> Expr:
        """An expression that may not be evaluated."""
        return rewrite(expr, lambda part: self.instead(part) if self.is_lifted(part) else part)
