"""How long a trip of a loop waits for the trip before, where it uses what that one stored.

A statement that reads an array which it writes is a chain: its next instance cannot begin with the value before this
one has ended with it. The cycles of the chain are those of the operations on the way from the element that is read to
the one that is stored, and do not shrink however many operations a core begins per cycle. Several chains at a time
(`orion.rewrites.lockstep.apply`) fill that wait. Where it is short there is nothing to fill: the chains of the longest
common subsequence (a maximum and a choice of integers) took twice to three times as long in lockstep as one by one, on
Zen 4.

The cycles are those of usual cores, from Fog's *Instruction tables*: Zen 3 to 5 and Intel since Skylake differ by one
at most for what is in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orion.dependence.region import Statement
from orion.ir.assigned import assigned_places
from orion.ir.nodes import (
    INTEGER,
    NARROW,
    Assign,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Expr,
    If,
    Node,
    Stmt,
    Subscript,
    Unary,
    Update,
    Var,
    children,
    every,
    walk,
)  # fmt: skip
from orion.ir.types import ArrayType, ScalarType, Types

LONG_CHAIN = 6
"""The fewest cycles of a chain that is worth running beside others: 3 are not (longest common subsequence of
integers), 12 are (Gauss-Seidel)."""

CHOICE = 1
FLOAT_ADD, FLOAT_COMPARE, DIVISION, FUNCTION = 4, 3, 15, 20
INTEGER_ADD, INTEGER_MULTIPLY = 1, 3

Reached = Mapping[str, int]
"""The scalars on the way, with the cycles up to there."""


def chain_cycles(statements: Iterable[Statement], types: Types) -> int:
    """The cycles of the longest chain of some statements; 0 where none reads an array that it writes."""
    return max((_Chain(types, _written(one.body)).body(one.body, {})[1] for one in statements), default=0)


def _written(body: Iterable[Stmt]) -> frozenset[str]:
    """The arrays that statements store to."""
    stores = every((Assign, Update), *body)
    return frozenset(node.target.base.name for node in stores if isinstance(node.target, Subscript))


class _Chain:
    def __init__(self, types: Types, arrays: frozenset[str]) -> None:
        self.types = types
        self.arrays = arrays

    def body(self, body: Sequence[Stmt], reached: Reached) -> tuple[Reached, int]:
        """The scalars after some statements, and the most cycles up to something that they store."""
        most = 0
        for statement in body:
            reached, stored = self.statement(statement, reached)
            most = max(most, stored)
        return reached, most

    def statement(self, statement: Stmt, reached: Reached) -> tuple[Reached, int]:
        match statement:
            case Assign(target, value):
                return self.stored(target, self.cycles(value, reached), reached)
            case Update(target, op, value, span):
                return self.stored(target, self.cycles(Binary(op, target, value, span), reached), reached)
            case If(test, body, orelse):
                inside, first = self.body(body, reached)
                others, second = self.body(orelse, reached)
                tested = self.cycles(test, reached)
                both = {name: max(inside.get(name, 0), others.get(name, 0)) for name in (*inside, *others)}
                return both, max(first, second, 0 if tested is None else tested + CHOICE)
            case _:  # a loop, or a call: it takes long whatever it does
                return {**reached, **dict.fromkeys(assigned_places((statement,)), FUNCTION)}, FUNCTION

    def stored(self, target: Expr, cycles: int | None, reached: Reached) -> tuple[Reached, int]:
        if isinstance(target, Subscript):
            return reached, cycles or 0
        names = [node.name for node in every(Var, target)]
        rest = {name: value for name, value in reached.items() if name not in names}
        return (rest, 0) if cycles is None else ({**rest, **dict.fromkeys(names, cycles)}, 0)

    def cycles(self, expr: Node, reached: Reached) -> int | None:
        """The cycles from an element of a chain, or a scalar on the way, to a value; None where neither is in it."""
        match expr:
            case Subscript(base):
                return 0 if base.name in self.arrays else None
            case Var(name):
                return reached.get(name)
        parts = [self.cycles(part, reached) for part in children(expr)]
        before = [part for part in parts if part is not None]
        return max(before) + self.own_cycles(expr) if before else None

    def own_cycles(self, expr: Node) -> int:
        is_float = self.is_float(expr)
        match expr:
            case Binary("/" | "//" | "%"):
                return DIVISION
            case Binary("**" | "@"):
                return FUNCTION
            case Binary("*"):
                return FLOAT_ADD if is_float else INTEGER_MULTIPLY
            case Binary():
                return FLOAT_ADD if is_float else INTEGER_ADD
            case Call(function, arguments) if function in ("min", "max", "np.minimum", "np.maximum"):
                return (len(arguments) - 1) * (CHOICE + (FLOAT_COMPARE if is_float else INTEGER_ADD))
            case Call(function) if function in ("abs", "np.abs", INTEGER, NARROW):
                return INTEGER_ADD
            case Call():
                return FUNCTION
            case Compare():
                return FLOAT_COMPARE if is_float else INTEGER_ADD
            case Choose() | Unary():
                return CHOICE
            case _:
                return 0

    def is_float(self, expr: Node) -> bool:
        """Whether floating-point numbers take part in a value, as far as is known of its names."""
        for node in walk(expr):
            if isinstance(node, Const) and isinstance(node.value, float):
                return True
            kind = self.types.get(node.name) if isinstance(node, Var) else None
            if isinstance(kind, ArrayType | ScalarType) and kind.dtype.startswith("float"):
                return True
        return any(node.op == "/" for node in every(Binary, expr))
