"""Memory of several kinds: a kind is the process's own memory, or files in a folder that are mapped into it.

Which disk, network or device a folder is on is the user's choice: that is what makes a kind slow. Pages of files that
the system keeps in memory are given up before each run, so that a run begins as with arrays that nobody has read yet.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.errors import ArgumentError, describe

Array = NDArray[Any]

TRIED, LEAST, MOST, REPEATS = 32, 1 << 20, 1 << 24, 3
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

    def flush(self) -> None:
        """Write to the files what was written to the arrays, and wait until it is there."""
        for memory, _ in self._maps.values():
            memory.flush()

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


def cost_of_writing(folder: Path, block: int) -> float:
    """What it costs to write a block of a file in a folder, relative to reading it: by some that are read, and as many
    that are read and written; the least time of a few of both."""
    values = np.zeros(min(max(TRIED * block, LEAST), MOST), np.uint8)
    files = FileArrays(folder)
    try:
        files.add("values", values)
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
        return max(0.0, seconds[1] / seconds[0] - 1.0)
    finally:
        files.close()
