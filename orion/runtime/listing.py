"""Runs an inspector (`orion.dependence.inspector`): what the iterations of a loop touch, each worker listing a part."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from time import perf_counter_ns
from typing import Any

import numpy as np

from orion.dependence.inspection import END, ENDS, FIRST, PLACES, Inspectable, Ints
from orion.own_threads import OwnPool
from orion.runtime.backend import LocalBackend, ProgramCall
from orion.runtime.prepared import PreparedProgram

MOST_ACCESSES = 1 << 27
"""A list of more accesses would take more than a gigabyte: such loops are not inspected."""


class TooManyError(Exception):
    """A loop has more accesses than are listed."""


def given_part(inspectable: Inspectable, arguments: Mapping[str, Any], part: slice, ends: Ints, places: Ints) -> Any:
    """The arguments of an inspector that is to list a part of the iterations, by name."""
    own = {**arguments, FIRST: part.start, END: part.stop, ENDS: ends, PLACES: places}
    return {name: own[name] for name in inspectable.function.params}


def listed(
    inspectable: Inspectable, program: PreparedProgram, arguments: Mapping[str, Any], count: int, workers: int
) -> tuple[Ints, Ints, float]:
    """The accesses of so many iterations (where those of each end in the list, and the list), and the nanoseconds that
    took. TooManyError where there are too many."""
    bounds = [count * k // workers for k in range(workers + 1)]
    parts = [slice(a, b) for a, b in pairwise(bounds) if a < b]
    ends = np.empty(count, np.int64)
    if not parts:
        return ends, np.zeros(0, np.int64), 0.0
    backends = [LocalBackend(1) for _ in parts]
    with OwnPool(len(parts)) as threads:

        def all_parts(room: Sequence[Ints]) -> float:
            begin = perf_counter_ns()
            works = [
                partial(one.run, ProgramCall(program, given_part(inspectable, arguments, part, ends[part], own)))
                for one, part, own in zip(backends, parts, room, strict=True)
            ]
            _run_all(threads, works)
            return perf_counter_ns() - begin

        try:
            return _in_two_passes(all_parts, ends, parts)
        finally:
            for one in backends:
                one.close()


def _in_two_passes(
    all_parts: Callable[[Sequence[Ints]], float], ends: Ints, parts: Sequence[slice]
) -> tuple[Ints, Ints, float]:
    """The accesses, which are counted first: where they end in the list of their part, then in that of all."""
    all_parts([ends[:0]] * len(parts))  # what is compiled is compiled for that
    counts = [int(ends[part][-1]) for part in parts]
    if sum(counts) > MOST_ACCESSES:
        raise TooManyError
    places = np.empty(sum(counts), np.int64)
    starts = np.cumsum([0, *counts]).tolist()
    spent = 2 * all_parts([places[a:b] for a, b in pairwise(starts)])
    for start, part in zip(starts, parts, strict=False):
        ends[part] += start
    return ends, places, spent


def _run_all(threads: OwnPool, works: Sequence[Callable[[], object]]) -> None:
    """Run all, each in a thread; here, one after the other, where there are no more threads: a process ends, say."""
    runs, left = [], deque(works)
    with suppress(RuntimeError):
        while left:
            runs.append(threads.submit(left[0]))
            left.popleft()
    for work in left:
        work()
    for run in runs:
        run.result()
