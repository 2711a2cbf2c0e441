"""The arguments of the call before: where a call has the same arrays, they need not be looked at again.

Scripts call a loop with the same arrays again and again. To look at their types, shapes and overlaps takes longer than
a short loop does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import ref

import numpy as np

from orion.loop.signature import PYTHON_SCALARS, is_wide


@dataclass(frozen=True, slots=True)
class Recent:
    """The arguments of a call; none of them is kept alive.

    `arrays` are (name, reference, shape, strides, dtype, writeable), `fixed` are (name, type, value) of scalars whose
    values matter, `others` (name, type) of other scalars.
    """

    arrays: tuple[tuple[str, ref[np.ndarray[Any, Any]], tuple[int, ...], tuple[int, ...], np.dtype[Any], bool], ...]
    fixed: tuple[tuple[str, type, Any], ...]
    others: tuple[tuple[str, type], ...]

    def are_like(self, arguments: Mapping[str, Any]) -> bool:
        """Whether these arguments, of the same function, have the same types, shapes and overlaps, and the same values
        where values matter.

        >>> a = np.zeros(3)
        >>> before = recent({"a": a, "n": 3, "step": 0.1}, {"n"})
        >>> before.are_like({"a": a, "n": 3, "step": 0.2}), before.are_like({"a": a, "n": 4, "step": 0.1})
        (True, False)
        >>> before.are_like({"a": a.copy(), "n": 3, "step": 0.1})
        False
        """
        for name, found, shape, strides, dtype, writeable in self.arrays:
            value: np.ndarray[Any, Any] = arguments[name]
            if found() is not value or value.shape != shape or value.strides != strides:
                return False
            if value.dtype is not dtype or value.flags.writeable is not writeable:
                return False
        for name, kind, before in self.fixed:
            if type(arguments[name]) is not kind or arguments[name] != before:
                return False
        for name, kind in self.others:
            if type(arguments[name]) is not kind or (kind is int and is_wide(arguments[name])):
                return False
        return True


def recent(arguments: Mapping[str, Any], fixed: Collection[str]) -> Recent | None:
    """The arguments of a call, with the scalars whose values matter; None where some are neither plain NumPy arrays nor
    plain scalars."""
    arrays, scalars = [], []
    for name, value in arguments.items():
        if type(value) is np.ndarray:
            arrays.append((name, ref(value), value.shape, value.strides, value.dtype, value.flags.writeable))
        elif type(value) in PYTHON_SCALARS or isinstance(value, np.generic):
            scalars.append((name, type(value), value))
        else:
            return None
    others = ((name, kind) for name, kind, _ in scalars if name not in fixed)
    return Recent(tuple(arrays), tuple(one for one in scalars if one[0] in fixed), tuple(others))
