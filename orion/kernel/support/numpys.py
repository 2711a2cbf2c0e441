"""Functions of elements that Numba computes otherwise than NumPy: of zeros with a sign, infinities, the least numbers.

`…_of` are for scalars; `…_each` are ufuncs of Numba made from them, for rows and matrices in memory: they take longer
to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import vectorize
from numba.extending import register_jitable


@register_jitable  # type: ignore[untyped-decorator]
def maximum_of(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
    """NaN where one is NaN; of two zeros the second, as the machine's instruction has it, and so NumPy."""
    return a if a > b or a != a else b


@register_jitable  # type: ignore[untyped-decorator]
def minimum_of(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
    """The like of `maximum_of`."""
    return a if a < b or a != a else b


@register_jitable  # type: ignore[untyped-decorator]
def max_of_row(row: Any) -> Any:  # pragma: no cover - compiled
    """Python's `max` of a row; Numba's ends without a word where that is empty."""
    if row.size == 0:
        raise ValueError("max() arg is an empty sequence")
    return max(row)


@register_jitable  # type: ignore[untyped-decorator]
def min_of_row(row: Any) -> Any:  # pragma: no cover - compiled
    """The like of `max_of_row`."""
    if row.size == 0:
        raise ValueError("min() arg is an empty sequence")
    return min(row)


@register_jitable  # type: ignore[untyped-decorator]
def sign_of(x: Any) -> Any:  # pragma: no cover - compiled
    """-1, 0, 1 or NaN; no zero is negative."""
    if x != x:
        return x
    return type(x)(1) if x > 0 else type(x)(-1) if x < 0 else type(x)(0)


@register_jitable  # type: ignore[untyped-decorator]
def spacing_of(x: Any) -> Any:  # pragma: no cover - compiled
    """The distance to the next number; that from a zero is positive."""
    return np.spacing(abs(x) if x == 0 else x)


@register_jitable  # type: ignore[untyped-decorator]
def floor_divide_of(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
    """`a // b` of floats."""
    return a / b if b == 0 else divided(a, b)[0]


@register_jitable  # type: ignore[untyped-decorator]
def remainder_of(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
    """`a % b` of floats."""
    return np.fmod(a, b) if b == 0 else divided(a, b)[1]


@register_jitable  # type: ignore[untyped-decorator]
def divided(a: Any, b: Any) -> tuple[Any, Any]:  # pragma: no cover - compiled
    """The quotient, rounded down, and the remainder, which has the sign of b: Python's `divmod` of floats, b not 0."""
    remainder = np.fmod(a, b)
    quotient = (a - remainder) / b
    if remainder == 0:
        remainder = np.copysign(type(a)(0), b)
    elif (b < 0) != (remainder < 0):
        remainder += b
        quotient -= type(a)(1)
    if quotient == 0:
        return np.copysign(type(a)(0), a / b), remainder
    whole = np.floor(quotient)
    return (whole + type(a)(1) if quotient - whole > 0.5 else whole), remainder


maximum_each, minimum_each, sign_each = vectorize(maximum_of), vectorize(minimum_of), vectorize(sign_of)
spacing_each, floor_divide_each, remainder_each = (
    vectorize(spacing_of), vectorize(floor_divide_of), vectorize(remainder_of),
)  # fmt: skip
