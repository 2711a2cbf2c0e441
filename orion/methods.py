"""Functions of a class that are decorated: loops know no `self`, and the error says how to write them."""

from __future__ import annotations

import ast
import sys
from types import FunctionType

from orion.errors import ArgumentError, UnsupportedLoopError, describe
from orion.frontend.locate import Located, locate, span_of

FIRST = ("self", "cls")


def is_method(function: FunctionType) -> bool:
    """Whether a function is written in a class, with the object or the class as its first parameter."""
    code = function.__code__
    outer = function.__qualname__.rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>") and code.co_varnames[: code.co_argcount][:1] in _FIRST


_FIRST = [(name,) for name in FIRST]


def method_refusal(function: FunctionType) -> ArgumentError:
    """The error for a call of a method: what to write, with what the method uses of its object."""
    name, first = function.__name__, function.__code__.co_varnames[0]
    owner = function.__qualname__.split(".")[-2]
    rest = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    what = f"`{owner}.{name}` is a method, and a loop cannot look into `{first}`"
    why = "a loop takes numbers, NumPy arrays and Orion's arrays"
    try:
        located = locate(function)
    except UnsupportedLoopError:
        return ArgumentError(describe(what, why=why, hint=_hint(name, first, [], rest)))
    definition = located.definition
    span = span_of(definition, located.source, until=definition.args.args[-1])
    hint = _hint(name, first, _attributes(located, first), rest)
    return ArgumentError(describe(what, span=span, source=located.source, why=why, hint=hint))


def _attributes(located: Located, first: str) -> list[str]:
    """What the body takes from its object, in the order of the source."""
    found = [
        node
        for node in ast.walk(located.definition)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == first
    ]
    return list(dict.fromkeys(node.attr for node in sorted(found, key=lambda node: (node.lineno, node.col_offset))))


def _hint(name: str, first: str, attributes: list[str], rest: tuple[str, ...]) -> str:
    params = list(dict.fromkeys([*attributes, *rest]))
    given = [f"{first}.{name}" if name in attributes else name for name in params]
    return (
        f"write `@staticmethod` above `@orion.parallel_for`, `def {name}({', '.join(params)})` with these names in the "
        f"body, and call `{first}.{name}({', '.join(given)})`"
    )


def imported(module: str, name: str) -> object:
    """Return the object that another process gets by importing a module and looking up a name there."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
