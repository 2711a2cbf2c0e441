"""Which names of a function stand for parts of arrays, and what is known about names that their subscripts use."""

from __future__ import annotations

from collections.abc import Iterator

from orion.loop.expression_types import Typing
from orion.loop.ir import (
    Assign,
    Call,
    Choose,
    Const,
    Elements,
    Expr,
    For,
    Function,
    If,
    Node,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    walk,
)  # fmt: skip
from orion.loop.rewrite import expand

HIDDEN_VIEWS = frozenset({"attribute:T", "np.transpose", ".ravel", "np.ravel"})


def is_view(value: Expr, typing: Typing) -> bool:
    """Whether an assigned value is a part of an array, or another name for one, rather than a new value."""
    match value:
        case Var():
            return typing.of(value).rank > 0
        case Subscript(_, index):
            fancy = any(not isinstance(part, Slice) and typing.of(part).rank for part in index)
            return typing.of(value).rank > 0 and not fancy
        case _:
            return False


def view_assignments(function: Function, typing: Typing) -> dict[str, set[str]]:
    """The names that are assigned views, each with the names of what they are views of."""
    found: dict[str, set[str]] = {}
    for node in _nodes(function):
        if isinstance(node, Assign) and isinstance(node.target, Var) and is_view(node.value, typing):
            base = node.value.base if isinstance(node.value, Subscript) else node.value
            assert isinstance(base, Var)
            found.setdefault(node.target.name, set()).add(base.name)
    return found


def _nodes(function: Function) -> Iterator[Node]:
    for statement in function.body:
        yield from walk(statement)


def written_names(function: Function, typing: Typing) -> frozenset[str]:
    """The names whose elements the function may write: those it assigns by subscript, updates, or hands to a function,
    and what they are views of."""
    found: set[str] = set()
    for node in _nodes(function):
        match node:
            case Assign(Subscript(Var(name))) | Update(Subscript(Var(name))) | Update(Var(name)):
                found.add(name)
            case Assign(Tuple(items)):
                found |= {item.base.name for item in items if isinstance(item, Subscript)}
            case Call(called, arguments) if called.startswith(("helper:", ".")):
                found |= {part.name for argument in arguments for part in walk(argument) if isinstance(part, Var)}
            case _:
                pass
    views = view_assignments(function, typing)
    for _ in views:  # a view of a view of … has at most as many steps as there are names
        found |= {base for name in found & views.keys() for base in views[name]}
    return frozenset(found)


def never_negative(function: Function) -> frozenset[str]:
    """Loop variables that are never negative: keys, and those of ranges that start at a constant and go up."""
    good: set[str] = set()
    bad: set[str] = set(function.params)
    for node in _nodes(function):
        match node:
            case For(Range(var, Const(int(start)), _, Const(int(step)))) if start >= 0 and step > 0:
                good.add(var)
            case For(Elements(_, keys, values)):
                good |= {*keys}
                bad |= {*values}
            case For(Range(name)) | Assign(Var(name)) | Update(Var(name)):
                bad.add(name)
            case Assign(Tuple(items)):
                bad |= {item.name for item in items if isinstance(item, Var)}
            case _:
                pass
    return frozenset(good - bad)


# ---------------------------------------------------------------- assignments of several views, or of one of several


def plain_assignments(function: Function, typing: Typing) -> tuple[Stmt, ...]:
    """The statements, with every assignment of views made into assignments of one view to one name.

    `a, b = W[i], H[j]` becomes two assignments, `w = W[i] if c else H[j]` an `if` with one in each branch.
    """
    return expand(function.body, lambda statement: _plain(statement, typing))


def _plain(statement: Stmt, typing: Typing) -> tuple[Stmt, ...]:
    match statement:
        case Assign(Tuple(targets), Tuple(values)) if any(is_view(value, typing) for value in values):
            return _one_by_one(statement, targets, values, typing)
        case Assign(Var() as target, Choose(test, then, orelse)) if typing.of(then).rank > 0:
            body, other = (_plain(Assign(target, value, statement.span), typing) for value in (then, orelse))
            return (If(test, body, other, statement.span),)
        case Assign(Var(), Call(name, (owner, *_))) if name in HIDDEN_VIEWS and typing.of(owner).rank > 1:
            hint = "write subscripts of the array itself, `W[i, j]` for `W.T[j, i]`, or make a copy, `W.T.copy()`"
            raise typing.refuse(
                statement.value, "a name for a transposed or flattened array is not supported", "", hint
            )
        case _:
            return (statement,)


def _one_by_one(
    statement: Assign, targets: tuple[Expr, ...], values: tuple[Expr, ...], typing: Typing
) -> tuple[Stmt, ...]:
    names = {target.name for target in targets if isinstance(target, Var)}
    mentioned = {node.name for value in values for node in walk(value) if isinstance(node, Var)}
    if len(names) < len(targets) or names & mentioned:
        what = "rows are exchanged in one assignment"
        why = "a name for a row is another name for a part of an array, not a copy of it"
        raise typing.refuse(statement.value, what, why, "copy one of them first, `w = W[i].copy()`")
    return tuple(Assign(t, v, statement.span) for t, v in zip(targets, values, strict=True) if isinstance(t, Var))
