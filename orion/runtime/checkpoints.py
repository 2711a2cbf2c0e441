"""Checkpoints: what a program needs to go on, in files of a folder, each whole or not there.

path/checkpoint-000007.npz    a file of arrays (`orion.arrays.files.archive`); the newest has the largest number
path/.lock                    held by the session that writes here, for as long as it lasts
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from orion.arrays.accumulator import Accumulator
from orion.arrays.base import DistArray
from orion.arrays.dense import DenseArray
from orion.arrays.files.archive import read_archive, write_archive
from orion.arrays.replica import Replicated
from orion.arrays.sparse import SparseArray
from orion.dataclass import dataclass
from orion.errors import ArgumentError, CheckpointWarning, OrionError, StorageError, describe
from orion.runtime.accumulator_state import in_numbers, take_values, values_in
from orion.runtime.replica_state import begin_again, centre_of, check_momentum, in_parts
from orion.tracebacks import warn_in_users_line

KEPT = 2
"""The checkpoints that stay: the newest, and one before it, in case that is damaged."""

FILE = re.compile(r"checkpoint-([0-9]{6,})\.npz")


@dataclass(slots=True)
class Automatic:
    """What is written every so many seconds, and when it was last. `torn` is the name of an array that may hold a part
    of what a call wrote that did not end."""

    values: Mapping[str, object]
    seconds: float
    last: float
    torn: str = ""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest checkpoint in a folder, the arrays that it holds, and when it was written."""

    path: Path
    arrays: tuple[ref[Any], ...]
    at: float


class Checkpoints:
    """The checkpoints of one session: the folders that it writes to. All is called while no loop runs."""

    def __init__(self) -> None:
        self._locks: dict[Path, int] = {}
        self._automatic: dict[Path, Automatic] = {}
        self._newest: dict[Path, Newest] = {}

    def write(self, folder: Path, values: Mapping[str, object], every: float | None) -> Path:
        """Write a checkpoint, and from now on one after the run that ends `every` so many seconds later."""
        _check(values, every)
        folder = self._held(folder)
        path = self._write_next(folder, values)
        self._automatic.pop(folder, None)
        if every is not None:
            self._automatic[folder] = Automatic(dict(values), float(every), time.monotonic())
        return path

    def are_due(self) -> bool:
        """Whether automatic checkpoints are to be written now."""
        return any(time.monotonic() - one.last >= one.seconds for one in self._automatic.values())

    def after_run(self) -> None:
        """Write the automatic checkpoints that are due. One that cannot be written is warned of: the program goes on,
        and the checkpoint before it is still there. One that Ctrl-C interrupts is due after the next run."""
        for folder, one in self._automatic.items():
            if time.monotonic() - one.last < one.seconds:
                continue
            now = time.monotonic()
            if one.torn:
                one.last = now
                why = f"`{one.torn}` may hold a part of what a call wrote that did not end"
                hint = "when it is whole again, call `orion.checkpoint` once more"
                warn_in_users_line(CheckpointWarning(describe("no checkpoint is written", why=why, hint=hint)))
                continue
            try:
                self._write_next(folder, one.values)
            except OrionError as error:
                one.last = now
                warn_in_users_line(CheckpointWarning(f"no checkpoint was written: {error}"))
            else:
                one.last = now

    def after_failure(self, written: Iterable[object]) -> None:
        """A run did not end that writes these arrays: automatic checkpoints of them stop, until the next by hand."""
        parts = [part for array in written for part in _memory(array)]
        for one in self._automatic.values():
            for name, value in in_parts(one.values).items():
                own = _memory(value)
                if any(np.may_share_memory(mine, its) for mine in own for its in parts):
                    one.torn = name

    def told_of(self, lost: Iterable[object]) -> str:
        """Which checkpoint of this session has all of some arrays, for the error that says that they are lost."""
        wanted = {id(array) for array in lost}
        fitting = [one for one in self._newest.values() if wanted <= {id(array()) for array in one.arrays}]
        if not fitting:
            return "no checkpoint of this session has them all"
        newest = max(fitting, key=lambda one: one.at)
        ago = time.monotonic() - newest.at
        return f"{newest.path} has them as they were {ago:.0f} s ago: `orion.restore` gives them that again"

    def close(self) -> None:
        """Let go of the folders. In a process that was forked off they stay the parent's."""
        self._automatic.clear()
        self._newest.clear()
        while self._locks:
            _, descriptor = self._locks.popitem()
            os.close(descriptor)

    def _write_next(self, folder: Path, values: Mapping[str, object]) -> Path:
        path = _file(folder, max(_numbers(folder), default=0) + 1)
        values = in_numbers(in_parts(values))
        write_archive(path, values)
        arrays = (value for value in values.values() if isinstance(value, DistArray | np.ndarray))
        self._newest[folder] = Newest(path, tuple(ref(array) for array in arrays), time.monotonic())
        for number in sorted(_numbers(folder))[:-KEPT]:
            with suppress(OSError):
                _file(folder, number).unlink()
        return path

    def _held(self, folder: Path) -> Path:
        """The folder, made where it is not there, and held by this session: nobody else writes to it."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder = folder.resolve()
            if folder not in self._locks:
                if not self._locks:
                    os.register_at_fork(after_in_child=partial(_forget, ref(self)))
                self._locks[folder] = _lock(folder)
                _remove_unfinished(folder)
        except OSError as error:
            hint = "choose a folder that can be written to"
            why = error.strerror or str(error)
            raise StorageError(describe(f"{folder} cannot hold checkpoints", why=why, hint=hint)) from error
        return folder


def _forget(checkpoints: ref[Checkpoints]) -> None:
    """In a process that was forked off: the folders are the parent's."""
    found = checkpoints()
    if found is not None:
        found.close()


