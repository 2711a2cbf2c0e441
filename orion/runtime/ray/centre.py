"""Where the copies of arrays that workers pull one by one (`orion.replicate`) are pulled when there are several nodes:
on the home node, whose memory has the array. A thread of the first worker of each node, while such a loop runs.

A worker of another node that comes to a pull says so and waits (`orion.kernel.support.replicas.pulled_at_home`). The
thread of its node sends the home node its copy, of all replicas of the loop in one message; the thread there pulls copy
and array together as workers of the home node do, with locks or without, or when it is that worker's turn; and sends
the copy back, with which the worker goes on. So there is one array, pulled by one worker after another or by several
under its locks: what holds of pulls on one node holds here, which alphas are stable above all, and the bits of pulls in
turn. It is the parameter server of the paper (Zhang, Choromanska, LeCun, NIPS 2015): a pull takes a way there and back.

When a worker has done its iterations its node tells the home node, for which it is then past all turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.arrays.policies import Mode
from orion.kernel.calling import ASKED
from orion.runtime.parts import LoopPart
from orion.runtime.ray.at_home import AtHome
from orion.runtime.ray.meetings import LEFT_SECONDS
from orion.runtime.worker import AbortedError


class Centre(AtHome):
    """That of a node, of loops whose workers pull one by one."""

    asks_at = ASKED

    def begin(self, part: LoopPart) -> None:
        super().begin(part)
        self._asked: dict[int, int] = {}
        for number, one in enumerate(self._replicas if self._is_home else ()):
            self._pull(number, one.copies[:1, :0], one.array[:0])  # compiles it, or takes it from the disk

    # ------------------------------------------------------------ what comes from other nodes

    def _rows(self, number: int, pull: int) -> tuple[NDArray[Any], int]:
        """Nobody else reads or writes a copy meanwhile: at home because the worker is elsewhere, and there because it
        waits."""
        return self._replicas[number].copies, 0

    def _note_asked(self, worker: int, told: int) -> None:
        self._asked[worker] = told

    def _note_answered(self, worker: int, told: int) -> None:
        self._set_clock(worker, told)

    # ------------------------------------------------------------ the thread of the home node

    def _serve_others(self) -> None:
        """Pull the copies of workers of other nodes, until these have done all of their iterations."""
        while self._busy or self._asked:
            worker = self._next()
            if worker is not None:
                with self._news:
                    pull = self._asked.pop(worker)
                for number, one in enumerate(self._replicas):
                    self._pull(number, one.copies[worker : worker + 1], one.array)
                self._set_clock(worker, pull)  # before its node knows, which may tell that it has done all
                self._send(self._nodes.place[worker], worker, pull)
                self._pause.begin()
                continue
            self._leave_if_over()
            if self._asked:  # it is the turn of a worker of this node
                self._pause()
                continue
            with self._news:
                self._news.wait_for(lambda: self._asked or not self._busy, LEFT_SECONDS)

    @property
    def _mode(self) -> Mode:
        """That of all replicas of the loop."""
        return self._policy(self._replicas[0]).mode

    def _next(self) -> int | None:
        """A worker of another node whose copy may be pulled now."""
        with self._news:
            asked = dict(self._asked)
        if self._mode is not Mode.ROUND_ROBIN:
            return next(iter(asked), None)
        return next((worker for worker, pull in asked.items() if self._is_turn_of(worker, pull)), None)

    def _is_turn_of(self, worker: int, pull: int) -> bool:
        """Whether the workers before this one have pulled as often as it is about to, and those after it once less."""
        everybody = np.arange(len(self._nodes.place))
        needed = np.where(everybody < worker, pull, pull - 1) + self._base
        needed[worker] = 0
        return bool((self._clocks(everybody) >= needed).all())

    def _pull(self, number: int, copy: NDArray[Any], array: NDArray[Any]) -> None:
        from orion.kernel.support.replicas import pull_for, pull_freely_for

        control = self._memory.control[self.loop]
        alpha = self._alphas[number]
        if self._mode is Mode.ASYNC:
            goes_on = pull_for(copy, array, alpha, number, self._memory.locks, control)
        else:
            goes_on = pull_freely_for(copy, array, alpha, number, control)
        if not goes_on:
            raise AbortedError
