"""A worker of a run that goes over several nodes: it runs its tiles up to the next one that another node
waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.calling import GO
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart, Walk
from orion.runtime.ray.exchange import LoopExchange, Region, Send, merged_regions
from orion.runtime.ray.orders import BARRIER, Flag, Piece, Results
from orion.runtime.waits import Waits
from orion.runtime.worker import AbortedError, Worker

Post = Callable[[str, tuple[Flag, ...], tuple[Piece, ...], tuple[Results, ...]], None]
"""Sends flags, pieces of arrays and results to a node."""


class NodeWorker(Worker):
    """Worker `number`, whose node is the first of `nodes`; the others are those that take part in the run.

    `arrays` are the dense arrays of the run by name. `home` is the node that the final contents of arrays go
    to.
    """

    def __init__(
        self,
        number: int,
        workers: int,
        parts: tuple[LoopPart, ...],
        memory: RunMemory,
        meet: Walk,
        exchange: tuple[LoopExchange, ...],
        others: tuple[str, ...],
        home: str,
        arrays: Mapping[str, NDArray[Any]],
        post: Post,
    ) -> None:
        super().__init__(number, workers, parts, memory, meet)
        self._exchange = exchange
        self._others = others
        self._home = home
        self._arrays = arrays
        self._post = post

    def walk(self, part: LoopPart, arguments: list[Any]) -> None:
        """Run the tiles, and send what other nodes wait for as soon as it is there."""
        sends = self._exchange[part.number].sends
        start = 0
        for at, tile in enumerate(part.tiles.tolist(), start=1):
            if tile in sends:
                self._walk_some(part, start, at, arguments)
                self._send(part, tile, sends[tile])
                start = at
        self._walk_some(part, start, part.tiles.size, arguments)

    def _walk_some(self, part: LoopPart, start: int, stop: int, arguments: list[Any]) -> None:
        if start < stop:
            part.walk(part.tiles[start:stop], part.round, *part.leading, *arguments)
        if part.control[0] != GO:
            self.memory.abort()
            raise AbortedError

    def _send(self, part: LoopPart, tile: int, sends: tuple[Send, ...]) -> None:
        flag = Flag(part.number, tile, part.round)
        for send in sends:
            self._post(send.node, (flag,), self._pieces(send.regions), ())

    def _pieces(self, regions: tuple[Region, ...]) -> tuple[Piece, ...]:
        return tuple(Piece(region, region.of(self._arrays[region.array])) for region in regions)

    # ------------------------------------------------------------ meeting the other workers

    def meet(self, finished: LoopPart | None = None) -> None:
        """Wait for all workers on all nodes; what was written since the last time is then everywhere."""
        self._meet_after(self._finals(), self._others, finished)

    def waits_after(self, before: LoopPart | None, part: LoopPart) -> Waits | None:
        """None: workers meet, which is when arrays are sent to other nodes."""
        return None

    def wait_for_all(self, part: LoopPart) -> None:
        """Meet: results are sent to other nodes too."""
        self.meet(part)

    def finish(self) -> None:
        """Bring what was written to the home node."""
        self._meet_after(self._finals(), (self._home,), None)

    def may_overlap(self, part: LoopPart) -> bool:
        """Whether a loop may begin its next round before all workers have finished this one."""
        return self._exchange[part.number].rounds_overlap

    def share(self) -> tuple[int, ...]:
        """Worker 0 has the arrays that are written on one node alone, and combines all of their elements."""
        return () if self.number else (0, 1)

    def _finals(self) -> tuple[Region, ...]:
        """What this worker has to send of the arrays written since the last meeting, once it is all there."""
        loops = [self._exchange[part.number] for part in self.pending]
        if any(loop.is_gathered for loop in loops):
            self._arrive((), (), ())
        return merged_regions(region for loop in loops for region in loop.finals[self.number])

    def _meet_after(self, regions: tuple[Region, ...], receivers: tuple[str, ...], finished: LoopPart | None) -> None:
        results = () if finished is None else self._own_results(finished)
        self._arrive(regions, receivers, results)

    def _arrive(self, regions: tuple[Region, ...], receivers: tuple[str, ...], results: tuple[Results, ...]) -> None:
        flag = Flag(BARRIER, self.number, self.barriers)
        for node in self._others:
            self._post(node, (flag,), self._pieces(regions) if node in receivers else (), results)
        super().meet()

    def _own_results(self, part: LoopPart) -> tuple[Results, ...]:
        """The partial results of this worker's tiles; carried scalars are those of worker 0."""
        turn = part.round & 1
        found = []
        for output, (_, _, op, pair) in enumerate(part.outputs):
            tiles = part.tiles if op else np.zeros(1 if self.number == 0 else 0, np.int64)
            found.append(Results(part.number, output, turn, tiles, pair[turn][tiles]))
        return tuple(found)
