"""The element types that arrays may hold."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
from numpy.typing import DTypeLike

from orion.errors import ArgumentError, describe

SUPPORTED = frozenset(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64", "complex64", "complex128"),
    )
)


def supported_dtype(dtype: DTypeLike) -> np.dtype:
    """`dtype` in native byte order. `ArgumentError` if arrays cannot hold it (object, text, dates, float16,
    ...).

    >>> supported_dtype(">f4")
    dtype('float32')
    """
    try:
        native = np.dtype(dtype).newbyteorder("=")
    except TypeError as error:
        raise ArgumentError(describe(f"{dtype!r} is not an element type", why=str(error))) from error
    if native not in SUPPORTED:
        names = ", ".join(sorted(d.name for d in SUPPORTED))
        raise ArgumentError(describe(f"an array cannot hold elements of type {native}", hint=f"use one of {names}"))
    return native


def checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple of ints. `ArgumentError` if it is not made of non-negative integers.

    >>> checked_shape(3)
    (3,)
    """
    try:
        dims = (index(shape),) if not isinstance(shape, Sequence) else tuple(index(n) for n in shape)
    except TypeError as error:
        raise ArgumentError(describe(f"{shape!r} is not a shape", hint="give a tuple of integers")) from error
    if any(n < 0 for n in dims):
        raise ArgumentError(f"the shape {dims} has a negative dimension")
    return dims
