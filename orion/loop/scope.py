"""What a name of the user's function stands for: a local, a global scalar, a module, a function."""

from __future__ import annotations

import ast
import builtins
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType, ModuleType

import numpy as np

from orion.errors import UnsupportedLoopError
from orion.loop.ir import Call, Const, Expr
from orion.loop.locate import span_of
from orion.loop.refuse import unsupported
from orion.loop.source import SourceText, Span

MISSING = object()
PLAIN = frozenset({np.ndarray, float, int, bool})
"""The commonest types of arguments: this is asked of all, at every call."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of the user's that the loop calls. `defaults` are the values of parameters that may be left out."""

    name: str
    params: tuple[str, ...]
    defaults: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A number or a function that `function` takes from outside, and what it was when the function was parsed. `path`
    is its name; for one in a module, the module's name comes first."""

    function: FunctionType
    path: tuple[str, ...]
    value: object

    def is_current(self) -> bool:
        """Whether the name still stands for the same."""
        name, *attributes = self.path
        free = self.function.__code__.co_freevars
        found = outer_names(self.function).get(name, MISSING) if name in free else MISSING
        if found is MISSING:
            found = self.function.__globals__.get(name, MISSING)
        for attribute in attributes:
            found = getattr(found, attribute, MISSING)
        if found is self.value:
            return True
        return type(found) is type(self.value) and is_number(found) and repr(found) == repr(self.value)


def is_number(value: object) -> bool:
    return isinstance(value, bool | int | float | np.bool | np.integer | np.floating)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that one function can see.

    `variables` are its parameters and everything it assigns; `sparse` are the names it goes over as a sparse array;
    `globals` are the other names, closure first; `helper_of` parses a function that it calls; `constants` collects the
    scalars that it takes from outside, `outside` all that it takes, by name or by module and name.
    """

    source: SourceText
    variables: frozenset[str]
    sparse: frozenset[str]
    globals: Mapping[str, object]
    helper_of: Callable[[FunctionType, Span, SourceText], Helper]
    constants: dict[str, int | float | bool] = field(default_factory=dict)
    outside: dict[tuple[str, ...], object] = field(default_factory=dict)

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword, until: ast.AST | None = None) -> Span:
        return span_of(node, self.source, until)

    def refuse(self, node: ast.expr | ast.stmt, what: str, why: str = "", hint: str = "") -> UnsupportedLoopError:
        return unsupported(what, self.span(node), self.source, why=why, hint=hint)

    def value(self, node: ast.expr) -> object:
        """The object that a global name, or a name in a module (`np.linalg.norm`), stands for; MISSING where none."""
        path = _path(node)
        if not path or path[0] in self.variables:
            return MISSING
        found = self.globals.get(path[0], getattr(builtins, path[0], MISSING))
        for attribute in path[1:]:
            found = getattr(found, attribute, MISSING) if isinstance(found, ModuleType) else MISSING
        if found is not MISSING:
            self.outside[path] = found
        return plain_number(found)


def _path(node: ast.expr) -> tuple[str, ...]:
    """The names in `a.b.c`; none for any other expression."""
    match node:
        case ast.Name(name):
            return (name,)
        case ast.Attribute(owner, attribute) if owners := _path(owner):
            return (*owners, attribute)
        case _:
            return ()


def outer_names(function: FunctionType) -> Mapping[str, object]:
    """The global and closure names that the function can see, with their values now."""
    closure: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that is not assigned yet
            closure[name] = cell.cell_contents
    return ChainMap(closure, function.__globals__)


def constant(value: object, span: Span) -> Expr | None:
    """The expression for a scalar from outside: a Python one as it is, a NumPy one with its dtype; None for no scalar.

    >>> from orion.loop.spans import NOWHERE
    >>> constant(np.float32(0.5), NOWHERE).function
    'np.float32'
    """
    if isinstance(value, np.bool | np.integer | np.floating):
        item = value.item()
        return Call(f"np.{value.dtype.name}", (Const(item, span),), span) if isinstance(item, int | float) else None
    plain = plain_number(value)
    return Const(plain, span) if isinstance(plain, bool | int | float) else None


def plain_number(value: object) -> object:
    """A number of a class that is derived from int or float (an `IntEnum`, say) as an int or a float, all else as it
    is: whoever compiles or runs the loop need not know the class.

    >>> import enum
    >>> plain_number(enum.IntEnum("Mode", "FAST SAFE").SAFE), plain_number(np.float64(0.5))
    (2, np.float64(0.5))
    """
    if type(value) in PLAIN or isinstance(value, bool | np.generic) or not isinstance(value, int | float):
        return value
    return int.__index__(value) if isinstance(value, int) else float.__float__(value)


def assigned_names(body: list[ast.stmt]) -> frozenset[str]:
    """Every name that the statements bind: assignments, loop variables, nested definitions and imports."""
    stored: set[str] = set()
    for node in (node for statement in body for node in ast.walk(statement)):
        match node:
            case ast.Name(name, ast.Store() | ast.Del()):
                stored.add(name)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                stored.add(name)
            case ast.alias(name, alias):
                stored.add(alias or name.partition(".")[0])
            case _:
                pass
    return frozenset(stored)


def iterated_names(body: list[ast.stmt]) -> frozenset[str]:
    """The names that stand after `in` of a `for`: sparse arrays."""
    loops = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.For))
    return frozenset(loop.iter.id for loop in loops if isinstance(loop.iter, ast.Name))
