"""Functions compiled by Numba, with the functions of their module that they call."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba


def in_numba(function: Callable[..., Any], *, kept: bool = False) -> Callable[..., Any]:
    """A function of its own, in which the functions of its module are compiled ones; with `kept` by `cache=True`."""
    return _compiled(function, {}, kept)


def _compiled(function: Callable[..., Any], known: dict[str, Any], kept: bool) -> Callable[..., Any]:
    assert isinstance(function, FunctionType)
    scope = dict(function.__globals__)
    made = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    known[function.__name__] = compiled = numba.njit(cache=kept)(made)
    for name in function.__code__.co_names:
        helper = scope.get(name)
        if isinstance(helper, FunctionType) and helper.__module__ == function.__module__:
            scope[name] = known.get(name) or _compiled(helper, known, kept)
    return compiled
