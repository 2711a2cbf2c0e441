"""Arrays of other libraries as NumPy arrays of the same memory: by DLPack, `__array_interface__`, the buffer protocol,
or a `__array__` that copies nothing. No other library is imported: types are known by their attributes.

A view knows whose memory it has (`owner_of`), so that a result is the object that was passed, and errors name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.dtypes import SUPPORTED

Array = NDArray[Any]

PLAIN = (np.ndarray, np.generic, int, float, complex, str, type(None))

HOST_DEVICES = frozenset({1, 3, 11, 13})
"""DLPack's numbers of devices whose memory the CPU reads: its own, and that which CUDA and ROCm share with it."""


class ForeignMemory:
    """The base of a view: the object whose memory it has, and the view that was made of it, which keeps that alive."""

    __slots__ = ("__array_interface__", "array", "owner")

    def __init__(self, owner: object, array: Array, *, is_fixed: bool) -> None:
        self.owner, self.array = owner, array
        told = array.__array_interface__
        at, is_read_only = told["data"]
        self.__array_interface__ = {**told, "data": (at, is_read_only or is_fixed)}

    def is_all_of(self, array: Array) -> bool:
        """Whether an array has all elements of this memory, in the same order."""
        own = self.array
        is_alike = array.shape == own.shape and array.strides == own.strides and array.dtype == own.dtype
        return is_alike and address_of(array) == address_of(own)


def address_of(array: Array) -> int:
    """Where an array begins in memory."""
    return int(array.__array_interface__["data"][0])


@lru_cache(maxsize=256)
def is_known(kind: type) -> bool:
    """Whether objects of a type are no foreign arrays: numbers, and what NumPy and Orion have themselves."""
    return issubclass(kind, PLAIN) or kind.__module__.startswith("orion.")


