"""Checks of the keys and values that a sparse array is made from. Errors name the first position that is
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orion.arrays.dtypes import SUPPORTED
from orion.errors import DataFormatError, describe

Arrays = tuple[NDArray[Any], ...]

INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)

FEW_INDICES, INDICES_PER_ELEMENT = 1 << 24, 64
"""How long a dimension may be by what keys say alone: past both, one wrong key is likelier than so few elements."""


def checked_keys(coords: Sequence[ArrayLike], names: Sequence[str] | None = None) -> Arrays:
    """One 1-D int32 array per dimension, or int64 where a key needs it. They may share memory with `coords`.

    `DataFormatError` where a key is not an integer, is negative, or where the arrays differ in length.
    """
    if len(coords) == 0:
        raise DataFormatError(describe("a sparse array needs keys", hint="give a tuple with one array per dimension"))
    arrays = [np.asarray(keys) for keys in coords]
    for name, keys in zip(names or [f"coords[{dim}]" for dim in range(len(arrays))], arrays, strict=True):
        _check_one_dimensional(keys, name)
        if len(keys) != len(arrays[0]):
            raise _unequal_lengths(name, len(keys), len(arrays[0]))
        if keys.size:
            _check_integers(keys, name)
    kind = key_dtype(arrays)
    return tuple(np.ascontiguousarray(keys, dtype=kind) for keys in arrays)


def key_dtype(arrays: Sequence[NDArray[Any]]) -> np.dtype:
    """int32 if all keys in `arrays` fit, else int64."""
    largest = max((int(keys.max()) for keys in arrays if keys.size), default=0)
    return INT32 if largest <= np.iinfo(INT32).max else INT64


def checked_values(values: Sequence[ArrayLike], length: int, allow_nan: bool, names: Sequence[str]) -> Arrays:
    """One 1-D array in native byte order per value of an element. They may share memory with `values`.

    `DataFormatError` where a value is NaN and `allow_nan` is False, where the values are not numbers, or
    where there are not `length` of them.
    """
    arrays = [np.asarray(v) for v in values]
    if not arrays:
        raise DataFormatError(describe("a sparse array needs values", hint="give at least one array of values"))
    for name, array in zip(names, arrays, strict=True):
        _check_one_dimensional(array, name)
        if len(array) != length:
            raise _unequal_lengths(name, len(array), length)
        if array.dtype.newbyteorder("=") not in SUPPORTED:
            raise DataFormatError(
                describe(f"{name} holds elements of type {array.dtype}", hint=_as_numbers(name, array, np.float32))
            )
        if not allow_nan:
            _check_no_nan(array, name)
    return tuple(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")) for array in arrays)


def checked_extents(keys: Arrays, shape: Sequence[int] | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The extents (one past the largest key of each dimension) and the shape: `shape`, or the extents if
    None.

    `DataFormatError` where a key lies outside of `shape`, or, without one, far above the number of elements.
    """
    extents = extents_of(keys)
    if shape is None:
        dim = far_dimension(keys)
        if dim is not None:
            raise _far(dim, keys, extents)
        return extents, extents
    limits = tuple(int(n) for n in shape)
    if len(limits) != len(keys):
        raise DataFormatError(f"the shape {limits} has {len(limits)} dimensions, the keys have {len(keys)}")
    for dim, (extent, limit) in enumerate(zip(extents, limits, strict=True)):
        if extent > limit:
            at = int(np.argmax(keys[dim] >= limit))
            raise DataFormatError(
                describe(
                    f"coords[{dim}][{at}] is {keys[dim][at]}, outside of the shape {limits}",
                    why=f"keys of dimension {dim} go from 0 to {limit - 1}",
                )
            )
    return extents, limits


def extents_of(keys: Arrays) -> tuple[int, ...]:
    """One past the largest key of each dimension."""
    return tuple(int(k.max()) + 1 if k.size else 0 for k in keys)


def largest_extent(count: int) -> int:
    """How long the dimensions of `count` elements may be where nobody says how long they are."""
    return max(FEW_INDICES, INDICES_PER_ELEMENT * count)


def far_dimension(keys: Arrays) -> int | None:
    """The first dimension that is longer than `largest_extent`, if any is."""
    limit = largest_extent(len(keys[0]))
    return next((dim for dim, extent in enumerate(extents_of(keys)) if extent > limit), None)


def _far(dim: int, keys: Arrays, extents: tuple[int, ...]) -> DataFormatError:
    at = int(np.argmax(keys[dim] >= largest_extent(len(keys[0]))))
    return DataFormatError(
        describe(
            f"coords[{dim}][{at}] is {keys[dim][at]}",
            why=f"dimension {dim} would have {extents[dim]:,} indices for {len(keys[0]):,} elements",
            hint=f"say shape={extents} if that is meant, or count keys from 0: np.unique(keys, return_inverse=True)[1]",
        )
    )


def _check_one_dimensional(array: NDArray[Any], name: str) -> None:
    if array.ndim != 1:
        raise DataFormatError(
            describe(
                f"{name} has {array.ndim} dimensions, not 1",
                hint="give one 1-D array per dimension and value",
            )
        )


def _check_integers(keys: NDArray[Any], name: str) -> None:
    if keys.dtype.kind not in "iu":
        at = next((k for k, key in enumerate(keys.tolist()) if not _is_whole(key)), None)
        if at is not None:
            hint = _as_numbers(name, keys, np.int64) if keys.dtype.kind in "OUS" else ""
            raise DataFormatError(describe(f"{name}[{at}] is {keys[at]!s}, not an integer", hint=hint))
        raise DataFormatError(
            describe(f"{name} is of type {keys.dtype}, keys are integers", hint=_as_numbers(name, keys, np.int64))
        )
    if keys.min() < 0:
        at = int(np.argmax(keys < 0))
        raise DataFormatError(describe(f"{name}[{at}] is {keys[at]}, a negative key", why="keys count from 0"))
    if int(keys.max()) >= np.iinfo(INT64).max:
        at = int(np.argmax(keys))
        raise DataFormatError(f"{name}[{at}] is {keys[at]}, too large for a key")


def _as_numbers(name: str, array: NDArray[Any], kind: type[np.generic]) -> str:
    """What to write for entries that are no numbers of this kind. Of a column, `name` is "column 'its name'"."""
    column = name.removeprefix("column ")
    try:
        array.astype(kind)
    except (TypeError, ValueError):
        if column == name:
            return f"number them: `names, numbers = np.unique({name}, return_inverse=True)`"
        return f"number them, of a frame `frame[{column}] = np.unique(frame[{column}], return_inverse=True)[1]`"
    if column == name:
        return f"give `np.asarray({name}, dtype=np.{kind.__name__})` instead"
    return f"convert it, of a frame `frame = frame.astype({{{column}: {kind.__name__!r}}})`"


def _is_whole(key: object) -> bool:
    return not isinstance(key, bool) and (isinstance(key, int) or (isinstance(key, float) and key.is_integer()))


def _check_no_nan(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind not in "fc":
        return
    missing = np.isnan(array)
    if missing.any():
        raise DataFormatError(
            describe(
                f"{name}[{int(np.argmax(missing))}] is NaN",
                hint="drop these elements, or say allow_nan=True to keep them",
            )
        )


def _unequal_lengths(name: str, length: int, expected: int) -> DataFormatError:
    return DataFormatError(
        describe(
            f"{name} has {length} entries, coords[0] has {expected}",
            why=f"element {min(length, expected)} has no counterpart",
        )
    )
