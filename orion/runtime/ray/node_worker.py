"""A worker of a run that goes over several nodes: it runs its tiles up to the next one that another node
waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.calling import CLOCK_STRIDE, ROUND_BITS
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart, Meet, share_of
from orion.runtime.prepared import conflict
from orion.runtime.ray.announced import Announcements
from orion.runtime.ray.beside import Beside
from orion.runtime.ray.between import Between
from orion.runtime.ray.busy import Busy, now
from orion.runtime.ray.exchange import ProgramExchange, usage_in_round
from orion.runtime.ray.holdings import Holdings, Moves
from orion.runtime.ray.last_writers import Send, Usage
from orion.runtime.ray.orders import BARRIER, CopiedParts, Flag, Piece, Results
from orion.runtime.ray.regions import Mask, Section
from orion.runtime.waits import Waits
from orion.runtime.worker import Worker
from orion.sets.names import isl_name

LOOK_SECONDS = 0.0002
"""How often a worker that has done its iterations looks whether the updates of other nodes are there."""

Post = Callable[[str, tuple[Flag, ...], tuple[Piece, ...], tuple[Results | CopiedParts, ...]], None]
"""Sends flags, pieces of arrays and results to a node."""


class NodeWorker(Worker):
    """Worker `number`, whose node is not the only one of the run; `others` are those that take part in it.

    `arrays` are the dense arrays of the run by name. `between` are the threads of its node that bring things while
    loops run, of the first worker there, which `carries`. `announced` are the rows of arrays that tiles need to be
    there.
    """

    def __init__(
        self,
        number: int,
        workers: int,
        parts: tuple[LoopPart, ...],
        memory: RunMemory,
        meet: Meet,
        exchange: ProgramExchange,
        holdings: Holdings,
        others: tuple[str, ...],
        arrays: Mapping[str, NDArray[Any]],
        between: Between,
        carries: bool,
        announced: Announcements,
        post: Post,
    ) -> None:
        super().__init__(number, workers, parts, memory, meet)
        self._program = exchange
        self._exchange = exchange.loops
        self._holdings = holdings
        self._state = holdings.begin
        self._values: tuple[Any, ...] = ()
        self.sent_bytes = 0
        """The contents of arrays, and of copies of arrays, that this worker has sent to other nodes."""
        self.busy = tuple(Busy() for _ in parts)
        """How long it was busy in each loop; where shares do not follow times, its tiles wait for others in that."""
        self._others = others
        self._arrays = arrays
        self.between, self._carries = between, carries
        self._post = post
        self._needed = [[one for one in announced if one.loop == part.number] for part in parts]
        self.waited = 0
        """How many nanoseconds it has waited for rows that its tiles have announced."""

    def loop(self, number: int, *values: Any) -> tuple[Any, ...]:
        """As of any worker. Which elements a loop touches may depend on the scalars that it is given."""
        self._values = values
        return super().loop(number, *values)

    def walk(self, part: LoopPart) -> None:
        """Run the tiles, and send what other nodes wait for as soon as it is there."""
        exchange = self._exchange[part.number]
        if exchange.is_at_home and part.loop.plan.takes_tiles:  # nobody sends anything before it ends
            super().walk(part)
            return
        sends, awaiting = exchange.sends, exchange.awaiting if part.loop.follows_times else frozenset()
        needed = self._needed[part.number]
        start, begun = 0, now()
        for at, tile in enumerate(part.tiles.tolist()):
            if any(one.need[tile] for one in needed):
                self._walk_some(part, start, at)
                self._wait_for_rows(part, tile)
                start = at
            if tile in awaiting:
                self._walk_some(part, start, at)
                self._wait_apart(part, tile)
                start = at
            if tile in sends:
                self._walk_some(part, start, at + 1)
                self._send(part, tile, sends[tile])
                start = at + 1
        self._walk_some(part, start, part.tiles.size)
        self.busy[part.number].add_loop(begun)

    def _wait_apart(self, part: LoopPart, tile: int) -> None:
        """Wait for what a tile waits for before the walk that runs it, so that waiting is no part of its time."""
        offsets, waits, lags = part.waits
        self.wait_for_some(part, (offsets.item(tile), offsets.item(tile + 1)), waits, lags)

    def _wait_for_rows(self, part: LoopPart, tile: int) -> None:
        """Wait until the rows are there that a tile has announced."""
        before, fetched = now(), self.memory.fetched[part.number]
        while any(fetched[one.number * CLOCK_STRIDE] < one.need[tile] for one in self._needed[part.number]):
            self.check(part)
            sleep(LOOK_SECONDS)
        self.waited += now()[0] - before[0]
        self.busy[part.number].leave_out(before)

    def _walk_some(self, part: LoopPart, start: int, stop: int) -> None:
        if start < stop:
            before = now()
            part.run(part.tiles[start:stop])
            self.busy[part.number].add_tiles(before)
        self.check(part)

    def _send(self, part: LoopPart, tile: int, sends: tuple[Send, ...]) -> None:
        flag, before = Flag(part.number, tile, part.round), now()
        for send in sends:
            self._post(send.node, (flag,), self._pieces(send.regions), ())
        self.busy[part.number].leave_out(before)

    def _pieces(self, regions: tuple[Section, ...]) -> tuple[Piece, ...]:
        pieces = tuple(Piece(region, region.of(self._arrays[region.array])) for region in regions)
        self.sent_bytes += sum(piece.data.nbytes for piece in pieces)
        return pieces

    # ------------------------------------------------------------ meeting the other workers

    def _keep_order(self, part: LoopPart) -> None:
        """Meet where nodes lack what the loop needs, or where it must wait for what was run before it."""
        usage = self._usage(part)
        moves, self._state = self._holdings.before(self._state, part.number, usage)
        is_touched = any(other is not part and conflict(other.loop, part.loop) for other in self.pending)
        if is_touched or moves or (part in self.pending and not self.may_overlap(part)):
            self._bring(moves)
        part.wait_for(None)
        self._state = self._holdings.after(self._state, part.number, usage)
        if part not in self.pending:
            self.pending.append(part)
        between = self._between(part)
        if between is not None:
            self._begin_late(part, between)

    def _between(self, part: LoopPart) -> Beside | None:
        """What brings updates of a loop that may be late, or copies of arrays, from node to node while it runs."""
        if self._exchange[part.number].is_at_home:
            return None
        return self.between.of(part.loop.plan)

    def _begin_late(self, part: LoopPart, between: Beside) -> None:
        """Meet when all nodes are ready for a round."""
        if self._carries:
            between.begin(part)
        pending = [*self.pending]
        self._arrive((), ())
        self.pending = pending
        if self._carries:
            between.go()

    def after_tiles(self, part: LoopPart) -> None:
        """Wait until the updates of all nodes are here, and arrays with copies as they are after the last meeting."""
        between = self._between(part)
        if between is None:
            return
        done = (part.round + 1) << ROUND_BITS
        clocks = self.memory.clocks[part.number][::CLOCK_STRIDE]
        if self._carries:
            between.wait()
        while True:
            is_over = not (clocks < done).any()
            self.check(part)  # also of what was found last, when all were through
            if is_over:
                return
            sleep(LOOK_SECONDS)

    def meet(self, finished: LoopPart | None = None) -> None:
        """Wait for all workers on all nodes; the results of a loop that was just `finished` are then everywhere."""
        if finished is None:
            self._arrive((), ())
        else:
            self._arrive((), self._own_results(finished), finished)

    def waits_after(self, before: LoopPart | None, part: LoopPart) -> Waits | None:
        """None: workers meet, which is when arrays are sent to other nodes."""
        return None

    def wait_for_all(self, part: LoopPart) -> None:
        """Meet: results are sent to other nodes too."""
        self.meet(part)

    def finish(self) -> None:
        """Bring what was written to the home node."""
        moves, self._state = self._holdings.at_end(self._state)
        self._bring(moves)

    @property
    def held(self) -> dict[str, Mask]:
        """The cells of each array that nodes have as they are, bool (nodes, *cells)."""
        return {array: held.by for array, held in self._state.held.items()}

    def may_overlap(self, part: LoopPart) -> bool:
        """Whether a loop may begin its next round before all workers have finished this one."""
        return self._exchange[part.number].rounds_overlap

    def share(self, part: LoopPart) -> tuple[int, ...]:
        """As of any worker; of a loop on one node alone worker 0 combines all elements."""
        if self._exchange[part.number].is_at_home:
            return () if self.number else (0, 1)
        return super().share(part)

    def _bring(self, moves: Moves) -> None:
        """Meet, with what this worker sends to other nodes. Before that they meet without: others of its node may have
        written some of that, and what was sent for a next round, which no tile has waited for, must be everywhere: it
        may be of the same cells, and late on its way to a third node.
        """
        if moves or any(self._exchange[part.number].rounds_overlap for part in self.pending):
            self._arrive((), ())
        self._arrive(moves[self.number] if moves else (), ())

    def _arrive(self, sends: tuple[Send, ...], results: tuple[Results, ...], finished: LoopPart | None = None) -> None:
        flag = Flag(BARRIER, self.number, self.barriers)
        regions = {send.node: send.regions for send in sends}
        for node in self._others:
            copies = () if finished is None else tuple(self._copied_parts(finished, node))
            self._post(node, (flag,), self._pieces(regions.get(node, ())), (*results, *copies))
        super().meet()

    def _copied_parts(self, part: LoopPart, node: str) -> Iterator[CopiedParts]:
        """Of this worker's copies, the elements that workers of a node combine."""
        if self._exchange[part.number].is_at_home:
            return
        number = self._program.nodes.index(node)
        there = [worker for worker, place in enumerate(self._program.place) if place == number]
        turn = part.round & 1
        for copy, one in enumerate(part.copied):
            length = one.pair.shape[2]
            first, last = share_of(length, there[0], self.workers)[0], share_of(length, there[-1], self.workers)[1]
            values = one.pair[turn][one.blocks, first:last]
            self.sent_bytes += values.nbytes
            yield CopiedParts(part.number, copy, turn, one.blocks, first, values)

    def _usage(self, part: LoopPart) -> Mapping[str, Usage]:
        """What the loop that is begun uses."""
        values = dict(zip(map(isl_name, part.loop.inputs), self._values, strict=True))
        return usage_in_round(self._program, part.number, part.loop.schedule, values)

    def _own_results(self, part: LoopPart) -> tuple[Results, ...]:
        """The partial results of this worker's tiles; carried scalars are those of worker 0."""
        turn = part.round & 1
        found = []
        for output, (_, _, op, pair) in enumerate(part.outputs):
            tiles = part.tiles if op else np.zeros(1 if self.number == 0 else 0, np.int64)
            found.append(Results(part.number, output, turn, tiles, pair[turn][tiles]))
        return tuple(found)
