"""Sums that are kept in a scalar and then stored, kept in the element that they are stored in.

    s = 0.0                                    C[i, j] = 0.0
    for k in range(n):                   →     for k in range(n):
        s += A[i, k] * B[k, j]                     C[i, j] += A[i, k] * B[k, j]
    C[i, j] = s

A scalar is one place for all iterations, and ties the loop over k to those around it; an element has a place for each,
and the loops can be interchanged (scalar expansion: Allen and Kennedy, *Optimizing Compilers for Modern Architectures*,
section 5.3). Every element ends with the value that it had, computed by the same operations in the same order, where

    the first statement and the last stand in one block and are run as often as each other (nothing between them leaves
    the block); those between only add to s, and the subscripts of C name nothing that they assign and read no array;
    nothing else of the nest, and nothing after it, mentions s, nor is it a loop variable; nothing else of the nest
    mentions C;
    s has the type of C: floats, and whatever is added is made of elements of arrays of the same dtype, at least one,
    and of Python's numbers.
"""

from __future__ import annotations

import numpy as np

from orion.dataclass import dataclass, replace
from orion.dependence.scalars import live_after
from orion.ir.assigned import assigned_by, assigned_places, own_level
from orion.ir.nodes import (
    Assign,
    Binary,
    Break,
    Const,
    Continue,
    Expr,
    For,
    If,
    Node,
    Return,
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
    walk,
)  # fmt: skip
from orion.ir.program import LoopNest, Program
from orion.ir.types import ArrayType, ScalarType, Types


def with_stored_sums(program: Program, number: int, types: Types) -> Program | None:
    """The program with the sums of a planned loop kept in elements; None where there are none."""
    nest = program.nests[number]
    finder = _Finder(nest, types, live_after(program, number))
    outer = nest.loops[0]
    changed = replace(outer, body=finder.block(outer.body))
    if changed == outer:
        return None
    loops = [changed]
    while len(loops) < len(nest.loops):
        (inner,) = loops[-1].body
        assert isinstance(inner, For)
        loops.append(inner)
    found = replace(nest, loops=tuple(loops), body=loops[-1].body)
    return replace(program, nests=(*program.nests[:number], found, *program.nests[number + 1 :]))


@dataclass(frozen=True)
class _Finder:
    nest: LoopNest
    types: Types
    live: frozenset[str]

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements with the sums among them replaced, those of inner blocks too."""
        statements = tuple(self.inner(statement) for statement in body)
        for last, statement in enumerate(statements):
            match statement:
                case Assign(Subscript() as element, Var(name)):
                    first = self.begin(statements[:last], name)
                    between = None if first is None else statements[first + 1 : last]
                    if first is not None and between is not None and self.is_sum(name, element, between):
                        kept = tuple(_stored(part, name, element) for part in statements[first:last])
                        return self.block((*statements[:first], *kept, *statements[last + 1 :]))
        return statements

    def inner(self, statement: Stmt) -> Stmt:
        match statement:
            case For(_, body):
                return replace(statement, body=self.block(body))
            case If(_, body, orelse):
                return replace(statement, body=self.block(body), orelse=self.block(orelse))
            case _:
                return statement

    def begin(self, statements: tuple[Stmt, ...], name: str) -> int | None:
        """Where the scalar gets its first value, a number."""
        for place, statement in enumerate(statements):
            match statement:
                case Assign(Var(target), Const(float() | int())) if target == name:
                    return place
        return None

    def is_sum(self, name: str, element: Subscript, between: tuple[Stmt, ...]) -> bool:
        """Whether all that is said above holds."""
        array = self.types.get(element.base.name)
        if not isinstance(array, ArrayType) or np.dtype(array.dtype).kind != "f" or len(element.index) != array.ndim:
            return False
        updates = [part for statement in between for part in walk(statement) if _is_update(part, name)]
        everywhere = self.nest.loops[:1]
        return (
            name not in self.live
            and bool(updates)
            and count_names(everywhere, name) == len(updates) + 2
            and count_names(everywhere, element.base.name) == 1
            and not any(name in assigned_by(part) for part in every(For, *between))
            and names_in(*element.index).isdisjoint(assigned_places(between))
            and not holds(Subscript, *element.index)
            and not any(isinstance(part, Break | Continue | Return) for part in own_level(between))
            and all(self.has_type(part.value, array.dtype) for part in updates if isinstance(part, Update))
            and all(holds(Subscript, part) for part in updates)
        )

    def has_type(self, expr: Expr, dtype: str) -> bool:
        """Whether an expression has a dtype for sure, or is a number of Python's that adapts to it."""
        match expr:
            case Const(value):
                return isinstance(value, int | float) and not isinstance(value, bool)
            case Subscript(base, index):
                kind = self.types.get(base.name)
                return isinstance(kind, ArrayType) and kind.dtype == dtype and len(index) == kind.ndim
            case Var(name):
                scalar = self.types.get(name)
                return isinstance(scalar, ScalarType) and scalar.weak and name not in assigned_places(self.nest.body)
            case Unary("-", operand):
                return self.has_type(operand, dtype)
            case Binary("+" | "-" | "*" | "/", left, right):
                return self.has_type(left, dtype) and self.has_type(right, dtype)
            case _:
                return False


def _is_update(node: Node, name: str) -> bool:
    match node:
        case Update(Var(target), "+" | "-", value):
            return target == name and not count_names((value,), name)
        case _:
            return False


def _stored(node: Stmt, name: str, element: Subscript) -> Stmt:
    """A statement with an element in place of the scalar."""
    match node:
        case Assign(Var(target), value) if target == name:
            return replace(node, target=element, value=value)
        case Update(Var(target)) if target == name:
            return replace(node, target=element)
        case For(_, body) | While(_, body):
            return replace(node, body=tuple(_stored(part, name, element) for part in body))
        case If(_, body, orelse):
            inner = (tuple(_stored(part, name, element) for part in block) for block in (body, orelse))
            return replace(node, body=next(inner), orelse=next(inner))
        case _:
            return node
