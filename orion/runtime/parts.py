"""One worker's parts of the loops of a program: what their walks are called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, field
from orion.kernel.calling import RESULTS, Walk, neutral
from orion.plan.plan import Copies, Tiled
from orion.runtime.accumulate import Accumulation, accumulations_among
from orion.runtime.arguments import LoopData, read_only
from orion.runtime.choose import Chosen, choices_among, tile_ranks
from orion.runtime.combine import combine_elements
from orion.runtime.failures import by_all, too_wide
from orion.runtime.memory import RunMemory
from orion.runtime.own_arrays import OwnArrays
from orion.runtime.prepared import OUTPUTS, PreparedLoop, PreparedProgram
from orion.runtime.waits import Waits, waits_for_all
from orion.schedule.schedule import Ints, Schedule
from orion.typing.dtypes import Kind

Meet = Callable[..., None]
"""The walk of a barrier, which has no block."""

PYTHON_SCALARS: dict[str, Callable[[Any], Any]] = {"int64": int, "float64": float, "bool": bool, "complex128": complex}


@dataclass(frozen=True, slots=True, eq=False)
class CopiedArray:
    """An array that a loop has copies of: its positions among the kernel's arguments, as copies and as itself; the
    operator that combines them; the pair of arrays of copies (see `RunMemory`); and the blocks that this worker works
    on."""

    copies: int
    array: int
    op: str
    pair: NDArray[Any]
    blocks: Ints

    def begin(self, turn: int) -> None:
        """Set this worker's copies to what changes nothing."""
        self.pair[turn][self.blocks] = neutral(self.op, self.pair.dtype.name)

    def combine(self, turn: int, array: NDArray[Any], worker: int, workers: int) -> None:
        """Combine this worker's share of the elements of all copies into the array."""
        first, last = share_of(len(array), worker, workers)
        combine_elements(self.op, array[first:last], self.pair[turn][:, first:last])


