"""The result of a reduction from the partial results of its tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    (6.0, 9)

    What `and` and `or` begin with is their value where it decides, as in Python:

    >>> combine("or", 3, np.array([True])), combine("and", 0, np.array([True])), combine("or", 0, np.array([True]))
    (3, 0, True)
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
    return plain(FUNCTIONS[op].accumulate(values)[-1])


def narrowed(start: Any, result: Any, dtype: str) -> Any:
    """The result of a reduction that began with a NumPy integer of that dtype, of fewer than 64 bits, as one of these:
    sums and products wrap around in it as they do step by step. Any other result is left as it is.

    >>> narrowed(np.int8(100), 800, "int8"), narrowed(100, 800, "int8")
    (np.int8(32), 800)
    """
    if isinstance(start, np.integer) and start.itemsize < 8 and start.dtype.name == dtype:
        return np.asarray(result).astype(dtype)[()]
    return result


def plain(value: np.generic) -> Any:
    """A value of a type that Python has too as Python's own, which adapts to what it meets (NEP 50); others
    unchanged.
    """
    return value.item() if value.dtype.name in ("int64", "float64", "bool") else value


def combine_elements(op: str, array: NDArray[Any], copies: NDArray[Any]) -> None:
    """`array = array op copies[0] op copies[1] …`, element by element and in that order, in the dtype of the array.

    >>> totals = np.array([1, 2])
    >>> combine_elements("+", totals, np.array([[1, 1], [0, 5]]))
    >>> totals.tolist()
    [2, 8]
    """
    for copy in copies:
        FUNCTIONS[op](array, copy, out=array)