def with_views(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call with views in place of foreign arrays. What cannot be viewed stays as it is."""
    if all(map(is_known, map(type, arguments.values()))):
        return arguments
    return {name: viewed(value) for name, value in arguments.items()}


def views_of(arguments: Iterable[Any]) -> list[Any] | None:
    """Return the arguments of a call with views in place of foreign arrays; None where there is none."""
    given = [*arguments]
    if all(map(is_known, map(type, given))):
        return None
    found = [viewed(value) for value in given]
    return found if any(one is not value for one, value in zip(found, given, strict=True)) else None


def viewed(value: Any) -> Any:
    """Return a view of a foreign array, and any other value as it is.

    >>> from array import array
    >>> numbers = array("d", [1.0, 2.0])
    >>> viewed(numbers)[0] = 5.0
    >>> numbers
    array('d', [5.0, 2.0])
    """
    kind: type = type(value)
    if is_known(kind) or obstacle(value) is not None:
        return value
    found = next(memory_of(value), None)
    if found is None or found[0].dtype not in SUPPORTED or not (found[0].ndim or hasattr(value, "item")):
        return value
    array, is_fixed = found
    return np.asarray(ForeignMemory(value, array, is_fixed=is_fixed))


def obstacle(value: Any) -> str | None:
    """Return what keeps memory from being viewed though a protocol may hand it out: "gradients", "device", or the bit
    "neg" or "conj" of a tensor whose elements are to be negated or conjugated when they are read."""
    if told(value, "requires_grad") is True:
        return "gradients"
    if hasattr(type(value), "__dlpack_device__"):
        try:
            number = int(value.__dlpack_device__()[0])
        except Exception:  # DLPack has no number for the device, or the object has no memory any more
            number = 1 if told(value, "device") is None else 0
        if number not in HOST_DEVICES:
            return "device"
    elif hasattr(type(value), "__cuda_array_interface__"):
        return "device"
    for bit in ("neg", "conj"):
        asked = told(value, f"is_{bit}")
        if callable(asked) and hasattr(value, f"resolve_{bit}") and asked() is True:
            return bit
    return None


def told(value: Any, name: str) -> Any:
    """Return an attribute of an object of another library; None where it has none, or raises an error of any kind."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def memory_of(value: Any) -> Iterator[tuple[Array, bool]]:
    """Yield the object's memory by each protocol that it has, and whether it is fixed though NumPy could write it."""
    for protocol in PROTOCOLS:
        with suppress(Exception):  # each library has errors of its own for what it does not hand out
            found = protocol(value)
            if found is not None:
                yield found


def why_not(value: Any) -> str:
    """Return the first line of what the object's first protocol says where it hands out no memory; "" where it does."""
    for protocol in PROTOCOLS:
        try:
            found = protocol(value)
        except Exception as error:
            return str(error).partition("\n")[0].rstrip(".")
        if found is not None:
            return ""
    return ""


def _by_dlpack(value: Any) -> tuple[Array, bool] | None:
    if not (hasattr(type(value), "__dlpack__") and hasattr(type(value), "__dlpack_device__")):
        return None
    try:
        found = np.from_dlpack(value, copy=False)
    except TypeError as error:
        if type(error) is not TypeError:  # Arrow's own, which says what keeps it from exporting
            raise
        found = np.from_dlpack(value)  # from before version 1 of DLPack, or with NumPy from before 2.1
    if not found.flags.writeable and hasattr(type(value), "__array__"):
        # DLPack before version 1 does not say whether memory may be written; the object's own array does.
        with suppress(Exception):
            own = value.__array__()
            if own.flags.writeable and ForeignMemory(value, found, is_fixed=True).is_all_of(own):
                found = own
    return found, False


def _by_interface(value: Any) -> tuple[Array, bool] | None:
    if not hasattr(type(value), "__array_interface__") and "__array_interface__" not in getattr(value, "__dict__", ()):
        return None
    return _same_twice(lambda: np.asarray(value, copy=False))


def _by_buffer(value: Any) -> tuple[Array, bool] | None:
    try:
        memory = memoryview(value)
    except TypeError:
        return None
    return np.asarray(memory), False


def _by_array(value: Any) -> tuple[Array, bool] | None:
    """What `__array__` gives counts as fixed: nobody has promised that what is written to it arrives."""
    if not hasattr(type(value), "__array__") or told(value, "columns") is not None:
        return None  # `frame[i, j]` is a column in Python, not an element

    def made() -> Array:
        try:
            return np.asarray(value.__array__(copy=False))
        except TypeError:  # from before NumPy 2
            return np.asarray(value.__array__())

    found = _same_twice(made)
    return None if found is None else (found[0], True)


def _same_twice(made: Callable[[], Array]) -> tuple[Array, bool] | None:
    """What `made` returns, where it is the same memory each time and thus no copy."""
    first, second = made(), made()
    return (first, False) if not first.size or address_of(first) == address_of(second) else None


PROTOCOLS = (_by_dlpack, _by_interface, _by_buffer, _by_array)


def memory_behind(array: object) -> ForeignMemory | None:
    """Return the foreign memory that an array is a view of, None where it is none."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, ForeignMemory) else None


def owner_of(array: object) -> Any:
    """Return the foreign object whose memory an array has, None where there is none."""
    memory = memory_behind(array)
    return None if memory is None else memory.owner


def identity_of(array: Any) -> Any:
    """Return what stays the same where an array is given to a further call: the foreign object of a view, as each call
    makes a view of its own, and else the array itself. It can be referred to weakly.

    >>> from array import array
    >>> numbers = array("d", [1.0])
    >>> identity_of(viewed(numbers)) is identity_of(viewed(numbers)) is numbers
    True
    """
    memory = array.base if type(array) is np.ndarray else None
    if isinstance(memory, ForeignMemory) and type(memory.owner).__weakrefoffset__:
        return memory.owner
    return array


def with_owners(returned: Any) -> Any:
    """Return what a function returned with foreign objects in place of views of all their elements. A view of a part
    stays an array of NumPy."""
    if returned is None or type(returned) in (int, float, bool):
        return returned
    if isinstance(returned, np.ndarray):
        memory = memory_behind(returned)
        return memory.owner if memory is not None and memory.is_all_of(returned) else returned
    return tuple(map(with_owners, returned)) if type(returned) is tuple else returned
