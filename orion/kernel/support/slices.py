"""Parts of arrays assigned from arrays that may be parts of the same memory, as NumPy does it.

NumPy takes a copy of the right side first where both share memory and more than one dimension is written, or one whose
elements are read the other way round. A row is else copied element by element, from its first address to its last, or
from its last to its first where the right side begins before it and reaches into it. Numba looks for shared memory
along the first axis alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic, overload, register_jitable

from orion.kernel.build.entries import address


def assign_part(target: Any, value: Any) -> None:
    """`target[...] = value` for a view `target`. The two may share memory.

    >>> a = np.array([3, 1, 2, 0])
    >>> assign_part(a[1:], a[:-1])
    >>> a.tolist()
    [3, 3, 1, 2]
    """
    target[...] = value


@overload(assign_part)  # type: ignore[untyped-decorator]
def _assign_part(target: Any, value: Any) -> Callable[..., None]:
    if isinstance(value, types.Array) and target.ndim == value.ndim == 1 and target.dtype == value.dtype:
        return _assign_row
    return _assign_box


def put_part(array: Any, index: Any, value: Any) -> None:
    """`array[index] = value` in a helper function, whatever of these is a part of an array.

    >>> a = np.zeros((2, 3))
    >>> put_part(a, 1, np.arange(3))
    >>> put_part(a, (0, 2), 5)
    >>> a.tolist()
    [[0.0, 0.0, 5.0], [0.0, 1.0, 2.0]]
    """
    array[index] = value


@overload(put_part, jit_options={"boundscheck": True})  # type: ignore[untyped-decorator]
def _put(array: Any, index: Any, value: Any) -> Callable[..., None]:
    return _put_row if isinstance(value, types.Array) else _put_number


def _put_number(array: Any, index: Any, value: Any) -> None:  # pragma: no cover - compiled
    array[index] = value


def _put_row(array: Any, index: Any, value: Any) -> None:  # pragma: no cover - compiled
    assign_part(array[index], value)


def put_whole(old: Any, value: Any) -> Any:
    """What a name stands for after `old op= …` in a helper function, where `value` is the result of the operation: an
    array is changed in place, of anything else there is a new value.

    >>> a = np.arange(3)
    >>> put_whole(a, a + 1) is a, put_whole(2, 2 + 1)
    (True, 3)
    """
    if not isinstance(old, np.ndarray):
        return value
    old[...] = value
    return old


@overload(put_whole)  # type: ignore[untyped-decorator]
def _whole(old: Any, value: Any) -> Callable[..., Any]:
    return _in_place if isinstance(old, types.Array) else _new


def _in_place(old: Any, value: Any) -> Any:  # pragma: no cover - compiled
    assign_part(old, value)
    return old


def _new(old: Any, value: Any) -> Any:  # pragma: no cover - compiled
    return value


def _assign_box(target: Any, value: Any) -> None:  # pragma: no cover - compiled
    target[...] = value  # all of a view: here Numba looks along every axis


def _assign_row(target: Any, value: Any) -> None:  # pragma: no cover - compiled
    count, step, from_step = target.shape[0], target.strides[0], value.strides[0]
    if value.shape[0] == 1:
        element = value[0]
        for k in range(count):
            target[k] = element
    elif value.shape[0] != count:
        raise ValueError("a row is assigned to a part of an array that has another length")
    elif count and step == from_step == target.itemsize:
        move(target, value)
    elif step * from_step < 0 and _meet(target, value):
        _copy(target, value.copy())
    elif (step < 0) != _reaches_into(target, value):
        for k in range(count - 1, -1, -1):
            target[k] = value[k]
    else:
        _copy(target, value)


@register_jitable  # type: ignore[untyped-decorator]
def _copy(target: Any, value: Any) -> None:  # pragma: no cover - compiled
    for k in range(target.shape[0]):
        target[k] = value[k]


@register_jitable  # type: ignore[untyped-decorator]
def _first(row: Any) -> int:  # pragma: no cover - compiled
    """The least address of an element of the row."""
    return int(address(row) + min(0, (row.shape[0] - 1) * row.strides[0]))


@register_jitable  # type: ignore[untyped-decorator]
def _meet(target: Any, value: Any) -> bool:  # pragma: no cover - compiled
    """Whether two rows lie in memory in such a way that they may have elements in common."""
    reach, from_reach = (target.shape[0] - 1) * abs(target.strides[0]), (value.shape[0] - 1) * abs(value.strides[0])
    return bool(_first(target) <= _first(value) + from_reach and _first(value) <= _first(target) + reach)


@register_jitable  # type: ignore[untyped-decorator]
def _reaches_into(target: Any, value: Any) -> bool:  # pragma: no cover - compiled
    """Whether the right side begins before the target and ends behind its beginning."""
    return bool(_first(value) < _first(target) < _first(value) + value.shape[0] * abs(value.strides[0]))


@intrinsic  # type: ignore[untyped-decorator]
def move(typing: Any, target: Any, value: Any) -> Any:
    """Copy the elements of a row that lie one after another to others that do, as if all were read first."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kinds = zip((target, value), args, strict=True)
        to, source = (context.make_array(kind)(context, builder, array) for kind, array in kinds)
        cgutils.raw_memmove(builder, to.data, source.data, to.nitems, to.itemsize)
        return context.get_dummy_value()

    return types.void(target, value), generate
