"""The memory of the arrays that a function makes: there before a run, and the caller's after it where returned."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field

KEPT_BYTES = 1 << 28
"""Arrays of a function that are not returned are kept for its next call up to this size together."""


class LocalArray:
    """An array that a function makes: C-contiguous, without contents until the function fills it, or zero.

    `storage` is its memory, taken when it is first asked for, unless whoever runs the function has set it (to memory
    that is zero).
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, is_zero: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.is_zero = is_zero
        self._storage: NDArray[Any] | None = None

    @property
    def storage(self) -> NDArray[Any]:
        if self._storage is None:
            self._storage = (np.zeros if self.is_zero else np.empty)(self.shape, self.dtype)
        return self._storage

    @storage.setter
    def storage(self, storage: NDArray[Any]) -> None:
        self._storage = storage

    @property
    def has_storage(self) -> bool:
        return self._storage is not None

    def __len__(self) -> int:
        return self.shape[0]


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """What a function makes: an array of this name, shape and dtype, which it returns or not; zero at the beginning, or
    without contents."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_returned: bool
    is_zero: bool = False

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(slots=True)
class LocalArrays:
    """The arrays that a function makes at some sizes. Those that it does not return are used by one call after the
    other, unless they are large; two calls at a time have their own.
    """

    specs: tuple[LocalSpec, ...]
    _free: list[dict[str, LocalArray]] = field(default_factory=list)

    def take(self) -> dict[str, LocalArray]:
        """Arrays for one call, by name."""
        try:
            found = self._free.pop()
        except IndexError:
            found = {}
        new = [spec for spec in self.specs if spec.name not in found]
        return found | {spec.name: LocalArray(spec.shape, np.dtype(spec.dtype), spec.is_zero) for spec in new}

    def alike(self) -> dict[str, LocalArray]:
        """Arrays like those of a call, by name, whose contents nobody uses: zeros would be written."""
        return {spec.name: LocalArray(spec.shape, np.dtype(spec.dtype)) for spec in self.specs}

    def give_back(self, arrays: Mapping[str, LocalArray]) -> None:
        """The call is over: those of its arrays that nobody else has may serve the next one."""
        kept = [spec for spec in self.specs if not spec.is_returned]
        if kept and not self._free and sum(spec.nbytes for spec in kept) <= KEPT_BYTES:
            self._free.append({spec.name: arrays[spec.name] for spec in kept})

    def forget(self) -> None:
        """Let go of all memory that is kept."""
        self._free.clear()
