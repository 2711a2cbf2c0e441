"""Statements over slices and whole arrays that may be taken for loops: `A[1:-1] = 0.5 * (B[:-2] + B[2:])`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np

from orion.analysis.one_loop import AnalysedLoop, AsWritten, OutsideBands, is_single, may_be_shared
from orion.dataclass import dataclass
from orion.ir.constants import constant_value
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Call,
    Compare,
    Const,
    Expr,
    For,
    If,
    Range,
    Slice,
    Stmt,
    Subscript,
    Unary,
    Update,
    Var,
    While,
    count_names,
    every,
    holds,
    names_in,
)  # fmt: skip
from orion.ir.program import SYNTHETIC
from orion.ir.spans import NOWHERE, without_spans
from orion.ir.sums import difference
from orion.passes.elementwise import is_plain
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.functions import Cost, cost_of, is_elementwise

EVERY = Slice(None, None, None, NOWHERE)


@dataclass(frozen=True, slots=True)
class Placed:
    """A statement and the loops of ranges around it, outermost first; `is_sure`: all that is around it are loops."""

    statement: Stmt
    around: tuple[For, ...]


def find(loop: AnalysedLoop, typing: Typing) -> frozenset[Span]:
    """The places of the statements over slices in a loop that is serial, or that stands for statements that run once.

    What an inner loop writes by its own variable (`Q[:, k] -= …`) is left to it: it may be shared out as it is.
    """
    if not isinstance(loop.form, AsWritten | OutsideBands) or loop.nest.elements is not None:
        return frozenset()
    if may_be_shared(loop) and not is_single(loop.nest):
        return frozenset()
    outer = loop.nest.loops[0]
    if holds(Bind, *outer.body):
        return frozenset()
    found = (one for one in placed((outer,)) if is_over_slices(one.statement, typing) and not _is_shared(one, outer))
    return frozenset(one.statement.span for one in found)


def writes_rows(one: Placed, typing: Typing) -> bool:
    """Whether a statement writes one row in each iteration of a loop around it: another one in each."""
    statement = one.statement
    if not isinstance(statement, Assign | Update) or not isinstance(statement.target, Subscript):
        return False
    variables = {loop.space.var for loop in one.around if isinstance(loop.space, Range)}
    return typing.of(statement.target).rank == 1 and not variables.isdisjoint(names_in(statement.target))


def is_slow(statement: Stmt) -> bool:
    """Whether an element takes so long that memory is not waited for: rows are worth columns of their own only then."""
    powers = any(one.op == "**" for one in every(Binary, statement))
    return powers or any(cost_of(one.function) is Cost.SLOW for one in every(Call, statement))


def _rows(one: Placed, typing: Typing) -> tuple[str, ...]:
    """The variables of loops by which a statement writes another row in each of their iterations."""
    assert isinstance(one.statement, Assign | Update)
    target = one.statement.target
    if not isinstance(target, Subscript) or typing.of(target).rank > 1:
        return ()
    variables = (loop.space.var for loop in one.around if isinstance(loop.space, Range))
    return tuple(sorted({*variables} & names_in(target)))


def _is_shared(one: Placed, outer: For) -> bool:
    """Whether iterations of the loop right around a statement write places of their own."""
    inner = one.around[-1] if one.around else outer
    if inner is outer or not isinstance(inner.space, Range):
        return False
    assert isinstance(one.statement, Assign | Update)
    return inner.space.var in names_in(one.statement.target)


def placed(body: tuple[Stmt, ...], around: tuple[For, ...] = ()) -> Iterator[Placed]:
    """All simple statements, with the loops of the source around them."""
    for statement in body:
        match statement:
            case For(_, inside):
                yield from placed(inside, around if statement.index == SYNTHETIC else (*around, statement))
            case While(_, inside):
                yield from placed(inside, around)
            case If(_, inside, orelse):
                yield from placed((*inside, *orelse), around)
            case _:
                yield Placed(statement, around)


def is_over_slices(statement: Stmt, typing: Typing) -> bool:
    """Whether a statement gives several elements of an array values that are computed element by element; a new array
    counts where it is made of slices."""
    match statement:
        case Assign(Var() as target, value):
            return bool(typing.of(target).rank) and holds(Slice, value) and _is_elementwise(value, typing)
        case Assign(Subscript() as target, value):
            return _is_part(target, typing) and _is_elementwise(value, typing) and _keeps(target, value, typing)
        case Update(Subscript() as target, _, value):
            return _is_part(target, typing) and _is_elementwise(value, typing) and _keeps(target, value, typing)
        case _:
            return False


def _is_part(target: Subscript, typing: Typing) -> bool:
    return bool(typing.of(target).rank) and has_plain_slices(target, typing)


def has_plain_slices(part: Subscript, typing: Typing) -> bool:
    """Whether the subscripts are numbers and slices in steps of 1."""
    for one in part.index:
        if isinstance(one, Slice):
            if one.step is not None and constant_value(one.step) != 1:
                return False
            if holds(Subscript, *(bound for bound in (one.lower, one.upper) if bound is not None)):
                return False
        elif typing.of(one).rank or not is_plain(one):
            return False
    return True


def _is_elementwise(value: Expr, typing: Typing) -> bool:
    """Whether each element of a value is computed from one element of each array in it, and from scalars."""
    if not typing.of(value).rank:
        return True
    match value:
        case Var():
            return True
        case Subscript():
            return has_plain_slices(value, typing)
        case Call(".copy" | "np.copy", (array,)):
            return _is_elementwise(array, typing)
        case Call("np.outer", (left, right)):
            ranks = typing.of(left).rank, typing.of(right).rank
            return ranks == (1, 1) and _is_elementwise(left, typing) and _is_elementwise(right, typing)
        case Binary(op, left, right):
            return op != "@" and _is_elementwise(left, typing) and _is_elementwise(right, typing)
        case Unary(_, operand):
            return _is_elementwise(operand, typing)
        case Compare(_, operands):
            return all(_is_elementwise(one, typing) for one in operands)
        case Call(function, arguments):
            parts = (_is_elementwise(one, typing) for one in arguments)
            return is_elementwise(function) and not value.keywords and all(parts)
        case _:
            return False


def _keeps(target: Subscript, value: Expr, typing: Typing) -> bool:
    """Whether elements hold the values, whether these are stored one by one or all at once: nothing is cut off, as
    NumPy does it in other ways for arrays than for numbers."""
    to, given = typing.of(target).dtype, typing.of(value)
    if given.weak and isinstance(value, Const):
        return not to.startswith(("int", "uint")) or (isinstance(value.value, int) and 0 <= value.value < 128)
    return np.dtype(to).kind == np.dtype(given.dtype).kind == "f" or np.can_cast(given.dtype, to)


def meets_itself(statement: Assign | Update) -> bool:
    """Whether a value is made of elements that the statement writes at other places than that of the value: x → y for
    x ≠ y, where the element at x is computed from the one at y."""
    target = statement.target
    if not isinstance(target, Subscript):
        return False
    name = target.base.name
    parts = [part for part in every(Subscript, statement.value) if part.base.name == name]
    if count_names([statement.value], name) > sum(count_names([part], name) for part in parts):
        parts.append(Subscript(target.base, (), target.span))  # the array as a whole
    return any(not _is_beside(target, part) and not _is_apart(target, part) for part in parts)


def _is_beside(target: Subscript, part: Subscript) -> bool:
    """Whether two parts of an array go along the same places of the same axes, in whichever rows and columns: what is
    at one place of the one is written, if at all, with the same place of the other."""
    mine, its = without_spans(target).index, without_spans(part).index
    pairs = list(zip_longest(mine, its, fillvalue=EVERY))
    slices = [(one, other) for one, other in pairs if isinstance(one, Slice) or isinstance(other, Slice)]
    return all(one == other for one, other in slices)


def _is_apart(target: Subscript, part: Subscript) -> bool:
    """Whether two parts of an array lie in different places of an axis: so many apart, counted from the same end."""
    for one, other in zip(target.index, part.index, strict=False):
        if isinstance(one, Slice) or isinstance(other, Slice):
            continue
        ends = [value is not None and value < 0 for value in map(constant_value, (one, other))]
        if ends[0] == ends[1] and constant_value(difference(without_spans(one), without_spans(other))):
            return True
    return False
