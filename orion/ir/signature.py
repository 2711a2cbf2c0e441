"""The types and shapes of the arguments of a call. Runs at every call, so that it looks at as little as it can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from orion.errors import ArgumentError, describe
from orion.ir.cures import UNKNOWN, Used, hold, of_objects, other_dtype, other_kind
from orion.ir.foreign_cures import read_only, refused
from orion.ir.types import ArgumentType, ArrayType, ScalarType, Shapes, SparseType, Types

SUPPORTED = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
NAMES = {np.dtype(name): name for name in SUPPORTED}
"""Native dtype → its name. Anything that is not here is refused."""

PYTHON_SCALARS: dict[type, ArgumentType] = {
    float: ScalarType("float64", weak=True),
    int: ScalarType("int64", weak=True),
    bool: ScalarType("bool", weak=True),
    complex: ScalarType("complex128", weak=True),
}


Uses = Callable[[str], Used]
"""What the function does with an argument: asked where it is refused."""


def _any_use(_: str) -> Used:
    return UNKNOWN


def argument_types(arguments: Mapping[str, object], uses: Uses = _any_use) -> tuple[Types, Shapes]:
    """The type of every argument, and the shape of every array among them. `uses` says what is done with each.

    Takes Python and NumPy scalars, NumPy arrays, and Orion's dense and sparse arrays. Those that are strings or None
    have no type (`orion.passes.options`). Raises `ArgumentError`, with what to pass instead, for anything else: lists,
    arrays of objects, arrays in foreign byte order.

    >>> types, shapes = argument_types({"a": np.zeros((3, 4), np.float32), "step": 0.1})
    >>> types["a"].dtype, types["step"].weak, shapes
    ('float32', True, {'a': (3, 4)})
    """
    types: dict[str, ArgumentType] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, value in arguments.items():
        found = PYTHON_SCALARS.get(type(value))
        if found is not None:
            types[name] = _python_scalar(name, value, found, uses)
        elif type(value) is np.ndarray:
            types[name] = _dense(name, value, uses)
            shapes[name] = value.shape
        elif value is not None and type(value) is not str:
            types[name] = _other(name, value, shapes, uses)
    return types, shapes


def is_wide(number: int) -> bool:
    """Whether an integer has more than 64 bits."""
    return not -(2**63) <= number < 2**63


def index_value(name: str, value: Any) -> int:
    """The value of an integer argument that subscripts, bounds or tests of integers are made of. Raises `ArgumentError`
    for one that no 64 bits with a sign hold: np.uint64 has such.

    >>> index_value("n", np.uint64(3))
    3
    """
    number = int(value)
    if is_wide(number):
        why = "it is part of a subscript or a bound of the loop, which have 64 bits with a sign"
        raise _problem(name, f"is {number}", why, f"pass a smaller number, such as `min({name}, 2**63 - 1)`")
    return number


def _python_scalar(name: str, value: Any, found: ArgumentType, uses: Uses) -> ArgumentType:
    if isinstance(value, int) and is_wide(value):
        hint = "pass a smaller one, a float, or np.uint64 of one below 2**64"
        if uses(name).is_index:
            hint = f"pass a smaller one, such as `min({name}, 2**63 - 1)`: it is part of a subscript or a bound"
        raise _problem(name, "is an integer of more than 64 bits", "", hint)
    return found


def _dense(name: str, array: np.ndarray[Any, Any], uses: Uses) -> ArrayType:
    dtype = NAMES.get(array.dtype)
    if dtype is None and array.dtype.kind == "O":
        why = "its elements are Python objects, which compiled loops cannot work on"
        raise _problem(name, "is an array of objects", why, of_objects(name, array, uses(name)))
    if dtype is None:
        raise _bad_dtype(name, array.dtype, "array", uses(name))
    if array.ndim == 0:
        raise _problem(name, "is an array without dimensions", "", f"pass the number, `{name}.item()`")
    flags = array.flags
    return _array_type(dtype, array.ndim, flags.c_contiguous, flags.writeable)


@cache
def _array_type(dtype: str, ndim: int, c_contiguous: bool, writeable: bool) -> ArrayType:
    """Made once, since to make one takes longer than all else that is looked at."""
    return ArrayType(dtype, ndim, c_contiguous=c_contiguous, writeable=writeable)


def _other(name: str, value: Any, shapes: dict[str, tuple[int, ...]], uses: Uses) -> ArgumentType:
    """The type of an argument that is none of the commonest: Orion's arrays, NumPy scalars, subclasses."""
    if hasattr(value, "extents") and hasattr(value, "value_dtypes"):
        shapes[name] = tuple(value.extents)
        return _sparse(name, value)
    if isinstance(storage := getattr(value, "storage", None), np.ndarray):
        shapes[name] = tuple(value.shape)
        return _stored(name, value, storage, uses)
    if isinstance(value, np.generic):
        dtype = NAMES.get(value.dtype)
        if dtype is None:
            raise _bad_dtype(name, value.dtype, "scalar")
        return ScalarType(dtype)
    if isinstance(value, np.memmap):
        shapes[name] = value.shape
        return _dense(name, value, uses)
    for kind, found in PYTHON_SCALARS.items():
        if isinstance(value, kind):  # an IntEnum, say
            return _python_scalar(name, value, found, uses)
    raise _foreign(name, value, uses(name))


