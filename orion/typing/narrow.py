"""Integers that are narrower than Python's: where the analysis may compute with them as if they had no bounds.

NumPy computes with a scalar of int8 and a Python integer in int8 (NEP 50): results wrap around, and a Python integer
that does not fit is an OverflowError. The analysis of subscripts, bounds and tests computes without bounds, and loops
in another order have other sums of the same integers. So in these places there is one rule, at the sizes and integers
of a call:

- An operation is *exact* where intervals show that what goes into it and what comes out fits its dtype. Then it is one
  on Python integers: `n + i` becomes `int(n) + i`, of 64 bits in the analysis and in machine code.
- Any other is done in its dtype, as NumPy does it, and marked (`NARROW`): no analysis looks into it, so that a
  subscript with it is checked when the loop runs and taken to be any.

A name that is given the result of such an operation keeps NumPy's dtype. Values that are stored are not looked at.

Integers of 64 bits wrap around, or leave them, near 2**63 only. A call in which they may is refused
(`orion.typing.wide_integers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from orion.dataclass import dataclass, field, replace
from orion.ir.assigned import ASSIGNING, assigned_by
from orion.ir.function import Function, LocalArray
from orion.ir.nodes import (
    INTEGER,
    NARROW,
    Assign,
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Count,
    Dim,
    Elements,
    Expr,
    For,
    If,
    Logic,
    Node,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Var,
    While,
    every,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.rewriting import rewrite
from orion.ir.types import ScalarType, Shapes, Types
from orion.typing.expression_types import Typing
from orion.typing.value_type import Limits, dtype_limits

ANY: Limits = (-(2**63), 2**63 - 1)
AFFINE = frozenset({"+", "-", "*", "//", "%"})
MAKING = frozenset({"np.zeros", "np.ones", "np.empty", "np.full", "np.arange"})
"""Functions whose arguments are lengths."""


def is_narrow(dtype: str) -> bool:
    """Whether integers of a dtype are not those of Python at 64 bits.

    >>> is_narrow("int32"), is_narrow("uint64"), is_narrow("int64"), is_narrow("float32")
    (True, True, False, False)
    """
    return dtype not in ("int64", "none", "tuple") and np.dtype(dtype).kind in "iub"


def with_local_integers(types: Types, typing: Typing) -> Types:
    """The types of the arguments, and of the narrow integers that the function computes."""
    own = {
        name: ScalarType(kind.dtype)
        for name, kind in typing.names.items()
        if name not in types and not kind.rank and not kind.weak and kind.is_integer and is_narrow(kind.dtype)
    }
    return {**types, **own} if own else types


def with_python_integers(function: Function, typing: Typing, shapes: Shapes, integers: Mapping[str, Any]) -> Function:
    """The function with every operation on narrow integers in a subscript, a bound or a test as one on Python integers,
    or marked, at these sizes and integers. The function itself where there is none."""
    return Marker(function, typing, shapes, limits_of(integers)).whole()


def limits_of(integers: Mapping[str, Any]) -> dict[str, Limits]:
    """The limits of arguments that are integers, by their values."""
    plain = {name: value for name, value in integers.items() if isinstance(value, int | np.integer | np.bool_)}
    return {name: (int(value), int(value)) for name, value in plain.items()}


@dataclass(slots=True)
class Marker:
    """One pass over the function, which looks at operations on narrow integers.

    `limits` are those of integer arguments. `known` are the intervals of names where one stands, `chosen` what all
    dtypes hold that their values may have; `places` are the names whose values get into subscripts, bounds and tests,
    `once` those that one assignment alone gives a value, and `changed` those that anything but a loop does.
    """

    length_limits: ClassVar[Limits] = (0, 2**63 - 1)

    function: Function
    typing: Typing
    shapes: Shapes
    limits: Mapping[str, Limits]
    known: dict[str, Limits] = field(default_factory=dict)
    chosen: dict[str, Limits] = field(default_factory=dict)
    places: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        nodes = [node for statement in self.function.body for node in walk(statement)]
        counts = Counter(name for node in nodes if type(node) in ASSIGNING for name in assigned_by(node))
        assigned = {name for node in nodes if isinstance(node, Assign) for name in assigned_by(node)}
        self.once = frozenset(name for name in assigned if counts[name] == 1 and name not in self.function.params)
        changing = (node for node in nodes if type(node) in ASSIGNING and not isinstance(node, For))
        self.changed = frozenset(name for node in changing for name in assigned_by(node))
        self.places = frozenset(in_places(nodes))
        params = [name for name in self.function.params if name in self.limits and name not in counts]
        self.known |= {name: self.limits[name] for name in params}
        self.known |= {name: (int(v), int(v)) for name, v in self.function.constants if isinstance(v, int)}

    def whole(self) -> Function:
        function = self.function
        found = replace(
            function, local_arrays=tuple(map(self.local_array, function.local_arrays)), body=self.block(function.body)
        )
        return function if found == function else found

    def local_array(self, array: LocalArray) -> LocalArray:
        """An array that is made before the loops, of which integers are what they are when the function begins."""

        def marked(pairs: Iterable[tuple[Expr, Expr]]) -> tuple[tuple[Expr, Expr], ...]:
            return tuple((self.marked(one), self.marked(other)) for one, other in pairs)

        lengths = tuple(map(self.marked, array.lengths))
        return replace(array, lengths=lengths, alike=marked(array.alike), one_shape=marked(array.one_shape))

    # ------------------------------------------------------------ statements

    def block(self, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        return tuple(self.statement(statement) for statement in body)

    def statement(self, statement: Stmt) -> Stmt:
        match statement:
            case Assign(target, value):
                return self.assign(statement, target, value)
            case If(test, body, orelse):
                return replace(statement, test=self.place(test), body=self.block(body), orelse=self.block(orelse))
            case While(test, body):
                return replace(statement, test=self.place(test), body=self.block(body))
            case For(space, body):
                space = self.range(space) if isinstance(space, Range) else self.elements(space)
                body = self.block(body)
                for name in assigned_by(statement):
                    self.known.pop(name, None)
                return replace(statement, space=space, body=body)
            case _:
                found: Stmt = self.inside(statement)
                return found

    def assign(self, statement: Assign, target: Var | Subscript | Tuple, value: Expr) -> Stmt:
        names = target.items if isinstance(target, Tuple) else (target,)
        values = value.items if isinstance(value, Tuple) and len(value.items) == len(names) else (value,)
        for name, part in zip(names, values, strict=False):
            if len(names) == len(values) and isinstance(name, Var) and name.name in self.once and self.is_integer(part):
                self.known[name.name] = self.interval(part)
                self.chosen[name.name] = self.chosen_room(part)
        if any(isinstance(name, Var) and name.name in self.places for name in names):
            value = self.marked(self.inside(value), to_python=False)
        return replace(statement, target=self.inside(target), value=self.inside(value))

    def range(self, space: Range) -> Range:
        start, stop, step = (self.interval(bound) for bound in (space.start, space.stop, space.step))
        self.known[space.var] = min(start[0], stop[0]), max(start[1], stop[1])
        if step[0] > 0:
            self.known[space.var] = start[0], max(start[0], stop[1] - 1)
        if space.var in self.changed:
            del self.known[space.var]
        return replace(space, start=self.bound(space.start), stop=self.bound(space.stop), step=self.bound(space.step))

    def elements(self, space: Elements) -> Elements:
        for axis, key in enumerate(space.keys):
            length = self.shapes.get(space.array)
            self.known[key] = (0, length[axis] - 1) if length else self.length_limits
        return space

    # ------------------------------------------------------------ expressions

    def inside(self, node: Any) -> Any:
        """Some code, of which only the subscripts and lengths in it are in place."""

        def change(expr: Expr) -> Expr:
            match expr:
                case Subscript(_, index):
                    return replace(expr, index=tuple(self.index(part) for part in index))
                case Call(function, arguments) if function in MAKING:
                    return replace(expr, arguments=tuple(self.length(part) for part in arguments))
                case _:
                    return expr

        return rewrite(node, change)

    def index(self, part: Expr) -> Expr:
        if not isinstance(part, Slice):
            return self.marked(part)
        lower, upper, step = (None if e is None else self.bound(e) for e in (part.lower, part.upper, part.step))
        return Slice(lower, upper, step, part.span)

    def length(self, part: Expr) -> Expr:
        if isinstance(part, Tuple):
            return replace(part, items=tuple(self.marked(item) for item in part.items))
        return self.marked(part)

    def bound(self, expr: Expr) -> Expr:
        """A bound: sums are made of it when loops are run in another order, so that it is a Python integer."""
        found = self.marked(self.inside(expr))
        is_name = isinstance(found, Var) and self.is_integer(found) and is_narrow(self.typing.of(found).dtype)
        return Call(INTEGER, (found,), found.span) if is_name else found

    def place(self, expr: Expr) -> Expr:
        return self.marked(self.inside(expr))

    def marked(self, expr: Expr, to_python: bool = True) -> Expr:
        """An expression in place: operations that are exact on Python integers, others marked. Where it is given to a
        name it keeps its dtype."""
        match expr:
            case Binary() | Unary() if self.is_operation(expr):
                if not self.computed(expr)[1]:
                    return self.inexact(expr)
                return self.python_integer(expr) if to_python else expr
            case Call(function, (operand,)) if function in ("int", INTEGER) and self.is_integer(operand):
                return Call(INTEGER, (self.marked(operand),), expr.span)
            case Compare(_, operands) if not all(self.is_integer(operand) for operand in operands):
                return expr  # NumPy compares a float32 with an int32 in another way than with a Python integer
            case Choose() | Call("min" | "max") if not self.is_integer(expr):
                return expr
            case Compare() | Logic() | Choose() | Call("min" | "max"):
                return _with_parts(expr, lambda part: self.marked(part, to_python))
            case _:
                return expr

    def inexact(self, expr: Expr) -> Expr:
        return Call(NARROW, (expr,), expr.span)

    def is_operation(self, expr: Binary | Unary) -> bool:
        """Whether an analysis would look into it, and it is one on narrow integers, or on what comes of them."""
        nodes = [*walk(expr)]
        allowed = Var, Const, Dim, Count, Binary, Unary, Call
        return (
            self.is_integer(expr)
            and all(isinstance(node, allowed) and self.is_plain(node) for node in nodes)
            and self.is_looked_at([node for node in nodes if isinstance(node, Var)])
        )

    def is_looked_at(self, names: Iterable[Var]) -> bool:
        """Whether an operation is, by the names in it."""
        return any(is_narrow(self.typing.of(name).dtype) for name in names)

    def is_plain(self, node: Node) -> bool:
        """Whether the analysis takes it for a part of something affine."""
        match node:
            case Binary(op) | Unary(op):
                return op in AFFINE
            case Call(function, arguments):
                return function in ("min", "max", "int", INTEGER) and all(map(self.is_integer, arguments))
            case _:
                return True

    def is_integer(self, expr: Expr) -> bool:
        kind = self.typing.of(expr)
        return not kind.rank and (kind.is_integer or kind.dtype == "bool")

    def python_integer(self, expr: Expr) -> Expr:
        """An exact operation on Python integers."""

        def change(part: Expr) -> Expr:
            match part:
                case Var() if is_narrow(self.typing.of(part).dtype):
                    return Call(INTEGER, (part,), part.span)
                case Call("int", arguments):
                    return Call(INTEGER, arguments, part.span)
                case _:
                    return part

        return rewrite(expr, change)

    # ------------------------------------------------------------ intervals

    def interval(self, expr: Expr) -> Limits:
        """The least and the greatest value that an integer expression can have here."""
        return self.computed(expr)[0]

    def computed(self, expr: Expr) -> tuple[Limits, bool]:
        """The interval of an integer expression, and whether no operation in it leaves its dtype, or is given a Python
        integer that does not fit."""
        match expr:
            case Const(int(value)):
                return (int(value), int(value)), True
            case Var(name) if name in self.known:
                return self.known[name], True
            case Dim(array, axis) if array in self.shapes and 0 <= axis < len(self.shapes[array]):
                return (self.shapes[array][axis],) * 2, True
            case Count(array) if array in self.shapes:
                return (0, prod(self.shapes[array])), True
            case Dim() | Count():
                return self.length_limits, True
            case Call(function, (operand,)) if function == INTEGER or (function == "int" and self.is_integer(operand)):
                return self.computed(operand)
            case Call("min" | "max" as name, parts) if len(parts) > 1:
                found = [self.computed(part) for part in parts]
                low, high = ((min if name == "min" else max)(ends) for ends in zip(*(f for f, _ in found), strict=True))
                return (low, high), all(exact for _, exact in found)
            case Binary(_, left, right):
                return self.operation(expr, (left, right))
            case Unary(_, operand):
                return self.operation(expr, (operand,))
            case _:
                return self.any_of(expr), True

    def any_of(self, expr: Expr) -> Limits:
        """What a value may be of which nothing is known before the loop runs."""
        return self.room(expr)

    def operation(self, expr: Binary | Unary, operands: tuple[Expr, ...]) -> tuple[Limits, bool]:
        """The same of an operation."""
        return self.result(expr, [self.computed(operand) for operand in operands])

    def result(self, expr: Binary | Unary, parts: list[tuple[Limits, bool]]) -> tuple[Limits, bool]:
        """The same of an operation, by its operands'."""
        room = self.room(expr)
        found = result_limits(expr, [limits for limits, _ in parts])
        if found is None:
            return self.formless(expr)
        if not is_within(found, room):
            return room, False
        chosen = self.chosen_room(expr)
        is_python = self.typing.of(expr).weak and chosen == ANY
        fits = is_python or all(is_within(limits, room) and is_within(limits, chosen) for limits, _ in parts)
        return found, fits and is_within(found, chosen) and all(exact for _, exact in parts)

    def formless(self, expr: Expr) -> tuple[Limits, bool]:
        """The same of an operation for which the analysis has no form."""
        return self.room(expr), False

    def chosen_room(self, expr: Expr) -> Limits:
        """What is held by all dtypes that the choices in an expression may have: `min(n, m)` is n or m as it is."""
        least, most = ANY
        for node in walk(expr):
            rooms = []
            if isinstance(node, Call) and node.function in ("min", "max"):
                names = every(Var, node)
                rooms = [self.room(name) for name in names if is_narrow(self.typing.of(name).dtype)]
            elif isinstance(node, Var) and node.name in self.chosen:
                rooms = [self.chosen[node.name]]
            for low, high in rooms:
                least, most = max(least, low), min(most, high)
        return least, most

    def room(self, expr: Expr) -> Limits:
        """What the dtype of an expression holds."""
        kind = self.typing.of(expr)
        return dtype_limits(kind.dtype) if kind.is_integer else (0, 1) if kind.dtype == "bool" else ANY


