"""Operations on numbers as Python has them, where Numba's own differ: division by zero, powers, shifts, and ranges that
64 bits do not hold."""

from __future__ import annotations

from typing import Any

from numba import float64, int64, uint64
from numba.extending import register_jitable

LARGEST = 2**63 - 1
FAR = 2**31


@register_jitable  # type: ignore[untyped-decorator]
def nonzero(divisor: Any, site: int) -> Any:  # pragma: no cover - compiled
    """A divisor as it is; ends the walk where it is 0. `site` says where that is, see `orion.kernel.build.compile`."""
    if divisor == 0:
        raise ZeroDivisionError(site)
    return divisor


@register_jitable  # type: ignore[untyped-decorator]
def int_power(base: Any, exponent: int, site: int) -> Any:  # pragma: no cover - compiled
    """`base ** exponent` of integers, where that is an integer."""
    if exponent < 0:
        raise ValueError(site, exponent)
    return base**exponent


@register_jitable  # type: ignore[untyped-decorator]
def float_power(base: Any, exponent: int) -> Any:  # pragma: no cover - compiled
    """`base ** exponent` as NumPy has it. Powers up to the 1024th, of either sign, are products: twice as many as the
    exponent has bits at most. They are wrong by 1024 roundings at most, which is 1e-13 (Higham, Accuracy and Stability
    of Numerical Algorithms, 3.1), where the C library's powers take five times as long."""
    if exponent < -1024 or exponent > 1024:
        return base ** float64(exponent)
    power, factor, left = 1.0, base, abs(exponent)
    while left:
        if left & 1:
            power *= factor
        left >>= 1
        factor *= factor
    if exponent >= 0:
        return power
    return 1.0 / power if 1e-300 < abs(power) < 1e300 else base ** float64(exponent)


@register_jitable  # type: ignore[untyped-decorator]
def python_power(base: Any, exponent: int, site: int) -> Any:  # pragma: no cover - compiled
    """`base ** exponent` of Python's numbers, which raise an error where that is no number."""
    if base == 0 and exponent < 0:
        raise ZeroDivisionError(site)
    return float_power(base, exponent)


@register_jitable  # type: ignore[untyped-decorator]
def floor_divided(value: int, divisor: int) -> int:  # pragma: no cover - compiled
    """`value // divisor`, also of the smallest integer and -1."""
    return -value if divisor == -1 else value // divisor


@register_jitable  # type: ignore[untyped-decorator]
def near_remainder(value: int, divisor: int) -> int:  # pragma: no cover - compiled
    """`value % divisor`, where -divisor <= value < 2 * divisor: a division takes ten times as long."""
    return value + divisor if value < 0 else value - divisor if value >= divisor else value


@register_jitable  # type: ignore[untyped-decorator]
def shifted_left(value: int, count: int) -> int:  # pragma: no cover - compiled
    """`value << count` as NumPy has it: 0 where all bits are gone, for which the machine's own shift is undefined."""
    return value << count if 0 <= count < 64 else value - value


@register_jitable  # type: ignore[untyped-decorator]
def shifted_right(value: int, count: int) -> int:  # pragma: no cover - compiled
    """`value >> count` as NumPy has it: 0 or -1 where all bits are gone."""
    return value >> count if 0 <= count < 64 else (value >> 63) >> 1


@register_jitable  # type: ignore[untyped-decorator]
def fitting(value: int, converted: Any, site: int) -> Any:  # pragma: no cover - compiled
    """A Python integer converted to a narrower dtype; ends the walk where it does not fit, as NumPy does."""
    if converted != value:
        raise OverflowError(site, value)
    return converted


@register_jitable  # type: ignore[untyped-decorator]
def signed(value: Any) -> Any:  # pragma: no cover - compiled
    """An integer of 64 bits without a sign as one with a sign; one that is too large as the largest: as a subscript,
    as the stop or the step of a range, and as a bound of a slice both lie past every array."""
    return int64(min(value, uint64(LARGEST)))


@register_jitable  # type: ignore[untyped-decorator]
def signed_start(start: Any, stop: int, step: int, end: Any, site: int) -> Any:  # pragma: no cover - compiled
    """The start of a range as an integer with a sign; ends the walk where the range has values that have none. `end`
    is the stop as it is."""
    if start > uint64(LARGEST) and (step < 0 or stop == LARGEST):
        raise OverflowError(site, start, end)
    return signed(start)


@register_jitable  # type: ignore[untyped-decorator]
def signed_stop(start: int, stop: Any, step: int, site: int) -> Any:  # pragma: no cover - compiled
    """The stop of a range as an integer with a sign; ends the walk where the range comes to values that have none.
    Steps that are not large come there in no lifetime."""
    if step > FAR and stop > uint64(LARGEST) and start >= 0:
        raise OverflowError(site, start, stop)
    return signed(stop)


@register_jitable  # type: ignore[untyped-decorator]
def held_stop(start: int, stop: int, step: int, site: int) -> int:  # pragma: no cover - compiled
    """The stop of a range whose width 64 bits hold: that of one without values is its start. Ends the walk where the
    range is wider, which Numba's own would run through otherwise than Python's."""
    least, most = (start, stop) if step > 0 else (stop, start)
    if most <= least:
        return start
    if least < 0 and most > LARGEST + least:  # LLVM takes a difference for one that fits
        raise OverflowError(site, start, stop)
    return stop


@register_jitable  # type: ignore[untyped-decorator]
def trip_count(start: int, stop: int, step: int) -> int:  # pragma: no cover - compiled
    """The number of trips of `range(start, stop, step)`."""
    if step > 0:
        return 0 if stop <= start else (stop - start - 1) // step + 1
    if step < 0:
        return 0 if stop >= start else (stop - start + 1) // step + 1
    raise ValueError("range() arg 3 must not be zero")
