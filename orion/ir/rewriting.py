"""Rebuilding code with some of its expressions or statements replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Any, TypeGuard, TypeVar

from orion.ir.function import Function
from orion.ir.nodes import (
    IS_NODE,
    PARTS,
    RAISE,
    Assign,
    Call,
    Expr,
    For,
    If,
    Node,
    Stmt,
    Subscript,
    Tuple,
    Var,
    While,
)  # fmt: skip

N = TypeVar("N", bound=Node)
D = TypeVar("D", bound=Function | Node)
EXPRESSIONS: tuple[type, ...] = Expr.__args__
IS_EXPRESSION = frozenset(EXPRESSIONS)


def with_new(old: D, /, **fields: Any) -> D:
    """The value with these fields; the value itself where they are what it has, so that what is kept of it stays
    known (`orion.ir.kept`)."""
    is_same = all(_is_same(new, getattr(old, name)) for name, new in fields.items())
    return old if is_same else replace(old, **fields)


def _is_same(new: Any, old: Any) -> bool:
    if type(new) is tuple and type(old) is tuple:
        return len(new) == len(old) and all(one is other for one, other in zip(new, old, strict=True))
    return new is old or (isinstance(new, str | frozenset) and new == old)


def rewrite(node: N, change: Callable[[Expr], Expr]) -> N:
    """The node with `change` applied to every expression in it that has a value, innermost first.

    Not changed by themselves are the base of a subscript and a name that is assigned. Parts that stay are shared.
    """
    kept = _kept_fields(node)
    changed: dict[str, Any] = {}
    for name in PARTS[type(node)]:  # type: ignore[index]
        old = getattr(node, name)
        new = old if name in kept else _rewritten(old, change)
        if new is not old:
            changed[name] = new
    result: Any = replace(node, **changed) if changed else node
    return change(result) if type(result) in IS_EXPRESSION else result  # type: ignore[return-value]


def _kept_fields(node: Node) -> tuple[str, ...]:
    match node:
        case Subscript():
            return ("base", "span")
        case Assign(Var()):
            return ("target", "span")
        case Assign(Tuple(items)) if all(isinstance(item, Var) for item in items):
            return ("target", "span")
        case _:
            return ("span",)


def _rewritten(value: Any, change: Callable[[Expr], Expr]) -> Any:
    if type(value) in IS_NODE:
        return rewrite(value, change)
    if type(value) is tuple:
        items = tuple([_rewritten(item, change) for item in value])
        return value if all(map(is_, items, value)) else items
    return value


def rewrite_function(function: Function, change: Callable[[Expr], Expr]) -> Function:
    """The function (not its helpers) with `change` applied to every expression that has a value."""
    return with_new(function, body=tuple(rewrite(statement, change) for statement in function.body))


def expand(body: tuple[Stmt, ...], change: Callable[[Stmt], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
    """The statements, each replaced by those that `change` gives for it, innermost first."""
    return tuple(new for statement in body for new in change(_with_blocks(statement, change)))


def _with_blocks(statement: Stmt, change: Callable[[Stmt], tuple[Stmt, ...]]) -> Stmt:
    match statement:
        case If(_, body, orelse):
            return with_new(statement, body=expand(body, change), orelse=expand(orelse, change))
        case For(_, body) | While(_, body):
            return with_new(statement, body=expand(body, change))
        case _:
            return statement


def with_parts(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """A value with `change` applied to it, or where it is a tuple, to its parts and those of tuples in it; of an error
    that is raised, to the values that its text tells."""
    if isinstance(value, Tuple):
        return replace(value, items=tuple(with_parts(item, change) for item in value.items))
    if is_raised(value):
        text, values = value.arguments[:1], value.arguments[1:]
        return replace(value, arguments=(*text, *(with_parts(one, change) for one in values)))
    return change(value)


def parts_of(value: Expr) -> tuple[Expr, ...]:
    """The parts of a value, of tuples in it one by one; of an error that is raised, the values that its text tells."""
    if is_raised(value):
        return tuple(part for one in value.arguments[1:] for part in parts_of(one))
    return tuple(part for item in value.items for part in parts_of(item)) if isinstance(value, Tuple) else (value,)


def is_raised(value: Expr | None) -> TypeGuard[Call]:
    """Whether what stands in a `return` is an error that is raised."""
    return isinstance(value, Call) and value.function.startswith(RAISE)