def _lock(folder: Path) -> int:
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        what = f"another session writes checkpoints to {folder}"
        hint = "give each session a folder of its own, or end the other one"
        raise ArgumentError(describe(what, hint=hint)) from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _memory(array: object) -> list[NDArray[Any]]:
    """The memory that holds the values of an array."""
    match array:
        case DenseArray():
            return [array.storage]
        case SparseArray():
            return list(array.held_values)
        case np.ndarray():
            return [array]
        case _:
            return []


def _remove_unfinished(folder: Path) -> None:
    """Remove what somebody who was killed had begun to write."""
    for one in folder.glob(".checkpoint-*.tmp"):
        with suppress(OSError):
            one.unlink()


def _check(values: Mapping[str, object], every: float | None) -> None:
    if not values:
        hint = "name what is to be kept: orion.checkpoint(path, W=W, H=H, epoch=epoch)"
        raise ArgumentError(describe("a checkpoint of nothing", hint=hint))
    if every is None:
        return
    if isinstance(every, bool) or not isinstance(every, Real) or not every > 0:
        raise ArgumentError(describe(f"every={every!r} is no number of seconds", hint="give a number above 0"))
    changing = DistArray | np.ndarray | Replicated | Accumulator
    fixed = [name for name, value in values.items() if not isinstance(value, changing)]
    if fixed:
        why = f"`{fixed[0]}` would be {values[fixed[0]]!r} in all of them"
        hint = "keep it in an array of one element, or write the checkpoints without `every`"
        raise ArgumentError(describe("automatic checkpoints hold arrays and accumulators alone", why=why, hint=hint))


def _file(folder: Path, number: int) -> Path:
    return folder / f"checkpoint-{number:06}.npz"


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(found[1]) for one in os.listdir(folder) if (found := FILE.fullmatch(one))]
    except OSError as error:
        why = error.strerror or str(error)
        raise StorageError(describe(f"the folder {folder} of checkpoints cannot be read", why=why)) from error


# ---------------------------------------------------------------- restoring


def restored(path: Path, into: Mapping[str, object]) -> dict[str, Any]:
    """The values of the newest checkpoint in a folder, or of a file. Arrays that are given take the contents, all of
    them or none."""
    file, found = _read(path)
    filled = {name: centre_of(target) for name, target in into.items() if not isinstance(target, Accumulator)}
    for name, target in filled.items():
        _check_fits(file, name, target, found)
    check_momentum(file, into, found)
    values = values_in(file, into, found)
    for name, target in filled.items():
        _fill(target, found[name])
    return begin_again(into, take_values(into, values, found)) | dict(into)


def _read(path: Path) -> tuple[Path, dict[str, Any]]:
    """The file, and what it holds. In a folder that somebody writes to, the newest may give way to newer ones."""
    if not os.path.isdir(path):
        return path, read_archive(path)
    for _ in range(10):
        file = _newest(path)
        with suppress(StorageError):
            return file, read_archive(file)
    return file, read_archive(file)


def _newest(folder: Path) -> Path:
    numbers = _numbers(folder)
    if not numbers:
        hint = "checkpoints are written by `orion.checkpoint(path, …)`"
        raise ArgumentError(describe(f"there is no checkpoint in {folder}", hint=hint))
    return _file(folder, max(numbers))


def _check_fits(file: Path, name: str, target: object, found: Mapping[str, object]) -> None:
    if name not in found:
        raise ArgumentError(describe(f"{file} has no `{name}`", hint=f"it has {', '.join(found)}"))
    value = found[name]
    if not isinstance(target, DenseArray | np.ndarray):
        hint = "take it from what `restore` returns"
        raise ArgumentError(describe(f"`{name}` is a {type(target).__name__}, which is not filled in place", hint=hint))
    if not isinstance(value, DenseArray | np.ndarray):
        raise ArgumentError(f"`{name}` in {file} is {_kind(value)}, not a dense array")
    if value.shape != target.shape or value.dtype != target.dtype:
        have, want = f"{value.dtype}{list(value.shape)}", f"{target.dtype}{list(target.shape)}"
        raise ArgumentError(f"`{name}` in {file} is {have}, the array given is {want}")
    if isinstance(target, np.ndarray) and not target.flags.writeable:
        raise ArgumentError(f"`{name}` is an array that nobody may write to")


def _kind(value: object) -> str:
    return "a sparse array" if isinstance(value, SparseArray) else repr(value)


def _fill(target: object, value: Any) -> None:
    assert isinstance(target, DenseArray | np.ndarray)
    target[...] = value.view if isinstance(value, DenseArray) else value
    if isinstance(target, DenseArray):
        target.shuffled_like(value)
