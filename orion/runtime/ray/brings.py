"""What threads have in common that bring copies of arrays (`orion.replicate`) to other nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Condition
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass
from orion.runtime.memory import RunMemory
from orion.runtime.profile.records import NONE_BROUGHT, BroughtCopies
from orion.runtime.ray.beside import Beside
from orion.runtime.ray.carrier import Line
from orion.runtime.ray.orders import Brought, Delivery, Flag, Piece
from orion.schedule.schedule import Ints


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of a run: worker w is on number `place[w]` of `names`, and this one is number `own`. `lines` are the
    ways to others."""

    names: Sequence[str]
    place: Sequence[int]
    own: int
    lines: Mapping[str, Line]

    @property
    def others(self) -> list[int]:
        """The numbers of the other nodes."""
        return [node for node in range(len(self.names)) if node != self.own]

    def workers_of(self, node: int) -> Ints:
        """The workers of a node."""
        return np.flatnonzero(np.array(self.place) == node)


class Brings(Beside):
    """The thread of a node in run `run`. It numbers its deliveries for itself, as `sender`, which is the number of no
    worker. The clocks of workers in round r of `loop` begin with `_base`."""

    def __init__(
        self,
        run: int,
        sender: int,
        nodes: Nodes,
        memory: RunMemory,
        arrays: Mapping[str, NDArray[Any]],
        fail: Callable[[BaseException], object],
    ) -> None:
        super().__init__("orion-copies", memory, fail)
        self._run, self._sender, self._nodes, self._arrays = run, sender, nodes, arrays
        self._here = nodes.workers_of(nodes.own)
        self._news = Condition()
        self._numbers = Counter[str]()
        self.loop, self._base = -1, 0
        self.sent: BroughtCopies = NONE_BROUGHT
        """What it has sent in this run, to all nodes."""

    def _deliver(
        self, node: int, flags: tuple[Flag, ...], brought: tuple[Brought, ...] = (), pieces: tuple[Piece, ...] = ()
    ) -> None:
        """Send a node copies and parts of arrays, and flags that tell of them."""
        name = self._nodes.names[node]
        self._nodes.lines[name].send(Delivery(self._run, self._sender, self._numbers[name], flags, pieces, brought))
        self._numbers[name] += 1
        size = sum(one.values.nbytes for one in brought) + sum(one.data.nbytes for one in pieces)
        self._note(messages=1, bytes=size)

    def _check(self, loop: int) -> None:
        if loop != self.loop:
            raise ValueError(f"copies of loop {loop} while loop {self.loop} runs")

    def _clocks(self, workers: Ints, place: int = 0) -> Ints:
        """The clocks of some workers, or what stands beside these."""
        from orion.kernel.support.carried import read_clocks

        found = np.zeros(len(workers), np.int64)
        read_clocks(self._memory.clocks[self.loop][place:], workers, found)
        return found

    def _set_clock(self, worker: int, clock: int, place: int = 0) -> None:
        """Set the clock of a worker in this round, or what stands beside it."""
        from orion.kernel.support.carried import set_clock

        set_clock(self._memory.clocks[self.loop][place:], worker, self._base + clock)

    def _note(self, **more: int) -> None:
        self.sent = self.sent.with_more(**more)
