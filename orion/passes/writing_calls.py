"""Calls of helpers that write arrays, inside an expression or a test, as statements of their own before it.

    a, b = find(parent, a), find(parent, b)         find_1 = find(parent, a)
                                                    find_2 = find(parent, b)
                                                    a, b = find_1, find_2

That is right where nothing that is evaluated before the call reads an array: the call might have changed it. Others
stay where they are, and are refused when a kernel is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
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
    Var,
    While,
    every,
)  # fmt: skip
from orion.ir.rewriting import EXPRESSIONS
from orion.ir.types import ScalarType, Types
from orion.passes.writes import Ranks, written_positions


def with_calls_first(function: Function, types: Types) -> Function:
    """The function with calls that write arrays as statements, where that is right."""
    if not function.helpers:
        return function
    ranks = {name: 0 if isinstance(kind, ScalarType) else kind.ndim for name, kind in types.items()}
    caller = _Caller(function, ranks, {*function.params, *assigned_names(function.body)})
    if not any(map(caller.writes, every(Call, *function.body))):
        return function
    return replace(function, body=caller.block(function.body))


@dataclass(slots=True)
class _Caller:
    """`has_read`: what was evaluated of the statement so far reads arrays."""

    function: Function
    ranks: Ranks
    taken: set[str]
    before: list[Stmt] = field(default_factory=list)
    has_read: bool = False

    def writes(self, call: Call) -> bool:
        return call.function.startswith("helper:") and bool(written_positions(call, self.function, self.ranks))

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for statement in body for new in self.statement(statement))

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        self.before, self.has_read = [], isinstance(statement, Update) and isinstance(statement.target, Subscript)
        found: Any = statement
        match statement:
            case Assign(_, Call() as call) | Evaluate(Call() as call) if self.writes(call):
                found = replace(statement, value=self.parts(call))
            case Assign(_, value) | Update(_, _, value) | Evaluate(value):
                found = replace(statement, value=self.sure(value))
            case Return(value) if value is not None:
                found = replace(statement, value=self.sure(value))
            case If(test):
                found = replace(statement, test=self.sure(test))
            case While(test):
                return self.loop(statement, self.sure(test))
            case For(Range(_, start, stop, step) as space):
                start, stop, step = self.sure(start), self.sure(stop), self.sure(step)
                found = replace(statement, space=replace(space, start=start, stop=stop, step=step))
        before = tuple(self.before)
        if isinstance(found, For):
            found = replace(found, body=self.block(found.body))
        elif isinstance(found, If):
            found = replace(found, body=self.block(found.body), orelse=self.block(found.orelse))
        return (*before, found)

    def loop(self, loop: While, test: Expr) -> tuple[Stmt, ...]:
        """A `while`; its test is evaluated in each round."""
        before, span = tuple(self.before), loop.span
        if not before:
            return (replace(loop, body=self.block(loop.body)),)
        leave = If(Unary("not", test, span), (Break(span),), (), span)
        return (While(Const(True, span), (*before, leave, *self.block(loop.body)), span),)

    def sure(self, expr: Expr) -> Expr:
        """An expression that is evaluated, in Python's order."""
        match expr:
            case Logic(_, (first, *rest)):
                found: Expr = replace(expr, operands=(self.sure(first), *rest))
                self.has_read = True
            case Choose(test):
                found, self.has_read = replace(expr, test=self.sure(test)), True
            case Compare(_, operands) if len(operands) > 2:
                first_two = tuple(map(self.sure, operands[:2]))
                found, self.has_read = replace(expr, operands=(*first_two, *operands[2:])), True
            case Call() if self.writes(expr):
                return self.called(expr)
            case Subscript():
                found = self.parts(expr)
                self.has_read = True
            case _:
                found = self.parts(expr)
                self.has_read = self.has_read or isinstance(expr, Call)
        return found

    def called(self, call: Call) -> Expr:
        """A name for what a call returns, which is made before; the call itself where it must stay."""
        had_read = self.has_read
        call = self.parts(call)
        if had_read:
            return call
        self.has_read = False
        name = Var(self.fresh(call.function.removeprefix("helper:")), call.span)
        self.before.append(Assign(name, call, call.span))
        return name

    def parts(self, expr: Any) -> Any:
        names = [one.name for one in fields(expr) if one.name not in ("span", "base")]
        return replace(expr, **{name: self.part(getattr(expr, name)) for name in names})

    def part(self, value: Any) -> Any:
        if isinstance(value, EXPRESSIONS):
            found: Any = value
            return self.sure(found)
        return tuple(self.part(item) for item in value) if isinstance(value, tuple) else value

    def fresh(self, name: str) -> str:
        number = 1
        while f"{name}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{name}_{number}")
        return f"{name}_{number}"
