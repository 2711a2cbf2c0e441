"""Where the elements of arrays are held: in memory, or in mapped files where there are many.

A column of elements (the keys of a dimension, a value, …) that takes more bytes than a session allows for is a file in
the folder that the session names, mapped into memory: the system writes its pages to the disk and drops them where
memory is short. The file loses its name before anything is written to it. So nothing can be left behind, however a
process ends: the system frees the file with the last array on it.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from math import prod
from typing import IO, Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from orion.arrays.aligned import aligned_zeros
from orion.arrays.check import INT32, INT64, Arrays, key_dtype
from orion.arrays.sizes import size_in_bytes
from orion.dataclass import dataclass
from orion.errors import ArgumentError, StorageError, describe

Array = NDArray[Any]

SESSION = "orion.runtime.session"

ABOVE = 64 << 20
"""Bytes of a column from which on it is in a file, where a session names a folder alone."""


MORE_FILES = (
    "have fewer such arrays at a time, larger columns in memory, orion.init(spill_above=…), or a higher `ulimit -n`"
)
HINTS = {
    errno.ENOSPC: "make room, or choose another folder, orion.init(spill=…)",
    errno.EMFILE: MORE_FILES,
    errno.ENFILE: MORE_FILES,
}
"""What helps, by what the system says; each column in a file takes a descriptor."""

BLOCK = 1 << 20
"""Elements that are looked at together where not all can be in memory."""

FEWEST = 1 << 16
"""So few elements are always sorted in memory."""


class FileMemory(mmap.mmap):
    """The mapped memory of a file without a name in `folder`."""

    folder: str


@dataclass(frozen=True, slots=True)
class Storage:
    """Columns of more than `above` bytes are in files in `folder`."""

    folder: str
    above: int

    @property
    def at_once(self) -> int:
        """How many elements may be sorted in memory at a time: that takes some 32 bytes for each in every thread."""
        return max(self.above // 64, FEWEST)

    def empty(self, count: int, dtype: np.dtype) -> Array:
        """A column without contents. StorageError where there is no room for it on the disk."""
        size = count * dtype.itemsize
        if size <= self.above:
            return np.empty(count, dtype)
        with self.file() as file:
            return self.mapped(file, size).view(dtype)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """An array of zeros in C order that starts on a 64-byte boundary."""
        if prod(shape) * dtype.itemsize <= self.above:
            return aligned_zeros(shape, dtype)
        return self.empty(prod(shape), dtype).reshape(shape)  # of a new file

    def copied(self, column: Array) -> Array:
        """A copy of a column."""
        found = self.empty(len(column), column.dtype)
        found[...] = column
        return found

    def file(self) -> IO[bytes]:
        """A new file without a name. StorageError where the folder takes none."""
        with self.told():
            return tempfile.TemporaryFile(prefix="orion-", dir=self.folder)

    def mapped(self, file: IO[bytes], size: int) -> NDArray[np.uint8]:
        """The memory of so many bytes of such a file, which lasts longer than `file`. StorageError where there is no
        room for them on the disk."""
        with self.told():
            file.flush()
            reserve(file.fileno(), size)
            memory = FileMemory(file.fileno(), size)
        memory.folder = self.folder
        return np.frombuffer(memory, np.uint8)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Says of what the system refuses that it is about these files."""
        try:
            yield
        except StorageError:  # is told already
            raise
        except OSError as error:
            what = f"elements cannot be held in files in {self.folder}"
            hint = HINTS.get(error.errno or 0, "choose another folder, orion.init(spill=…)")
            raise StorageError(describe(what, why=error.strerror or str(error), hint=hint)) from error


