"""A pool of threads that lives as long as the session, with the calling thread as its first member."""

from __future__ import annotations

import time
from _thread import LockType, allocate_lock
from collections.abc import Callable
from threading import Thread

Body = Callable[[int], None]
"""What each member runs, called with its number."""

DRAIN_SECONDS = 0.0005


class Job:
    """One piece of work for some members of the pool. `unfinished` are the members, other than 0, still at
    it.
    """

    def __init__(self, body: Body, members: int) -> None:
        self.body = body
        self.unfinished = set(range(1, members))
        self.all_done = allocate_lock()
        self.all_done.acquire()

    def finish(self, member: int) -> None:
        """Note that a member is through. The last one lets the caller go on."""
        self.unfinished.discard(member)
        if not self.unfinished:
            _release(self.all_done)


def _nothing(member: int) -> None:
    pass


def _release(lock: LockType) -> None:
    """Release a lock that may be free already."""
    try:  # noqa: SIM105 - `suppress` takes six times as long
        lock.release()
    except RuntimeError:
        pass


class Pool:
    """Runs a function on several threads at once. Member 0 is the thread that calls `run`; the others are
    daemon threads. They do not come along into a process that is forked off, which needs a pool of its own.

    The body must raise nothing in the other members. No run may be under way when the pool is closed.
    """

    def __init__(self, members: int) -> None:
        self.members = members
        self._wake: list[LockType] = [allocate_lock() for _ in range(members)]
        self._jobs: list[Job | None] = [None] * members
        for member in range(1, members):
            self._wake[member].acquire()
            Thread(target=self._serve, args=(member,), name=f"orion-{member}", daemon=True).start()

    def run(self, body: Body, members: int, abort: Callable[[], None]) -> None:
        """Run `body(m)` on members 0 … `members` - 1 and return when all are through.

        Where it raises in the calling thread (KeyboardInterrupt among others), `abort` is called, which must
        make the others leave; they are waited for, and the exception goes on.
        """
        job = Job(body, members)
        try:
            for member in range(1, members):
                self._give(member, job)
            body(0)
            if members > 1:
                job.all_done.acquire()
        except BaseException:
            self._leave(job, members, abort)
            raise
        finally:
            job.body = _nothing  # the members keep the job until the next one: it must not keep the caller's arrays

    def close(self) -> None:
        """End the threads."""
        for member in range(1, self.members):
            self._give(member, None)

    def _serve(self, member: int) -> None:
        wake = self._wake[member]
        while True:
            wake.acquire()
            job = self._jobs[member]
            if job is None:
                return
            if member in job.unfinished:
                job.body(member)
                job.finish(member)

    def _give(self, member: int, job: Job | None) -> None:
        """Hand a job to a member and wake it. Doing it twice does no harm."""
        self._jobs[member] = job
        _release(self._wake[member])

    def _leave(self, job: Job, members: int, abort: Callable[[], None]) -> None:
        """Wait until nobody works on the job any more, whatever point `run` was left at; further Ctrl-Cs
        don't hurry it.
        """
        while True:
            try:
                abort()
                for member in range(1, members):
                    self._give(member, job)
                while job.unfinished:
                    time.sleep(DRAIN_SECONDS)
                return
            except KeyboardInterrupt:
                continue
