"""Lists and tuples of numbers that a name stands for, written where they are gone through.

offsets = [(1, 0), (0, 1)]               for di, dj in ((1, 0), (0, 1)):
for di, dj in offsets:                       …
    …

A list that is made once, of numbers, and never does anything but be gone through, counted, or asked for one of its
elements by a number, is the same each time: it need not be an object.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator

from orion.frontend.syntax import nodes_of

BUILTIN = ("enumerate", "len", "reversed", "zip")
"""Functions of Python's own that go through a list, or count it."""


def write_out_lists(definition: ast.FunctionDef, outer: Collection[str]) -> None:
    """Write such lists, in the source of a function, in the places of their names; `outer` are the names that it has
    from outside."""
    found = dict(_lists(definition))
    if not found:
        return
    own = {node.id for node in ast.walk(definition) if _binds(node) and isinstance(node, ast.Name)}
    kept = _Kept(found, frozenset(BUILTIN) - own.union(outer))
    kept.visit(definition)
    names = {name for name in found if name not in kept.lost}
    if names:
        _Writer({name: found[name] for name in names}).visit(definition)


def _lists(definition: ast.FunctionDef) -> Iterator[tuple[str, ast.Tuple]]:
    """The names that the function gives a value once, before all that follows, which is a list of numbers."""
    sequences = [
        one for one in definition.body if isinstance(one, ast.Assign) and isinstance(one.value, ast.List | ast.Tuple)
    ]
    if not sequences:
        return
    nodes = nodes_of(definition)
    given = Counter(node.id for node in nodes if _binds(node) and isinstance(node, ast.Name))
    others = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    others |= {part.arg for part in ast.walk(definition.args) if isinstance(part, ast.arg)}
    for statement in sequences:
        match statement:
            case ast.Assign([ast.Name(name)], ast.List() | ast.Tuple() as value) if given[name] == 1:
                numbers = _as_tuple(value)
                if name not in others and isinstance(numbers, ast.Tuple) and numbers.elts:
                    yield name, numbers
            case _:
                pass


def _binds(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)


def _as_tuple(value: ast.expr) -> ast.expr | None:
    """A number as it is, a list or tuple of them as a tuple; None for anything else."""
    match value:
        case ast.Constant(int() | float()):
            return value
        case ast.UnaryOp(ast.USub() | ast.UAdd(), ast.Constant(int() | float())):
            return value
        case ast.List(items) | ast.Tuple(items):
            parts = [_as_tuple(item) for item in items]
            found = [part for part in parts if part is not None]
            return ast.copy_location(ast.Tuple(found, ast.Load()), value) if len(found) == len(parts) else None
        case _:
            return None


def _element(value: ast.Tuple, at: int) -> ast.expr | None:
    return value.elts[at] if -len(value.elts) <= at < len(value.elts) else None


class _Kept(ast.NodeVisitor):
    """Finds the names that are used otherwise, or before they have their value, in `lost`. `known` are Python's own
    functions that have no other meaning here."""

    def __init__(self, found: dict[str, ast.Tuple], known: Collection[str]) -> None:
        self.found = found
        self.known = known
        self.lost: set[str] = set()

    def visit_For(self, node: ast.For) -> None:
        self.through(node.iter)
        for part in (node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        is_counted = "len" in self.known and _name(node.func) == "len" and len(node.args) == 1
        if not (is_counted and self.is_known(node.args[0])):
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        at = _index(node)
        is_read = isinstance(node.ctx, ast.Load) and at is not None and self.is_known(node.value)
        if not is_read or _element(self.found[_name(node.value)], at or 0) is None:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.lost.add(node.id)

    def through(self, node: ast.expr) -> None:
        """What a loop goes through."""
        if isinstance(node, ast.Call) and _name(node.func) in self.known and _name(node.func) != "len":
            for part in node.args:
                self.through(part)
            for keyword in node.keywords:
                self.visit(keyword.value)
        elif not self.is_known(node):
            self.visit(node)

    def is_known(self, node: ast.expr) -> bool:
        """Whether an expression is such a list, which has been made."""
        value = self.found.get(_name(node))
        return value is not None and (node.lineno, node.col_offset) > (value.lineno, value.col_offset)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _index(node: ast.Subscript) -> int | None:
    match node.slice:
        case ast.Constant(int(at)) if not isinstance(at, bool):
            return at
        case ast.UnaryOp(ast.USub(), ast.Constant(int(at))):
            return -at
        case _:
            return None


class _Writer(ast.NodeTransformer):
    """Writes lists in the places of their names."""

    def __init__(self, found: dict[str, ast.Tuple]) -> None:
        self.found = found

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node.targets:
            case [ast.Name(name)] if name in self.found:
                return ast.copy_location(ast.Pass(), node)
            case _:
                return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(ast.Name("len"), [ast.Name(name)]) if name in self.found:
                return ast.copy_location(ast.Constant(len(self.found[name].elts)), node)
            case _:
                return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        at, value = _index(node), self.found.get(_name(node.value))
        element = None if at is None or value is None else _element(value, at)
        return self.generic_visit(node) if element is None else element

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.found.get(node.id, node) if isinstance(node.ctx, ast.Load) else node
