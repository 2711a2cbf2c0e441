"""Loop variables that are read after their loop.

The trips of a planned loop are made in any order, on any worker: its variables have no value afterwards. Where one is
read there, the loop keeps it in a scalar of its own:

    for i in range(n):                    for i in range(n):
        if a[i] == x:                         last_i = i
            break                             if a[i] == x:
    return i                                      break
                                          i = last_i
                                          return i
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assigned_by
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Elements,
    For,
    If,
    Node,
    Range,
    Stmt,
    Tuple,
    Update,
    Var,
    Walked,
    While,
    children,
    count_names,
    every,
)  # fmt: skip
from orion.ir.program import SYNTHETIC
from orion.ir.refuse import unsupported
from orion.passes.dimensions import perfect_loops
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.value_type import ValueType


@dataclass(frozen=True, slots=True)
class LoopVariables:
    """Looks for reads of loop variables after planned loops. `names` are those that are not in `typing`."""

    function: Function
    typing: Typing
    names: dict[str, ValueType]

    def kept(self, body: tuple[Stmt, ...], after: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements, with variables that are read later kept by their loops. `after` is what may run next."""
        found: list[Stmt] = []
        for number, unit in enumerate(body):
            rest = (*body[number + 1 :], *after)
            if not isinstance(unit, For | If | While) or not _holds_planned(unit):
                found += self.keep(unit, rest) if isinstance(unit, For) else [unit]
                continue
            inside = rest if isinstance(unit, If) else (unit, *rest)
            changed = replace(unit, body=self.kept(unit.body, inside))
            if isinstance(changed, If):
                changed = replace(changed, orelse=self.kept(changed.orelse, inside))
            found.append(changed)
        return tuple(found)

    def check(self, body: tuple[Stmt, ...]) -> None:
        """UnsupportedLoopError where a variable of a planned loop in `body` is read anywhere in the function but in
        loops over it."""
        for unit in body:
            if isinstance(unit, For | If | While) and _holds_planned(unit):
                self.check((*unit.body, *(unit.orelse if isinstance(unit, If) else ())))
            elif isinstance(unit, For):
                for name in _variables(unit):
                    for statement in self.function.body:
                        for span in _reads_elsewhere(statement, name):
                            raise self.lost(name, span)

    def keep(self, loop: For, rest: tuple[Stmt, ...]) -> Iterator[Stmt]:
        """A planned loop that keeps those of its variables that are read in `rest`."""
        names = _variables(loop)
        others = {*self.typing.names, *self.names} - names
        keepers: dict[str, str] = {}
        after: list[Stmt] = []
        for name, span in exposed_reads(rest, others).items():
            if isinstance(loop.space, Elements) or name in _set_by_statements(loop.body):
                raise self.lost(name, span)
            kept = self.fresh(f"last_{name}", self.typing.name(name))
            if name in self.function.params or name in _set_by_statements(self.function.body):
                yield Assign(Var(kept, loop.span), Var(name, loop.span), loop.span)  # where no trip is made
            keepers[name] = kept
            after.append(Assign(Var(name, loop.span), Var(kept, loop.span), loop.span))
        yield _keeping(loop, keepers)
        yield from after

    def lost(self, name: str, span: Span) -> UnsupportedLoopError:
        what = f"the loop variable `{name}` is read after its loop"
        why = "the iterations of a planned loop may be run in any order, by several workers"
        hint = f"keep it under another name: `last = {name}` in the loop"
        return unsupported(what, span, self.function.source, why=why, hint=hint, is_for_numba=True)

    def fresh(self, name: str, kind: ValueType) -> str:
        while name in self.typing.names or name in self.names:
            name += "_"
        self.names[name] = kind
        return name


def _variables(loop: For) -> set[str]:
    """The variables of a planned loop."""
    return {name for one in perfect_loops(loop) for name in assigned_by(one)}


def _reads_elsewhere(statement: Stmt, name: str) -> Iterator[Span]:
    """Where a name is read outside of the loops that have it as their variable. Inside one that stands around another
    such loop it may be read after that one."""
    if not count_names((statement,), name):
        return
    match statement:
        case For(space) if name in assigned_by(statement) and not _binds_inside(statement, name):
            parts: list[Node] = [space]
        case Assign(Var(), value):
            parts = [value]
        case _:
            parts = children(statement)
    for part in parts:
        if isinstance(part, Walked):
            yield from _reads_elsewhere(part, name)
        else:
            yield from (var.span for var in every(Var, part) if var.name == name)


def _binds_inside(loop: For, name: str) -> bool:
    return any(node is not loop and name in assigned_by(node) for node in every(For, loop))


def _holds_planned(unit: For | If | While) -> bool:
    """Whether it stands around planned loops, rather than being one or a statement between them."""
    inside = [node for node in every(For, unit) if node is not unit]
    if not isinstance(unit, For):
        return bool(inside)
    is_around = any(isinstance(node.space, Elements) or node.index == SYNTHETIC for node in inside)
    return is_around and isinstance(unit.space, Range)


def _set_by_statements(body: tuple[Stmt, ...]) -> set[str]:
    """The names that assignments set, not loops."""
    found: set[str] = set()
    for node in every((Assign, Update), *body):
        targets: tuple[Node, ...] = node.target.items if isinstance(node.target, Tuple) else (node.target,)
        found |= {target.name for target in targets if isinstance(target, Var)}
    return found


def _keeping(loop: For, keepers: Mapping[str, str]) -> For:
    """A perfect nest whose loops over the names in `keepers` set what these keep their values in, in every trip."""
    if not keepers:
        return loop
    assert isinstance(loop.space, Range)
    name, body = loop.space.var, loop.body
    further = {other: kept for other, kept in keepers.items() if other != name}
    if further:
        (inner,) = body
        assert isinstance(inner, For)
        body = (_keeping(inner, further),)
    if name in keepers:
        body = (Assign(Var(keepers[name], loop.span), Var(name, loop.span), loop.span), *body)
    return replace(loop, body=body)