def reserve(descriptor: int, size: int) -> None:
    """Make a file so large, and take its pages from the disk at once: one that is full would else show when a page is
    first written, by the end of the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


def file_memory(array: Array) -> FileMemory | None:
    """The mapped file that an array is in, None where it is in none."""
    owner: object = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return owner if isinstance(owner, FileMemory) else None


@contextmanager
def written_anywhere(columns: Arrays) -> Iterator[None]:
    """Has the system not read on where a page of these columns is touched: the next one may be anywhere, and what is
    read in vain drives other pages out."""
    found = [memory for memory in map(file_memory, columns) if memory is not None]
    for memory in found:
        memory.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        for memory in found:
            memory.madvise(mmap.MADV_NORMAL)


IN_MEMORY = Storage("", sys.maxsize)


class Pieces:
    """Arrays of one dimension that come one after the other, to be one column: in memory while they are few.

    >>> pieces = Pieces(IN_MEMORY)
    >>> pieces.add(np.array([1, 2])), pieces.add(np.array([0.5]))
    (None, None)
    >>> len(pieces), pieces.whole(np.dtype("float64"))
    (3, array([1. , 2. , 0.5]))
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._held: list[Array] = []
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int, np.dtype]] = []
        """Of each array in the file, where it begins, how many elements it has and of which dtype."""
        self._end = 0
        self._count = 0
        self.dtypes: set[np.dtype] = set()
        """Of the arrays that were added, empty ones among them."""

    def __len__(self) -> int:
        return self._count

    def add(self, array: Array) -> None:
        """Add an array, which must not be changed from then on. StorageError where there is no room for it."""
        self.dtypes.add(array.dtype)
        if not len(array):
            return
        self._held.append(array)
        self._count += len(array)
        if self._file is not None or self._count * array.itemsize > self._storage.above:
            self._write()

    def _write(self) -> None:
        """Move what is held to the file."""
        if self._file is None:
            self._file = self._storage.file()
            finalize(self, self._file.close)
        with self._storage.told():
            for array in self._held:
                start = self._end + -self._end % array.itemsize
                self._file.write(b"\0" * (start - self._end))
                self._file.write(np.ascontiguousarray(array).view(np.uint8).data)
                self._places.append((start, len(array), array.dtype))
                self._end = start + array.nbytes
        self._held.clear()

    def __iter__(self) -> Iterator[Array]:
        """The arrays in their order."""
        if self._file is not None:
            memory = self._storage.mapped(self._file, self._end)
            for start, count, dtype in self._places:
                yield memory[start : start + count * dtype.itemsize].view(dtype)
        yield from self._held

    def whole(self, dtype: np.dtype) -> Array:
        """All of them as one column of its own, of a dtype that has their elements; they are let go of."""
        if self._file is None:
            held, self._held = self._held, []
            return np.concatenate([np.empty(0, dtype), *held], dtype=dtype, casting="unsafe")
        if self.dtypes == {dtype}:
            found: Array = self._storage.mapped(self._file, self._end).view(dtype)
        else:
            found, start = self._storage.empty(self._count, dtype), 0
            for piece in self:
                found[start : start + len(piece)] = piece
                start += len(piece)
        self._file.close()
        return found


class KeyPieces:
    """The keys of elements that come one part after the other, by dimension."""

    def __init__(self, storage: Storage, dims: int) -> None:
        self._pieces = [Pieces(storage) for _ in range(dims)]

    def add(self, keys: Arrays) -> None:
        """Add the keys of some elements; they are held as int32 where all of them fit."""
        kind = key_dtype(keys)
        for pieces, axis in zip(self._pieces, keys, strict=True):
            pieces.add(axis.astype(kind, copy=False))

    def whole(self) -> Arrays:
        """One column for each dimension, all int32 if every key fits, else int64."""
        kinds = set().union(*(pieces.dtypes for pieces in self._pieces))
        kind = INT64 if INT64 in kinds else INT32
        return tuple(pieces.whole(kind) for pieces in self._pieces)


# ---------------------------------------------------------------- which is in force


def current_storage() -> Storage:
    """That of the session that loops run in."""
    if SESSION in sys.modules:
        found: Storage = import_module(SESSION).current_storage()
        return found
    return storage_from(None, None)  # nobody can have begun a session


def storage_from(folder: str | os.PathLike[str] | None, above: int | str | None) -> Storage:
    """Where a session holds elements, by its arguments, or by the environment where they are None. ArgumentError for
    what cannot be, StorageError for a folder that cannot be written to."""
    given = os.environ.get("ORION_SPILL", "").strip() if folder is None else folder
    if not isinstance(given, str | os.PathLike):
        raise ArgumentError(describe(f"spill={given!r} is no folder", hint="give the path of one, as a text"))
    path = os.path.abspath(os.path.expanduser(os.fspath(given))) if os.fspath(given) else ""
    text = os.environ.get("ORION_SPILL_ABOVE", "").strip() if above is None else above
    name = "ORION_SPILL_ABOVE" if above is None else "spill_above"
    bytes_above = ABOVE if text == "" else size_in_bytes(text, name, ArgumentError)
    if not path:
        if above is not None:
            what = f"spill_above={above!r} without a folder"
            raise ArgumentError(describe(what, hint="name a folder on a disk, spill=…, where elements are to be"))
        return IN_MEMORY
    if not os.path.isdir(path):
        hint = "make it, or name another one that is on a disk with room for the data"
        raise StorageError(
            describe(f"elements cannot be held in files in {path}", why="there is no such folder", hint=hint)
        )
    storage = Storage(path, bytes_above)
    storage.file().close()  # what may be written to only trying tells
    return storage
