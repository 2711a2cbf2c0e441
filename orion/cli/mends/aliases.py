"""Which names of a function may stand for the same array, as views of each other or as one object."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from orion.cli.mends.facts import FORM, PURE_OWNERS, base_of, is_pure_call, loaded, walked

FRESH = (
    "abs", "int", "float", "bool", "len", "range", "zeros", "ones", "empty", "full", "zeros_like", "ones_like",
    "empty_like", "full_like", "arange", "linspace", "copy", "sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "floor",
    "ceil", "sum", "mean", "dot",
)  # fmt: skip
"""Functions whose results share no elements with their arguments."""

UNKNOWN = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.Match | ast.Global | ast.Nonlocal
"""What may bind or change names in ways that are not followed."""


def has_another_name(function: ast.FunctionDef, arrays: Iterable[str]) -> bool:
    """Whether another name of a function, bound before or after, may stand for elements of one of these arrays. Those
    of its arguments do not: a call refuses arguments that share elements."""
    if any(isinstance(node, UNKNOWN) for node in walked(function.body)):
        return True
    pairs = list(_pairs(function))
    return any(_same(pairs, {array}) != {array} for array in arrays)


def is_changed_unseen(function: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a function may change arrays of these names by another name, or by a call."""
    if any(isinstance(node, UNKNOWN) for node in walked(function.body)):
        return True
    same = _same(list(_pairs(function)), names)
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and not is_pure_call(node)]
    given = loaded(*(one for call in calls if not _is_copy(call) for one in (call.func, *call.args, *call.keywords)))
    return bool(elements_changed(*function.body) & (same - names) or given & same)


def elements_changed(*nodes: ast.AST) -> set[str]:
    """Return the names of which statements set elements; `v += 1` sets those of an array."""
    found = set()
    for node in walked(nodes):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(base_of(node))
        elif isinstance(node, ast.AugAssign):
            found.add(base_of(node.target))
    return found


def _same(pairs: list[tuple[str, str]], names: set[str]) -> set[str]:
    """Return names, and all that may stand for elements of theirs."""
    found = set(names)
    while True:
        more = {one for pair in pairs if found & set(pair) for one in pair}
        if more <= found:
            return found
        found |= more


def _pairs(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Yield pairs of names, one bound to what may be elements of the other."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets, value):
                for target in targets:
                    yield from _bound(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target, value):
                yield from _bound(target, value)
            case ast.For(target, space) | ast.comprehension(target, space):
                yield from _bound(target, space)
            case ast.withitem(context, ast.expr() as target):
                yield from _bound(target, context)
            case _:
                pass


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    match target, value:
        case ast.Tuple(ones) | ast.List(ones), ast.Tuple(values) | ast.List(values) if len(ones) == len(
            values
        ) and not any(isinstance(one, ast.Starred) for one in (*ones, *values)):
            for one, its in zip(ones, values, strict=True):
                yield from _bound(one, its)
        case _:
            names = (
                node for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            )
            sources = _sources(value)
            yield from ((node.id, source) for node in names for source in sources)


def _sources(node: ast.expr) -> set[str]:
    """Return the names of which a value may have elements."""
    match node:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Constant():
            return set()
        case ast.Attribute(attr=name) if name in FORM:
            return set()
        case ast.Subscript(inner) | ast.Attribute(inner) | ast.Starred(inner) | ast.NamedExpr(value=inner):
            return _sources(inner)
        case ast.Call() if _is_fresh(node):
            return set()
        case _:
            return loaded(node) - {*PURE_OWNERS}


def _is_fresh(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(name):
            return name in FRESH and is_pure_call(call)
        case ast.Attribute(ast.Name(owner), name) if owner in PURE_OWNERS:
            return (name in FRESH or owner == "math") and is_pure_call(call)
        case _:
            return _is_copy(call)


def _is_copy(call: ast.Call) -> bool:
    """`x.copy()`"""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "copy" and not call.args and not call.keywords
