"""Runs of a program with its arrays on one kind of memory: the times of windows, and what these bring in of files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import FileIO
from itertools import chain
from time import perf_counter_ns
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.kinds.folders import FileArrays, FreshPages
from orion.runtime.parts import LoopPart
from orion.runtime.profile.sampled import SampledWorker, Sampling
from orion.schedule.schedule import Schedule

SCHEDULED = "/proc/thread-self/schedstat"
"""Where Linux says how long a thread has run, and waited for a core."""

EMPTY = 5
"""How often a walk without tiles is run, to see what taking times costs."""

Before: TypeAlias = Callable[[LoopPart, tuple[Any, ...]], None]
"""What is done before the tiles of a round, given values of the loop."""

After: TypeAlias = Callable[[LoopPart], None]
"""What is done after each tile."""


def nothing_before(part: LoopPart, values: tuple[Any, ...]) -> None:
    """Of runs of which nothing but times is taken."""


def nothing_after(part: LoopPart) -> None:
    """As `nothing_before`."""


class ClockedWorker(SampledWorker):
    """A worker that takes the times of tiles by the clock; with all arrays `in_memory` less what it waited for a core
    (else a device reads ahead and writes meanwhile). `totals` of its sampling are from its first tile to its last.
    `before` is called before the tiles of a round, and `after` after each tile."""

    in_memory: bool
    before: Before
    after: After
    values: tuple[Any, ...] = ()

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        self.values = values
        return super().loop(number, *values)

    def walk_timed(self, part: LoopPart, first: int, last: int) -> None:
        self.before(part, self.values)
        found = np.zeros(part.tiles.size, np.int64)
        with scheduled(self.in_memory) as file:
            nothing = min(self._walked(part, slice(0), file) for _ in range(EMPTY))
            start = perf_counter_ns()
            for place in range(first, last):
                if not self._await_tile(part, place):
                    return
                taken = self._walked(part, slice(place, place + 1), file)
                found[place] = max(0, taken - nothing)
                self.after(part)
            whole = max(0, perf_counter_ns() - start - nothing * (last - first))
        if self.workers == 1 and not self.in_memory and found.any():
            found = found * (whole / found.sum())  # what is read between two windows is a part of them
        self.sampling.tiles.setdefault(part.number, {})[part.round] = found
        self.sampling.totals.setdefault(part.number, {})[part.round] = whole

    def _walked(self, part: LoopPart, places: slice, file: FileIO | None) -> int:
        """The nanoseconds of some tiles, less what the thread waited for a core; a few where there are none."""
        start, waited = perf_counter_ns(), waited_for_core(file)
        part.run(part.tiles[places])
        waited = waited_for_core(file) - waited  # looked at inside of the time, so that it is a part of that
        return perf_counter_ns() - start - waited


@contextmanager
def scheduled(is_wanted: bool) -> Iterator[FileIO | None]:
    """The file where the system says how long this thread has run and waited; None where there is none, and where it is
    not wanted."""
    if not is_wanted or not os.path.exists(SCHEDULED):
        yield None
        return
    with open(SCHEDULED, "rb", buffering=0) as file:
        yield file


def waited_for_core(file: FileIO | None) -> int:
    """The nanoseconds that this thread has waited for a core since it began; 0 where the system does not say."""
    return 0 if file is None else int(os.pread(file.fileno(), 128, 0).split()[1])


@dataclass(slots=True, eq=False)
class Run:
    """One run on a kind: nanoseconds by loop and round, tiles in the order of the worker; seconds of the `flush` of
    each array. `whole` has by loop and round the nanoseconds from the first tile of a worker to its last, of the worker
    for which that is most."""

    tiles: dict[int, dict[int, NDArray[Any]]]
    whole: dict[int, dict[int, int]]
    flush: dict[str, float]
    counts: dict[int, int]

    @property
    def seconds(self) -> float:
        """Those of all tiles together."""
        return float(sum(one.sum() for found in self.tiles.values() for one in found.values())) / 1e9

    def windows(self, loop: int, rounds: Sequence[int], schedule: Schedule) -> NDArray[np.float64]:
        """The seconds of the tiles of a loop in some rounds: (rounds, tiles)."""
        found = np.zeros((len(rounds), schedule.tiles))
        for at, round in enumerate(rounds):
            found[at, schedule.serial_tiles()] = self.tiles[loop][round] / 1e9
        return found


def lower_median(times: Sequence[Any]) -> Any:
    """Of some numbers, or of arrays element by element."""
    return np.sort(np.array(times), axis=0)[(len(times) - 1) // 2]


def typical(runs: Sequence[Run]) -> Run:
    """The lower median of each time of some runs, in the rounds that were run in all of them, scaled so that windows
    add up as in the run in which they took least: what is read ahead is waited for in one window or another."""
    tiles: dict[int, dict[int, NDArray[Any]]] = {}
    whole: dict[int, dict[int, int]] = {}
    for loop, found in runs[0].tiles.items():
        rounds = set(found).intersection(*(run.tiles.get(loop, {}) for run in runs))
        tiles[loop] = {round: lower_median([run.tiles[loop][round] for run in runs]) for round in rounds}
        whole[loop] = {round: min(run.whole[loop][round] for run in runs) for round in rounds}
    least = min(
        sum(float(run.tiles[loop][round].sum()) for loop, found in tiles.items() for round in found) for run in runs
    )
    total = sum(float(times.sum()) for found in tiles.values() for times in found.values())
    scale = least / total if total else 1.0
    scaled = {loop: {round: scale * times for round, times in found.items()} for loop, found in tiles.items()}
    flush = {name: float(lower_median([run.flush[name] for run in runs])) for name in runs[0].flush}
    return Run(scaled, whole, flush, runs[0].counts)


class Counted:
    """Counts the bytes that windows bring in of files, in rounds that are traced."""

    def __init__(self, files: FileArrays, is_counted: Callable[[LoopPart], bool]) -> None:
        self.pages, self.is_counted = FreshPages(files), is_counted
        self.found: dict[tuple[int, int], list[Mapping[str, int]]] = {}

    def before(self, part: LoopPart, values: tuple[Any, ...]) -> None:
        if self.is_counted(part):
            self.pages.look()  # what rounds between brought in is left out

    def after(self, part: LoopPart) -> None:
        if self.is_counted(part):
            self.found.setdefault((part.number, part.round), []).append(self.pages.look() or {})

    @property
    def bytes(self) -> Mapping[str, int]:
        """Those of each array; of none where nobody knows, or all were in memory before."""
        total = Counter[str]()
        for one in chain.from_iterable(self.found.values()):
            total.update(one)
        return total if any(total.values()) else {}

    def windows(self, loop: int, rounds: Sequence[int], array: str, schedule: Schedule) -> NDArray[np.int64]:
        """The bytes of an array that the tiles of a loop brought in, in some rounds: (rounds, tiles)."""
        found = np.zeros((len(rounds), schedule.tiles), np.int64)
        for at, round in enumerate(rounds):
            own = self.found.get((loop, round))
            if own is not None:
                found[at, schedule.serial_tiles()] = [one[array] for one in own]
        return found


def tiles_of_workers(samplings: Sequence[Sampling]) -> dict[int, dict[int, NDArray[Any]]]:
    """The nanoseconds of tiles by loop and round, those of the workers one after the other."""
    found: dict[int, dict[int, NDArray[Any]]] = {}
    for sampling in samplings:
        for loop, rounds in sampling.tiles.items():
            own = found.setdefault(loop, {})
            for round, times in rounds.items():
                own[round] = np.concatenate([own[round], times]) if round in own else times
    return found


def whole_of_workers(samplings: Sequence[Sampling]) -> dict[int, dict[int, int]]:
    """The nanoseconds of rounds by loop, of the worker that took longest."""
    found: dict[int, dict[int, int]] = {}
    for sampling in samplings:
        for loop, rounds in sampling.totals.items():
            own = found.setdefault(loop, {})
            for round, whole in rounds.items():
                own[round] = max(own.get(round, 0), whole)
    return found