def share_of(length: int, worker: int, workers: int) -> tuple[int, int]:
    """The range of elements that a worker combines.

    >>> [share_of(10, worker, 3) for worker in range(3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    return length * worker // workers, length * (worker + 1) // workers


@dataclass(slots=True, eq=False)
class LoopPart:
    """One worker's part of one loop. It is kept from run to run; `begin` makes it ready for one, `begin_round` for a
    round, `end` lets go of the arrays.

    `walked` are what its walk is given: its tiles, or where workers take tiles of each other what `tiles_to_take` makes
    of them. `waits` and `flags` are the last arguments of the walk: wait_offsets, waits, lags; done, control; `waiting`
    are the first three in the present round. `all_tiles` is a tile that waits for all tiles of the other workers, with
    what it waits for; None where a worker has no tile in this loop, or there is but one worker. `after` has what tiles
    wait for where they come after another loop, by its number (see `orion.runtime.waits`), where None says that it
    cannot be had so. `template` are the kernel's arguments, those that every round has another one of as None; `blocks`
    are where its tiles find them, in rounds that take turns, the same in all runs, and `block` is that of the present
    round.
    `scalars` are (position among the kernel's arguments, position among the loop's inputs, conversion);
    `outputs` are (position among the kernel's arguments, position among the loop's inputs, operator, "place" or
    "", its pair of arrays), of these kinds `outside` of the loop; `choices` are those that are not reductions, and
    `accumulations` those of accumulators; `ranks` are those of the tiles where the loop may be run in any order; `own`
    are this worker's own arrays, for arrays with buffers. A loop that `is_empty` has no iterations. `round`
    counts the rounds of this run. `tile_ns` is the time of a core that a profile found last in the tiles of a round.
    """

    number: int
    loop: PreparedLoop
    walk: Walk
    tiles: Ints
    walked: Ints
    waits: Waits
    flags: tuple[Ints, Ints]
    all_tiles: tuple[Ints, Waits] | None
    scalars: tuple[tuple[int, int, Callable[[Any], Any]], ...]
    outputs: tuple[tuple[int, int, str, Any], ...]
    outside: tuple[Kind, ...]
    is_empty: bool
    choices: tuple[Chosen, ...]
    accumulations: tuple[Accumulation, ...]
    copied: tuple[CopiedArray, ...]
    ranks: Ints | None
    own: OwnArrays
    round: int = 0
    extents: Any = None
    waiting: Any = ()
    template: tuple[Any, ...] = ()
    blocks: tuple[Any, ...] = ()
    block: Any = None
    after: dict[int, Waits | None] = field(default_factory=dict)
    tile_ns: int | None = None

    def begin(self, data: LoopData, packed: Any = None) -> None:
        """Make ready for a run on these arrays, which another worker has `packed` into its blocks, if one has."""
        self.round = 0
        self.extents, self.waiting = data.extents, self.waits
        self.template = self.own.among(data.arguments)
        if packed is not None and self.blocks and self.template is data.arguments:
            for block, other in zip(self.blocks, packed, strict=True):
                block[:] = other
        else:
            self._pack()
        self.block = self.blocks[0]

    def _pack(self) -> None:
        """Pack the arguments into the blocks that rounds have in turn: one, or two where they have results."""
        ways = [self.template]
        if self.outputs or self.copied:
            ways = [self._of_turn(0), self._of_turn(1)]
        if not self.blocks:
            self.blocks = tuple(self.walk.block(self.extents, self.control, one) for one in ways)
            return
        for block, arguments in zip(self.blocks, ways, strict=True):
            self.walk.pack(block, self.extents, self.control, arguments)

    def _of_turn(self, turn: int) -> tuple[Any, ...]:
        """The arguments of every second round."""
        arguments = list(self.template)
        for position, _, _, pair in self.outputs:
            arguments[position] = pair[turn]
        for one in self.copied:
            arguments[one.copies] = one.pair[turn]
        return tuple(arguments)

    def wait_for(self, waits: Waits | None) -> None:
        """Have the tiles of the next round wait for these flags, or for what they always wait for."""
        self.waiting = waits or self.waits

    def end(self) -> None:
        """Let go of the arrays."""
        self.extents = self.block = None
        self.waiting = self.template = ()

    @property
    def control(self) -> Ints:
        """The control row of the loop."""
        return self.flags[1]

    def again(self) -> None:
        """Make ready for another run, whose arguments are in the blocks."""
        self.round, self.waiting, self.block = 0, self.waits, self.blocks[0]

    def row(self) -> tuple[Any, ...]:
        """What the walker is told of the loop where it starts it by instructions (`orion.kernel.instructions`)."""
        takes = self.loop.plan.takes_tiles
        return self.walk.entry, takes, self.blocks[0], self.blocks[-1], self.walked, *self.waits, *self.flags

    def begin_round(self, values: tuple[Any, ...]) -> None:
        """Put the kernel's arguments of the present round in the block, given the loop's inputs. OverflowError for one
        that 64 bits do not hold."""
        self.block = block = self.blocks[self.round % len(self.blocks)]
        for position, source, convert in self.scalars:
            try:
                self.walk.put(block, position, convert(values[source]))
            except OverflowError:
                raise by_all(too_wide(self.loop, values[source])) from None

    def begin_results(self, values: tuple[Any, ...]) -> None:
        """Put what results of the present round begin with where worker 0 finds it, given the loop's inputs.
        OverflowError for one that 64 bits do not hold."""
        for _, source, op, pair in self.outputs:
            if not op:
                try:
                    pair[self.round & 1][0] = values[source]
                except OverflowError:
                    raise too_wide(self.loop, values[source]) from None

    def run(self, tiles: Ints) -> None:
        """Run tiles in the present round."""
        wait_offsets, waits, lags = self.waiting
        self.walk(self.block, tiles, self.round, wait_offsets, waits, lags, *self.flags)


def loop_parts(
    prepared: PreparedProgram,
    memory: RunMemory,
    walks: Sequence[Walk],
    tiles: Sequence[Ints],
    worker: int,
    orders: Sequence[Sequence[Ints]] | None = None,
) -> tuple[LoopPart, ...]:
    """The parts of worker number `worker`, which runs `tiles[k]` of loop k, in that order. `orders[k]` are the tiles of
    all workers, if not those of the schedule."""
    orders = [loop.schedule.order for loop in prepared.loops] if orders is None else orders
    return tuple(
        _part(
            number,
            loop,
            memory,
            walks[number],
            tiles[number],
            loop.has_tiles_everywhere(prepared.workers),
            OwnArrays(
                loop,
                worker,
                (memory.clocks[number], memory.locks, memory.notes[number]),
                memory.posted[number],
                orders[number],
            ),
        )
        for number, loop in enumerate(prepared.loops)
    )


def worker_tiles(prepared: PreparedProgram, worker: int, workers: int) -> list[Ints]:
    """The tiles of a worker in each loop. One worker alone takes all, in the serial order."""
    return [_tiles(loop.schedule, worker, workers) for loop in prepared.loops]


def _tiles(schedule: Schedule, worker: int, workers: int) -> Ints:
    if workers == 1:
        return schedule.serial_tiles()
    return schedule.order[worker] if worker < schedule.workers else np.zeros(0, np.int64)


def _part(
    number: int,
    loop: PreparedLoop,
    memory: RunMemory,
    walk: Walk,
    tiles: Ints,
    is_everywhere: bool,
    own: OwnArrays,
) -> LoopPart:
    schedule, inputs = loop.schedule, loop.inputs
    arguments = list(enumerate(loop.kernel.arguments))
    kept = [(p, a) for p, a in arguments if a.kind in (*RESULTS, *OUTPUTS)]
    results = [(p, inputs.index(a.name), a.op) for p, a in kept]
    choices = choices_among([a for _, a in kept])
    return LoopPart(
        number=number,
        loop=loop,
        walk=walk,
        tiles=read_only(tiles),
        walked=read_only(tiles_to_take(loop, tiles) if loop.plan.takes_tiles else tiles),
        waits=(read_only(schedule.wait_offsets), read_only(schedule.waits), read_only(schedule.lags)),
        flags=(memory.done[number], memory.control[number]),
        all_tiles=waits_for_all(loop, tiles) if is_everywhere else None,
        scalars=tuple((p, inputs.index(a.name), _conversion(a.dtype)) for p, a in arguments if a.kind == "scalar"),
        outputs=tuple((*found, pair) for found, pair in zip(results, memory.outputs[number], strict=True)),
        outside=tuple(a.outside for _, a in kept),
        is_empty=any(cuts[0] == cuts[-1] for cuts in schedule.bounds),
        choices=choices,
        accumulations=tuple(
            accumulations_among(loop.plan.nest.function, [a for _, a in kept], schedule, ordered=loop.plan.ordered)
        ),
        copied=tuple(
            _copied(loop, tiles, pair, copies)
            for copies, pair in zip(loop.plan.copies, memory.copies[number], strict=True)
        ),
        ranks=None if loop.plan.ordered or not choices else tile_ranks(schedule),
        own=own,
    )


def tiles_to_take(loop: PreparedLoop, own: Ints) -> Ints:
    """What the walk of a worker is given that takes tiles: its own, all in their serial order, and for each of its own
    how many of that order must be begun before it. Those are all of earlier steps where the blocks of a loop in any
    order go from worker to worker, and none elsewhere: a wavefront's steps have few tiles at its ends, and those of
    inspected loops are short."""
    plan, schedule = loop.plan, loop.schedule
    order = schedule.serial_tiles()
    goes_by_steps = plan.is_dynamic and plan.time and not plan.ordered
    before = np.searchsorted(schedule.step[order], schedule.step[own]) if goes_by_steps else np.zeros_like(own)
    return np.concatenate([own, order, before])


def _copied(loop: PreparedLoop, tiles: Ints, pair: NDArray[Any], copies: Copies) -> CopiedArray:
    positions = {(a.kind, a.name): position for position, a in enumerate(loop.kernel.arguments)}
    assert isinstance(loop.plan.tiles, Tiled)
    blocks = np.unique(np.unravel_index(tiles, loop.schedule.grid)[loop.plan.tiles.space])
    places = positions["copies", copies.array], positions["array", copies.array]
    return CopiedArray(*places, copies.op, pair, blocks)


def _conversion(dtype: str) -> Callable[[Any], Any]:
    kind = np.dtype(dtype)
    if kind.kind not in "iu" or dtype in PYTHON_SCALARS:
        return PYTHON_SCALARS.get(dtype, kind.type)

    def convert(value: Any) -> Any:
        """A sum of narrow integers is kept in 64 bits: where it is used in fewer it wraps around."""
        try:
            return kind.type(value)
        except OverflowError:
            return np.asarray(value).astype(kind)[()]

    return convert
