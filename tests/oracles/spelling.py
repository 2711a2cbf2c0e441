"""The same integers, written in other ways: what users write is not what a generator thinks of first.

Subscripts, bounds of slices, bounds and steps of `range`s are rewritten into equal expressions: minus signs in front,
factors on either side, constants first, parts that cancel.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

Choose = Callable[[Sequence[Any]], Any]
"""Takes one of several options."""

MOST = 3
"""How often one expression is rewritten at most."""


def respelled(source: str, choose: Choose, one_in: int) -> str:
    """The function with one in so many of its integer expressions written in another way."""
    tree = ast.parse(source)
    _Speller(choose, one_in).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class IntegerPlaces(ast.NodeTransformer, ABC):
    """Calls `changed` for every integer expression that stands as a subscript, a bound of a slice, or one of a loop."""

    @abstractmethod
    def changed(self, expression: ast.expr) -> ast.expr:
        """The expression to stand there."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Attribute):  # `z.shape[0]`
            return node
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = [self.part(one) for one in node.slice.elts]
        else:
            node.slice = self.part(node.slice)
        return node

    def part(self, expression: ast.expr) -> ast.expr:
        if not isinstance(expression, ast.Slice):
            return self.changed(expression)
        if expression.lower is not None:
            expression.lower = self.changed(expression.lower)
        if expression.upper is not None:
            expression.upper = self.changed(expression.upper)
        return expression

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call):
            node.iter.args[:2] = [self.changed(one) for one in node.iter.args[:2]]  # a step stays as it is
        return node


class _Speller(IntegerPlaces):
    def __init__(self, choose: Choose, one_in: int) -> None:
        self.choose, self.one_in = choose, one_in

    def visit_For(self, node: ast.For) -> ast.For:
        super().visit_For(node)
        if isinstance(node.iter, ast.Call) and not self.choose(range(self.one_in)):
            first, *rest = node.iter.args
            start, stop, step = (number(0), first, number(1)) if not rest else (first, rest[0], [*rest, number(1)][1])
            node.iter.args = [start, stop, self.choose(SPELLINGS)(step)]
        return node

    def changed(self, expression: ast.expr) -> ast.expr:
        for _ in range(MOST):
            if self.choose(range(self.one_in)):
                return expression
            expression = self.choose(SPELLINGS)(expression)
        return expression


def number(value: int) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def plus(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Add(), right)


def minus(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Sub(), right)


def times(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Mult(), right)


def negative(value: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), value)


def turned(value: ast.expr) -> ast.expr:
    """Operands the other way round: `i + 1` → `1 + i`, `2 * i` → `i * 2`, `i - 1` → `-1 + i`, `5 - i` → `-i + 5`."""
    match value:
        case ast.BinOp(left, ast.Add() | ast.Mult() as op, right):
            return ast.BinOp(right, op, left)
        case ast.BinOp(left, ast.Sub(), ast.Constant(int(k))):
            return plus(number(-k), left)
        case ast.BinOp(left, ast.Sub(), right):
            return plus(negative(right), left)
        case _:
            return plus(value, number(0))


def distributed(value: ast.expr) -> ast.expr:
    """`-1 * -e`, its minus sign inside where there is a factor or a sum: `2 * i + 1` → `-1 * (-2 * i - 1)`."""
    match value:
        case ast.BinOp(ast.Constant(int(k)), ast.Mult(), right):
            return negative(times(number(-k), right))
        case ast.BinOp(left, ast.Add(), right):
            return times(number(-1), minus(negative(left), right))
        case _:
            return times(negative(value), number(-1))


SPELLINGS: tuple[Callable[[ast.expr], ast.expr], ...] = (
    turned, turned, distributed,
    lambda e: negative(negative(e)),
    lambda e: plus(times(number(-2), e), times(e, number(3))),
    lambda e: minus(times(number(2), e), e),
    lambda e: plus(negative(number(3)), plus(e, number(3))),
    lambda e: minus(number(7), minus(number(7), e)),
    lambda e: ast.BinOp(times(number(-6), e), ast.FloorDiv(), number(-6)),
    lambda e: ast.UnaryOp(ast.UAdd(), e),
)  # fmt: skip
"""Ways to write an integer: each gives an expression with the same value."""
