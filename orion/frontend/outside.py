"""What a function and its helpers take from outside, and whether all of that is still what it was.

This is asked at every call, so that a function redefined in a notebook, reloaded (IPython's autoreload gives the old
function objects new code), or hidden by another of its name is seen: some 0.05 µs for each name and function.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from orion.dataclass import dataclass

MISSING: Any = object()
SETTLED = frozenset({"numpy", "math", "builtins"})
"""Modules whose functions stay what they are."""


@dataclass(frozen=True, slots=True)
class Version:
    """What a function was made of when it was parsed."""

    function: FunctionType
    code: CodeType
    defaults: tuple[object, ...] | None
    keywords: tuple[tuple[str, object], ...]

    def is_current(self) -> bool:
        function = self.function
        if function.__code__ is not self.code or function.__defaults__ is not self.defaults:
            return False
        found = function.__kwdefaults__
        if not found:
            return not self.keywords
        return len(found) == len(self.keywords) and all(found.get(k, MISSING) is v for k, v in self.keywords)


@dataclass(frozen=True, slots=True)
class Outside:
    """`names` are (namespace, name, what it stood for), MISSING for a name of Python's own that nothing hides; `cells`
    are names of enclosing functions; `attributes` are of modules."""

    names: tuple[tuple[Mapping[str, object], str, object], ...]
    cells: tuple[tuple[CellType, object], ...]
    attributes: tuple[tuple[ModuleType, str, object], ...]
    functions: tuple[Version, ...]

    def is_current(self) -> bool:
        """Whether all is still the same."""
        for space, name, value in self.names:
            found = space.get(name, MISSING)
            if found is not value and not is_same(found, value):
                return False
        for cell, value in self.cells:
            found = _content(cell)
            if found is not value and not is_same(found, value):
                return False
        for module, name, value in self.attributes:
            found = getattr(module, name, MISSING)
            if found is not value and not is_same(found, value):
                return False
        for version in self.functions:  # noqa: SIM110 - a generator takes 1 µs more
            if not version.is_current():
                return False
        return True


def is_number(value: object) -> bool:
    return isinstance(value, bool | int | float | complex | np.bool | np.number)


def is_same(found: object, value: object) -> bool:
    """Whether a number is one of the same type and the same bits."""
    return type(found) is type(value) and is_number(found) and repr(found) == repr(value)


def version_of(function: FunctionType) -> Version:
    keywords = tuple((function.__kwdefaults__ or {}).items())
    return Version(function, function.__code__, function.__defaults__, keywords)


def taken(functions: Iterable[tuple[FunctionType, Iterable[tuple[str, ...]]]]) -> Outside:
    """What these functions take from outside: each with the names, `("np", "sqrt")` for one in a module."""
    names: dict[tuple[int, str], tuple[Mapping[str, object], str, object]] = {}
    cells: dict[int, tuple[CellType, object]] = {}
    attributes: dict[tuple[int, str], tuple[ModuleType, str, object]] = {}
    versions = []
    for function, paths in functions:
        versions.append(version_of(function))
        free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, *inner in paths:
            found: Any = _content(free[name]) if name in free else MISSING
            if name in free:
                cells[id(free[name])] = (free[name], found)
            if found is MISSING:
                space = function.__globals__
                found = space.get(name, MISSING)
                names[id(space), name] = (space, name, found)
            if found is MISSING and not _is_pythons(name):
                found = vars(builtins)[name]
                names[id(builtins), name] = (vars(builtins), name, found)
            for attribute in inner:
                if not isinstance(found, ModuleType) or found.__name__ in SETTLED:
                    break
                owner, found = found, getattr(found, attribute, MISSING)
                attributes[id(owner), attribute] = (owner, attribute, found)
    return Outside(tuple(names.values()), tuple(cells.values()), tuple(attributes.values()), tuple(versions))


def _is_pythons(name: str) -> bool:
    """Whether a name that no module assigns has no value, or the one that Python gives it."""
    value = vars(builtins).get(name)
    return value is None or getattr(value, "__module__", None) == "builtins"


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING
