"""Loops of which iterations may run that would not, as an earlier one ends the loop.

That does no harm where they have no effect and cannot fail, which takes

- no store to an array, no call but of functions whose results are all that they do, no loop without a bound: what else
  they do is done to scalars, which tiles have of their own (`orion.dependence.early_exits`);
- no division of Python's numbers by what may be 0, no integer to a negative power, no range whose step may be 0;
- subscripts that lie in their arrays in all iterations, as conditions on sizes say (`apply.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from orion.analysis.one_loop import AnalysedLoop, AsWritten
from orion.dependence.choices import can_tell_order
from orion.dependence.guarded import may_fail
from orion.ir.assigned import assigned_names, holds_break, own_level
from orion.ir.constants import constant_value
from orion.ir.nodes import (
    Assign,
    Break,
    Call,
    Continue,
    Expr,
    For,
    If,
    Pass,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    every,
    holds,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.program import LoopNest
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.functions import FUNCTIONS, Form, is_elementwise

PLAIN = ("abs", "bool", "float", "int", "max", "min", "round")
"""Functions of Python's own whose results are all that they do, and which have one for any number."""

OF_SCALARS = (Form.CONVERSION, Form.MATH, Form.KEYED)
"""The same for functions by what they are compiled as."""


def find(loop: AnalysedLoop, typing: Typing) -> frozenset[Span]:
    """The places of the `break`s of a loop, if iterations after the first that comes to one may run."""
    nest = loop.nest
    if not isinstance(loop.form, AsWritten) or not nest.ordered or len(nest.ranges) != 1 or not can_tell_order(nest):
        return frozenset()
    if not holds_break(nest.body) or not is_harmless(nest, typing):
        return frozenset()
    return frozenset(one.span for one in own_level(nest.body) if isinstance(one, Break))


def is_harmless(nest: LoopNest, typing: Typing) -> bool:
    """Whether iterations do nothing but give scalars values, and nothing in them can fail but a subscript."""
    variables = {loop.space.var for loop in every(For, *nest.body) if isinstance(loop.space, Range)}
    changing = assigned_names(nest.body) - variables
    return all(_is_plain(one, changing) for one in _statements(nest.body)) and all(
        _is_safe(part, typing) for one in nest.body for part in _parts(one)
    )


def _statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for statement in body:
        yield statement
        match statement:
            case If(_, then, orelse):
                yield from (*_statements(then), *_statements(orelse))
            case For(_, inner):
                yield from _statements(inner)
            case _:
                pass


def _is_plain(statement: Stmt, changing: Set[str]) -> bool:
    """Whether a statement gives scalars values, or says which iterations and statements are run. What the bounds of a
    loop are made of is not read from arrays, nor is it `changing` but as the variable of a loop: they have a limit."""
    match statement:
        case Assign(Tuple(targets)):
            return all(isinstance(target, Var) for target in targets)
        case Assign(target) | Update(target):
            return isinstance(target, Var)
        case For(Range(_, start, stop, step)):
            return (
                bool(constant_value(step))
                and not holds(Subscript, start, stop)
                and changing.isdisjoint(names_in(start) | names_in(stop))
            )
        case If() | Break() | Continue() | Pass():
            return True
        case _:
            return False


def _parts(statement: Stmt) -> Iterator[Expr]:
    """The expressions in a statement that have values: not the arrays that have subscripts."""
    bases = {id(one.base) for one in every(Subscript, statement)}
    yield from (node for node in walk(statement) if isinstance(node, Expr) and id(node) not in bases)


def _is_safe(part: Expr, typing: Typing) -> bool:
    """Whether an expression is a scalar that is evaluated without an error and has no effect."""
    match part:
        case Tuple():
            return True
        case Slice():
            return False
        case Call(function, _, _, keywords):
            row = FUNCTIONS.get(function)
            is_known = function in PLAIN or is_elementwise(function) or (row is not None and row.form in OF_SCALARS)
            return is_known and not keywords and not typing.of(part).rank and not may_fail(part, typing)
        case _:
            return not typing.of(part).rank and not may_fail(part, typing)
