"""What statements assign, and which of its parameters a helper function writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.loop.ir import (
    Assign,
    Bind,
    Call,
    Elements,
    For,
    Function,
    Node,
    Range,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    walk,
)  # fmt: skip
from orion.loop.source import Span


def assigned_names(statements: Iterable[Stmt]) -> dict[str, Span]:
    """The names that the statements may assign (loop variables too), each with the last place that does."""
    return {name: node.span for statement in statements for node in walk(statement) for name in assigned_by(node)}


def assigned_by(node: Node) -> Iterator[str]:
    """The names that this node itself assigns, not those inside it."""
    match node:
        case Assign(Var(name)) | Update(Var(name)) | Bind(name):
            yield name
        case Assign(Tuple(items)):
            yield from (item.name for item in items if isinstance(item, Var))
        case For(Range(var)):
            yield var
        case For(Elements(_, keys, values)):
            yield from (*keys, *values)
        case _:
            pass


def written_parameters(function: Function, helper: str) -> tuple[int, ...]:
    """The positions of the parameters whose elements the helper function may write.

    Names bound to a parameter or to a part of it count as that parameter.
    """
    body = next(candidate for candidate in function.helpers if candidate.name == helper)
    roots = {name: name for name in body.params}
    written: set[str] = set()
    for _ in range(2):  # twice, so that a name bound below its first use is known
        for node in _statements(body.body):
            _note(node, function, roots, written)
    return tuple(position for position, name in enumerate(body.params) if name in written)


def _statements(body: Iterable[Stmt]) -> Iterator[Node]:
    for statement in body:
        yield from walk(statement)


def _note(node: Node, function: Function, roots: dict[str, str], written: set[str]) -> None:
    match node:
        case Assign(Var(name), Var(source) | Subscript(Var(source))) | Bind(name, Subscript(Var(source))):
            if source in roots:
                roots[name] = roots[source]
        case Assign(Subscript(Var(name))) | Update(Subscript(Var(name))) | Update(Var(name)):
            written.add(roots.get(name, name))
        case Assign(Tuple(items)):
            written |= {roots.get(i.base.name, i.base.name) for i in items if isinstance(i, Subscript)}
        case Call(name, arguments) if name.startswith("helper:"):
            for position in written_parameters(function, name.removeprefix("helper:")):
                written |= {roots.get(n.name, n.name) for n in walk(arguments[position]) if isinstance(n, Var)}
        case _:
            pass


def used_names(statements: Iterable[Node]) -> set[str]:
    """The names that the statements mention."""
    return {node.name for statement in statements for node in walk(statement) if isinstance(node, Var)}


