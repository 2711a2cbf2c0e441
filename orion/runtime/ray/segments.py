"""Memory that the processes of one machine share.

A segment is an anonymous file in memory (`memfd_create`). Its maker keeps it open; the others open it through
`/proc/<process>/fd/<descriptor>`. It has no name, so that nothing can be left behind however a process ends:
the system frees it with the last mapping. Where that does not work (no such call, or processes that don't see
each other), a segment is a file that its maker removes again as soon as the others have mapped it.

Large ones are files on a disk instead, where the session holds elements in files (`orion.arrays.storage`): the system
writes their pages there and drops them where memory is short.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from orion.arrays.aligned import LINE
from orion.arrays.storage import IN_MEMORY, Storage, reserve
from orion.dataclass import dataclass

Bytes = NDArray[np.uint8]

TOKEN = 16
"""How many bytes of a segment two processes compare."""


@dataclass(frozen=True, slots=True)
class SegmentName:
    """How other processes of the machine open a segment."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Block:
    """A C-contiguous array in a segment, `offset` bytes from its start. `segment` is the number of the
    segment, the same on every machine that has a copy.
    """

    segment: int
    offset: int
    shape: tuple[int, ...]
    dtype: str

    def on(self, memory: Bytes) -> NDArray[Any]:
        """The array, on the memory of its segment."""
        dtype = np.dtype(self.dtype)
        size = dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        return memory[self.offset : self.offset + size].view(dtype).reshape(self.shape)


def create_segment(
    size: int, anonymous: bool, storage: Storage = IN_MEMORY, on_release: Callable[[], object] | None = None
) -> tuple[SegmentName, Bytes]:
    """A zeroed segment of `size` bytes, mapped. It lasts as long as an array on its memory does; then its pages
    are freed, whoever else has mapped it, and `on_release` is called. Its pages are those of a file on a disk where
    `storage` has so many bytes in files.

    OSError where there is no room for it, StorageError on that disk.
    """
    size = max(size, LINE)
    path, descriptor, memory = (_unnamed if anonymous else _named)(size, storage)
    # At the end of the process the pages stay until the process is gone: others may still use the array then.
    finalize(memory, _release, descriptor, os.getpid(), on_release).atexit = False
    if not anonymous:
        finalize(memory, _remove_file, path, os.getpid())
    return SegmentName(path, size), memory


def _unnamed(size: int, storage: Storage) -> tuple[str, int, Bytes]:
    """A segment that others open through /proc: how, its descriptor and its memory."""
    if size > storage.above:
        with storage.told(), storage.file() as file:
            memory, descriptor = storage.mapped(file, size), os.dup(file.fileno())
    else:
        descriptor = os.memfd_create("orion")
        try:
            os.truncate(descriptor, size)
            memory = _mapped(descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
    return f"/proc/{os.getpid()}/fd/{descriptor}", descriptor, memory


def _named(size: int, storage: Storage) -> tuple[str, int, Bytes]:
    """A segment that is a file with a name. Its file system may be small, so that its pages are taken at once."""
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    is_held = size <= storage.above
    with nullcontext() if is_held else storage.told():
        descriptor, path = tempfile.mkstemp(prefix="orion-", dir=in_memory if is_held else storage.folder)
        try:
            reserve(descriptor, size)
            return path, descriptor, _mapped(descriptor, size)
        except BaseException:
            os.close(descriptor)
            os.unlink(path)
            raise


def open_segment(name: SegmentName) -> Bytes:
    """The memory of a segment of another process of this machine. OSError where it cannot be opened."""
    descriptor = os.open(name.path, os.O_RDWR)
    try:
        return _mapped(descriptor, name.size)
    finally:
        os.close(descriptor)


def remove_name(name: SegmentName) -> None:
    """Remove the file of a segment that is one; those who have mapped it keep it."""
    if not name.path.startswith("/proc/"):
        _unlink(name.path)


def token_in(memory: Bytes) -> bytes:
    """The first bytes of a segment, to tell whether another process sees the same."""
    return memory[:TOKEN].tobytes()


def can_be_anonymous() -> bool:
    """Whether this system has memory without a name that can be opened through /proc."""
    return hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")


def _mapped(descriptor: int, size: int) -> Bytes:
    return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


def _release(descriptor: int, maker: int, on_release: Callable[[], object] | None) -> None:
    """Free the pages. In a process that was forked off they are still its parent's."""
    if os.getpid() == maker:
        os.ftruncate(descriptor, 0)
    os.close(descriptor)
    if on_release is not None:
        on_release()


def _remove_file(path: str, maker: int) -> None:
    if os.getpid() == maker:
        _unlink(path)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


class Arena:
    """Hands out arrays of a segment one after another, each on a 64-byte boundary. The same requests give the
    same places.

    Without memory it only counts what the requests take (`size`).
    """

    def __init__(self, segment: int = 0, memory: Bytes | None = None) -> None:
        self._segment = segment
        self._memory = memory
        self.size = 0

    def block(self, shape: tuple[int, ...], dtype: np.dtype) -> Block:
        """The place of the next array."""
        start = self.size
        length = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self.size = start + -(-length // LINE) * LINE
        return Block(self._segment, start, shape, dtype.str)

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype) -> NDArray[Any]:
        """The next array: on the memory, or an empty stand-in where there is none."""
        block = self.block(shape, dtype)
        return np.empty(shape, dtype) if self._memory is None else block.on(self._memory)
