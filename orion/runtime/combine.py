"""The result of a reduction from the partial results of its tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.typing.dtypes import Kind

FUNCTIONS: dict[str, np.ufunc] = {
    "+": np.add,
    "*": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.logical_and,
    "or": np.logical_or,
}


def combine(op: str, start: Any, partials: NDArray[Any]) -> Any:
    """`start op partials[0] op partials[1] …`, from left to right, in the dtype of the partials.

    `accumulate` is used, not `reduce`, whose order of summation is NumPy's own. Sums of Python's floats are the same
    number by number, and sooner there.

    >>> combine("+", 1.0, np.array([2.0, 3.0])), combine("max", 7, np.array([2, 9]))
    (6.0, np.int64(9))

    What `and` and `or` begin with is their value where it decides, as in Python, and so is what nothing is less or
    greater than:

    >>> combine("or", 3, np.array([True])), combine("and", 0, np.array([True])), combine("max", 7, np.array([2]))
    (3, 0, 7)
    """
    if op == "+" and partials.dtype == np.float64:
        total = float(start)
        for partial in partials.tolist():
            total += partial
        return total
    if op in ("and", "or") and bool(start) == (op == "or"):
        return start
    values = np.empty(partials.size + 1, partials.dtype)
    values[0] = start
    values[1:] = partials
    found = FUNCTIONS[op].accumulate(values)[-1]
    return start if op in ("min", "max") and found == start else found


def after_loop(start: Any, result: Any, kind: Kind) -> Any:
    """What a loop has made of a scalar that began as `start`, as the kind of scalar that it is outside of the loop:
    Python's own number, which adapts to what it meets (NEP 50), or NumPy's.

    >>> after_loop(0.0, np.float64(6.0), Kind("float64", weak=True)), after_loop(0.0, np.float64(6.0), Kind("float32"))
    (6.0, np.float32(6.0))

    What no iteration has changed is still what it was, but a float in a name that is one elsewhere:

    >>> start = 1
    >>> after_loop(start, start, Kind("int64")), after_loop(start, start, Kind("float64"))
    (1, 1.0)

    Sums and products of integers of fewer than 64 bits wrap around in these where they began as one, as they do step
    by step; others are not cut down:

    >>> after_loop(np.int8(100), 800, Kind("int8")), after_loop(100, np.int64(800), Kind("int8"))
    (np.int8(32), 800)
    """
    dtype = np.dtype(kind.dtype)
    if result is start:
        is_widened = isinstance(start, int) if dtype.kind == "f" else isinstance(start, int | float)
        return type(dtype.type(0).item())(start) if dtype.kind in "fc" and is_widened else start
    if isinstance(start, np.integer) and start.itemsize < 8 and start.dtype == dtype:
        return np.asarray(result).astype(dtype)[()]
    if kind.weak or (dtype.kind in "iu" and dtype.itemsize < 8):
        return _plain(result)
    return dtype.type(result)


def _plain(value: Any) -> Any:
    """A value of a type that Python has too as Python's own, others unchanged."""
    is_numpy = isinstance(value, np.generic)
    return value.item() if is_numpy and value.dtype.name in ("int64", "float64", "bool", "complex128") else value


def combine_elements(op: str, array: NDArray[Any], copies: NDArray[Any]) -> None:
    """`array = array op copies[0] op copies[1] …`, element by element and in that order, in the dtype of the array.

    >>> totals = np.array([1, 2])
    >>> combine_elements("+", totals, np.array([[1, 1], [0, 5]]))
    >>> totals.tolist()
    [2, 8]
    """
    for copy in copies:
        FUNCTIONS[op](array, copy, out=array)
