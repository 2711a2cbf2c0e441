"""Operations on arrays that a function compiled as it is checks when it runs, since only lengths and addresses tell.

Numba's in-place operators compare no lengths, and write elements that their right side still has to read where both
share memory. Its masks are not compared with the array.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import BaseTuple  # type: ignore[attr-defined]
from numba.extending import overload, register_jitable


def in_place(function: Any) -> Any:
    """Return an in-place operator as a function that computes what NumPy does, or raises ValueError as NumPy does."""

    def run(a: Any, b: Any) -> Any:
        return function(a, b)

    run.__name__ = run.__qualname__ = function.__name__  # as Numba's messages have it

    @overload(run)  # type: ignore[untyped-decorator]
    def compiled(a: Any, b: Any) -> Any:
        if not (isinstance(a, types.Array) and isinstance(b, types.Array) and b.ndim):

            def unchecked(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
                return function(a, b)

            return unchecked
        if b.ndim > a.ndim:

            def refused(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
                raise ValueError("non-broadcastable output operand")
                return a

            return refused
        if b.layout == "C" and b.mutable and b.aligned:

            def contiguous(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
                check_fits(a.shape, b.shape)
                return function(a, b.copy() if may_be_overwritten(a, b) else b)

            return contiguous

        def checked(a: Any, b: Any) -> Any:  # pragma: no cover - compiled
            check_fits(a.shape, b.shape)
            if may_be_overwritten(a, b):
                return function(a, b.copy())
            return function(a, b)

        return checked

    return run


@register_jitable  # type: ignore[untyped-decorator]
def check_fits(shape: Any, other: Any) -> None:
    """Raise ValueError where an array of the other shape, which is no longer, cannot be spread out over one of this.

    >>> check_fits((2, 3), (3,)), check_fits((2, 3), (2, 1))
    (None, None)
    >>> check_fits((2, 3), (2,))
    Traceback (most recent call last):
    ValueError: operands could not be broadcast together
    """
    for axis in range(len(other)):
        if other[axis] != 1 and other[axis] != shape[axis + len(shape) - len(other)]:
            raise ValueError("operands could not be broadcast together")


@register_jitable  # type: ignore[untyped-decorator]
def may_be_overwritten(target: Any, source: Any) -> bool:
    """Whether elements of a source may be written before they are read, while a target is computed from it in order.

    >>> a = np.arange(4)
    >>> may_be_overwritten(a[1:], a[:-1]), may_be_overwritten(a, a), may_be_overwritten(a[:2], a[2:])
    (True, False, False)
    """
    if target.size == 0 or source.size == 0:
        return False
    first, end = extent(target)
    source_first, source_end = extent(source)
    if end <= source_first or source_end <= first:
        return False
    if target.ndim != source.ndim or np.int64(target.ctypes.data) != np.int64(source.ctypes.data):
        return True
    for axis in range(source.ndim):
        if target.shape[axis] != source.shape[axis] or target.strides[axis] != source.strides[axis]:
            return True
    return False


@register_jitable  # type: ignore[untyped-decorator]
def extent(array: Any) -> tuple[Any, Any]:
    """Return the address of the first byte of an array, and the address behind its last one.

    >>> a = np.zeros((3, 4))
    >>> int(extent(a[::-1])[1] - extent(a[1:])[0])
    64
    """
    first = end = np.int64(array.ctypes.data)
    for axis in range(array.ndim):
        reach = (array.shape[axis] - 1) * array.strides[axis]
        if reach < 0:
            first += reach
        else:
            end += reach
    return first, end + array.itemsize


@register_jitable  # type: ignore[untyped-decorator]
def as_it_is(value: Any) -> Any:
    """Return the value. What Numba finds by its definition, it does not find behind a call.

    >>> as_it_is([1, 2])
    [1, 2]
    """
    return value


def check_mask(array: Any, index: Any) -> None:
    """Raise IndexError where a mask has another length than the array.

    >>> check_mask(np.zeros(3), np.array([True, False]))
    Traceback (most recent call last):
    IndexError: boolean index did not match indexed array
    """
    if isinstance(index, np.ndarray) and index.dtype == np.bool_ and index.shape != array.shape[: index.ndim]:
        raise IndexError("boolean index did not match indexed array")


@overload(check_mask)  # type: ignore[untyped-decorator]
def _check_mask(array: Any, index: Any) -> Any:
    parts = tuple(index) if isinstance(index, BaseTuple) else (index,)
    if not isinstance(array, types.Array) or not any(map(_is_mask, parts)):

        def nothing(array: Any, index: Any) -> None:  # pragma: no cover - compiled
            pass

        return nothing
    if not isinstance(index, BaseTuple):

        def checked(array: Any, index: Any) -> None:  # pragma: no cover - compiled
            if index.shape != array.shape[: index.ndim]:
                raise IndexError("boolean index did not match indexed array")

        return checked
    raise TypeError("masks among several subscripts are not looked at")


def _is_mask(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.dtype == types.boolean


IN_PLACE = {
    function: in_place(function)
    for function in (
        operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod,
        operator.ipow, operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift,
    )
}  # fmt: skip
"""In-place operator → what is compiled for it. There is none for sets."""
