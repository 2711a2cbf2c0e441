"""Sums of several terms that go to a scalar, as one addition after the other.

    s = s + a[i] * b[i] + c[i]        becomes        s += a[i] * b[i]; s += c[i]

which is what Python computes: its sums go from left to right. So the scalar is one that loops only add to.
"""

from __future__ import annotations

from orion.ir.assigned import mentions
from orion.ir.function import Function
from orion.ir.nodes import Assign, Binary, Expr, Stmt, Update, Var
from orion.ir.rewriting import expand, with_new
from orion.typing.expression_types import Typing


def with_single_terms(function: Function, typing: Typing) -> Function:
    """The function with an addition for each term of such sums."""
    return with_new(function, body=expand(function.body, lambda statement: _apart(statement, typing)))


def _apart(statement: Stmt, typing: Typing) -> tuple[Stmt, ...]:
    match statement:
        case Assign(Var(name) as target, Binary("+" | "-") as value) if _is_scalar(name, typing):
            terms = _terms(name, value)
            if len(terms) > 1 and not any(mentions(term, {name}) for _, term in terms):
                return tuple(Update(target, op, term, statement.span) for op, term in terms)
        case _:
            pass
    return (statement,)


def _terms(name: str, value: Expr) -> list[tuple[str, Expr]]:
    """What is added to a name, and subtracted from it, in turn; nothing where the value is no such sum."""
    match value:
        case Binary("+" | "-" as op, Var(first), term) if first == name:
            return [(op, term)]
        case Binary("+", term, Var(second)) if second == name:
            return [("+", term)]
        case Binary("+" | "-" as op, inner, term):
            found = _terms(name, inner)
            return [*found, (op, term)] if found else []
        case _:
            return []


def _is_scalar(name: str, typing: Typing) -> bool:
    kind = typing.names.get(name)
    return kind is not None and kind.rank == 0 and kind.dtype in ("float64", "float32", "int64")
