"""How names of single precision and of Python's numbers are used, by which it is told whether the latter are seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orion.dataclass import dataclass
from orion.ir.assigned import assigned_by
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Call,
    Choose,
    For,
    If,
    Node,
    Stmt,
    Update,
    Var,
    While,
    children,
    count_names,
    every,
    names_in,
)  # fmt: skip
from orion.source import Span


@dataclass(frozen=True, slots=True)
class Uses:
    """The names of a function whose values are made of those that they had, by more than a choice; those that loops
    compare and give values alone; and the places of the statements in loops."""

    updated: frozenset[str]
    chosen: frozenset[str]
    in_loops: frozenset[Span]


NO_USES = Uses(frozenset(), frozenset(), frozenset())


def uses_of(function: Function) -> Uses:
    """How the names of a function are used."""
    loops = [*_outermost(function.body)]
    given = {name for loop in loops for node in every((Assign, Update), loop) for name in assigned_by(node)}
    inside = frozenset(node.span for node in every((Assign, Update), *loops))
    chosen = frozenset(name for name in given if all(_is_chosen(name, loop) for loop in loops))
    return Uses(frozenset(_updated(function)), chosen, inside)


def _outermost(body: Iterable[Node]) -> Iterator[For]:
    """The `for`s that are in no other."""
    for node in body:
        if isinstance(node, For):
            yield node
        elif isinstance(node, If | While):
            yield from _outermost(children(node))


def _updated(function: Function) -> Iterator[str]:
    for node in every((Assign, Update), *function.body):
        match node:
            case Update(Var(name)):
                yield name
            case Assign(Var(), Call("min" | "max") | Choose()):
                pass  # it may be the value that it was
            case Assign(Var(name), value) if name in names_in(value):
                yield name
            case _:
                pass


def _is_chosen(name: str, loop: Stmt) -> bool:
    """Whether a loop compares a name, and gives it values, and does nothing else with it."""
    tests = count_names([node.test for node in every(If, loop)], name)
    given = [node for node in every(Assign, loop) if name in assigned_by(node)]
    own = [node if isinstance(node.target, Var) else node.target for node in given]
    return count_names((loop,), name) == tests + count_names(own, name)
