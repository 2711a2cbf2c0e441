"""A program run again by the workers of this process, with arrays like those of a run before.

Most of what a call of a short loop takes is Python that finds what it found in the call before: which arrays are given,
where they lie, what the skeleton is told of them. So one compiled function looks whether arrays are like those before,
and puts their addresses into the blocks of the kernels (`again` in `orion.kernel.build.walker`). No array is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from orion.frontend.scope import plain_number
from orion.ir.recent import Recent, addresses
from orion.kernel.calling import SLOT, Walk, first_slots
from orion.runtime.arguments import NOT_LOOKED, GivenArrays, extremes
from orion.runtime.blas import LimitedWalk
from orion.runtime.failures import failure_in, left_without_error
from orion.runtime.local_arrays import LocalArray
from orion.runtime.prepared import PreparedProgram
from orion.runtime.returned import stand_in
from orion.runtime.threads.backend import LoadedProgram, worker_of
from orion.runtime.threads.leading import Leader, Leading
from orion.runtime.threads.pool import Pool
from orion.runtime.threads.watch import Watch
from orion.runtime.worker import AbortedError

MISSED: Any = object()
"""In place of a result: the arrays are others."""


def may_run_again(prepared: PreparedProgram, loaded: LoadedProgram) -> bool:
    """Whether arrays and scalars are all that a run is given anew: there are no buffers, no copies, no elements of
    sparse arrays, and no progress bars."""
    function = prepared.program.function
    if not all(isinstance(part.walk.entry, int) and not isinstance(part.walk, LimitedWalk) for part in loaded.parts[0]):
        return False  # the interpreter runs the kernels, or how many threads BLAS has is to be said
    is_plain = not (function.late or function.bars or function.outside or function.accumulated)
    is_plain = is_plain and not any(loop.sparse or loop.plan.copies for loop in prepared.loops)
    return is_plain and all(len(parts) for parts in loaded.parts)


def compile_again(workers: int) -> None:
    """Compile what runs a program again, or take it from the disk: once for a machine."""
    from orion.kernel.build.walker import gatherer, leader, repeating, server

    for compiled in (repeating, leader, gatherer, server)[: 1 if workers == 1 else None]:
        compiled()


class RunAgain:
    """Runs a loaded program for arguments like these, which are `recent`, given by their positions."""

    def __init__(
        self,
        prepared: PreparedProgram,
        loaded: LoadedProgram,
        recent: Recent,
        arguments: Mapping[str, Any],
        own: Mapping[str, LocalArray],
    ) -> None:
        """`own` are arrays that the function makes."""
        from orion.kernel.build.walker import repeating

        self.loaded = loaded
        self._prepared, self._repeat = prepared, repeating()
        self._leading = Leading(loaded) if loaded.workers > 1 else None
        self._parts = [part for parts in loaded.parts for part in parts]
        given, order = {**arguments, **own}, prepared.program.function.params
        taken, positions = [name for name, *_ in recent.arrays], list(arguments)
        names = [*taken, *own]
        self._arrays = [positions.index(name) for name in taken]
        self._own = tuple(own)
        self._given = [stand_in(given[name], name) for name in order]
        scalars = [name for name in positions if name not in taken and name in order]  # texts and None are known
        self._scalars = [(positions.index(name), order.index(name)) for name in scalars]
        arrays = [arguments[name] for name in taken] + [one.storage for one in own.values()]
        self._dtypes = [array.dtype for array in arrays]  # their identities are known, so that they live as long
        self._records = np.zeros(len(names), np.int64)
        places = [*(recent.addresses or [0] * len(taken)), *([0] * len(own))]
        self._known, self._shapes = _known(arrays, places)
        self._kept = [*self._packed(given)]
        pairs = [
            (mine, kept)
            for part, own in zip(self._parts, self._kept, strict=True)
            for mine, kept in zip(part.blocks, own, strict=True)
        ]
        self._copies = np.array([(_start(mine), _start(kept), kept.size) for mine, kept in pairs], np.int64).reshape(
            -1, 3
        )
        self._writes = np.array([*self._slots(names)], np.int64).reshape(-1, 2)
        self._extremes = [*self._looked_through(positions)]
        flags = [loaded.memory.control.reshape(-1), loaded.memory.meeting, *loaded.memory.done[-1:]]
        self._zeros = np.array([(_start(one), one.size) for one in flags], np.int64)

    def __call__(self, arguments: Sequence[Any], own: Mapping[str, LocalArray], pool: Pool, watch: Watch) -> Any:
        """Run it, and return what the skeleton returns; MISSED where an array is not like that before, in its type,
        shape and strides, or may overlap another that it did not overlap."""
        records, given = self._records, self._given
        for number, at in enumerate(self._arrays):
            records[number] = id(arguments[at])
        for number, name in enumerate(self._own, len(self._arrays)):
            records[number] = id(own[name].storage)
        if self._repeat(records, self._known, self._shapes, self._copies, self._writes, self._zeros) >= 0:
            return MISSED
        for at, place in self._scalars:
            given[place] = plain_number(arguments[at])
        for at, kinds in self._extremes:
            found = extremes(arguments[at])
            for kind, walk, block, position in kinds:
                walk.put(block, position, found[kind])
        for part in self._parts:
            part.again()
        leading = self._leading
        worker = worker_of(self._prepared, self.loaded, 0) if leading is None else Leader(leading, pool)
        watch.begin(self.loaded.memory.control)
        try:
            return self.loaded.skeleton(worker, *given)
        except AbortedError:
            raise self._failure() from None
        except Exception:
            failure = failure_in(self._prepared, self.loaded.memory)
            if failure is None:
                raise
            raise failure from None
        finally:
            watch.end()

    def _failure(self) -> BaseException:
        """Why workers have left."""
        failure = failure_in(self._prepared, self.loaded.memory)
        errors = [] if self._leading is None else self._leading.errors
        found = failure or (errors[0] if errors else left_without_error(self._prepared))
        errors.clear()
        return found

    def _packed(self, arguments: Mapping[str, Any]) -> Iterator[Any]:
        """What the blocks of each loop have, which other calls change."""
        given = GivenArrays(arguments)
        for part, source in zip(self._parts, self.loaded.sources * self.loaded.workers, strict=True):
            part.begin(source.data(given))
            yield [block.copy() for block in part.blocks]
            part.end()

    def _looked_through(self, positions: Sequence[str]) -> Iterator[tuple[int, list[tuple[str, Walk, Any, int]]]]:
        """The arrays whose extremes kernels are told, by their positions, with the places for these."""
        found: dict[str, list[tuple[str, Walk, Any, int]]] = {}
        for part in self._parts:
            for position, argument in enumerate(part.loop.kernel.arguments):
                if argument.kind in NOT_LOOKED:
                    places = [(argument.kind, part.walk, block, position) for block in part.blocks]
                    found.setdefault(argument.name, []).extend(places)
        for name, places in found.items():
            yield positions.index(name), places

    def _slots(self, names: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Where addresses of arrays stand in the blocks, and of which."""
        for part in self._parts:
            kernel = part.loop.kernel
            for slot, argument in zip(first_slots(kernel), kernel.arguments, strict=True):
                if argument.kind == "array":
                    yield from ((_start(block) + SLOT * slot, names.index(argument.name)) for block in part.blocks)


def _known(arrays: Sequence[np.ndarray[Any, Any]], places: Sequence[int]) -> tuple[Any, Any]:
    """What the walker is told of arrays, which begin at these places, or anywhere: the rows of a table, and lengths and
    strides."""
    rows, shapes = [], list[int]()
    for array, place in zip(arrays, places, strict=True):
        flags = array.flags
        kept = 0x100 * flags.aligned | 0x400 * flags.writeable
        low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)
        start = _start(array) if array.size else 0
        rows.append((id(np.ndarray), id(array.dtype), kept, array.ndim, len(shapes), place, low - start, high - start))
        shapes += [*array.shape, *array.strides]
    return np.array(rows, np.int64).reshape(-1, 8), np.array(shapes, np.int64)


def _start(array: Any) -> int:
    (found,) = addresses([array])
    return found
