"""Wrap-around variables: scalars that an iteration reads as the one before it left them (Wolfe, *Optimizing
Supercompilers for Supercomputers*, 1989; Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, 4.5).

Let a loop over i = lo, lo + s, … assign x once in each iteration, at the top level of its body, with a value

    e(i, w₁, …, wₘ)        made of i, of what the loop does not assign, of elements of arrays that it does not write,
                           and of what w₁, …, wₘ had when the iteration began, each of them wrap-around.

Then x is, at the beginning of iteration i, x₀ where i is the first, and e(i - s, w₁(i - s), …, wₘ(i - s)) where not,
x₀ being its value before the loop. Nothing of that is passed from one iteration to the next. Where a name needs itself
(`x = x / 2`), there is no such form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from orion.dataclass import dataclass, replace
from orion.dependence.scalars import carries
from orion.ir.assigned import assigned_names, assigned_places, assignments, leaves_loop
from orion.ir.constants import constant_value
from orion.ir.exposed import exposed_scalars
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Binary,
    Call,
    Compare,
    Const,
    Count,
    Dim,
    Expr,
    For,
    Logic,
    Range,
    Return,
    Slice,
    Stmt,
    Subscript,
    Unary,
    Update,
    Var,
    every,
    holds,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.rewriting import rewrite
from orion.passes.view_names import written_names
from orion.typing.expression_types import Typing
from orion.typing.functions import Cost, cost_of

MOST_PARTS = 24
"""The most nodes of a value that is computed a second time."""


@dataclass(frozen=True, slots=True)
class WrapAround:
    """A name, and its value at the end of an iteration in terms of the loop's variable and of names as they were when
    that began."""

    name: str
    value: Expr
    needs: tuple[str, ...]


def wrap_arounds(loop: For, function: Function, typing: Typing) -> tuple[WrapAround, ...]:
    """The wrap-around variables of a loop, each after those that it needs; nothing where it carries other scalars."""
    space, body = loop.space, loop.body
    if not isinstance(space, Range) or constant_value(space.step) in (None, 0) or not _is_plain(loop):
        return ()
    exposed = exposed_scalars(body, {space.var})
    scalars = {name for name in assigned_names(body) if not _rank(name, typing)}
    carried = {name for name in exposed if name in scalars and carries(name, body, function)}
    values = {name: value for name in carried if (value := _value_after(name, loop, function, typing)) is not None}
    if not carried or values.keys() != carried or not names_in(space.start).isdisjoint(assigned_names(body)):
        return ()
    needed = {name: tuple(sorted(names_in(value) & scalars)) for name, value in values.items()}
    if any(not set(needs) <= carried for needs in needed.values()):
        return ()
    return tuple(WrapAround(name, values[name], needed[name]) for name in _in_order(needed))


def _is_plain(loop: For) -> bool:
    """Whether every iteration goes through the whole body."""
    space = loop.space
    assert isinstance(space, Range)
    if any(leaves_loop(statement) or holds(Return, statement) for statement in loop.body):
        return False
    return space.var not in assigned_places(loop.body)


def _rank(name: str, typing: Typing) -> int:
    kind = typing.names.get(name)
    return -1 if kind is None else kind.rank


def _value_after(name: str, loop: For, function: Function, typing: Typing) -> Expr | None:
    """The value of a name at the end of an iteration; None where it has no form that can be computed again."""
    values: dict[str, Expr | None] = {}
    for statement in loop.body:
        for one in _given(statement, values):
            values[one[0]] = one[1]
    value = values.get(name)
    if value is None or len([*walk(value)]) > MOST_PARTS or not _can_be_repeated(value, loop, function, typing):
        return None
    return value


def _given(statement: Stmt, values: Mapping[str, Expr | None]) -> Iterator[tuple[str, Expr | None]]:
    """The names that a statement gives values, with these in terms of the beginning of the iteration, or None."""

    def at_start(expr: Expr) -> Expr | None:
        if any(values.get(name, expr) is None for name in names_in(expr)):
            return None
        return rewrite(expr, lambda part: values.get(part.name) or part if isinstance(part, Var) else part)

    match statement:
        case Assign(Var(name), value):
            yield name, at_start(value)
        case Update(Var(name) as target, op, value, span):
            yield name, at_start(Binary(op, Var(target.name, span), value, span))
        case _:
            yield from ((name, None) for name, _ in assignments(statement))


def _can_be_repeated(value: Expr, loop: For, function: Function, typing: Typing) -> bool:
    """Whether a value is one number, the same when it is computed later, and soon computed."""
    written = written_names(replace(function, body=loop.body), typing) | assigned_names(loop.body)
    for part in walk(value):
        match part:
            case Const() | Var() | Dim() | Count() | Unary() | Binary() | Compare() | Logic():
                pass
            case Subscript(base, index) if base.name not in written and not any(isinstance(at, Slice) for at in index):
                pass
            case Call(called) if cost_of(called) is not Cost.SLOW:
                pass
            case _:
                return False
    return all(_rank(part.name, typing) == 0 for part in every(Var, value) if part.name not in _bases(value))


def _bases(value: Expr) -> set[str]:
    return {part.base.name for part in every(Subscript, value)}


def _in_order(needed: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The names, each after those that it needs; nothing where some need one another."""
    try:
        return tuple(TopologicalSorter(needed).static_order())
    except CycleError:
        return ()
