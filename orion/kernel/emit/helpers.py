"""Helper functions as Numba compiles them: assignments between parts of arrays that may overlap as NumPy makes them.

A helper has no types before Numba compiles it: what may be a part of an array is told here by how it is written, and by
the types it turns out to have in `orion.kernel.support.slices`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Count,
    Dim,
    Evaluate,
    Expr,
    Node,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    walk,
)  # fmt: skip
from orion.ir.rewriting import expand
from orion.passes.writes import viewed_places
from orion.typing.functions import Form, form_of

NUMBERS = frozenset({"int", "float", "bool", "len"})
"""What gives numbers, beside the functions of `math`."""


def with_assigned_parts(helper: Function) -> Function:
    """The helper with the assignments whose two sides may be parts of one array made by `put_part` and
    `put_whole`."""
    return replace(helper, body=expand(helper.body, _Parts(helper).statement))


class _Parts:
    def __init__(self, helper: Function) -> None:
        self.scalars = _scalars(helper)
        self.taken = {*helper.params, *assigned_names(helper.body)}

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Subscript() as target, value) if self.may_overlap(target, value):
                return (_put(target, value),)
            case Update(Subscript() as target, op, value, span) if self.may_overlap(target, value):
                return (_put(target, Binary(op, target, value, span)),)
            case Update(Var(name) as target, op, value, span) if name not in self.scalars and self.is_part(value):
                return (Assign(target, Call("put_whole", (target, Binary(op, target, value, span)), span), span),)
            case Assign(Tuple(targets), Tuple(values)) if any(map(self.may_overlap, targets, values)):
                return self.one_by_one(statement, targets, values)
            case _:
                return (statement,)

    def one_by_one(self, whole: Assign, targets: tuple[Expr, ...], values: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        """The values computed first, then assigned one after the other."""
        names = [Var(self.fresh(f"part_{number}"), whole.span) for number, _ in enumerate(values)]
        found: list[Stmt] = [Assign(name, value, whole.span) for name, value in zip(names, values, strict=True)]
        for target, name in zip(targets, names, strict=True):
            assert isinstance(target, Var | Subscript)
            found.append(Assign(target, name, whole.span) if isinstance(target, Var) else _put(target, name))
        return tuple(found)

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def may_overlap(self, target: Expr, value: Expr) -> bool:
        """Whether both may be parts of one array, other than the same elements at the same places or none in common."""
        if not isinstance(target, Subscript) or not self.is_part(value):
            return False
        is_row = isinstance(value, Subscript) and value.base == replace(target.base, span=value.base.span)
        return not is_row or any(isinstance(part, Slice) for part in (*target.index, *_index(value)))

    def is_part(self, value: Expr) -> bool:
        return any(not isinstance(place, Var) or place.name not in self.scalars for place in viewed_places(value))


def _put(target: Subscript, value: Expr) -> Stmt:
    parts = tuple(_as_value(part) for part in target.index)
    index = parts[0] if len(parts) == 1 else Tuple(parts, target.span)
    return Evaluate(Call("put_part", (target.base, index, value), target.span), target.span)


def _as_value(part: Expr) -> Expr:
    """A part of an index as an expression: `a:b` as `slice(a, b, None)`."""
    if not isinstance(part, Slice):
        return part
    bounds = (part.lower, part.upper, part.step)
    return Call("slice", tuple(Const(None, part.span) if one is None else one for one in bounds), part.span)


def _index(value: Expr) -> tuple[Expr, ...]:
    return value.index if isinstance(value, Subscript) else ()


def _scalars(helper: Function) -> set[str]:
    """The names that stand for numbers for sure: a name has one type in the whole helper."""
    nodes = [node for statement in helper.body for node in walk(statement)]
    found = {node.var for node in nodes if isinstance(node, Range)}
    count = -1
    while count < len(found):
        count = len(found)
        found |= {name for name, value in _named_values(nodes) if _is_number(value, found)}
    return found


def _named_values(nodes: list[Node]) -> Iterator[tuple[str, Expr]]:
    for node in nodes:
        match node:
            case Assign(Var(name), value):
                yield name, value
            case Assign(Tuple(targets), Tuple(values)):
                yield from ((t.name, v) for t, v in zip(targets, values, strict=False) if isinstance(t, Var))
            case _:
                pass


def _is_number(value: Expr, known: set[str]) -> bool:
    match value:
        case Const() | Dim() | Count():
            return True
        case Var(name):
            return name in known
        case Unary(_, operand):
            return _is_number(operand, known)
        case Binary(op, left, right):
            return op != "@" and _is_number(left, known) and _is_number(right, known)
        case Compare(_, operands):
            return all(_is_number(operand, known) for operand in operands)
        case Call(function):
            return function in NUMBERS or form_of(function) is Form.MATH
        case _:
            return False
