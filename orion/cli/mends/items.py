"""Mends that give the items of a tuple names, and that give a name's later values another name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from orion.cli.mends.aliases import UNKNOWN, elements_changed, is_changed_unseen
from orion.cli.mends.facts import loaded
from orion.cli.mends.text import Edit, Source


def with_items(source: Source, target: ast.Name, text: str) -> list[Edit] | None:
    """Return the changes that write names for the items of a tuple in the place of its name, and for `name[0]` where it
    is used; None where it is used as a whole, or has more than one value."""
    names = [one.strip() for one in text.split(",")]
    function = function_of(source, target)
    if function is None or not _are_new(source, function, names):
        return None
    above = {id(child): node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    used = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == target.id]
    edits = [Edit(source.start(target), source.end(target), _target(above[id(target)], text))]
    for node in used:
        if node is target:
            continue
        part = above[id(node)]
        place = _place(part, node)
        if place is None or not -len(names) <= place < len(names):
            return None
        assert isinstance(part, ast.Subscript)
        edits.append(Edit(source.start(part), source.end(part), names[place]))
    is_argument = any(isinstance(one, ast.arg) and one.arg == target.id for one in ast.walk(function))
    return None if is_argument else edits


def _target(above: ast.AST, text: str) -> str:
    return text if isinstance(above, ast.Assign | ast.For) else f"({text})"


def _place(part: ast.AST, name: ast.Name) -> int | None:
    """The constant place of which a subscript of a name is read."""
    match part:
        case ast.Subscript(value, ast.Constant(int(place)), ast.Load()) if value is name:
            return place
        case ast.Subscript(value, ast.UnaryOp(ast.USub(), ast.Constant(int(place))), ast.Load()) if value is name:
            return -place
        case _:
            return None


def with_other_name(source: Source, target: ast.Name, text: str) -> list[Edit] | None:
    """Return the changes that give a name another one from an assignment on; None where what is read afterwards may
    have been given before, or what was read before be given here."""
    function = function_of(source, target)
    if function is None or not _are_new(source, function, [text]):
        return None
    for block in _blocks(function):
        for number, statement in enumerate(block):
            match statement:
                case ast.Assign([found], value) if found is target:
                    return _renamed(source, function, block, number, value, text)
                case _:
                    pass
    return None


def _renamed(
    source: Source, function: ast.FunctionDef, block: list[ast.stmt], number: int, value: ast.expr, text: str
) -> list[Edit] | None:
    made = block[number]
    assert isinstance(made, ast.Assign)
    (target,) = made.targets
    assert isinstance(target, ast.Name)
    later = [*_named(block[number + 1 :], target.id), target]
    earlier = _named([*block[:number], value], target.id)
    known = {id(node) for node in (*later, *earlier)}
    others = [node for node in _named([function], target.id) if id(node) not in known]
    if block is not function.body and (others or (earlier and not _begins(block[:number], target.id))):
        return None
    return [Edit(source.start(node), source.end(node), text) for node in later]


def _begins(block: list[ast.stmt], name: str) -> bool:
    """Whether the first statement with a name gives it a value that does not depend on it."""
    first = next(statement for statement in block if _named([statement], name))
    match first:
        case ast.Assign([ast.Name(found)], value):
            return found == name and not _named([value], name)
        case _:
            return False


def is_only_read(source: Source, value: ast.expr) -> bool:
    """Whether nothing writes to what a name is given, nor to the array that it is of: a copy is then the same."""
    function = function_of(source, value)
    for node in () if function is None else ast.walk(function):
        match node:
            case ast.Assign([ast.Name(name)], found) if found is value and function is not None:
                names = {name, *loaded(value)}
                return not elements_changed(*function.body) & names and not is_changed_unseen(function, names)
            case _:
                pass
    return False


def _named(nodes: Iterable[ast.AST], name: str) -> list[ast.Name]:
    return [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name]


def function_of(source: Source, node: ast.AST) -> ast.FunctionDef | None:
    """Return the function that a node is in; None where it has another inside, or names are not followed."""
    for function in ast.walk(source.tree):
        if isinstance(function, ast.FunctionDef) and any(one is node for one in ast.walk(function)):
            is_known = not any(isinstance(one, UNKNOWN) for part in function.body for one in ast.walk(part))
            return function if is_known else None
    return None


def _are_new(source: Source, function: ast.FunctionDef, names: list[str]) -> bool:
    taken = set(re.findall(r"\w+", source.of(function)))
    return all(name.isidentifier() and name not in taken for name in names) and len(set(names)) == len(names)


def _blocks(node: ast.AST) -> Iterable[list[ast.stmt]]:
    for one in ast.walk(node):
        for _, block in ast.iter_fields(one):
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block
