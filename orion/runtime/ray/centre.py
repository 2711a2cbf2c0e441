"""Where the copies of arrays that workers pull one by one (`orion.replicate`) are pulled when there are several nodes:
on the home node, whose memory has the array. A thread of the first worker of each node, while such a loop runs.

A worker of another node that comes to a pull says so and waits (`orion.kernel.support.replicas.pulled_at_home`). The
thread of its node sends the home node its copy, of all replicas of the loop in one message; the thread there pulls copy
and array together as workers of the home node do, with locks or without, or when it is that worker's turn; and sends
the copy back, with which the worker goes on. So there is one array, pulled by one worker after another or by several
under its locks: what holds of pulls on one node holds here, which alphas are stable above all, and the bits of pulls in
turn. It is the parameter server of the paper (Zhang, Choromanska, LeCun, NIPS 2015): a pull takes a way there and back.

When the workers of a node have done their iterations it tells the home node, for which they are then past all turns.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from threading import Condition
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.policies import Elastic, Mode
from orion.ir.replicas import Replica
from orion.kernel.calling import ASKED, CLOCK_STRIDE, PAST_ALL, ROUND_BITS
from orion.runtime.memory import RunMemory
from orion.runtime.parts import LoopPart
from orion.runtime.profile.records import NONE_BROUGHT, BroughtCopies
from orion.runtime.ray.beside import Beside
from orion.runtime.ray.meetings import LEFT_SECONDS, LONG_SECONDS, SHORT_SECONDS, Nodes
from orion.runtime.ray.orders import Brought, Delivery, Flag, meeting_of
from orion.runtime.worker import AbortedError
from orion.schedule.schedule import Ints


@dataclass(frozen=True, eq=False)
class Shared:
    """One replica on a node: the `copies` of all workers as (workers, elements), and the elements of the array."""

    replica: Replica
    copies: NDArray[Any]
    array: NDArray[Any]


class Centre(Beside):
    """That of a node in run `run`. It numbers its deliveries for itself, as `sender`, which is the number of no
    worker."""

    def __init__(
        self,
        run: int,
        sender: int,
        nodes: Nodes,
        memory: RunMemory,
        arrays: Mapping[str, NDArray[Any]],
        fail: Callable[[BaseException], object],
    ) -> None:
        super().__init__("orion-centre", memory, fail)
        self._run, self._sender, self._nodes, self._arrays = run, sender, nodes, arrays
        self._here = nodes.workers_of(nodes.own)
        self.loop, self._base, self._replicas = -1, 0, tuple[Shared, ...]()
        self._alpha = 0.0
        self._news = Condition()
        self._numbers = Counter[str]()
        self._asked: dict[int, int] = {}
        """The pulls that workers of other nodes have come to, on the home node."""
        self._busy: set[int] = set()
        """The other nodes that have workers with iterations to do, on the home node."""
        self.sent: BroughtCopies = NONE_BROUGHT
        """What it has sent in this run, to all nodes; in place of meetings, the pulls of workers of other nodes."""

    @property
    def _is_home(self) -> bool:
        return self._nodes.own == 0

    # ------------------------------------------------------------ a round of a loop

    def begin(self, part: LoopPart) -> None:
        """Be ready for a round: nobody has begun it on any node."""
        if self.loop != part.number:
            self.loop = part.number
            self._replicas = tuple(map(self._shared, part.loop.plan.nest.replicas))
        self._base = part.round << ROUND_BITS
        with_tiles = [worker for worker, own in enumerate(part.loop.schedule.order) if len(own)]
        self._asked = {}
        self._busy = {self._nodes.place[worker] for worker in with_tiles} - {0}
        policy = self._policy
        self._alpha = policy.alpha_of(len(with_tiles))
        self._look()
        for number, one in enumerate(self._replicas if self._is_home else ()):
            self._pull(number, one.copies[:1, :0], one.array[:0])  # compiles it, or takes it from the disk

    def _shared(self, one: Replica) -> Shared:
        copies = self._arrays[one.copies]
        return Shared(one, copies.reshape(len(copies), prod(copies.shape[1:])), self._arrays[one.array].reshape(-1))

    @property
    def _policy(self) -> Elastic:
        policy = self._replicas[0].replica.policy
        assert isinstance(policy, Elastic)
        return policy

    def _look(self) -> tuple[Ints, Ints]:
        """The clocks of the workers of this node, and the pulls that they have come to."""
        from orion.kernel.support.carried import read_clocks

        clocks, asked = np.zeros((2, len(self._here)), np.int64)
        read_clocks(self._memory.clocks[self.loop], self._here, clocks)
        read_clocks(self._memory.clocks[self.loop][ASKED:], self._here, asked)
        return clocks, asked

    # ------------------------------------------------------------ what comes from other nodes

    def room(self, loop: int, number: int, pull: int, workers: Ints) -> tuple[NDArray[Any], Any]:
        """Where the copy of a worker goes, of replica `number`: an array, (1, elements), and an index there. Nobody
        else reads or writes it meanwhile: at home because the worker is elsewhere, and there because it waits."""
        self._check(loop)
        first = workers.item(0)
        return self._replicas[number].copies[first : first + 1], ...

    def note(self, loop: int, who: int, pull: int) -> None:
        """Note that worker `who` of another node has come to a pull, or, on its own node, that it is done; or, by -1 -
        its number, that the workers of a node have done all of their iterations."""
        self._check(loop)
        if who >= 0 and not self._is_home:
            self._set_clock(who, pull)
            return
        with self._news:
            if who >= 0:
                self._asked[who] = pull
            else:
                self._set_done(-1 - who)
                self._busy.discard(-1 - who)
            self._news.notify_all()

    def _check(self, loop: int) -> None:
        if loop != self.loop:
            raise ValueError(f"copies of loop {loop} while loop {self.loop} runs")

    def _set_clock(self, worker: int, clock: int) -> None:
        from orion.kernel.support.carried import set_clock

        set_clock(self._memory.clocks[self.loop], worker, self._base + clock)

    def _set_done(self, node: int) -> None:
        clocks = self._memory.clocks[self.loop]
        for worker in self._nodes.workers_of(node).tolist():
            if clocks[worker * CLOCK_STRIDE] < PAST_ALL:
                self._set_clock(worker, 1 << ROUND_BITS)

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        if self._is_home:
            self._pull_for_others()
        else:
            self._ask()

    def _ask(self) -> None:
        """Send the home node the copies of workers that have come to a pull, until all have done their iterations."""
        told, home, idle = np.full(len(self._here), self._base), self._nodes.names[0], time.monotonic()
        done = self._base + (1 << ROUND_BITS)
        while True:
            clocks, asked = self._look()
            come = np.flatnonzero(asked > told)
            for k in come.tolist():
                worker, pull = self._here.item(k), asked.item(k) - self._base
                self._send(home, worker, pull)
                self._note(meetings=1)
                idle = time.monotonic()
            told[come] = asked[come]
            if not len(come) and (clocks >= done).all():
                break
            self._leave_if_over()
            if not len(come):
                time.sleep(min(LONG_SECONDS, max(SHORT_SECONDS, (time.monotonic() - idle) / 8)))
        self._deliver(home, (Flag(meeting_of(self.loop), -1 - self._nodes.own, 0),), ())
        for node in self._nodes.others:
            self._set_done(node)  # nobody here waits for their workers

    def _pull_for_others(self) -> None:
        """Pull the copies of workers of other nodes, until these have done all of their iterations."""
        idle = time.monotonic()
        while self._busy or self._asked:
            worker = self._next()
            if worker is not None:
                with self._news:
                    pull = self._asked.pop(worker)
                for number, one in enumerate(self._replicas):
                    self._pull(number, one.copies[worker : worker + 1], one.array)
                self._set_clock(worker, pull)  # before its node knows, which may tell that it has done all
                self._send(self._nodes.names[self._nodes.place[worker]], worker, pull)
                idle = time.monotonic()
                continue
            self._leave_if_over()
            if self._asked:  # it is the turn of a worker of this node
                time.sleep(min(LONG_SECONDS, max(SHORT_SECONDS, (time.monotonic() - idle) / 8)))
                continue
            with self._news:
                self._news.wait_for(lambda: self._asked or not self._busy, LEFT_SECONDS)

    def _next(self) -> int | None:
        """A worker of another node whose copy may be pulled now."""
        with self._news:
            asked = dict(self._asked)
        if self._policy.mode is not Mode.ROUND_ROBIN:
            return next(iter(asked), None)
        return next((worker for worker, pull in asked.items() if self._is_turn_of(worker, pull)), None)

    def _is_turn_of(self, worker: int, pull: int) -> bool:
        """Whether the workers before this one have pulled as often as it is about to, and those after it once less."""
        clocks = self._memory.clocks[self.loop][::CLOCK_STRIDE].copy()
        needed = np.where(np.arange(len(clocks)) < worker, pull, pull - 1) + self._base
        needed[worker] = 0
        return bool((clocks >= needed).all())

    def _pull(self, number: int, copy: NDArray[Any], array: NDArray[Any]) -> None:
        from orion.kernel.support.replicas import pull_for, pull_freely_for

        control = self._memory.control[self.loop]
        if self._policy.mode is Mode.ASYNC:
            goes_on = pull_for(copy, array, self._alpha, number, self._memory.locks, control)
        else:
            goes_on = pull_freely_for(copy, array, self._alpha, number, control)
        if not goes_on:
            raise AbortedError

    def _send(self, node: str, worker: int, pull: int) -> None:
        """Send a node the copy of a worker, of all replicas: to be pulled, or after it was."""
        brought = tuple(
            Brought(self.loop, number, pull, np.array([worker]), one.copies[worker : worker + 1])
            for number, one in enumerate(self._replicas)
        )
        self._deliver(node, (Flag(meeting_of(self.loop), worker, pull),), brought)
        self._note(bytes=sum(one.values.nbytes for one in brought))

    def _deliver(self, node: str, flags: tuple[Flag, ...], brought: tuple[Brought, ...]) -> None:
        self._nodes.lines[node].send(Delivery(self._run, self._sender, self._numbers[node], flags, (), brought))
        self._numbers[node] += 1
        self._note(messages=1)

    def _note(self, **more: int) -> None:
        self.sent = self.sent.with_more(**more)
