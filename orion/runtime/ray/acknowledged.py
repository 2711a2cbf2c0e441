"""Which clocks of other nodes' workers a node has, of loops whose workers rest between tiles: what nodes tell others.

A worker that rests is waited for by nobody. Elsewhere it is seen to rest for a while after it has begun its next tile,
whose iterations go on from the latest clock that it has found. Let worker v before its k-th iteration wait until each
other node has acknowledged a clock a ≥ k - max_delay of v, of the tile that v is in; a node acknowledges what has come
before it reads the clocks of its own workers, and tells both in one message. A worker w there that had begun by then is
seen at v. If it begins later, it finds v at a or further on, as v is in that tile still: so its first iteration is
c ≥ a, and none of its updates up to k - max_delay ≤ a is missing at v. Clocks grow with each tile, so that one
of an earlier tile is not taken for one of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from orion.dataclass import dataclass
from orion.kernel.calling import ACKS, PAST_ALL, ROUND_BITS, resting
from orion.schedule.schedule import Ints


@dataclass(frozen=True, slots=True)
class Acks:
    """What a node is to tell of the clocks that it has: `of[place]` for that node, as what stands for a worker of it
    there (`ack_of`) and its clock. `is_due`: somebody may wait for one of them. `come` are these clocks by workers."""

    of: Mapping[int, Sequence[tuple[int, int]]]
    is_due: bool
    come: Ints


NO_ACKS = Acks({}, False, np.zeros(0, np.int64))


class Ack(NamedTuple):
    """Node number `node` has a clock of a worker; told to that node itself, it is asked to say so."""

    node: int
    worker: int


def ack_of(ack: Ack, workers: int) -> int:
    """What stands for it where a worker of so many is named.

    >>> ack_of(Ack(node=2, worker=3), workers=4), ack_in(-12, workers=4)
    (-12, Ack(node=2, worker=3))
    """
    return -1 - (ack.node * workers + ack.worker)


def ack_in(number: int, workers: int) -> Ack:
    """What such a number stands for."""
    return Ack(*divmod(-1 - number, workers))


class Acknowledged:
    """Those of a round of loop number `loop`, at a node with the workers `here`; worker w is on node `place[w]`.
    `clocks` are those of the loop in memory, and `notes` the notes of its workers. What comes late of another loop says
    nothing here."""

    def __init__(
        self, loop: int, round: int, clocks: Ints, notes: Ints, place: Sequence[int], here: Ints, max_delay: int
    ) -> None:
        self.loop, self._clocks, self._notes = loop, clocks, notes
        self._place, self._here = np.array(place), here
        self._own = int(self._place[here[0]])
        self._first, self._rest, self._done = (round << ROUND_BITS) + 1, resting(round), (round + 1) << ROUND_BITS
        self._step, self._tell = max(1, max_delay // 8), max(1, max_delay // 4)
        self._lock = Lock()
        self._last, self._come, self._asked, self._told, self._begun = np.zeros((5, len(self._place)), np.int64)
        """By workers: the last clock that has come from other nodes, and the last of a tile; the one that is asked for,
        and the one that others know to be here; of this node's the first of the tile that others were told of."""
        self._has = np.full((int(self._place.max()) + 1, len(self._place)), self._first)
        """Which clocks of this node's workers each node has."""
        self._has[self._own] = PAST_ALL
        self._note_least()

    # ------------------------------------------------------------ clocks of others

    def note_clock(self, worker: int, value: int) -> None:
        """The clock of a worker of another node has come."""
        with self._lock:
            self._last[worker] = value
            if self._first <= value < self._rest:
                self._come[worker] = value
            node = self._place[worker]
            if value >= self._done and (self._last[self._place == node] >= self._done).all():
                self._has[node] = PAST_ALL  # none of its workers begins a tile any more
                self._note_least()

    def note(self, number: int, value: int) -> None:
        """Another node has told which clock of a worker of this node it has, or asked for one of its own workers to be
        acknowledged."""
        node, worker = ack_in(number, len(self._place))
        with self._lock:
            if node == self._own:
                self._asked[worker] = value
            else:
                self._has[node, worker] = max(self._has[node, worker], value)
                self._note_least()

    def due(self) -> Acks:
        """What the others are to be told of these; to be asked before the clocks of this node's workers are read."""
        with self._lock:
            come = self._come.copy()
            new = np.flatnonzero(come > self._told)
            is_due = (come - self._told >= self._step) | (self._asked > self._told)
        of: dict[int, list[tuple[int, int]]] = {}
        for worker in new.tolist():
            told = ack_of(Ack(self._own, worker), len(come)), int(come[worker])
            of.setdefault(int(self._place[worker]), []).append(told)
        return Acks(of, bool(is_due[new].any()), come)

    def told(self, acks: Acks, clocks: Ints) -> None:
        """The others have been told of these, and asked for what they have of `clocks`."""
        if len(acks.come):
            self._told = np.maximum(self._told, acks.come)
        self._begun[self._here] = np.maximum(self._begun[self._here], self.begun(clocks))

    # ------------------------------------------------------------ clocks of this node's workers

    def begun(self, clocks: Ints) -> Ints:
        """Of workers of this node that are in a tile by their clocks, as these were read, the first clock of that tile;
        0 of others."""
        first = self._notes[self._here, ACKS]
        return np.where((first <= clocks) & (clocks < self._rest), first, 0)

    def must_tell(self, clocks: Ints, told: Ints) -> bool:
        """Whether clocks of this node's workers must go to others, who know of those that they were `told`: where a
        worker has begun a tile or ended one, or come as far as somebody may wait for."""
        is_in_tile = (self._first <= clocks) & (clocks < self._rest)
        is_new = (self.begun(clocks) > self._begun[self._here]) | (clocks - told >= self._tell)
        return bool(np.where(is_in_tile, is_new, clocks != told).any())

    def asks(self, node: int, clocks: Ints) -> list[tuple[int, int]]:
        """What is asked of a node together with these clocks: as what stands for a worker, to have them acknowledged
        from the first one of its tile on."""
        begun = self.begun(clocks)
        new = np.flatnonzero(begun > self._begun[self._here])
        workers = len(self._place)
        return [(ack_of(Ack(node, int(self._here[at])), workers), int(begun[at])) for at in new]

    def _note_least(self) -> None:
        from orion.kernel.support.carried import set_acknowledged

        least = self._has.min(axis=0)
        for worker in self._here.tolist():
            set_acknowledged(self._clocks, worker, int(least[worker]))
