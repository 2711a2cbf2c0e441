"""What mends ask of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable

PURE_OWNERS = ("np", "numpy", "math")
CHANGE = ("copyto", "put", "putmask", "put_along_axis", "place", "fill_diagonal", "random", "shuffle")
PURE = ("abs", "min", "max", "len", "int", "float", "bool", "range")


def stored(*nodes: ast.AST) -> set[str]:
    """Return the names that get a value, or elements of which do."""
    found = set()
    for node in walked(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(base_of(node))
    return found


def loaded(*nodes: ast.AST) -> set[str]:
    """Return the names that are read."""
    return {node.id for node in walked(nodes) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


FORM = ("shape", "size", "ndim", "dtype")
"""What of an array does not change when its elements do."""


def values_read(*nodes: ast.AST) -> set[str]:
    """Return the names that are read but for the shapes of arrays, which stores do not change."""
    of_form = {
        id(node.value)
        for node in walked(nodes)
        if isinstance(node, ast.Attribute) and node.attr in FORM and isinstance(node.value, ast.Name)
    }
    calls = (node for node in walked(nodes) if isinstance(node, ast.Call))
    of_form |= {
        id(one) for call in calls if isinstance(call.func, ast.Name) and call.func.id == "len" for one in call.args
    }
    names = (node for node in walked(nodes) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return {node.id for node in names if id(node) not in of_form}


def has_own_elements(loop: ast.For, array: str) -> bool:
    """Whether each iteration of a loop uses elements of an array that no other one uses: all its subscripts have the
    loop variable alone at the same place, and nothing gives that another value."""
    if not isinstance(loop.target, ast.Name) or loop.target.id in stored(*loop.body):
        return False
    variable = loop.target.id
    uses = [node for node in ast.walk(loop) if isinstance(node, ast.Subscript) and _is_name(node.value, array)]
    inside = {id(one.value) for one in uses}
    names = [node for node in walked(loop.body) if _is_name(node, array)]
    of_values = array in values_read(*loop.body) or array in stored(*loop.body)
    if not of_values or any(id(one) not in inside for one in names if not _is_of_form(one, loop)):
        return False
    places = [{k for k, axis in enumerate(_axes(one)) if _is_name(axis, variable)} for one in uses]
    return bool(places) and bool(set.intersection(*places))


def _axes(node: ast.Subscript) -> list[ast.expr]:
    axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    whole = next((k for k, axis in enumerate(axes) if isinstance(axis, ast.Constant | ast.Starred)), len(axes))
    return axes[:whole]  # after None and ... places are others


def _is_of_form(name: ast.AST, loop: ast.For) -> bool:
    attributes = (node for node in ast.walk(loop) if isinstance(node, ast.Attribute) and node.attr in FORM)
    return any(node.value is name for node in attributes)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def walked(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Yield all nodes inside of some."""
    return (inner for node in nodes for inner in ast.walk(node))


def base_of(node: ast.expr) -> str:
    """Return the name of what a subscript or an attribute is of; empty where it is of no name."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_pure(*nodes: ast.AST) -> bool:
    """Whether nodes may be evaluated once more, and elsewhere, without another effect."""
    for node in walked(nodes):
        if isinstance(node, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await | ast.Lambda):
            return False
        if isinstance(node, ast.Call) and not is_pure_call(node):
            return False
    return True


def is_pure_call(call: ast.Call) -> bool:
    """Whether a call changes none of its arguments."""
    if any(one.arg in (None, "out", "copy") for one in call.keywords):
        return False
    match call.func:
        case ast.Name(name):
            return name in PURE
        case ast.Attribute(ast.Name(owner), name):
            return owner in PURE_OWNERS and name not in CHANGE
        case _:
            return False


def has_long_text(*nodes: ast.AST) -> bool:
    """Whether a text goes over several lines, which another indentation would change."""
    texts = (node for node in walked(nodes) if isinstance(node, ast.Constant | ast.JoinedStr))
    return any((node.end_lineno or node.lineno) > node.lineno for node in texts)
