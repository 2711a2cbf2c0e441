"""Code with other names: of variables, by names or, where they are only read, by constants; of functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from operator import is_
from typing import Any, TypeVar

from orion.ir.function import Function
from orion.ir.nodes import IS_NODE, PARTS, Bind, Const, Count, Dim, Elements, Node, Range, Var
from orion.ir.rewriting import with_new
from orion.ir.spans import with_span

N = TypeVar("N", bound=Node)
F = TypeVar("F", bound=Node | Function)
Names = Mapping[str, str | Const]


def renamed(node: N, names: Names) -> N:
    """The node with every name that is in `names` replaced, where it is read and where it is assigned.

    >>> from orion.ir.printer import print_expr
    >>> from orion.ir.spans import NOWHERE
    >>> print_expr(renamed(Var("x", NOWHERE), {"x": "y"}))
    'y'
    """
    if not names:
        return node
    result: Any = with_new(node, **{name: _part(getattr(node, name), names) for name in PARTS[type(node)]})  # type: ignore[index]
    match result:
        case Var(name) if name in names:
            found = names[name]
            result = with_span(found, result.span) if isinstance(found, Const) else replace(result, name=found)
        case Dim(array) | Count(array):
            result = with_new(result, array=_name(array, names))
        case Elements(array, keys, values):
            keys, values = (tuple(_name(name, names) for name in group) for group in (keys, values))
            result = replace(result, array=_name(array, names), keys=keys, values=values)
        case Bind(name):
            result = with_new(result, name=_name(name, names))
        case Range(var):
            result = with_new(result, var=_name(var, names))
        case _:
            pass
    return result  # type: ignore[no-any-return]


def with_functions(node: F, functions: Mapping[str, str]) -> F:
    """The node, or function, with the functions that it calls renamed.

    >>> from orion.ir.nodes import Call
    >>> from orion.ir.printer import print_expr
    >>> from orion.ir.spans import NOWHERE
    >>> print_expr(with_functions(Call("helper:f", (Var("x", NOWHERE),), NOWHERE), {"helper:f": "helper:g"}))
    'g(x)'
    """
    found: F = _with_functions(node, functions) if functions else node
    return found


def _with_functions(node: Any, functions: Mapping[str, str]) -> Any:
    if isinstance(node, tuple):
        return tuple(_with_functions(item, functions) for item in node)
    if type(node) not in IS_NODE and not isinstance(node, Function):
        return functions.get(node, node) if isinstance(node, str) else node
    parts = {field.name: _with_functions(getattr(node, field.name), functions) for field in fields(node)}
    return replace(node, **parts)


def _name(name: str, names: Names) -> str:
    found = names.get(name, name)
    return found if isinstance(found, str) else name


def _part(value: Any, names: Names) -> Any:
    if type(value) in IS_NODE:
        return renamed(value, names)
    if type(value) is tuple:
        items = tuple([_part(item, names) for item in value])
        return value if all(map(is_, items, value)) else items
    return value


def fresh(name: str, taken: set[str]) -> str:
    """The name, with underscores added until it is not among those `taken`; it is then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
