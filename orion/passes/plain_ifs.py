"""Choices of scalars brought to the one form that is looked for later: an `if` that sets a scalar, and nothing else.

    s = v if test else s            becomes    if test: s = v
    s = s if test else v            becomes    if not test: s = v

which is the same thing, and

    if v < lo: lo = v               becomes    if v < lo: lo = v
    elif v > hi: hi = v                        if v > hi: hi = v

in a loop in which nothing else mentions lo and hi, where these begin with one value. For then

    lo <= hi, or both are NaN

holds throughout: lo only falls and hi only grows. So v < lo implies not v > hi, and the second test is false wherever
the `elif` passes over it; NaN is neither less nor greater than anything. One of the two tests may be `<=` or `>=`.
Where lo and hi begin with other values (inf and -inf, say), the first v sets lo only, and the two are not the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Call,
    Choose,
    Compare,
    Expr,
    For,
    If,
    Stmt,
    Tuple,
    Unary,
    Var,
    While,
    count_names,
    holds,
)  # fmt: skip
from orion.ir.rewriting import expand
from orion.ir.spans import without_spans
from orion.typing.expression_types import Typing

FALLS, GROWS = ("<", "<="), (">", ">=")
FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def with_plain_ifs(function: Function, typing: Typing) -> Function:
    """The function with its choices of scalars as plain `if`s."""
    body = expand(function.body, lambda statement: _as_if(statement, typing))
    body = _without_elifs(body, {}, typing)
    return function if body == function.body else replace(function, body=body)


def _as_if(statement: Stmt, typing: Typing) -> tuple[Stmt, ...]:
    match statement:
        case Assign(Var(name), Choose(test, then, orelse), span) if _is_scalar(name, typing):
            if isinstance(orelse, Var) and orelse.name == name:
                return (If(test, (replace(statement, value=then),), (), span),)
            if isinstance(then, Var) and then.name == name:
                return (If(Unary("not", test, test.span), (replace(statement, value=orelse),), (), span),)
        case _:
            pass
    return (statement,)


def _is_scalar(name: str, typing: Typing) -> bool:
    kind = typing.names.get(name)
    return kind is not None and kind.rank == 0


# ---------------------------------------------------------------- both extremes at once


def _without_elifs(body: tuple[Stmt, ...], around: Mapping[str, Expr], typing: Typing) -> tuple[Stmt, ...]:
    """The statements with such an `elif` as an `if` of its own. `starts` are the values that scalars have where one
    stands, as the expressions that they were set to."""
    found: list[Stmt] = []
    starts = dict(around)
    for statement in body:
        new = statement
        match statement:
            case For(_, inner) | While(_, inner):
                new = replace(statement, body=_without_elifs(inner, {}, typing))
                new = replace(new, body=expand(new.body, _Splitter(new.body, starts, typing).split))
            case If(_, then, orelse):
                sides = (_without_elifs(side, starts, typing) for side in (then, orelse))
                new = replace(statement, body=next(sides), orelse=next(sides))
            case _:
                pass
        found.append(new)
        starts = _after(statement, starts)
    return tuple(found)


def _after(statement: Stmt, starts: Mapping[str, Expr]) -> dict[str, Expr]:
    """The values that scalars are known to have after a statement."""
    match statement:
        case Assign(Var(name), value):
            pairs = [(name, value)]
        case Assign(Tuple(targets), Tuple(values)):
            pairs = [(t.name, v) for t, v in zip(targets, values, strict=False) if isinstance(t, Var)]
        case _:
            return {}
    given = {name: starts.get(value.name, value) if isinstance(value, Var) else value for name, value in pairs}
    changed = {name for name, _ in pairs}
    kept = {name: value for name, value in starts.items() if name not in changed and _is_kept(value, changed)}
    return kept | {name: value for name, value in given.items() if _is_kept(value, changed)}


def _is_kept(value: Expr, changed: set[str]) -> bool:
    """Whether an expression has the same value when it is computed again after these names have changed."""
    return not holds(Call, value) and not count_names((value,), *changed)


class _Splitter:
    """Splits the `if`s of one loop body."""

    def __init__(self, body: tuple[Stmt, ...], starts: Mapping[str, Expr], typing: Typing) -> None:
        self.body, self.starts, self.typing = body, starts, typing

    def split(self, statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case If(_, _, (If(_, _, ()) as second,)):
                first = replace(statement, orelse=())
                return (first, second) if self.are_apart(first, second) else (statement,)
            case _:
                return (statement,)

    def are_apart(self, first: If, second: If) -> bool:
        """Whether the test of the second is false wherever that of the first is true."""
        one, other = _extreme(first), _extreme(second)
        if one is None or other is None or not _same(one[2], other[2]):
            return False
        (name, op, value), (other_name, other_op, _) = one, other
        alike = [without_spans(self.starts[n]) for n in (name, other_name) if n in self.starts]
        kinds = [self.typing.names.get(n) for n in (name, other_name)]
        return (
            name != other_name
            and {op in FALLS, other_op in FALLS} == {True, False}
            and not (len(op) == 2 and len(other_op) == 2)
            and len(alike) == 2 and alike[0] == alike[1]
            and kinds[0] is not None and kinds[0] == kinds[1]
            and not count_names((value,), *assigned_names(first.body))
            and count_names(self.body, name, other_name) == 4
            and count_names((first,), name) == 2 and count_names((second,), other_name) == 2
        )  # fmt: skip


def _extreme(condition: If) -> tuple[str, str, Expr] | None:
    """Of `if v op s: s = v; …`, which sets scalars and does nothing else, the name s, op and v; None for others."""
    values = {s.target.name: s.value for s in condition.body if isinstance(s, Assign) and isinstance(s.target, Var)}
    if len(values) < len(condition.body):
        return None
    match condition.test:
        case Compare((op,), (left, right)) if op in FLIPPED:
            for scalar, value, sign in ((right, left, op), (left, right, FLIPPED[op])):
                if isinstance(scalar, Var) and _same(values.get(scalar.name), value) and _is_kept(value, set()):
                    return scalar.name, sign, value
        case _:
            pass
    return None


def _same(first: Expr | None, second: Expr) -> bool:
    return first is not None and without_spans(first) == without_spans(second)
