"""A proof that an inspector lists all accesses of its loop to some arrays, by comparing the two texts.

Let P be the loop and Q the inspector. Q lists whatever P touches where

    (1)  what Q has beside statements that list is P with statements left out: those that are left stand in the same
         order, in the same loops and conditions;
    (2)  every statement of P that assigns a name which Q reads is among them, and reads nothing that the function
         writes: so that name has the same values;
    (3)  for each access of P to one of the arrays, Q lists one with the same subscripts where that access would be, or
         outside of loops and conditions that are around it: then no name of these subscripts is assigned in these;
    (4)  no loop of Q may be left early in which names are assigned.

It is taken for granted that statements which list do so: they are recognized by the names they use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from orion.dependence.inspection import END, ENDS, FIRST, PLACES, Inspectable
from orion.errors import PlanError
from orion.ir.assigned import assigned_names
from orion.ir.function import Function
from orion.ir.nodes import (
    INTEGER,
    Assign,
    Binary,
    Break,
    Call,
    Continue,
    Dim,
    Elements,
    Expr,
    For,
    If,
    Node,
    Pass,
    Range,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    While,
    children,
    every,
    holds,
    names_in,
)
from orion.ir.program import LoopNest
from orion.ir.rewriting import rewrite
from orion.ir.spans import without_spans

N = TypeVar("N", bound=Node)

EXTENT = r"orion_extent_(\d+)_(.+)"
"""The name of the length of an array in an inspector, which is given it as a number."""

OWN = "orion_"
"""How the names of an inspector begin that the loop does not have."""

Path = tuple[int, ...]
"""The loops and conditions of the source that something stands in, outermost first, by the identity of their bodies."""


def prove_inspector(nest: LoopNest, inspectable: Inspectable, function: Function) -> None:
    """PlanError where an inspector may leave out an access."""
    _Comparison(nest, inspectable, function).run()


class _Comparison:
    def __init__(self, nest: LoopNest, inspectable: Inspectable, function: Function) -> None:
        self.source, self.inspectable, self.function = nest.loops[0], inspectable, function
        self.subscripts = dict(zip(inspectable.arrays, inspectable.keyed, strict=True))
        self.listed: dict[tuple[Any, ...], list[Path]] = {}
        self.kept: set[int] = set()
        written = [part for one in every((Assign, Update), *function.body) for part in _targets(one)]
        self.written = {part.base.name for part in written if isinstance(part, Subscript)}

    def run(self) -> None:
        loops = [one for one in self.inspectable.function.body if isinstance(one, For)]
        if len(loops) != 1 or not self.is_part(loops[0].space):
            raise PlanError("the inspector does not go through the iterations of the loop")
        self.match(loops[0].body, self.source.body, ())
        self.prove_names(loops[0])
        for use, path, changing in self.accesses(self.source.body, (), ()):
            key = self.key(use.base.name, [use.index[axis] for axis in self.subscripts[use.base.name]])
            is_write = any(use is part for one in every((Assign, Update), self.source) for part in _targets(one))
            found = [at for write in ({True} | {is_write}) for at in self.listed.get((*key, write), ())]
            if not any(self.covers(at, path, changing, use) for at in found):
                raise PlanError(f"the inspector does not list {use.base.name} in line {use.span.line}")

    def is_part(self, part: Range | Elements) -> bool:
        """Whether a range has the iterations of the loop from one number to another: from start + first · step to start
        + end · step, which the inspector is given."""
        whole = self.source.space
        match part:
            case Range(
                var, Binary("+", start, Binary("*", Var(first), step)), Binary("+", other, Binary("*", Var(end), by))
            ):
                mine = [var, *map(_bare, (start, other, step, by, part.step))]
                bounds = (
                    (whole.start, whole.start, whole.step, whole.step, whole.step) if isinstance(whole, Range) else ()
                )
                names = (first, end) == (FIRST, END)
                return names and isinstance(whole, Range) and mine == [whole.var, *map(_bare, bounds)]
        return False

    # ------------------------------------------------------------ (1)

    def match(self, own: Sequence[Stmt], source: Sequence[Stmt], path: Path) -> None:
        """Note what is listed and kept in part of the inspector; PlanError where the rest is not in the source."""
        at = 0
        names: dict[str, Expr] = {}
        for statement in own:
            if isinstance(statement, Pass) or self.is_listing(statement, names, path):
                continue
            alike = [k for k in range(at, len(source)) if _is_same(statement, source[k])]
            if not alike:
                raise PlanError("the inspector has a statement that the loop does not have")
            found = next((k for k in alike if source[k].span == statement.span), alike[0])  # any would prove it
            other, at = source[found], found + 1
            self.kept.add(id(other))
            for mine, theirs in zip(_bodies(statement), _bodies(other), strict=True):
                self.match(mine, theirs, (*path, id(theirs)))

    def is_listing(self, statement: Stmt, names: dict[str, Expr], path: Path) -> bool:
        """Whether a statement is one that lists; the elements that are listed are noted."""
        match statement:
            case Assign(Var(name), Call(function, (subscript,))) if name.startswith(OWN) and function == INTEGER:
                names[name] = subscript
                return True
            case If(test, _, ()) if any(one.array == PLACES for one in every(Dim, test)):
                self.note(statement, names, path)
                return True
            case If(_, (Update(Var(name)),), ()) | Update(Var(name)) if name.startswith(OWN):
                return True
            case Assign(Subscript(Var(name))) if name == ENDS:
                return True
        return False

    def note(self, statement: If, names: dict[str, Expr], path: Path) -> None:
        used = [node.name for node in every(Var, statement) if node.name in names]
        subscripts = [names[name] for name in dict.fromkeys(used)]
        is_write = any(_ends_in_one(one.value) for one in every(Assign, statement))
        for array, axes in self.subscripts.items():
            if len(axes) == len(subscripts):
                key = self.key(array, subscripts)
                self.listed.setdefault((*key, is_write), []).append(path)

    def key(self, array: str, subscripts: Iterable[Expr]) -> tuple[Any, ...]:
        return array, *map(_bare, subscripts)

    # ------------------------------------------------------------ (2) to (4)

    def prove_names(self, loop: For) -> None:
        needed = {name for name in names_in(*loop.body) if not name.startswith(OWN)}
        for one in every((Assign, Update), *self.source.body):
            names = {part.name for part in _targets(one) if isinstance(part, Var)}
            if names.isdisjoint(needed):
                continue
            if id(one) not in self.kept or not names_in(one.value).isdisjoint(self.written):
                raise PlanError(f"the inspector does not give {sorted(names)[0]} the values that the loop gives it")
        for inner in every((For, While), *self.source.body):
            assigns = any(id(one) in self.kept for one in every((Assign, Update), *inner.body))
            if assigns and holds((Break, Continue), *inner.body):
                raise PlanError("the inspector goes on where the loop is left")

    def accesses(
        self, body: Sequence[Stmt], path: Path, changing: tuple[frozenset[str], ...]
    ) -> Iterator[tuple[Subscript, Path, tuple[frozenset[str], ...]]]:
        """The accesses to the arrays, with the bodies that they stand in, and the names that change in each."""
        for statement in body:
            bodies = _bodies(statement)
            own = [part for part in children(statement) if not any(part in one for one in bodies)]
            for use in every(Subscript, *own):
                if use.base.name in self.subscripts:
                    yield use, path, changing
            bound = {statement.space.var} if isinstance(statement, For) else set()  # type: ignore[union-attr]
            for inside in bodies:
                names = frozenset(assigned_names(inside) | bound)
                yield from self.accesses(inside, (*path, id(inside)), (*changing, names))

    def covers(self, at: Path, path: Path, changing: tuple[frozenset[str], ...], use: Subscript) -> bool:
        """Whether what is listed in one place has the element of an access in another."""
        if path[: len(at)] != at:
            return False
        names = names_in(*(use.index[axis] for axis in self.subscripts[use.base.name]))
        return all(names.isdisjoint(one) for one in changing[len(at) :])


def _targets(statement: Assign | Update) -> Sequence[Expr]:
    return statement.target.items if isinstance(statement.target, Tuple) else (statement.target,)


def _bodies(statement: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    match statement:
        case If(_, body, orelse):
            return body, orelse
        case For(_, body) | While(_, body):
            return (body,)
        case _:
            return ()


def _is_same(one: Stmt, other: Stmt) -> bool:
    """Whether two statements are the same, but for what stands in them."""
    match one, other:
        case If(first), If(second):
            return _bare(first) == _bare(second)
        case While(first), While(second):
            return _bare(first) == _bare(second)
        case For(first), For(second):
            return _bare(first) == _bare(second)
        case ((Assign() | Update()), (Assign() | Update())):
            return _bare(one) == _bare(other)
        case _:
            return False


def _bare(code: N) -> N:
    """Code to be compared: without places, and with the lengths of arrays as the loop has them."""

    def length(expr: Expr) -> Expr:
        named = re.fullmatch(EXTENT, expr.name) if isinstance(expr, Var) else None
        return expr if named is None else Dim(named[2], int(named[1]), expr.span)

    return without_spans(rewrite(code, length))


def _ends_in_one(value: Expr) -> bool:
    """Whether what is listed says that the element is written: the last number that is added is 1."""
    parts = children(value)
    last = parts[-1] if parts else value
    return getattr(last, "value", None) == 1