def is_within(found: Limits, room: Limits) -> bool:
    return room[0] <= found[0] and found[1] <= room[1]


def result_limits(expr: Expr, parts: list[Limits]) -> Limits | None:
    """The interval of an operation on integers without bounds; None where the analysis has no form for it.

    >>> from orion.ir.spans import NOWHERE
    >>> result_limits(Unary("-", Var("i", NOWHERE), NOWHERE), [(-3, 8)])
    (-8, 3)
    """
    match expr, parts:
        case Unary("-"), [(low, high)]:
            return -high, -low
        case Unary("+"), [found]:
            return found
        case Binary("+"), [(a, b), (c, d)]:
            return a + c, b + d
        case Binary("-"), [(a, b), (c, d)]:
            return a - d, b - c
        case Binary("*"), [(a, b), (c, d)]:
            ends = a * c, a * d, b * c, b * d
            return min(ends), max(ends)
        case Binary("//"), [(a, b), (c, d)] if c == d > 0:
            return a // c, b // c
        case Binary("%"), [_, (c, d)] if c == d > 0:
            return 0, c - 1
        case _:
            return None


def _with_parts(expr: Expr, change: Any) -> Expr:
    """The expression with its operands changed."""
    match expr:
        case Compare(_, operands) | Logic(_, operands):
            return replace(expr, operands=tuple(change(part) for part in operands))
        case Choose(test, then, orelse):
            return replace(expr, test=change(test), then=change(then), orelse=change(orelse))
        case Call(_, arguments):
            return replace(expr, arguments=tuple(change(part) for part in arguments))
        case _:
            return expr


def in_places(nodes: Iterable[Node]) -> set[str]:
    """The names whose values get into subscripts, bounds, tests and lengths, also by way of other names."""
    nodes = list(nodes)
    parts: list[Node] = []
    for node in nodes:
        match node:
            case Subscript(_, index):
                parts += index
            case Range(_, start, stop, step):
                parts += (start, stop, step)
            case If(test) | While(test):
                parts.append(test)
            case Call(function, arguments) if function in MAKING:
                parts += arguments
            case _:
                pass
    found = names_in(*parts)
    while True:
        given = [node for node in nodes if isinstance(node, Assign) and found.intersection(assigned_by(node))]
        more = {part.name for node in given for part in every(Var, node.value)} - found
        if not more:
            return found
        found |= more
