"""Before-images: what Orion's own arrays held before a run that writes them, so that a run whose workers die can be
undone, and done again. (Gray and Reuter, *Transaction Processing*, 1993, chapter 10: undo by before-images.)

NumPy arrays need none: actors work on copies of them. A before-image costs one pass over the array, and memory for one
more of it:

    bytes ≤ MOST · memory   and   (bytes ≤ SMALL   or   bytes / COPY_RATE ≤ SHARE · seconds of the last such run)

Where workers that are being ended may still write into the memory of an array, it is given other memory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from orion.arrays.aligned import aligned_zeros
from orion.arrays.base import DistArray, bytes_text
from orion.arrays.dense import DenseArray
from orion.arrays.sparse import SparseArray
from orion.runtime.prepared import PreparedProgram

SMALL = 4 << 20
"""Bytes that are copied before each run, however short it is: in less than a millisecond."""

SHARE = 0.05
"""The part of the time of a run that its before-images may take."""

COPY_RATE = 4e9
"""Bytes a second that are copied: what one core does of memory that is in no cache."""

MOST = 0.125
"""The part of the machine's memory that before-images may take."""


class BeforeImages:
    """The before-images of the last run, and how long runs have taken."""

    def __init__(self) -> None:
        self._seconds: WeakKeyDictionary[PreparedProgram, float] = WeakKeyDictionary()
        self._memory: WeakKeyDictionary[DenseArray, NDArray[Any]] = WeakKeyDictionary()
        self._undo: dict[str, Callable[[bool], None]] = {}
        self.not_kept = ""

    @contextmanager
    def of(self, prepared: PreparedProgram, arguments: Mapping[str, object]) -> Iterator[None]:
        """Have the before-images of a run while it is under way. `not_kept` says why there are none, where there would
        have to be some."""
        written = {name: one for name in sorted(written_by(prepared)) if isinstance(one := arguments[name], DistArray)}
        self.not_kept = self._why_not(prepared, written)
        try:
            self._undo = {} if self.not_kept else {name: self._undo_of(array) for name, array in written.items()}
            start = time.perf_counter()
            yield
            self._seconds[prepared] = time.perf_counter() - start
        finally:
            self._undo = {}

    def restore(self, *, in_place: bool) -> None:
        """Give the arrays of the run under way what they held before it: in their memory, where nobody else writes to
        that any more."""
        while self._undo:
            _, undo = self._undo.popitem()
            undo(in_place)

    def _why_not(self, prepared: PreparedProgram, written: Mapping[str, DistArray]) -> str:
        size = sum(array.nbytes for array in written.values())
        most = MOST * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if size > most:
            return f"they take {bytes_text(size)}, and copies may take {bytes_text(int(most))}"
        last = self._seconds.get(prepared)
        if size <= SMALL or last is None or size / COPY_RATE <= SHARE * last:
            return ""
        return f"to copy them, {bytes_text(size)}, would take more than {SHARE:.0%} of the {last:.2g} s of a run"

    def _undo_of(self, array: DistArray) -> Callable[[bool], None]:
        """What gives an array the contents that it has now."""
        if isinstance(array, SparseArray):
            restore = array.before_image()
            return lambda _: restore()
        assert isinstance(array, DenseArray)
        image = self._memory.get(array)
        if image is None:
            image = self._memory[array] = aligned_zeros(array.storage.shape, array.storage.dtype)
        np.copyto(image, array.storage)

        def undo(in_place: bool) -> None:
            if in_place:
                np.copyto(array.storage, image)
            else:
                array.replace_storage(self._memory.pop(array))

        return undo


def written_by(prepared: PreparedProgram) -> frozenset[str]:
    """The arrays that a program writes, those too whose elements it stores."""
    return prepared.written.union(prepared.stored)
