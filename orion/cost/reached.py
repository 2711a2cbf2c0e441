"""What a function may come to evaluate at one call: branches that its sizes rule out, and loops without trips, are left
out, as are statements behind a `return` or `break` that is sure to be reached."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from orion.cost.extents import evaluated, parameter_values
from orion.cost.sizes import Sizes
from orion.dataclass import dataclass
from orion.ir.assigned import assigned_places
from orion.ir.function import Function
from orion.ir.nodes import (
    RAISE,
    Break,
    Call,
    Choose,
    Compare,
    Const,
    Continue,
    Expr,
    For,
    If,
    Logic,
    Node,
    Range,
    Return,
    Stmt,
    Unary,
    While,
    children,
    every,
    holds,
)

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def reached(function: Function, sizes: Sizes) -> Iterator[Node]:
    """The statements and expressions of a function that may be evaluated at these sizes, each once."""
    yield from _call(function, sizes).block(function.body)


def zero_steps(function: Function, sizes: Sizes) -> Iterator[Expr]:
    """Yield the steps that are 0 of the ranges that a call at these sizes is sure to come to."""
    yield from _call(function, sizes).zero_steps(function.body)


def _call(function: Function, sizes: Sizes) -> _Call:
    assigned = assigned_places(function.body)
    integers = {name: value for name, value in sizes.integers.items() if name not in assigned}
    return _Call(parameter_values(sizes.shapes, {**sizes.named, **integers}))


@dataclass(frozen=True)
class _Call:
    """`values` are those of the symbols that are the same wherever they stand."""

    values: Mapping[str, int]

    def block(self, body: Iterable[Stmt]) -> Iterator[Node]:
        for statement in body:
            yield from self.statement(statement)
            if self.leaves(statement):
                return

    def statement(self, statement: Stmt) -> Iterator[Node]:
        match statement:
            case If(test):
                yield from self.node(test)
                for body in self.sides(statement):
                    yield from self.block(body)
            case While(test, body):
                yield from self.node(test)
                if self.truth(test) is not False:
                    yield from self.block(body)
            case For(space, body):
                yield from self.node(space)
                if not self.is_empty(space):
                    yield from self.block(body)
            case _:
                yield from self.node(statement)

    def sides(self, branch: If) -> list[tuple[Stmt, ...]]:
        """The sides of an `if` that may be taken."""
        truth = self.truth(branch.test)
        return [body for wanted, body in ((True, branch.body), (False, branch.orelse)) if truth in (None, wanted)]

    def leaves(self, statement: Stmt) -> bool:
        """Whether nothing behind a statement is reached."""
        if isinstance(statement, If):
            return all(any(map(self.leaves, body)) for body in self.sides(statement))
        return isinstance(statement, Break | Continue | Return)

    def node(self, node: Node) -> Iterator[Node]:
        yield node
        match node:
            case Choose(test, then, orelse):
                truth = self.truth(test)
                sides = [part for wanted, part in ((True, then), (False, orelse)) if truth in (None, wanted)]
                parts: Iterable[Node] = (test, *sides)
            case Logic(op, operands):
                ends = (self.truth(operand) is (op == "or") for operand in operands)
                parts = operands[: next((at + 1 for at, end in enumerate(ends) if end), None)]
            case _:
                parts = children(node)
        for part in parts:
            yield from self.node(part)

    def zero_steps(self, body: Iterable[Stmt]) -> Iterator[Expr]:
        for statement in body:
            match statement:
                case For(Range(_, start, stop, step), inner):
                    bounds = [evaluated(bound, self.values) for bound in (start, stop, step)]
                    if bounds[2] == 0:
                        yield step
                    elif None not in bounds and range(*bounds):  # type: ignore[arg-type]
                        yield from self.zero_steps(inner)
                case If() if len(sides := self.sides(statement)) == 1:
                    yield from self.zero_steps(sides[0])
                case _:
                    pass
            if _may_end(statement):
                return

    def is_empty(self, space: Node) -> bool:
        if not isinstance(space, Range):
            return False
        start, stop, step = (evaluated(bound, self.values) for bound in (space.start, space.stop, space.step))
        return None not in (start, stop, step) and step != 0 and not range(start, stop, step)  # type: ignore[arg-type]

    def truth(self, test: Expr) -> bool | None:
        """Whether a test holds; None where sizes do not say."""
        match test:
            case Const(bool(value)):
                return value
            case Unary("not", operand):
                truth = self.truth(operand)
                return None if truth is None else not truth
            case Compare(ops, operands):
                return _all([self.compared(op, *pair) for op, pair in zip(ops, pairwise(operands), strict=True)])
            case Logic("and", operands):
                return _all([self.truth(operand) for operand in operands])
            case Logic("or", operands):
                return _any([self.truth(operand) for operand in operands])
            case _:
                return None

    def compared(self, op: str, left: Expr, right: Expr) -> bool | None:
        one, other = evaluated(left, self.values), evaluated(right, self.values)
        return None if one is None or other is None or op not in COMPARISONS else COMPARISONS[op](one, other)


def _may_end(statement: Stmt) -> bool:
    """Whether what stands behind a statement may not be reached."""
    raises = any(call.function.startswith(RAISE) for call in every(Call, statement))
    return raises or holds((Break, Continue, Return), statement)


def _all(truths: Iterable[bool | None]) -> bool | None:
    found = set(truths)
    return False if False in found else None if None in found else True


def _any(truths: Iterable[bool | None]) -> bool | None:
    found = set(truths)
    return True if True in found else None if None in found else False
