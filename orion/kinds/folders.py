"""Memory of several kinds: a kind is the process's own memory, or files in a folder that are mapped into it.

Which disk, network or device a folder is on is the user's choice: that is what makes a kind slow. Pages of files that
the system keeps in memory are given up before each run, so that a run begins as with arrays that nobody has read yet.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Mapping
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.errors import ArgumentError, describe
from orion.kinds.blocks import BlockCost, FolderCost

Array = NDArray[Any]

CACHE = 1 << 25
"""The bytes of a cache, at least."""

TRIED, LEAST, MOST, REPEATS = 32, 1 << 20, 1 << 24, 5
"""Blocks that are read and written to see what that costs, their bytes at least and at most, and how often."""


def checked_kinds(given: object) -> dict[str, Path | None]:
    """The kinds that a user gave, each with its folder, None for the process's own memory. ArgumentError where they
    are no such mapping of at least two, the first of which is the process's own memory."""
    hint = 'write `kinds={"dram": None, "file": "/a/folder"}`: None is the process\'s own memory'
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise ArgumentError(describe(f"`kinds` is a dict of names and folders, not {given!r}", hint=hint))
    folders = [folder for folder in given.values() if folder is not None]
    if len(given) < 2 or next(iter(given.values())) is not None or len(folders) != len(given) - 1:
        what = f"`kinds` has None once, first, and a folder at least, not {dict(given)!r}"
        raise ArgumentError(describe(what, hint=hint))
    found: dict[str, Path | None] = {}
    for name, folder in given.items():
        if folder is not None and not (isinstance(folder, str | os.PathLike) and os.path.isdir(folder)):
            why = "files for copies of arrays are made in it, and removed again"
            raise ArgumentError(describe(f"the kind `{name}` is no folder: {folder!r}", why=why, hint=hint))
        if folder is not None:
            _check_takes_files(name, folder)
        found[name] = None if folder is None else Path(folder)
    return found


def _check_takes_files(name: str, folder: str | os.PathLike[str]) -> None:
    try:
        TemporaryDirectory(dir=folder).cleanup()
    except OSError as error:
        what = f"no files can be made in the folder {os.fspath(folder)!r} of the kind `{name}`"
        hint = "name one that is on a disk, and that may be written to"
        raise ArgumentError(describe(what, why=error.strerror or str(error), hint=hint)) from None


def block_bytes(folder: Path) -> int:
    """How many bytes of a file come into memory together: what the device of a folder reads ahead; a page where that
    is not known."""
    device = os.stat(folder).st_dev
    try:
        text = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb").read_text()
        return max(mmap.PAGESIZE, int(text) * 1024)
    except (OSError, ValueError):
        return mmap.PAGESIZE


def leave_caches() -> None:
    """Have the caches of the processor hold other memory than that of arrays: so much is written as fits in twice."""
    np.ones(2 * cache_bytes(), np.uint8)


def cache_bytes() -> int:
    """The bytes of the largest cache of a core; what is usual where the system does not say."""
    found = [CACHE]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        found.append(1024 * int(path.read_text().strip().removesuffix("K")))
    return max(found)


@dataclass(eq=False)
class FileArrays:
    """Copies of arrays, with the same strides, each in a file of its own in a new folder, until they are closed."""

    folder: Path
    arrays: dict[str, Array] = field(default_factory=dict)
    _maps: dict[str, tuple[mmap.mmap, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._files = TemporaryDirectory(prefix="orion-", dir=self.folder)

    def add(self, name: str, value: Array) -> None:
        """Make a copy of an array."""
        low, high = np.lib.array_utils.byte_bounds(value)
        file = os.open(os.path.join(self._files.name, str(len(self._maps))), os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(file, max(1, high - low))
        memory = mmap.mmap(file, max(1, high - low))
        self._maps[name] = memory, file
        start = value.__array_interface__["data"][0] - low
        view: Array = np.ndarray(value.shape, value.dtype, memory, start, value.strides)
        view[...] = value
        self.arrays[name] = view

    def bytes_of(self, name: str) -> int:
        """The bytes of a file."""
        return len(self._maps[name][0])

    def resident(self) -> dict[str, NDArray[np.bool_]] | None:
        """Which pages of each file are in memory, whoever brought them in; None where the system does not say."""
        mincore = getattr(ctypes.CDLL(None), "mincore", None)
        found = {}
        for name, (memory, _) in self._maps.items():
            pages = np.zeros(-(-len(memory) // mmap.PAGESIZE), np.uint8)
            start, length = np.frombuffer(memory, np.uint8).ctypes.data, ctypes.c_size_t(len(memory))
            if mincore is None or mincore(ctypes.c_void_p(start), length, ctypes.c_void_p(pages.ctypes.data)):
                return None
            found[name] = pages % 2 == 1
        return found

    def flush(self) -> dict[str, float]:
        """Write to the files what was written to the arrays, and wait until it is there: the seconds of each."""
        seconds = {}
        for name, (memory, _) in self._maps.items():
            start = perf_counter()
            memory.flush()
            seconds[name] = perf_counter() - start
        return seconds

    def drop(self) -> None:
        """Have the system keep no page of the files in memory."""
        self.flush()
        for memory, file in self._maps.values():
            os.fsync(file)
            memory.madvise(mmap.MADV_DONTNEED)
            if hasattr(os, "posix_fadvise"):  # not on macOS
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Remove the files. The memory goes when the last array on it does."""
        self.arrays.clear()
        for _, file in self._maps.values():
            os.close(file)
        self._maps.clear()
        self._files.cleanup()


class FreshPages:
    """What is brought in of files from one look to the next."""

    def __init__(self, files: FileArrays) -> None:
        self.files, self.before = files, files.resident()

    def look(self) -> dict[str, int] | None:
        """The bytes of each file that are in memory now, and were not the last time; None where nobody knows."""
        now, before, found = self.files.resident(), self.before, dict[str, int]()
        if now is None or before is None:
            return None
        for name, pages in now.items():
            fresh = np.flatnonzero(pages & ~before[name])
            size = self.files.bytes_of(name)
            found[name] = int(np.minimum(mmap.PAGESIZE, size - mmap.PAGESIZE * fresh).sum())
        self.before = now
        return found


def cost_of_blocks(folder: Path, block: int) -> FolderCost:
    """What blocks of files in a folder cost to read and to write, by files of a page and of some blocks: the least
    times of a few."""
    sizes = (mmap.PAGESIZE, 1), (block, min(max(TRIED, LEAST // block), MOST // block))
    reads, writes = [], []
    for size, count in sizes:
        read, both = _seconds_of_blocks(folder, size * count)
        reads.append((size, read / count))
        writes.append((size, max(0.0, both - read) / count))
    return FolderCost(BlockCost.through(*reads), BlockCost.through(*writes))


def _seconds_of_blocks(folder: Path, size: int) -> tuple[float, float]:
    """The seconds of reading a file of so many bytes, and of reading and writing it."""
    files = FileArrays(folder)
    try:
        files.add("values", np.zeros(size, np.uint8))
        seconds = [inf, inf]
        for is_written in (False, True) * REPEATS:
            files.drop()
            start = perf_counter()
            if is_written:
                files.arrays["values"][:: mmap.PAGESIZE] = 1
                files.flush()
            else:
                int(files.arrays["values"][:: mmap.PAGESIZE].sum())
            seconds[is_written] = min(seconds[is_written], perf_counter() - start)
        return seconds[0], seconds[1]
    finally:
        files.close()
