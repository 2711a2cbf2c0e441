"""Definite assignment: which uses of a name come where it is not sure that the name has a value."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from orion.loop.ir import (
    Assign,
    Bind,
    Break,
    Const,
    Continue,
    Elements,
    Expr,
    For,
    If,
    Node,
    Range,
    Return,
    Stmt,
    Tuple,
    Var,
    While,
    walk,
)  # fmt: skip
from orion.loop.source import Span

Names = frozenset[str] | None
"""The names that surely have a value; None where control does not come at all."""


def unsure_reads(body: Iterable[Stmt], defined: Set[str]) -> dict[str, Span]:
    """The names that may be read before they have a value, each with the first such place. `defined` have one.

    A branch, and the body of a loop, may not run: what only they assign is not sure after them. `while True` does run.
    """
    flow = _Flow()
    flow.block(body, frozenset(defined))
    return flow.unsure


def surely_defined(body: Iterable[Stmt], defined: Set[str]) -> frozenset[str]:
    """The names that surely have a value after the statements, where `defined` have one before."""
    return _Flow().block(body, frozenset(defined)) or frozenset()


@dataclass(slots=True)
class _Flow:
    """`unsure` collects the uses; `breaks` are the names that are sure at each `break` of the innermost loop."""

    unsure: dict[str, Span] = field(default_factory=dict)
    breaks: list[frozenset[str]] = field(default_factory=list)

    def block(self, body: Iterable[Stmt], defined: Names) -> Names:
        for statement in body:
            if defined is None:
                break
            defined = self.statement(statement, defined)
        return defined

    def statement(self, statement: Stmt, defined: frozenset[str]) -> Names:
        match statement:
            case Assign(target, value):
                self.reads(value, defined)
                return self.assigned(target, defined)
            case Bind(name, row):
                self.reads(row, defined)
                return defined | {name}
            case If(test, body, orelse):
                self.reads(test, defined)
                return _both(self.block(body, defined), self.block(orelse, defined))
            case While(test, body):
                return self.while_loop(test, body, defined)
            case For(space, body):
                return self.for_loop(space, body, defined)
            case Break():
                self.breaks.append(defined)
                return None
            case Continue():
                return None
            case _:
                self.reads(statement, defined)
                return None if isinstance(statement, Return) else defined

    def while_loop(self, test: Expr, body: tuple[Stmt, ...], defined: frozenset[str]) -> Names:
        self.reads(test, defined)
        breaks, _ = self.loop_body(body, defined)
        if not isinstance(test, Const) or not test.value:
            return defined
        after: Names = None
        for names in breaks:
            after = _both(after, names)
        return after

    def for_loop(self, space: Range | Elements, body: tuple[Stmt, ...], defined: frozenset[str]) -> Names:
        self.reads(space, defined)
        own = {space.var} if isinstance(space, Range) else {*space.keys, *space.values}
        breaks, after = self.loop_body(body, defined | own)
        return after if _has_trips(space) and not breaks else defined

    def loop_body(self, body: tuple[Stmt, ...], defined: frozenset[str]) -> tuple[list[frozenset[str]], Names]:
        """Go through the body of a loop: the names that are sure at each of its `break`s, and at its end."""
        around, self.breaks = self.breaks, []
        after = self.block(body, defined)
        found, self.breaks = self.breaks, around
        return found, after

    def assigned(self, target: Node, defined: frozenset[str]) -> frozenset[str]:
        match target:
            case Var(name):
                return defined | {name}
            case Tuple(items):
                for item in items:
                    defined = self.assigned(item, defined)
                return defined
            case _:
                self.reads(target, defined)
                return defined

    def reads(self, node: Node, defined: frozenset[str]) -> None:
        for part in walk(node):
            if isinstance(part, Var) and part.name not in defined:
                self.unsure.setdefault(part.name, part.span)


def _has_trips(space: Range | Elements) -> bool:
    """Whether the body runs at least once for sure: a range between constants. (`continue` makes an end unsure.)"""
    match space:
        case Range(_, Const(int(start)), Const(int(stop)), Const(int(step))):
            return len(range(start, stop, step)) > 0
        case _:
            return False


def _both(first: Names, second: Names) -> Names:
    """What is sure where two ways meet."""
    if first is None or second is None:
        return first if second is None else second
    return first & second
