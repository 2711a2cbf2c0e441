"""The memory that workers share during a run: flags, control words, partial results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.aligned import aligned_zeros
from orion.dataclass import dataclass, replace
from orion.kernel.calling import (
    ABORT,
    ALARM,
    CLOCK_STRIDE,
    CONTROL_SIZE,
    EVERYONE,
    FLAG_STRIDE,
    GO,
    LOCKS,
    NOTES_SIZE,
    RESULTS,
)
from orion.runtime.prepared import PreparedLoop, PreparedProgram
from orion.schedule.schedule import Ints
from orion.sets.names import extent_name

Allocate = Callable[[tuple[int, ...], np.dtype], NDArray[Any]]
"""Makes a zeroed C-contiguous array of a shape and dtype that starts on a 64-byte boundary."""

INT64 = np.dtype(np.int64)

POSTED = ("posted", "posted marks")
"""The kinds of arguments of kernels that updates are noted in for other nodes."""

Posted = Mapping[tuple[str, str], NDArray[Any]]


@dataclass(frozen=True)
class RunMemory:
    """What the workers of a run share besides the arrays.

    `control[k]` is the control row of loop k (see `orion.kernel.calling`), and the last row that of the
    barrier. `done[k]` and `meeting` are flags, of the tiles of loop k and of the barrier. After the flags of loop k
    and a spare one come those of loop k - 1, and so on, so that `done[-1]` has all (see `orion.runtime.waits`).
    `outputs[k]` has one array pair per output of loop k: one value per tile of a reduction or choice, or the one value
    of a carried scalar. Rounds use the two of a pair in turn: a worker may still be reading one while another worker
    fills the other, and cannot be two rounds behind, for all wait for each other in each. `copies[k]` has such a pair
    for each array that loop k has copies of: (2, blocks, *shape). `clocks[k]` are the clocks of the workers in loop k,
    where it has arrays with buffers, and `locks` are those of their elements (`orion.kernel.support.buffers`);
    `notes[k]` are the notes of the workers in it, (workers, NOTES_SIZE). `fetched[k]` are how many rows of each of its
    arrays with buffers have come from the home node, where it has arrays that are served; and `posted[k]` the updates
    that its workers have applied by functions that are no sums, on several nodes, by kinds and names of arguments.
    """

    control: Ints
    done: tuple[Ints, ...]
    meeting: Ints
    outputs: tuple[tuple[NDArray[Any], ...], ...]
    copies: tuple[tuple[NDArray[Any], ...], ...]
    clocks: tuple[Ints, ...]
    locks: Ints
    notes: tuple[Ints, ...]
    fetched: tuple[Ints, ...]
    posted: tuple[Posted, ...]

    def reset(self) -> None:
        """Make everything ready for a run. No worker may be running."""
        self.control[:] = GO
        self.meeting[:] = 0
        self.locks[:] = 0
        for clocks in self.clocks:
            clocks[:] = 0
        if self.done:
            self.done[-1][:] = 0

    def without_posts(self, at_home: Sequence[bool]) -> RunMemory:
        """The same, but that nothing is posted in loops that one node runs."""
        posted = [
            {name: one[:0] for name, one in own.items()} if is_at_home else own
            for own, is_at_home in zip(self.posted, at_home, strict=True)
        ]
        return replace(self, posted=tuple(posted))

    def all_notes(self) -> tuple[Ints, ...]:
        """The notes of all workers, by loops, as they are now."""
        return tuple(one.copy() for one in self.notes)

    def own_notes(self, worker: int) -> tuple[Ints, ...]:
        """Those of one worker, none of loops without any."""
        return tuple(one[worker : worker + 1].copy() for one in self.notes)

    def have_met(self, workers: int) -> bool:
        """Whether all workers of the run have come to their first barrier."""
        return bool((self.meeting[: FLAG_STRIDE * workers : FLAG_STRIDE] > 0).all())

    def abort(self) -> None:
        """Tell all workers to leave their loops where they next look up, keeping what a row says already."""
        codes = self.control[:, 0]
        codes[codes == GO] = ABORT
        self.control[:, ALARM] = EVERYONE


def place_of(prepared: PreparedProgram, memory: RunMemory, worker: int) -> str:
    """Where a worker is in a run, as far as the flags say: its first tile, in the loop that was begun last, which is
    not done in the round that other tiles of it are."""
    name = prepared.program.function.name
    for number, loop in reversed([*enumerate(prepared.loops)]):
        tiles = loop.schedule.tiles
        done = memory.done[number][: FLAG_STRIDE * tiles : FLAG_STRIDE]
        own = loop.schedule.order[worker] if worker < loop.schedule.workers else done[:0]
        if not done.any() or not len(own):
            continue
        round = int(done.max())
        left = [int(tile) for tile in own if done[tile] < round]
        where = f"the loop over {', '.join(loop.plan.nest.dims)} in line {loop.plan.nest.span.line} of `{name}`"
        return f"it is in tile {left[0]} of {where}, round {round}" if left else f"it has done its tiles of {where}"
    return f"no tile of `{name}` is done"


def allocate_run_memory(
    prepared: PreparedProgram, allocate: Allocate = aligned_zeros, *, posts: bool = False
) -> RunMemory:
    """The shared memory of a program, zeroed. It `posts` updates for other nodes, if there may be such."""
    return RunMemory(
        control=allocate((len(prepared.loops) + 1, CONTROL_SIZE), INT64),
        done=_flags(prepared, allocate),
        meeting=meeting_flags(prepared.workers, allocate),
        outputs=tuple(_outputs(loop, allocate) for loop in prepared.loops),
        copies=tuple(_copies(loop, allocate) for loop in prepared.loops),
        clocks=tuple(clocks_of(loop, prepared.workers, allocate) for loop in prepared.loops),
        locks=allocate((CLOCK_STRIDE * LOCKS if any(loop.plan.nest.late for loop in prepared.loops) else 0,), INT64),
        notes=tuple(notes_of(loop, prepared.workers, allocate) for loop in prepared.loops),
        fetched=tuple(_fetched(loop, allocate) for loop in prepared.loops),
        posted=tuple(dict(_posted(loop, prepared, allocate, posts)) for loop in prepared.loops),
    )


def clocks_of(loop: PreparedLoop, workers: int, allocate: Allocate = aligned_zeros) -> Ints:
    """The clocks of so many workers in a loop, none where it has no arrays with buffers or replicas."""
    return allocate((CLOCK_STRIDE * workers if loop.plan.nest.late else 0,), INT64)


def notes_of(loop: PreparedLoop, workers: int, allocate: Allocate = aligned_zeros) -> Ints:
    """The notes of so many workers in a loop, none where it has no arrays with buffers or replicas."""
    return allocate((workers if loop.plan.nest.late else 0, NOTES_SIZE), INT64)


def _fetched(loop: PreparedLoop, allocate: Allocate) -> Ints:
    return allocate((CLOCK_STRIDE * len(loop.plan.relaxed.arrays) if loop.plan.served else 0,), INT64)


def _posted(
    loop: PreparedLoop, prepared: PreparedProgram, allocate: Allocate, posts: bool
) -> Iterator[tuple[tuple[str, str], NDArray[Any]]]:
    relaxed = loop.plan.relaxed.arrays
    arrays = {name: one.buffered.array for one in relaxed for name in one.buffered.own}
    for argument in loop.kernel.arguments:
        if argument.kind in POSTED:
            array, ndim = arrays[argument.name], loop.ndim_of(arrays[argument.name])
            size = prod(prepared.known[extent_name(array, axis)] for axis in range(ndim)) if posts else 0
            yield (argument.kind, argument.name), allocate((size,), np.dtype(argument.dtype))


def meeting_flags(workers: int, allocate: Allocate = aligned_zeros) -> Ints:
    """The flags of the barrier of so many workers, none of whom has been at one."""
    return allocate((FLAG_STRIDE * 2 * workers,), INT64)


def _flags(prepared: PreparedProgram, allocate: Allocate) -> tuple[Ints, ...]:
    sizes = [FLAG_STRIDE * (loop.schedule.tiles + 1) for loop in prepared.loops]
    flags = allocate((sum(sizes),), INT64)
    return tuple(flags[sum(sizes[number + 1 :]) :] for number in range(len(sizes)))


def _copies(loop: PreparedLoop, allocate: Allocate) -> tuple[NDArray[Any], ...]:
    return tuple(allocate((2, c.count, *c.shape), np.dtype(c.dtype)) for c in loop.plan.copies)


def _outputs(loop: PreparedLoop, allocate: Allocate) -> tuple[NDArray[Any], ...]:
    arguments = loop.kernel.arguments
    sizes = {**dict.fromkeys(RESULTS, loop.schedule.tiles), "carried": 1}
    return tuple(allocate((2, sizes[a.kind]), np.dtype(a.dtype)) for a in arguments if a.kind in sizes)
