"""What threads have in common by which the home node pulls copies of arrays (`orion.replicate`) for workers of other
nodes: it has the array, they have their copies, and messages go there and back.

A worker of another node that asks for something says so beside its clock. The thread of its node sends the home node
what goes with that, of all replicas of the loop in one message, and puts what comes back where the worker takes it
from. When a worker has done all of its iterations it says that, too.
"""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from orion.arrays.policies import Elastic
from orion.dataclass import dataclass
from orion.ir.replicas import Replica
from orion.kernel.calling import CLOCK_STRIDE, PAST_ALL, ROUND_BITS
from orion.runtime.parts import LoopPart
from orion.runtime.ray.beside import Pause
from orion.runtime.ray.brings import Brings
from orion.runtime.ray.orders import Brought, Flag, meeting_of
from orion.schedule.schedule import Ints

DONE = 1 << ROUND_BITS
"""In place of what a worker asks for: it has done all of its iterations."""


@dataclass(frozen=True, eq=False)
class Shared:
    """One replica on a node: the `copies` of all workers and what they have `posted`, as (rows, elements), and the
    elements of the array."""

    replica: Replica
    copies: NDArray[Any]
    posted: NDArray[Any]
    array: NDArray[Any]


class AtHome(Brings):
    """The thread of a node in a run. `asks_at` is the place beside the clock of a worker where it says what it asks
    for. What it has `sent` has, in place of meetings, the pulls of workers of other nodes."""

    asks_at: ClassVar[int]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._is_home = self._nodes.own == 0
        self._replicas = tuple[Shared, ...]()
        self._pause = Pause()
        self._busy: set[int] = set()
        """The other nodes that have workers with iterations to do, on the home node."""

    # ------------------------------------------------------------ a round of a loop

    def begin(self, part: LoopPart) -> None:
        """Be ready for a round: nobody has begun it on any node."""
        from orion.kernel.support.carried import set_clock

        if self.loop != part.number:
            self.loop = part.number
            self._replicas = tuple(map(self._shared, part.loop.plan.nest.replicas))
        self._base = part.round << ROUND_BITS
        with_tiles = [worker for worker, own in enumerate(part.loop.schedule.order) if len(own)]
        self._busy = {self._nodes.place[worker] for worker in with_tiles} - {0}
        self._alphas = [self._policy(one).alpha_of(len(with_tiles)) for one in self._replicas]
        self._look()
        set_clock(np.zeros(CLOCK_STRIDE, np.int64), 0, 0)  # compiles it, or takes it from the disk

    def _shared(self, one: Replica) -> Shared:
        copies = self._arrays[one.copies]
        posted = self._arrays[one.posted[0]] if one.posted else copies[:0]
        copies, posted = (array.reshape(len(array), prod(array.shape[1:])) for array in (copies, posted))
        return Shared(one, copies, posted, self._arrays[one.array].reshape(-1))

    @staticmethod
    def _policy(one: Shared) -> Elastic:
        policy = one.replica.policy
        assert isinstance(policy, Elastic)
        return policy

    def _look(self) -> tuple[Ints, Ints]:
        """The clocks of the workers of this node, and what they ask for."""
        return self._clocks(self._here), self._clocks(self._here, self.asks_at)

    # ------------------------------------------------------------ what comes from other nodes

    def room(self, loop: int, number: int, pull: int, workers: Ints) -> tuple[NDArray[Any], Any]:
        """Where goes what comes of replica `number` for a pull of a worker: an array, (1, elements), and an index."""
        self._check(loop)
        rows, first = self._rows(number, pull)
        first += workers.item(0)
        return rows[first : first + 1], ...

    def note(self, loop: int, who: int, told: int) -> None:
        """Note what worker `who` of another node asks for, or, on its own node, what it is given; or, by `DONE`, that
        it has done all of its iterations, and, by -1 - its number, that all workers of a node have."""
        self._check(loop)
        if who >= 0 and not self._is_home:
            self._note_answered(who, told)
            return
        with self._news:
            if who < 0:
                self._busy.discard(-1 - who)
            elif told == DONE:
                self._set_done(who)
            else:
                self._note_asked(who, told)
            self._news.notify_all()

    @abstractmethod
    def _rows(self, number: int, pull: int) -> tuple[NDArray[Any], int]:
        """The rows of memory from and to which go copies of replica `number` for a pull, and which is that of the first
        worker."""

    @abstractmethod
    def _note_asked(self, worker: int, told: int) -> None:
        """Note at home what a worker of another node asks for."""

    @abstractmethod
    def _note_answered(self, worker: int, told: int) -> None:
        """Let a worker of this node go on."""

    def _set_done(self, worker: int) -> None:
        if self._memory.clocks[self.loop][worker * CLOCK_STRIDE] < PAST_ALL:
            self._set_clock(worker, DONE)

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        self._pause.begin()
        if self._is_home:
            self._serve_others()
        else:
            self._ask()

    @abstractmethod
    def _serve_others(self) -> None:
        """Do at home what workers of other nodes ask for, until all of these have done their iterations."""

    def _ask(self) -> None:
        """Ask the home node for what workers of this one ask for, until they have done their iterations."""
        told, at_work = np.full(len(self._here), self._base), self._look()[0] < PAST_ALL
        while at_work.any():
            clocks, asked = self._look()
            come = np.flatnonzero(asked > told)
            for k in come.tolist():
                self._send(0, self._here.item(k), asked.item(k) - self._base)
                self._note(meetings=1)
            told[come] = asked[come]
            ended = at_work & (clocks >= self._base + DONE) & (asked <= told)
            at_work &= ~ended
            if ended.any():
                flags = [Flag(meeting_of(self.loop), worker, DONE) for worker in self._here[ended].tolist()]
                last = [] if at_work.any() else [Flag(meeting_of(self.loop), -1 - self._nodes.own, DONE)]
                self._deliver(0, (*flags, *last))
            if len(come) or ended.any():
                self._pause.begin()
            else:
                self._leave_if_over()
                self._pause()
        for worker in np.flatnonzero(np.array(self._nodes.place) != self._nodes.own).tolist():
            self._set_done(worker)  # nobody here waits for those of other nodes

    def _pull_of(self, told: int) -> int:
        """The number of the pull in what a worker asks for or is given."""
        return told

    def _send(self, node: int, worker: int, told: int) -> None:
        """Send a node what a worker asks for, or is given, of all replicas."""
        pull, brought = self._pull_of(told), []
        for number in range(len(self._replicas)):
            rows, first = self._rows(number, pull)
            values = rows[first + worker : first + worker + 1]
            brought.append(Brought(self.loop, number, pull, np.array([worker]), values))
        self._deliver(node, (Flag(meeting_of(self.loop), worker, told),), tuple(brought))
