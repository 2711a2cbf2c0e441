"""Signatures from the annotations of a function's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import EllipsisType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from orion.cli.build.signatures import SignatureError, Wanted

SCALARS = {int: "int64", float: "float64", bool: "bool", complex: "complex128"}


def annotated(function: Callable[..., Any]) -> tuple[Wanted, ...]:
    """Return the arguments that annotations say: `int`, `np.float32`, or arrays whose type has their rank,
    `np.ndarray[tuple[int, int], np.dtype[np.float64]]`. Parameters with defaults may be without: calls leave them out
    then. SignatureError where that is not enough, with what is missing."""
    try:
        hints = get_type_hints(function)
    except Exception as error:
        raise SignatureError(f"its annotations cannot be read: {error}") from error
    found: list[Wanted] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:
            if parameter.default is not parameter.empty:
                return tuple(found)
            raise SignatureError(f"`{name}` has no annotation")
        found.append(_wanted(name, hints[name]))
    return tuple(found)


def _wanted(name: str, hint: Any) -> Wanted:
    if hint in SCALARS:
        return Wanted(SCALARS[hint])
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return Wanted(np.dtype(hint).name)
    if get_origin(hint) is not np.ndarray:
        raise SignatureError(f"the annotation of `{name}` is neither a number nor an array")
    shape, dtype = get_args(hint)
    dims, scalars = get_args(shape), get_args(dtype)
    if not dims or any(isinstance(one, EllipsisType) for one in dims):
        raise SignatureError(
            f"the annotation of `{name}` does not say how many dimensions it has, and NDArray never does; "
            "np.ndarray[tuple[int, int], np.dtype[np.float64]] has two"
        )
    if not (scalars and isinstance(scalars[0], type) and issubclass(scalars[0], np.generic)):
        raise SignatureError(f"the annotation of `{name}` does not say its dtype")
    return Wanted(np.dtype(scalars[0]).name, (None,) * len(dims), "C")
