"""Operations on complex numbers as NumPy has them, where Numba's raise errors or give other infinities."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable


@register_jitable  # type: ignore[untyped-decorator]
def complex_divided(left: Any, right: Any) -> Any:  # pragma: no cover - compiled
    """`left / right` of two numbers of one complex dtype, by R. L. Smith's method (Algorithm 116, Communications of the
    ACM 5(8), 1962). By zero it gives infinities and NaN, where Numba's raises an error."""
    size = abs(right.real)
    if size >= abs(right.imag):
        if size == 0:
            return complex(left.real / size, left.imag / size)
        ratio = right.imag / right.real
        factor = type(size)(1) / (right.real + right.imag * ratio)
        return complex((left.real + left.imag * ratio) * factor, (left.imag - left.real * ratio) * factor)
    ratio = right.real / right.imag
    factor = type(size)(1) / (right.imag + right.real * ratio)
    return complex((left.real * ratio + left.imag) * factor, (left.imag * ratio - left.real) * factor)


@register_jitable  # type: ignore[untyped-decorator]
def complex_power(base: Any, exponent: int) -> Any:  # pragma: no cover - compiled
    """`base ** exponent` for an exponent of 2 or more, by products."""
    if exponent == 3:
        return base * (base * base)
    square, left = base, exponent
    while left & 1 == 0:
        square *= square
        left >>= 1
    power = square
    while left > 1:
        square *= square
        left >>= 1
        if left & 1:
            power *= square
    return power
