"""Lists that loops append to now and then, as arrays of as many items as they may get, with the number of those they
have.

    losses = []                         losses_length = 0          # with `losses` a new array of n numbers
    for i in range(n):                  for i in range(n):
        if i % 10 == 0:                     if i % 10 == 0:
            losses.append(e)                    losses[losses_length] = e
                                                losses_length += 1
        if e < 1e-6:                        if e < 1e-6:
            break                               break
    return losses                       return losses[:losses_length]            # a list again for the caller

Each `append` stands in `for`s whose trips are known where the list is made, and in no `while`, so that it is clear how
many items there are at most. Beside that the list is returned, counted by `len`, gone through by a `for` that appends
nothing to it, asked for an item by a number or a name, or what functions of NumPy are given that do the same with an
array. `losses[-1]` is `losses[losses_length - 1 if losses_length >= 1 else len(losses)]`, where `len(losses)`, of the
array, is no place in it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import TypeVar

import numpy as np

from orion.dataclass import dataclass
from orion.frontend.lists import (
    ARRAYS,
    appended,
    blocks_of,
    fresh_name,
    makes_lists,
    names_of,
    new_list,
    scoped_names,
    uses_of,
)

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class CountedList:
    """What is known of such a list: the name of the number of its items, the `for`s around each `append`, outermost
    first, and the names that are assigned from where it is made on."""

    length: str
    loops: tuple[tuple[ast.For, ...], ...]
    assigned: frozenset[str]


def counted_lists(definition: ast.FunctionDef, outer: Mapping[str, object], others: Set[str]) -> dict[str, CountedList]:
    """Such lists in the source of a function, which is changed to count their items; `others` are lists that are left
    as they are, and `outer` the names that the function has from outside."""
    if not makes_lists(definition):
        return {}
    numpys = frozenset(name for name, value in outer.items() if value is np)
    used, scoped = Counter(names_of(definition)), scoped_names(definition) | others
    taken = {*names_of(definition), *(part.arg for part in ast.walk(definition) if isinstance(part, ast.arg))}
    found: dict[str, CountedList] = {}
    for block in [*blocks_of(definition)]:
        for at, statement in enumerate(block):
            name = new_list(statement)
            if name is None or name in scoped:
                continue
            rest = block[at + 1 :]
            loops = [*_appends(rest, name, ())]
            mentions = 1 + len(loops) + sum(uses_of(one, name, numpys) + _reads(one, name) for one in rest)
            if loops and used[name] == mentions and not any(_is_of(loop, name) for each in loops for loop in each):
                found[name] = CountedList(fresh_name(f"{name}_length", taken), tuple(loops), _assigned(rest))
    for name, one in found.items():
        counting = _Counting(name, one.length, taken)
        definition.body = [new for old in definition.body for new in counting.statements(old)]
    return found


def _appends(body: list[ast.stmt], name: str, around: tuple[ast.For, ...]) -> Iterator[tuple[ast.For, ...]]:
    """The `for`s around each statement that appends to a list, of those that are in nothing but these and `if`s."""
    for statement in body:
        match statement:
            case ast.Expr() if (found := appended(statement)) and found[0] == name:
                yield around
            case ast.For(body=inside, orelse=orelse):
                yield from _appends(inside, name, (*around, statement))
                yield from _appends(orelse, name, around)
            case ast.If(body=inside, orelse=orelse):
                yield from _appends([*inside, *orelse], name, around)


def _reads(node: ast.AST, name: str) -> int:
    """How many `for`s go through a list, and how often it is asked for an item."""
    nodes = [*ast.walk(node)]
    return sum((isinstance(one, ast.For) and _is_of(one, name)) or _item_of(one, name) is not None for one in nodes)


def _item_of(node: ast.AST, name: str) -> ast.expr | None:
    """The place of an item that a list is asked for."""
    match node:
        case ast.Subscript(ast.Name(other), place, ast.Load()) if other == name:
            match place:
                case ast.Name() | ast.Constant(int()) | ast.UnaryOp(ast.USub(), ast.Constant(int())):
                    return place
    return None


def _is_of(loop: ast.For, name: str) -> bool:
    return isinstance(loop.iter, ast.Name) and loop.iter.id == name


def _assigned(body: list[ast.stmt]) -> frozenset[str]:
    nodes = (node for statement in body for node in ast.walk(statement))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


@dataclass(slots=True)
class _Counting(ast.NodeTransformer):
    """Writes a list as its array and the number of its items."""

    name: str
    length: str
    taken: set[str]

    def statements(self, statement: ast.stmt) -> list[ast.stmt]:
        """What a statement at the top level of the function becomes."""
        found = self.visit(statement)
        return found if isinstance(found, list) else [found]

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        item = appended(node)
        if item is None or item[0] != self.name:
            return self.generic_visit(node)
        value = self.visit(item[1])
        value = ast.copy_location(ast.Tuple(value.elts, ast.Load()), value) if isinstance(value, ast.List) else value
        place = ast.Subscript(ast.Name(self.name, ast.Load()), ast.Name(self.length, ast.Load()), ast.Store())
        stored = ast.Assign([place], value)
        counted = ast.AugAssign(ast.Name(self.length, ast.Store()), ast.Add(), ast.Constant(1))
        return [_located(stored, node), _located(counted, node)]

    def visit_For(self, node: ast.For) -> ast.AST:
        if _is_of(node, self.name):
            node.iter = self.items(node.iter)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Name("len"), [ast.Name(name)], []) if name == self.name:
                return _located(ast.Name(self.length, ast.Load()), node)
            case ast.Call(ast.Attribute(ast.Name()), [ast.Name(name)], []) if name == self.name:
                node.args = [self.items(node.args[0])]
                return node
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        place = _item_of(node, self.name)
        if place is None:
            return self.generic_visit(node)
        node.slice = _located(self.place(ast.unparse(place)), node)
        return node

    def place(self, place: str) -> ast.expr:
        """Where an item is: counted from the end if that is negative, and beyond the array where there is none."""
        length, none = self.length, f"len({self.name})"
        if place.strip("-0") == "":
            text = f"0 if 0 < {length} else {none}"
        elif place.startswith("-"):
            text = f"{length} - {place[1:]} if {length} >= {place[1:]} else {none}"
        elif place.isdigit():
            text = f"{place} if {place} < {length} else {none}"
        else:
            from_end = f"{length} + {place} if -{length} <= {place} < 0 else {none}"
            text = f"{place} if 0 <= {place} < {length} else {from_end}"
        made = ast.parse(text, mode="eval").body
        for part in ast.walk(made):
            for field in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
                if hasattr(part, field):
                    delattr(part, field)
        return made

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        before: list[ast.stmt] = []
        match node.value:
            case ast.Tuple(parts):
                node.value.elts = [self.returned(part, before) for part in parts]
            case ast.expr():
                node.value = self.returned(node.value, before)
        return [*before, node] if before else node

    def returned(self, value: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """A part of what is returned; an array of the list is made `before` of all that it may get, and cut."""
        match value:
            case ast.Name(name) if name == self.name:
                return self.items(value)
            case ast.Call(ast.Attribute(ast.Name(), function), [ast.Name(name)], []) if (
                name == self.name and function in ARRAYS
            ):
                made = fresh_name(f"{self.name}_array", self.taken)
                before.append(_located(ast.Assign([ast.Name(made, ast.Store())], value), value))
                return self.items(value, made)
            case _:
                found = self.visit(value)
                assert isinstance(found, ast.expr)
                return found

    def items(self, like: ast.expr, name: str = "") -> ast.expr:
        """The items that there are."""
        stop = ast.Slice(None, ast.Name(self.length, ast.Load()), None)
        return _located(ast.Subscript(ast.Name(name or self.name, ast.Load()), stop, ast.Load()), like)


def _located(node: Node, like: ast.AST) -> Node:
    """A new node, and what is new in it, where `like` stands."""
    for part in ast.walk(node):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, like)
    return node
