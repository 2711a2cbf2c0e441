"""Comparisons of sums with integer factors, read from isl's notation as Python would read it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from orion.dataclass import dataclass
from orion.sets.names import RESERVED

EQUALS = re.compile(r"(?<![<>!])=")


class NotLinearError(Exception):
    """An expression is no sum of names with integer factors."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of names with integer `factors` that is 0 (`is_equality`), or at least 0. The name "" stands for 1."""

    factors: tuple[tuple[str, int], ...]
    is_equality: bool

    @property
    def is_sure(self) -> bool:
        """Whether it holds whatever the names are."""
        match self.factors:
            case ():
                return True
            case (("", number),):
                return number > 0 and not self.is_equality
            case _:
                return False


@lru_cache(maxsize=4096)
def comparisons(text: str) -> tuple[Linear, ...] | None:
    """The comparisons in a chain such as `0 <= i < n`; None where it is anything else, or compares no sums.

    >>> comparisons("0 <= i < 2 * n")
    (Linear(factors=(('i', 1),), is_equality=False), Linear(factors=(('', -1), ('n', 2), ('i', -1)), is_equality=False))
    >>> comparisons("i = (-1 + n)"), comparisons("i mod 2 = 0"), comparisons("i < 1 and n > 2")
    ((Linear(factors=(('i', 1), ('', 1), ('n', -1)), is_equality=True),), None, None)
    """
    try:
        node = ast.parse(EQUALS.sub("==", text.strip()), mode="eval").body
        return tuple(_compared(node)) if isinstance(node, ast.Compare) else None
    except (SyntaxError, NotLinearError):
        return None


def is_sure(text: str) -> bool:
    """Whether a chain of comparisons holds whatever its names are.

    >>> is_sure("0 <= n - n < 2"), is_sure("n = m")
    (True, False)
    """
    found = comparisons(text)
    return found is not None and all(one.is_sure for one in found)


def _compared(node: ast.Compare) -> Iterator[Linear]:
    sides = [_sum(side) for side in (node.left, *node.comparators)]
    for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
        match operator:
            case ast.LtE():
                yield _linear({}, right, left)
            case ast.Lt():
                yield _linear({"": -1}, right, left)
            case ast.GtE():
                yield _linear({}, left, right)
            case ast.Gt():
                yield _linear({"": -1}, left, right)
            case ast.Eq():
                yield _linear({}, left, right, is_equality=True)
            case _:
                raise NotLinearError


def _linear(start: dict[str, int], more: dict[str, int], less: dict[str, int], is_equality: bool = False) -> Linear:
    found = _added(_added(start, more, 1), less, -1)
    return Linear(tuple((name, factor) for name, factor in found.items() if factor), is_equality)


def _added(left: dict[str, int], right: dict[str, int], times: int) -> dict[str, int]:
    found = dict(left)
    for name, factor in right.items():
        found[name] = found.get(name, 0) + times * factor
    return found


def _sum(node: ast.expr) -> dict[str, int]:
    """The factors of an expression."""
    match node:
        case ast.Constant(int(value)):
            return {"": value}
        case ast.Name(name) if name not in RESERVED:
            return {name: 1}
        case ast.UnaryOp(ast.USub(), operand):
            return _added({}, _sum(operand), -1)
        case ast.BinOp(left, ast.Add(), right):
            return _added(_sum(left), _sum(right), 1)
        case ast.BinOp(left, ast.Sub(), right):
            return _added(_sum(left), _sum(right), -1)
        case ast.BinOp(left, ast.Mult(), right):
            one, other = _sum(left), _sum(right)
            constant, terms = (one, other) if one.keys() <= {""} else (other, one)
            if constant.keys() <= {""}:
                return _added({}, terms, constant.get("", 0))
    raise NotLinearError