def _stored(name: str, value: Any, storage: np.ndarray[Any, Any], uses: Uses) -> ArrayType:
    dtype = NAMES.get(storage.dtype)
    if dtype is None:
        raise _bad_dtype(name, storage.dtype, "dense array", uses(name))
    ndim = len(value.shape)
    if ndim == 0:
        raise _problem(name, "is an array without dimensions", "", f"pass the number, `{name}.to_numpy().item()`")
    return ArrayType(dtype, ndim, aligned=True, padded=ndim > 1, writeable=storage.flags.writeable)


def _sparse(name: str, array: Any) -> SparseType:
    values = tuple(NAMES.get(np.dtype(dtype), "") for dtype in array.value_dtypes)
    if "" in values:
        raise _bad_dtype(name, array.value_dtypes[values.index("")], "sparse array")
    # Whether keys are unique takes a sort of all elements to find out: used where it has been found out already.
    unique = bool(vars(array).get("unique_keys", False))
    ndim = len(array.extents)
    return SparseType(ndim, NAMES[np.dtype(array.key_dtype)], values, not array.values_are_tuple, unique)


# ---------------------------------------------------------------- refusals


def _problem(name: str, what: str, why: str, hint: str, *, is_for_numba: bool = False) -> ArgumentError:
    error = ArgumentError(describe(f"argument `{name}` {what}", why=why, hint=hint))
    error.is_for_numba = is_for_numba
    return error


def _bad_dtype(name: str, dtype: np.dtype[Any], word: str, used: Used = UNKNOWN) -> ArgumentError:
    if dtype.newbyteorder("=") in NAMES:
        why = "compiled loops work on numbers in the byte order of this machine"
        hint = hold(name, f"{name}.astype({name}.dtype.newbyteorder('='))", used)
        return _problem(name, f"is in foreign byte order ({dtype.str})", why, hint)
    hint, kind = other_dtype(name, dtype, word, used), f"{'an' if word == 'array' else 'a'} {word}"
    if dtype.names:
        return _problem(name, f"is {kind} of records", "", hint, is_for_numba=True)
    return _problem(name, f"is {kind} of dtype {dtype}", f"compiled loops work on {', '.join(SUPPORTED)}", hint)


def read_only_refusal(name: str, owner: Any, used: Used) -> ArgumentError:
    """The error for an array of another library that nobody may change, and that a loop writes."""
    found = read_only(name, owner, used)
    return _problem(name, found.what, found.why, found.hint)


def _foreign(name: str, value: Any, used: Used) -> ArgumentError:
    found = refused(name, value, used, ", ".join(SUPPORTED))
    if found is not None:
        return _problem(name, found.what, found.why, found.hint)
    why = "a loop takes numbers, NumPy arrays, Orion's arrays, and arrays of others that share their memory"
    may_be = isinstance(value, tuple)
    return _problem(name, f"is a {type(value).__name__}", why, other_kind(name, value, used), is_for_numba=may_be)
