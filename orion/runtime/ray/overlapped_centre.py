"""Where the copies of arrays are pulled whose workers go on meanwhile (`orion.elastic(overlap=True)`), when there are
several nodes: on the home node, which has the array c and all posts.

What worker w of another node needs for its pull k is d[k] = a (y[k-1] - c[k-1]), of what all have posted before the
steps that it is at (`orion.kernel.support.overlapped`). The home node works it out and sends it meanwhile; the worker
takes it from its copy after these steps, and its node sends home what it posts then, y[k] = x - d[k]. So a worker waits
where a message takes longer there and back than its steps, and no message is waited for otherwise.

At home each worker of another node has a `Stand`, which does what the worker would do there, step by step, each when
the posts are there that it needs: its part of the elements of c[k], its posts, and its last pull. The results are those
of as many workers on one node, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orion.kernel.calling import COUNT, GIVEN, NOTES_SIZE, POSTED, ROUND, SETTLED, WORKER
from orion.runtime.parts import LoopPart
from orion.runtime.ray.at_home import AtHome
from orion.runtime.worker import AbortedError
from orion.schedule.schedule import Ints


class Step(Enum):
    """What a stand does next: take what its worker posts; work out what it is to be given; the same for the last time;
    leave the array as it is; nothing."""

    TAKE = auto()
    GIVE = auto()
    SETTLE_OWN = auto()
    SETTLE_ARRAY = auto()
    OVER = auto()


class Stand:
    """The stand of a worker of another node. `notes` are those of a worker, `came` what it has posted, 2 k + whether
    for the last time, and has not been taken; 0 for nothing."""

    def __init__(self, worker: int, round: int) -> None:
        self.worker = worker
        self.notes: Ints = np.zeros(NOTES_SIZE, np.int64)
        self.notes[WORKER], self.notes[ROUND] = worker, round
        self.came, self.step = 0, Step.TAKE

    @property
    def is_at_work(self) -> bool:
        """Whether there is something to be done. One whose worker has no iterations in a round has nothing to take."""
        return bool(self.came) or self.step not in (Step.TAKE, Step.OVER)

    @property
    def next_pull(self) -> int:
        return self.notes.item(COUNT) + 1


class OverlappedCentre(AtHome):
    """That of a node, of loops whose workers go on while copies are pulled."""

    asks_at = POSTED

    def begin(self, part: LoopPart) -> None:
        super().begin(part)
        order, place = part.loop.schedule.order, self._nodes.place
        elsewhere = [worker for worker, own in enumerate(order) if len(own) and place[worker]]
        self._stands = {worker: Stand(worker, part.round) for worker in elsewhere}
        if self._is_home:
            self._compile(part)

    def _compile(self, part: LoopPart) -> None:
        """Compile what stands call, or take it from the disk."""
        from orion.kernel.support.overlapped import (
            give,
            give_last,
            posts_are_there,
            settle_for,
            settles_for,
            take_post,
        )

        clocks, control = np.zeros_like(self._memory.clocks[self.loop]), self._memory.control[self.loop]
        for one, alpha in zip(self._replicas, self._alphas, strict=True):
            notes, none = Stand(0, part.round).notes, (one.array[:0].copy(), one.posted[:, :0].copy())
            for do in (give, give_last):
                do(*none, alpha, 0, clocks, notes, control)
            take_post(clocks, notes, False)
            settle_for(*none, alpha, 0, clocks, notes, control)
            posts_are_there(clocks, notes)
            settles_for(clocks, notes)

    # ------------------------------------------------------------ what comes from other nodes

    def _pull_of(self, told: int) -> int:
        return told >> 1

    def _rows(self, number: int, pull: int) -> tuple[NDArray[Any], int]:
        """Posts of odd and even pulls have their own rows: at home nobody reads y[k-2] any more when y[k] comes, as all
        have posted k - 1 times since; on its own node a worker has sent y[k-2] when it is given d[k]."""
        posted = self._replicas[number].posted
        return posted, (pull & 1) * (len(posted) // 2)

    def _note_asked(self, worker: int, told: int) -> None:
        self._stands[worker].came = told

    def _note_answered(self, worker: int, told: int) -> None:
        self._set_clock(worker, self._pull_of(told), GIVEN)

    # ------------------------------------------------------------ the thread of the home node

    def _serve_others(self) -> None:
        while self._busy or any(stand.is_at_work for stand in self._stands.values()):
            has_gone_on = False
            for stand in self._stands.values():
                while self._goes_on(stand):
                    has_gone_on = True
            if has_gone_on:
                self._pause.begin()
            else:
                self._leave_if_over()
                self._pause()

    def _goes_on(self, stand: Stand) -> bool:
        """Do the next step of a stand, if it can be done."""
        steps: dict[Step, Callable[[Stand], bool]] = {
            Step.TAKE: self._take, Step.GIVE: self._give, Step.SETTLE_OWN: self._settle_own,
            Step.SETTLE_ARRAY: self._settle_array, Step.OVER: lambda _: False,
        }  # fmt: skip
        return steps[stand.step](stand)

    def _take(self, stand: Stand) -> bool:
        from orion.kernel.support.overlapped import take_post

        with self._news:
            came, stand.came = stand.came, 0
        if not came:
            return False
        take_post(self._memory.clocks[self.loop], stand.notes, bool(came & 1))
        stand.step = Step.SETTLE_OWN if came & 1 else Step.GIVE
        return True

    def _give(self, stand: Stand) -> bool:
        from orion.kernel.support.overlapped import give

        if not self._has_posts(stand):
            return False
        self._of_each(stand, give)
        self._answer(stand)
        stand.step = Step.TAKE
        return True

    def _settle_own(self, stand: Stand) -> bool:
        from orion.kernel.support.overlapped import give_last

        if not self._has_posts(stand):
            return False
        self._of_each(stand, give_last)
        self._answer(stand)
        self._keep_copies(stand)
        stand.step = Step.SETTLE_ARRAY
        self._set_clock(stand.worker, 1, SETTLED)
        return True

    def _keep_copies(self, stand: Stand) -> None:
        """Keep the copies of a worker as they are on its node when it was pulled for the last time."""
        for number, one in enumerate(self._replicas):
            (rows, posted), (_, given) = (self._rows(number, pull) for pull in (stand.next_pull - 1, stand.next_pull))
            one.copies[stand.worker] = rows[posted + stand.worker] - rows[given + stand.worker]

    def _settle_array(self, stand: Stand) -> bool:
        from orion.kernel.support.overlapped import settle_for, settles_for

        settles = settles_for(self._memory.clocks[self.loop], stand.notes)
        if settles < 0:
            return False
        if settles:
            self._of_each(stand, settle_for)
        stand.step = Step.OVER
        return True

    def _has_posts(self, stand: Stand) -> bool:
        from orion.kernel.support.overlapped import posts_are_there

        return bool(posts_are_there(self._memory.clocks[self.loop], stand.notes))

    def _of_each(self, stand: Stand, do: Callable[..., bool]) -> None:
        """Do something with each replica."""
        clocks, control = self._memory.clocks[self.loop], self._memory.control[self.loop]
        for number, one in enumerate(self._replicas):
            if not do(one.array, one.posted, self._alphas[number], number, clocks, stand.notes, control):
                raise AbortedError

    def _answer(self, stand: Stand) -> None:
        """Send a worker what it takes from its copy at its next pull."""
        self._send(self._nodes.place[stand.worker], stand.worker, 2 * stand.next_pull)
