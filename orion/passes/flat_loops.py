"""Loops over the elements of arrays that are flattened, as nested loops.

for v in A.ravel():             for v_0 in range(A.shape[0]):
    total += v                      for v_1 in range(A.shape[1]):
                                        v = A[v_0, v_1]
                                        total += v

Both go through the last axis first (NumPy, `ravel` with order "C"). What is flattened is the array, or a copy of it: it
is the same where the loop does not write the array. A `break` would end one of several loops, so that such loops stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import pairwise

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
from orion.ir.rewriting import rewrite
from orion.passes.local_arrays import fresh
from orion.passes.view_names import written_names
from orion.typing.expression_types import Typing

FLATTENED = (".ravel", "np.ravel", ".flatten")


def with_nested_loops(function: Function, typing: Typing) -> Function:
    """The function with such loops over arrays with a name as loops over each axis."""
    finder = _Finder(function, typing)
    flattened = {
        loop.index: array
        for body in _blocks(function.body)
        for before, loop in pairwise(body)
        if isinstance(loop, For) and (array := finder.flattened(before, loop)) is not None
    }
    if not flattened:
        return function
    writer = _Writer(typing, flattened, {*typing.names, *function.params}, new_numbers(function.body))
    return replace(function, body=writer.block(function.body))


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


@dataclass(frozen=True, slots=True)
class _Finder:
    function: Function
    typing: Typing

    def flattened(self, before: Stmt, loop: For) -> Var | None:
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
        is_alone = count_names(self.function.body, items) == own + 2  # beside its name and its length
        written: Set[str] = written_names(replace(self.function, body=body), self.typing)
        is_kept = {array.name, items, index}.isdisjoint(written | assigned_names(body))
        is_counted = constant_value(start) == 0 and constant_value(step) == 1
        leaves = any(isinstance(one, Break) for one in own_level(body)) or holds(Return, *body)
        is_known = is_alone and is_kept and is_counted and not leaves
        return array if is_known and self.typing.of(array).rank else None


@dataclass(slots=True)
class _Writer:
    """`flattened` are the arrays whose elements loops go through, by the numbers of these."""

    typing: Typing
    flattened: Mapping[int, Var]
    taken: set[str]
    numbers: Iterator[int]

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for statement in body:
            match statement:
                case For(_, inner) if statement.index in self.flattened:
                    loop = replace(statement, body=self.block(inner))
                    done.append(self.nested(loop, self.flattened[statement.index], done.pop()))
                case For(_, inner) | While(_, inner):
                    done.append(replace(statement, body=self.block(inner)))
                case If(_, then, orelse):
                    done.append(replace(statement, body=self.block(then), orelse=self.block(orelse)))
                case _:
                    done.append(statement)
        return tuple(done)

    def nested(self, loop: For, array: Var, before: Stmt) -> For:
        assert isinstance(loop.space, Range)
        assert isinstance(before, Assign)
        assert isinstance(before.target, Var)
        items, index, span, rank = before.target.name, loop.space.var, loop.span, self.typing.of(array).rank
        names = [index] if rank == 1 else [fresh(f"{index}_{axis}", self.taken) for axis in range(rank)]
        places = tuple(Var(name, span) for name in names)
        item = Subscript(array, places, span)

        def change(part: Expr) -> Expr:
            return replace(item, span=part.span) if _is_item(part, items, index) else part

        body = tuple(rewrite(statement, change) for statement in loop.body)
        if rank > 1 and count_names(body, index):
            number: Expr = places[0]
            for axis in range(1, rank):
                number = Binary("+", Binary("*", number, Dim(array.name, axis, span), span), places[axis], span)
            body = (Assign(Var(index, span), number, span), *body)
        for axis in reversed(range(rank)):
            space = Range(names[axis], Const(0, span), Dim(array.name, axis, span), Const(1, span), span)
            body = (For(space, body, next(self.numbers) if axis else loop.index, span),)
        (found,) = body
        assert isinstance(found, For)
        return found


def _is_item(part: object, items: str, index: str) -> bool:
    """Whether it is the element at the place that a loop has come to."""
    match part:
        case Subscript(Var(name), (Var(place),)):
            return name == items and place == index
        case _:
            return False
