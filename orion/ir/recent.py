"""The arguments of the call before: where those of a call are like them, they need not be looked at more closely.

Scripts call a loop again and again. To look at types, shapes and overlaps takes longer than a short loop does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from orion.dataclass import dataclass
from orion.ir.signature import PYTHON_SCALARS, is_wide

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Recent:
    """What the arguments of a call were; none of them is kept, not even by a weak reference: NumPy would then refuse to
    resize it.

    `arrays` are (name, shape, strides, dtype, writeable), and `addresses` where they begin: None where none overlaps
    another. `fixed` are (name, type, value) of scalars whose values matter, of strings and of None; `others` (name,
    type) of other scalars.
    """

    arrays: tuple[tuple[str, tuple[int, ...], tuple[int, ...], np.dtype[Any], bool], ...]
    addresses: tuple[int, ...] | None
    fixed: tuple[tuple[str, type, Any], ...]
    others: tuple[tuple[str, type], ...]

    def are_like(self, arguments: Mapping[str, Any]) -> bool:
        """Whether these arguments, of the same function, have the same types, shapes and overlaps, and the same values
        where values matter.

        >>> before = recent({"a": np.zeros(3), "n": 3, "step": 0.1}, {"n"})
        >>> a = np.ones(3)
        >>> before.are_like({"a": a, "n": 3, "step": 0.2}), before.are_like({"a": a, "n": 4, "step": 0.1})
        (True, False)
        >>> before.are_like({"a": np.zeros(4), "n": 3, "step": 0.1})
        False
        """
        for name, kind, before in self.fixed:
            if type(arguments[name]) is not kind or arguments[name] != before:
                return False
        for name, kind in self.others:
            if type(arguments[name]) is not kind or (kind is int and is_wide(arguments[name])):
                return False
        arrays = []
        for name, shape, strides, dtype, writeable in self.arrays:
            value = arguments[name]
            if type(value) is not np.ndarray or value.shape != shape or value.strides != strides:
                return False
            if value.dtype is not dtype or value.flags.writeable is not writeable:
                return False
            arrays.append(value)
        return are_apart(arrays) if self.addresses is None else addresses(arrays) == self.addresses


def recent(arguments: Mapping[str, Any], fixed: Collection[str]) -> Recent | None:
    """What the arguments of a call are, with the scalars whose values matter; None where some are neither plain NumPy
    arrays nor plain scalars."""
    arrays: dict[str, Array] = {}
    scalars = []
    words: list[tuple[str, type, Any]] = []
    for name, value in arguments.items():
        if type(value) is np.ndarray:
            arrays[name] = value
        elif type(value) in PYTHON_SCALARS or isinstance(value, np.generic):
            scalars.append((name, type(value), value))
        elif value is None or type(value) is str:
            words.append((name, type(value), value))
        else:
            return None
    kinds = ((name, a.shape, a.strides, a.dtype, a.flags.writeable) for name, a in arrays.items())
    start = None if are_apart([*arrays.values()]) else addresses([*arrays.values()])
    others = ((name, kind) for name, kind, _ in scalars if name not in fixed)
    return Recent(tuple(kinds), start, (*(one for one in scalars if one[0] in fixed), *words), tuple(others))


def are_apart(arrays: Sequence[Array]) -> bool:
    """Whether no two arrays can overlap: each owns its memory, or lies before or behind the others.

    >>> a, b = np.zeros(3), np.zeros(3)
    >>> are_apart([a, b]), are_apart([a, a]), are_apart([a[2:], b, a[:2]]), are_apart([a, a[:2]])
    (True, False, True, False)
    """
    if all(array.flags.owndata for array in arrays):
        return len({id(array) for array in arrays}) == len(arrays)
    spans = sorted(np.lib.array_utils.byte_bounds(array) for array in arrays if array.size)
    return all(end <= start for (_, end), (start, _) in pairwise(spans))


def addresses(arrays: Collection[Array]) -> tuple[int, ...]:
    """Where the arrays begin in memory."""
    return tuple([array.__array_interface__["data"][0] for array in arrays])


class Identity:
    """An object as part of a key: equal only to itself, and kept alive so that its identity is not taken by another."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
