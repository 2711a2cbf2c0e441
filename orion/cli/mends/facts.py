"""What mends ask of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable

PURE_OWNERS = ("np", "numpy", "math")
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
        if isinstance(node, ast.Call) and not _is_pure_function(node.func):
            return False
    return True


def _is_pure_function(node: ast.expr) -> bool:
    match node:
        case ast.Name(name):
            return name in PURE
        case ast.Attribute(ast.Name(owner), name):
            return owner in PURE_OWNERS and name not in ("copyto", "put", "place", "fill_diagonal", "random", "shuffle")
        case _:
            return False


def has_long_text(*nodes: ast.AST) -> bool:
    """Whether a text goes over several lines, which another indentation would change."""
    texts = (node for node in walked(nodes) if isinstance(node, ast.Constant | ast.JoinedStr))
    return any((node.end_lineno or node.lineno) > node.lineno for node in texts)


def is_at_top(function: ast.FunctionDef, node: ast.stmt) -> bool:
    """Whether a statement stands in no loop of its function, so that it runs once."""
    loops = [one for one in ast.walk(function) if isinstance(one, ast.For | ast.While) and one is not node]
    return not any(inner is node for loop in loops for inner in ast.walk(loop))


def is_changed_unseen(function: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a function may change arrays of these names by another name, which may be a view, or by a call."""
    views = set(names)
    while True:
        found = views | {name for node in ast.walk(function) for name in _bound_to(node, views)}
        if found == views:
            break
        views = found
    for node in ast.walk(function):
        match node:
            case ast.AugAssign(target=ast.Name(name)) | ast.AugAssign(target=ast.Subscript(ast.Name(name))) if (
                name in views - names
            ):
                return True
            case ast.Subscript(ast.Name(name), ctx=ast.Store()) if name in views - names:
                return True
            case ast.Call(function_called, arguments) if not _is_pure_function(function_called):
                if loaded(*arguments, *node.keywords, function_called) & views:
                    return True
            case _:
                pass
    return False


def _bound_to(node: ast.AST, names: set[str]) -> set[str]:
    """The names that a node binds to what may be a view of arrays."""
    match node:
        case ast.Assign(targets, value) if not isinstance(value, ast.BinOp | ast.Compare | ast.Constant):
            return _bound(*targets) - names if loaded(value) & names else set()
        case ast.For(target, space):
            return _bound(target) - names if loaded(space) & names and not _is_range(space) else set()
        case _:
            return set()


def _bound(*targets: ast.expr) -> set[str]:
    """The names that are bound, rather than elements stored."""
    return {node.id for node in walked(targets) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
