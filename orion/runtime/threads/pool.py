"""A pool of threads that lives as long as the session, with the calling thread as its first member."""

from __future__ import annotations

import time
from _thread import LockType, allocate_lock
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from orion.arrays.aligned import aligned_zeros
from orion.errors import ArgumentError, describe
from orion.kernel.parking import BOX, CALLED, PARKED, STATE
from orion.own_threads import OwnThread
from orion.schedule.schedule import Ints

Body = Callable[[int], None]
"""What each member runs, called with its number."""

DRAIN_SECONDS = 0.0005
LOOK_SECONDS = 0.2
"""How often the calling thread looks up while it waits, so that signal handlers run."""


class Job:
    """One piece of work for some members of the pool. `unfinished` are the members, other than 0, still at
    it.
    """

    def __init__(self, body: Body, members: int) -> None:
        self.body = body
        self.members = members
        self.unfinished = set(range(1, members))
        self.all_done = allocate_lock()
        self.all_done.acquire()

    def finish(self, member: int) -> None:
        """Note that a member is through. The last one lets the caller go on."""
        self.unfinished.discard(member)
        if not self.unfinished:
            _release(self.all_done)


def _boxes(members: int) -> Ints:
    return aligned_zeros((members, BOX), np.dtype(np.int64)).view(np.int64)


def _nothing(member: int) -> None:
    pass


def _release(lock: LockType) -> None:
    """Release a lock that may be free already."""
    try:  # noqa: SIM105 - `suppress` takes six times as long
        lock.release()
    except RuntimeError:
        pass


class Stay(Job):
    """What parked members do: they come back to it whenever they are woken for it, and nobody waits for them."""

    def finish(self, member: int) -> None:
        """Go on being one of those that may come back."""


class Member:
    """A thread of a pool: what wakes it, and what it is then to do; None to end."""

    def __init__(self, number: int) -> None:
        self.job: Job | None = None
        self._number = number
        self._wake = allocate_lock()
        self._wake.acquire()
        OwnThread(self._serve, f"orion-{number}").start()

    def give(self, job: Job | None) -> None:
        """Hand over a job and wake the thread. Doing it twice does no harm."""
        self.job = job
        _release(self._wake)

    def _serve(self) -> None:
        while True:
            self._wake.acquire()
            job = self.job
            if job is None:
                return
            if self._number in job.unfinished:
                job.body(self._number)
                job.finish(self._number)


class Pool:
    """Runs a function on several threads at once. Member 0 is the thread that calls `run`; the others are
    daemon threads, started when a run first needs them. They do not come along into a process that is forked off,
    which needs a pool of its own.

    The body must raise nothing in the other members. No run may be under way when the pool is closed.

    Between runs, members may stay in compiled code, each with its row of `boxes` (`orion.kernel.parking`). `leading` is
    what posted to them last.
    """

    def __init__(self) -> None:
        self._others: list[Member] = []
        self._job: Job | None = None
        self.boxes: Ints = _boxes(1)
        self.leading: Any = None

    def run(self, body: Body, members: int, abort: Callable[[], None]) -> None:
        """Run `body(m)` on members 0 … `members` - 1 and return when all are through.

        Where it raises in the calling thread (KeyboardInterrupt among others), `abort` is called, which must
        make the others leave; they are waited for, and the exception goes on.
        """
        self.grow(members)
        self._job = Job(body, members)
        try:
            self._give()
            body(0)
            self.wait()
        except BaseException:
            self._leave(abort)
            raise
        finally:
            assert self._job is not None
            self._job.body = _nothing  # the members keep the job until the next one: not the caller's arrays too

    def wait(self) -> None:
        """Wait until the other members are through with the job. Once for each job."""
        job = self._job
        assert job is not None
        while job.members > 1 and not job.all_done.acquire(timeout=LOOK_SECONDS):
            pass  # a signal that comes just before the wait begins does not end it

    def change(self, members: int) -> None:
        """Have members 1 … `members` - 1 run the body too. Called by it in member 0, which has waited for the others;
        the pool has grown to as many."""
        assert self._job is not None
        self._job = Job(self._job.body, members)
        self._give()

    def grow(self, members: int) -> None:
        """Have so many members, the caller's thread among them. ArgumentError where the process has no more threads."""
        others = members - 1
        try:
            while len(self._others) < others:
                self._others.append(Member(len(self._others) + 1))
        except RuntimeError as error:
            what = f"this process cannot start {others + 1} threads, one per worker"
            hint = "ask for fewer workers, orion.init(workers=...), or raise the system's limit (`ulimit -u`)"
            raise ArgumentError(describe(what, why=f"{error}, after {len(self._others) + 1}", hint=hint)) from error

    def park(self, body: Callable[[Pool, int], None], members: int) -> None:
        """Have members come back to their boxes, of which some are away: `body` is what they do there."""
        job = Stay(partial(body, self), members)
        for member in self._others[: members - 1]:
            member.give(job)

    def boxes_for(self, members: int) -> Ints:
        """The boxes of so many members, which there are."""
        self.grow(members)
        if len(self.boxes) < members:
            self._call()  # nobody looks at those that there were
            self.boxes = _boxes(members)
        return self.boxes[:members]

    def _call(self) -> None:
        """Have parked members come out of their boxes."""
        states = self.boxes[:, STATE]
        states[states == PARKED] = CALLED

    def close(self) -> None:
        """End the threads."""
        self._call()
        for member in self._others:
            member.give(None)

    def _give(self) -> None:
        """Have the other members do the job."""
        self._call()
        job = self._job
        assert job is not None
        for member in self._others[: job.members - 1]:
            member.give(job)

    def _leave(self, abort: Callable[[], None]) -> None:
        """Wait until nobody works on the job any more, whatever point `run` was left at; further Ctrl-Cs
        don't hurry it.
        """
        while True:
            try:
                abort()
                self._give()
                while self._job is not None and self._job.unfinished:
                    time.sleep(DRAIN_SECONDS)
                return
            except KeyboardInterrupt:
                continue
