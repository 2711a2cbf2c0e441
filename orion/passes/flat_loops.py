"""Loops over the elements of arrays that are flattened, as nested loops.

for v in A.ravel():             for v_0 in range(A.shape[0]):
    total += v                      for v_1 in range(A.shape[1]):
                                        v = A[v_0, v_1]
                                        total += v

Both go through the last axis first (NumPy, `ravel` with order "C"). What is flattened is the array, or a copy of it: it
is the same where the loop does not write the array. A `break` would end one of several loops, so that such loops stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_names, own_level
from orion.ir.constants import constant_value
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Break,
    Call,
    Const,
    Dim,
    Expr,
    For,
    If,
    Range,
    Return,
    Stmt,
    Subscript,
    Var,
    While,
    count_names,
    every,
    holds,
)  # fmt: skip
from orion.ir.program import new_numbers
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite, with_new
from orion.passes.view_names import written_names
from orion.typing.expression_types import Typing

FLATTENED = (".ravel", "np.ravel", ".flatten")


@dataclass(frozen=True, slots=True)
class Flat:
    """A loop over the elements of `array`, which have the name `items` in a statement before. `is_named`: the number of
    an element is used, too."""

    array: Var
    items: str
    is_named: bool


def with_nested_loops(function: Function, typing: Typing) -> Function:
    """The function with such loops over arrays with a name as loops over each axis."""
    pairs = (pair for body in _blocks(function.body) for pair in pairwise(body))
    found = {loop.index: _flat(before, loop, function, typing) for before, loop in pairs if isinstance(loop, For)}
    flat = {index: one for index, one in found.items() if one is not None}
    items = {one.items for one in flat.values()}
    taken, numbers = {*typing.names, *function.params}, new_numbers(function.body)

    def change(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name)) if name in items:
                return ()
            case For(_, _, index) if index in flat:
                return (_nested(statement, flat[index], typing, taken, numbers),)
            case _:
                return (statement,)

    return with_new(function, body=expand(function.body, change)) if flat else function


def _blocks(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    yield body
    for statement in body:
        match statement:
            case For(_, inner) | While(_, inner):
                yield from _blocks(inner)
            case If(_, then, orelse):
                yield from (*_blocks(then), *_blocks(orelse))
            case _:
                pass


def _flat(before: Stmt, loop: For, function: Function, typing: Typing) -> Flat | None:
    """The array whose elements a loop goes through, by the statement before it."""
    match before, loop:
        case (
            Assign(Var(items), Call(name, (Var() as array,), _, ())),
            For(Range(index, start, Call("len", (Var(counted),)), step), body),
        ) if name in FLATTENED and counted == items:
            pass
        case _:
            return None
    own = sum(_is_item(part, items, index) for part in every(Subscript, *body))
    is_alone = count_names(function.body, items) == own + 2  # beside its name and its length
    written = written_names(replace(function, body=body), typing)
    is_kept = {array.name, items, index}.isdisjoint(written | assigned_names(body))
    is_counted = constant_value(start) == 0 and constant_value(step) == 1
    leaves = any(isinstance(one, Break) for one in own_level(body)) or holds(Return, *body)
    is_known = is_alone and is_kept and is_counted and not leaves and typing.of(array).rank
    return Flat(array, items, count_names(function.body, index) > own) if is_known else None


def _nested(loop: For, flat: Flat, typing: Typing, taken: set[str], numbers: Iterator[int]) -> For:
    assert isinstance(loop.space, Range)
    index, array, span, rank = loop.space.var, flat.array, loop.span, typing.of(flat.array).rank
    names = [index] if rank == 1 else [fresh(f"{index}_{axis}", taken) for axis in range(rank)]
    places = tuple(Var(name, span) for name in names)

    def change(part: Expr) -> Expr:
        return Subscript(array, places, part.span) if _is_item(part, flat.items, index) else part

    body = tuple(rewrite(statement, change) for statement in loop.body)
    if rank > 1 and flat.is_named:
        number: Expr = places[0]
        for axis in range(1, rank):
            number = Binary("+", Binary("*", number, Dim(array.name, axis, span), span), places[axis], span)
        body = (Assign(Var(index, span), number, span), *body)
    for axis in reversed(range(1, rank)):
        body = (For(_range(names[axis], array, axis), body, next(numbers), span),)
    return replace(loop, space=_range(names[0], array, 0), body=body)


def _range(name: str, array: Var, axis: int) -> Range:
    span = array.span
    return Range(name, Const(0, span), Dim(array.name, axis, span), Const(1, span), span)


def _is_item(part: object, items: str, index: str) -> bool:
    """Whether it is the element at the place that a loop has come to."""
    match part:
        case Subscript(Var(name), (Var(place),)):
            return name == items and place == index
        case _:
            return False
