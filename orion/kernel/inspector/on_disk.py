"""Inspections on disk: in the folder that the environment variable `ORION_INSPECTIONS` names, where the next process
finds them in its first call.

A file is named by a hash of all that an inspection is made of: the inspector, what it is given, arrays bit by bit, the
predicted times by which tiles are chosen, and the text of what chooses them. So a file is never changed, and of
processes that race each writes what the others do. It holds numbers only. One that is damaged, or holds what no
inspection can be, is said to be so, and the loop is inspected anew.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.dependence.inspection import SWITCH, Inspection, Order
from orion.kernel.build.cache import in_words, tell_not_kept, trouble_with, write_whole

TEXTS = ("inspect.py", "levels.py", "tiles.py", "on_disk.py")
"""The files, beside this one, that make inspections."""

ARRAYS = ("order", "offsets", "need_offsets", "needs", "owner", "turn")
NUMBERS = ("workers", "depth", "serial_ns", "tiles_ns", "rounds", "inspection_ns")


class _DamagedError(Exception):
    """A file does not hold an inspection."""


@dataclass(frozen=True, slots=True)
class InspectionFile:
    """The file of an inspection of so many iterations, from coordinate `first` on, for so many workers."""

    path: Path
    count: int
    first: int
    workers: int

    def load(self) -> Inspection | None:
        """What is there; None where there is nothing, or nothing that is an inspection."""
        try:
            return self._checked(self._read(self.path.read_bytes()))
        except FileNotFoundError:
            return None
        except OSError as error:
            tell_not_kept(in_words(error), "inspections", SWITCH)
        except (_DamagedError, zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
            with contextlib.suppress(Exception):  # the stream is closed, or there is none
                sys.stderr.write(f"orion: {self.path} is damaged ({error}): the loop is inspected anew\n")
        return None

    def save(self, found: Inspection) -> None:
        """Put it there; where that cannot be done it is said, once."""
        ends, places = found.accesses
        parts: dict[str, Any] = {name: getattr(found, name) for name in (*ARRAYS, *NUMBERS)}
        data = BytesIO()
        np.savez(data, kind=np.array(found.kind.name), ends=ends, places=places, **parts)
        try:
            write_whole(self.path, data.getvalue())
        except OSError as error:
            tell_not_kept(in_words(error, self.path.parent), "inspections", SWITCH)

    def _read(self, data: bytes) -> Inspection:
        with np.load(BytesIO(data), allow_pickle=False) as file:
            parts: dict[str, Any] = {name: np.ascontiguousarray(file[name], np.int64) for name in ARRAYS}
            parts |= {name: file[name].item() for name in NUMBERS}
            return Inspection(kind=Order[str(file["kind"])], accesses=(file["ends"], file["places"]), **parts)

    def _checked(self, found: Inspection) -> Inspection:
        """An inspection by which no kernel leaves its arrays, and no worker waits forever."""
        tiles, steps = found.tiles, np.diff(found.need_offsets)
        tile_of_need = np.repeat(np.arange(tiles), steps) if steps.size == tiles and (steps >= 0).all() else None
        self._expect(found.workers == self.workers, "it is for another number of workers")
        self._expect(_are_all(found.order - self.first, self.count), "its iterations are not those of the loop")
        self._expect(_are_bounds(found.offsets, tiles, self.count), "its tiles do not hold all iterations")
        self._expect(tile_of_need is not None, "nobody can say which tiles need which")
        self._expect(_are_bounds(found.need_offsets, tiles, found.needs.size), "nobody can say which tiles need which")
        is_before = tile_of_need is not None and _are_within(found.needs, tile_of_need)
        self._expect(is_before, "a tile needs one that is not before it")
        self._expect(_are_within(found.owner, np.int64(self.workers)), "a tile is nobody's")
        own = (np.sort(found.turn[found.owner == worker]) for worker in range(self.workers))
        self._expect(found.turn.size == tiles and all(_are_all(one, one.size) for one in own), "turns are not in order")
        return found

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise _DamagedError(what)


def _are_all(values: NDArray[Any], count: int) -> bool:
    """Whether these are the numbers from 0 on, each once."""
    if values.size != count or not _are_within(values, np.int64(count)):
        return False
    return bool((np.bincount(values, minlength=count) == 1).all())


def _are_bounds(values: NDArray[Any], tiles: int, end: int) -> bool:
    """Whether these are where so many parts begin, and where the last one ends."""
    if values.size != tiles + 1 or values[0] != 0 or values[-1] != end:
        return False
    return bool((values[1:] >= values[:-1]).all())


def _are_within(values: NDArray[Any], ends: Any) -> bool:
    return bool(((values >= 0) & (values < ends)).all())


def file_of(
    parts: Iterable[object], arrays: Mapping[str, NDArray[Any]], count: int, first: int, workers: int
) -> InspectionFile | None:
    """The file for an inspection, which depends on the texts of `parts` and the contents of `arrays`; None where no
    folder is named, or it is none that only this user can write to: what lies there decides what runs when."""
    name = os.environ.get(SWITCH, "")
    if not name:
        return None
    try:
        folder = Path(name).expanduser()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        trouble = trouble_with(folder)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        trouble = in_words(error)
    if trouble:
        tell_not_kept(trouble, "inspections", SWITCH)
        return None
    digest = blake2b("\0".join([*_texts(), *map(str, parts), str((count, first, workers))]).encode(), digest_size=16)
    for name, array in arrays.items():
        digest.update(f"\0{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return InspectionFile(folder / f"inspection_{digest.hexdigest()}.npz", count, first, workers)


@cache
def _texts() -> tuple[str, ...]:
    return tuple((Path(__file__).parent / name).read_text("utf-8") for name in TEXTS)
