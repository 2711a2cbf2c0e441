"""That sums may be kept in array elements: what `orion.rewrites.stored_sums` claims, read from the two texts.

    s = c                      C[f] = c
    …  s += v  …        →      …  C[f] += v  …
    C[f] = s

is the same to the last bit where all that the loop does with s and with C stands there, nothing needs s afterwards or
leaves the block in between, f has the same value throughout, and each v has the dtype of C, a float: then s has it too
from the first sum on, and c as Python's number takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orion.errors import PlanError
from orion.ir.assigned import assigned_names, leaves_loop
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Const,
    Expr,
    For,
    If,
    Return,
    Stmt,
    Subscript,
    Update,
    Var,
    count_names,
    every,
    holds,
    names_in,
)
from orion.ir.spans import without_spans
from orion.ir.types import ArrayType, Types
from orion.typing.expression_types import UntypedNameError
from orion.typing.infer import infer_types


def prove_stored(function: Function, source: For, other: For, types: Types, after: frozenset[str]) -> None:
    """PlanError where a loop is not another one with some of its sums kept in elements. `after` are names that may be
    read after it."""
    _Pair(function, source, types, after).blocks((source,), (other,))


class _Pair:
    def __init__(self, function: Function, loop: For, types: Types, after: frozenset[str]) -> None:
        self._function, self._loop, self._types, self._after = function, loop, types, after

    def blocks(self, mine: Sequence[Stmt], others: Sequence[Stmt]) -> None:
        """Compare two blocks, statement by statement; where the other has an element for a scalar, up to its store."""
        mine, at = [*mine], 0
        for other in others:
            if at == len(mine):
                raise _differs()
            match mine[at], other:
                case Assign(Var(name), Const() as start), Assign(Subscript() as element, first) if first == start:
                    mine = self.expanded(mine, at, name, element)
            self.statement(mine[at], other)
            at += 1
        if at != len(mine):
            raise _differs()

    def statement(self, mine: Stmt, other: Stmt) -> None:
        match mine, other:
            case For(space, body), For(other_space, inner) if _same(space, other_space):
                self.blocks(body, inner)
            case If(test, then, orelse), If(other_test, first, second) if _same(test, other_test):
                self.blocks(then, first)
                self.blocks(orelse, second)
            case _ if not _same(mine, other):
                raise _differs()

    def expanded(self, block: list[Stmt], at: int, name: str, element: Subscript) -> list[Stmt]:
        """A block with an element in place of the scalar that is given a value at a place, and without its store."""
        stores = (k for k, one in enumerate(block) if k > at and _is_store(one, name, element))
        last = next(stores, None)
        if last is None:
            raise _differs()
        own = block[at : last + 1]
        self.prove(own, name, element)
        kept = [_in_place(statement, name, element) for statement in own[:-1]]
        return [*block[:at], *kept, *block[last + 1 :]]

    def prove(self, own: Sequence[Stmt], name: str, element: Subscript) -> None:
        """What the docstring of this file says."""
        array, between = element.base.name, own[1:-1]
        updates = [one for one in every(Update, *between) if isinstance(one.target, Var) and one.target.name == name]
        mentions = sum(isinstance(node, Var) and node.name == name for node in every(Var, self._loop))
        fine = (
            name not in self._after
            and mentions == len(updates) + 2
            and count_names((self._loop,), array) == 1
            and names_in(*element.index).isdisjoint(assigned_names(between))
            and not holds(Subscript, *element.index)
            and not any(leaves_loop(one) for one in between)
            and not holds(Return, *between)
            and all(one.op in ("+", "-") and self.has_type(one.value, array) for one in updates)
        )
        if not fine:
            raise PlanError(f"`{name}` is not only the sum that is stored in an element of {array}")

    def has_type(self, value: Expr, array: str) -> bool:
        kind = self._types.get(array)
        if not isinstance(kind, ArrayType) or np.dtype(kind.dtype).kind != "f":
            return False
        try:
            found = infer_types(self._function, self._types).of(value)
        except UntypedNameError:
            return False
        return not found.weak and found.dtype == kind.dtype and not found.rank


def _differs() -> PlanError:
    return PlanError("what is moved is not what the loop does")


def _same(one: object, other: object) -> bool:
    return without_spans(one) == without_spans(other)  # type: ignore[type-var]


def _is_store(statement: Stmt, name: str, element: Subscript) -> bool:
    match statement:
        case Assign(Subscript() as target, Var(stored)):
            return stored == name and _same(target, element)
        case _:
            return False


def _in_place(node: Stmt, name: str, element: Subscript) -> Stmt:
    """A statement that assigns an element in place of a scalar."""
    match node:
        case Assign(Var(target)) | Update(Var(target)) if target == name:
            return replace(node, target=element)
        case For(_, body):
            return replace(node, body=tuple(_in_place(part, name, element) for part in body))
        case If(_, body, orelse):
            sides = (tuple(_in_place(part, name, element) for part in side) for side in (body, orelse))
            then, otherwise = sides
            return replace(node, body=then, orelse=otherwise)
        case _:
            return node
